# SPDX-License-Identifier: Apache-2.0
"""Models as ONNX text, targets, and running what was built on a pretended GPU: what the cuDNN tests share."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
from nndeploy_cudnn.plugin import Plugin

from nndeploy.plugin.interface import Artifact, OpenOptions
from nndeploy.target.target import Target, target_from_toml

HEAD = '<ir_version: 10, opset_import: ["": 21]> g '
NUMPY_TYPES = {"float": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
TARGETS = Path(__file__).resolve().parents[3] / "configs" / "targets"


def cudnn_target(name: str) -> Target:
    """Returns one of the targets that come with the project."""
    return target_from_toml(TARGETS / f"{name}.toml")


def model_from_text(text: str, dtype: str = "float") -> ir.Model:
    """Returns a model from what follows its name in ONNX text, shapes inferred; T stands for the type `dtype`."""
    constants = set(re.findall(r"\bT(?:\[[0-9,]*\])? (\w+) = ", text))
    typed = re.sub(r"\bT\b", dtype, re.sub(r"\bT(\[[0-9,]*\])?(?= \w+ = )", r"float\1", text))
    proto = onnx.parser.parse_model(HEAD + typed)
    for tensor in proto.graph.initializer:
        if tensor.name in constants:
            elements = onnx.numpy_helper.to_array(tensor).astype(NUMPY_TYPES[dtype])
            tensor.CopyFrom(onnx.numpy_helper.from_array(elements, tensor.name))
    onnx.checker.check_model(proto)
    return ir.from_proto(onnx.shape_inference.infer_shapes(proto, strict_mode=True, data_prop=True))


def inputs_of(model: ir.Model, seed: int = 0) -> dict[str, np.ndarray]:
    """Returns random values of the size of one for a model's inputs."""
    random = np.random.default_rng(seed)
    return {
        value.name or "": random.standard_normal(value.shape.numpy()).astype(value.dtype.numpy())
        for value in model.graph.inputs
    }


def run_artifact(artifact: Artifact, inputs: Mapping[str, Any], host_gpu: SimpleNamespace) -> dict[str, Any]:
    """Returns the outputs of an artifact as host arrays; `host_gpu` is the fixture of that name."""
    host_gpu.library.version = artifact.metadata["cudnn_version"]
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    session = Plugin().open(files, artifact.metadata, OpenOptions(device="cuda:0"))
    try:
        return {name: array.numpy() for name, array in session.run(inputs).items()}
    finally:
        session.close()
