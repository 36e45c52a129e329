# SPDX-License-Identifier: Apache-2.0
"""What tests of the native backend share: a model as text -> a plan -> run on a level of the kernel library."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import onnxruntime
import pytest
from kernel_library import LEVELS_HERE, ChoicesOf, on_each, run_plan
from nndeploy_native import session
from nndeploy_native.build import build
from nndeploy_native.course import Choice, Course, Empty, Refused, course_from_json, kind_of, plan_file
from nndeploy_native.opened_model import Options
from nndeploy_native.plan import DOCUMENT_FILE, DTYPES, PLAN_FILE, WEIGHTS_FILE, PlanDocument, document_from_json
from nndeploy_native.probe import probe
from nndeploy_native.python_step import PythonStep
from nndeploy_native.python_steps import made_step
from nndeploy_native.session import NativeSession, open_session
from oracle.in_float64 import outputs_in_float64

from nndeploy.bundle.values import decode_values, encode_values
from nndeploy.errors import OtherSizesError
from nndeploy.frontend.contrib_types import contrib_types_known
from nndeploy.passes import optimise
from nndeploy.plugin.interface import Artifact, OpenOptions
from nndeploy.target.target import host_target
from nndeploy.values.types import DimRange

Array = np.ndarray[Any, Any]
HEADER = '<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>'
FLOAT_LEVELS = [level for level in LEVELS_HERE if not level.endswith("bf16")]
RUNS = [(level, threads) for level in FLOAT_LEVELS for threads in (1, 2)]
"""Each level, alone and shared by two threads: for tests that would ask another engine anew for each of them."""
each_float_level = on_each(FLOAT_LEVELS)

ROOM = 40
"""Places along the axis of caches, of which tests fill fewer."""


def model_of(text: str, constants: Mapping[str, Array] | None = None, opset: int = 21) -> ir.Model:
    """Returns a model from ONNX text, with inferred shapes; `constants` become initializers."""
    proto = onnx.parser.parse_model(HEADER.replace("21", str(opset)) + text)
    for name, array in (constants or {}).items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return ir.from_proto(onnx.shape_inference.infer_shapes(proto, data_prop=True))


def contrib_model(text: str, constants: Mapping[str, Array] | None = None, opset: int = 21) -> ir.Model:
    """Returns a model from ONNX text, with shapes inferred of operators of com.microsoft too."""
    proto = onnx.parser.parse_model(HEADER.replace("21", str(opset)) + text)
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(a, name) for name, a in (constants or {}).items())
    with contrib_types_known(proto):
        return ir.from_proto(onnx.shape_inference.infer_shapes(proto, data_prop=True))


def made(model: ir.Model, ranges: Mapping[str, DimRange]) -> Artifact:
    """Returns the artifact of a model whose symbolic sizes are named; the model stays as it is."""
    named = ir.from_proto(ir.to_proto(model))
    optimise(named, ranges)
    return built(named, ranges)


def dynamic(
    text: str, ranges: Mapping[str, DimRange], constants: Mapping[str, Array] | None = None, opset: int = 21
) -> ir.Model:
    """Returns a model whose symbolic sizes are named."""
    model = model_of(text, constants, opset)
    optimise(model, ranges)
    return model


def built(model: ir.Model, ranges: Mapping[str, DimRange] | None = None) -> Artifact:
    """Returns the artifact of a model."""
    return build(model, ranges or {})


def run(
    artifact: Artifact, inputs: Mapping[str, Array], level: str = FLOAT_LEVELS[-1], *, threads: int = 1,
    buffer_bytes: int = 0, l2_bytes: int = 0, shares_all: bool = True, plain_bytes: bool = False,
    choices: ChoicesOf | None = None, was_packed: bool = False,
) -> dict[str, Array]:  # fmt: skip
    """Returns the outputs of an artifact on a level; all memory ends at guard pages, threads share small steps too."""
    taken = partial(
        run_plan, level, threads=threads, buffer_bytes=buffer_bytes, l2_bytes=l2_bytes, shares_all=shares_all,
        plain_bytes=plain_bytes, choices=choices, was_packed=was_packed,
    )  # fmt: skip
    weights = artifact.files[WEIGHTS_FILE]
    if PLAN_FILE in artifact.files:
        return _run_plan((artifact.files[PLAN_FILE], weights), document_of(artifact), inputs, taken)
    document = course_from_json(artifact.files[DOCUMENT_FILE])

    kinds = {one.name: kind_of(one) for one in document.inputs}

    def followed(course: Course, values: dict[str, Array]) -> list[Array]:
        for part in course.parts:
            match part:
                case PythonStep():
                    made = made_step(part, [kinds[name] for name in part.inputs])
                    kinds.update(zip(part.outputs, made.kinds, strict=True))
                    found = made.run(*[values[name] for name in part.inputs])
                    values.update(zip(part.outputs, found if len(part.outputs) > 1 else (found,), strict=True))
                case Choice():
                    branch = part.courses[0 if values[part.condition].item() else 1]
                    values.update(zip(part.outputs, followed(branch, dict(values)), strict=True))
                case Empty():
                    values[part.name] = np.empty(part.shape, DTYPES[part.element])
                case Refused():
                    raise OtherSizesError(part.reason)
                case _:
                    plan = artifact.files[plan_file(part)], weights
                    values.update(_run_plan(plan, document.plans[part], values, taken))
                    kinds.update({one.name: kind_of(one) for one in document.plans[part].outputs})
        return [values[name] for name in course.results]

    return dict(zip(document.course.results, followed(document.course, dict(inputs)), strict=True))


def kernels_of(artifact: Artifact) -> list[str]:
    """Returns the operators of the plan's steps."""
    return [step["kernel"] for step in json.loads(artifact.files[DOCUMENT_FILE])["steps"]]


def assert_right(
    model: ir.Model, artifact: Artifact, inputs: Mapping[str, Array], level: str = FLOAT_LEVELS[-1], *,
    rtol: float = 1e-5, atol: float = 1e-5, **options: Any,
) -> dict[str, Array]:  # fmt: skip
    """Runs an artifact, compares every output with what the model gives in float64, and returns them."""
    found = run(artifact, inputs, level, **options)
    assert_all_right(model, found, inputs, rtol=rtol, atol=atol)
    return found


def assert_all_right(
    model: ir.Model, found: Mapping[str, Array], inputs: Mapping[str, Array], *, rtol: float = 2e-5, atol: float = 3e-5
) -> None:
    """Compares every output with what the model gives in float64."""
    wanted = _in_float64(_text_of(model), encode_values(inputs))
    for name in (value.name or "" for value in model.graph.outputs):
        what = f"{name} at {[array.shape for array in inputs.values()]}"
        np.testing.assert_allclose(found[name], wanted[name], rtol=rtol, atol=atol, err_msg=what)


def _text_of(model: ir.Model) -> bytes:
    return ir.to_proto(model).SerializeToString(deterministic=True)


@lru_cache(16)
def _in_float64(model: bytes, inputs: bytes) -> dict[str, Array]:
    """Returns what is right; a test on all levels asks for it once."""
    return outputs_in_float64(onnx.load_from_string(model), decode_values(inputs))


def by_onnxruntime(model: ir.Model, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Returns what ONNX Runtime computes of a model as it is."""
    return _by_onnxruntime(_text_of(model), encode_values(inputs))


@lru_cache(16)
def _by_onnxruntime(model: bytes, inputs: bytes) -> dict[str, Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(model, options)
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(decode_values(inputs))), strict=True))


def assert_as_onnxruntime(
    model: ir.Model, found: Mapping[str, Array], inputs: Mapping[str, Array], close: float = 2e-5, atol: float = 0
) -> None:
    """Compares every output with ONNX Runtime's."""
    for name, array in by_onnxruntime(model, inputs).items():
        np.testing.assert_allclose(found[name], array, rtol=close, atol=atol or close, err_msg=name)


def start_of(array: Array) -> int:
    """Returns where an array begins in memory."""
    return int(array.__array_interface__["data"][0])


def document_of(artifact: Artifact) -> PlanDocument:
    """Returns plan.json of an artifact of one plan."""
    return document_from_json(artifact.files[DOCUMENT_FILE])


def _run_plan(
    plan: tuple[bytes, bytes], document: PlanDocument, inputs: Mapping[str, Array], taken: Callable[..., list[Array]]
) -> dict[str, Array]:
    names = [one.name for one in document.plan_inputs]
    arrays = [np.asarray(inputs[one.name], order="C") for one in document.inputs]
    if document.grown:
        arrays.append(np.zeros(ROOM, np.bool_))
    symbols = [one.value(names, [array.shape for array in arrays]) for one in document.symbols]
    found = taken(plan, arrays, symbols=symbols)
    for one in document.grown:
        length = one.length(arrays[one.input].shape[one.axis], 0 if one.symbol is None else symbols[one.symbol])
        found[one.output] = found[one.output].take(range(length), one.axis)
    return {one.name: array for one, array in zip(document.plan_outputs, found, strict=True)}


def opened(artifact: Artifact, threads: int = 1) -> NativeSession:
    """Returns a session over an artifact, whose threads share small steps too; skips where no library is installed."""
    if not (found := probe(host_target())).can_run:
        pytest.skip(found.reason)
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    with patch.object(session, "Options", partial(Options, shares_all=1)):
        return open_session(files, artifact.metadata, OpenOptions(threads=threads))


def reals(*shape: int, seed: int = 0) -> Array:
    """Returns reproducible normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
