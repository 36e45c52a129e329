# SPDX-License-Identifier: Apache-2.0
"""What the tests of the cuDNN backend share: planners that live as long as the run, and a session without a GPU."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from cudnn_interpreter import InterpretedHandle
from nndeploy_cudnn import build as build_module
from nndeploy_cudnn import session as session_module
from nndeploy_cudnn import support as support_module
from nndeploy_cudnn.library import HINT, installed_path
from nndeploy_cudnn.planner import Planner
from nndeploy_cudnn.plugin import Plugin
from onnx.reference import ReferenceEvaluator

from nndeploy.cuda.driver import injected_driver
from nndeploy.cuda.host_driver import HostDriver
from nndeploy.plugin.interface import Artifact, BuildOptions, OpenOptions
from nndeploy.target import Gpu, Target, target_from_toml

NUMPY_TYPES = {"float": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
TARGETS = Path(__file__).resolve().parents[3] / "configs" / "targets"


def cudnn_target(name: str) -> Target:
    """Returns one of the targets that come with the project."""
    return target_from_toml(TARGETS / f"{name}.toml")


@pytest.fixture(scope="session")
def needs_cudnn() -> None:
    """Skips a test where cuDNN is not installed."""
    if not installed_path():
        pytest.skip(f"cuDNN is not installed ({HINT})")


@pytest.fixture(scope="session")
def shared_planners() -> Iterator[dict[str, Planner]]:
    """One planner a GPU for the whole run; starting one takes half a second."""
    planners: dict[str, Planner] = {}
    yield planners
    for planner in planners.values():
        planner.close()


@pytest.fixture
def planners(needs_cudnn: None, shared_planners: dict[str, Planner], monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes `supports` and `build` use the shared planners."""

    @contextmanager
    def shared(gpu: Gpu) -> Iterator[Planner]:
        if gpu.name not in shared_planners:
            shared_planners[gpu.name] = Planner(gpu)
        yield shared_planners[gpu.name]

    monkeypatch.setattr(build_module, "planner_for", shared)
    monkeypatch.setattr(support_module, "planner_for", shared)


@pytest.fixture
def host_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A machine whose GPU is host memory and whose cuDNN is numpy: `.driver`, `.handles`, `.library`."""
    found = SimpleNamespace(driver=HostDriver(), handles=[], library=SimpleNamespace(version=0))

    def opened(_library: object) -> InterpretedHandle:
        found.handles.append(InterpretedHandle())
        return found.handles[-1]

    monkeypatch.setattr(session_module, "Handle", opened)
    monkeypatch.setattr(session_module, "cudnn_library", lambda: found.library)
    with injected_driver(found.driver):
        yield found


@pytest.fixture
def run_built(planners: None, host_gpu: SimpleNamespace) -> Callable[..., dict[str, np.ndarray]]:
    """Returns a function that builds a model for a target and runs it on the pretended GPU."""

    def run(
        model: ir.Model, target: Target, inputs: Mapping[str, np.ndarray], options: BuildOptions | None = None
    ) -> dict[str, np.ndarray]:
        artifact = Plugin().build(model, target, options or BuildOptions(), Path())
        return run_artifact(artifact, inputs, host_gpu)

    return run


def run_artifact(artifact: Artifact, inputs: Mapping[str, np.ndarray], host_gpu: SimpleNamespace) -> dict[str, Any]:
    """Returns the outputs of an artifact as host arrays."""
    host_gpu.library.version = artifact.metadata["cudnn_version"]
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    session = Plugin().open(files, artifact.metadata, OpenOptions(device="cuda:0"))
    try:
        return {name: array.numpy() for name, array in session.run(inputs).items()}
    finally:
        session.close()


def model_from_text(text: str, dtype: str = "float") -> ir.Model:
    """Returns a model written as ONNX text, with inferred shapes; in the text, T stands for the type `dtype`."""
    typed = re.sub(r"\bT\b", dtype, re.sub(r"\bT(\[[0-9,]*\])?(?= \w+ = )", r"float\1", text))
    constants = set(re.findall(r"\bT(?:\[[0-9,]*\])? (\w+) = ", text))
    proto = onnx.parser.parse_model(typed)
    for tensor in proto.graph.initializer:
        if tensor.name in constants:
            elements = onnx.numpy_helper.to_array(tensor).astype(NUMPY_TYPES[dtype])
            tensor.CopyFrom(onnx.numpy_helper.from_array(elements, tensor.name))
    onnx.checker.check_model(proto)
    return ir.from_proto(onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True))


def in_float64(model: ir.Model, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns a model's outputs with every real number as float64, by ONNX's own evaluator."""
    proto = onnx.ModelProto.FromString(ir.to_proto(model).SerializeToString())
    del proto.graph.value_info[:]
    reals = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
    for value in (*proto.graph.input, *proto.graph.output):
        if value.type.tensor_type.elem_type in reals:
            value.type.tensor_type.elem_type = onnx.TensorProto.DOUBLE
    for tensor in proto.graph.initializer:
        if tensor.data_type in reals:
            exact = onnx.numpy_helper.to_array(tensor).astype(np.float64)
            tensor.CopyFrom(onnx.numpy_helper.from_array(exact, tensor.name))
    for node in proto.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.name == "to" and attribute.i in reals:
                attribute.i = onnx.TensorProto.DOUBLE
    wide = {name: x.astype(np.float64) if x.dtype.kind in "fV" else x for name, x in inputs.items()}
    with np.errstate(all="ignore"):
        found = ReferenceEvaluator(proto).run(None, wide)
    return dict(zip([output.name for output in proto.graph.output], found, strict=True))
