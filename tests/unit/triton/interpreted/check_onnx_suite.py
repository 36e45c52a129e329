# SPDX-License-Identifier: Apache-2.0
"""ONNX's own cases for single operators, those that the kernels take, against ONNX's expected outputs.

Inputs that say how an operator works (shapes, axes, bounds) are made constants, as they are in real models.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from gpu_on_numpy import BOX, run_on_gpu
from nndeploy_triton.lowering.table import RULES
from nndeploy_triton.support import supports
from onnx import numpy_helper, shape_inference

PARAMETRISED = {
    "Clip", "ConvTranspose", "Expand", "Gather", "Pad", "Pow", "QLinearConv", "Reshape", "Resize", "Slice", "Split",
    "Squeeze", "Tile", "Unsqueeze", "Upsample",
}  # fmt: skip
TOLERANCE = {"float16": 2e-3, "float32": 1e-4}
NUM_TAKEN = 430
"""As many as were taken when this was written; fewer means that a rule got lost."""


def cases() -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the suite overflows on purpose while it makes its data
        from onnx.backend.test.case.node import collect_testcases

        for case in collect_testcases(None):
            op_types = {node.op_type for node in case.model.graph.node}
            if op_types <= set(RULES) and case.data_sets:
                yield case


def plain(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def with_constants(model: onnx.ModelProto, values: dict[str, np.ndarray]) -> ir.Model:
    """Returns the model with the inputs that say how it works as constants; they are taken out of `values`."""
    proto = onnx.ModelProto()
    proto.CopyFrom(model)
    (node, *_) = proto.graph.node
    if node.op_type in PARAMETRISED or node.op_type.startswith("Reduce"):
        names = [name for name in node.input[1:] if name in values]
        for value in [value for value in proto.graph.input if value.name in names]:
            proto.graph.input.remove(value)
        proto.graph.initializer.extend(numpy_helper.from_array(values.pop(name), name) for name in dict.fromkeys(names))
    return ir.from_proto(shape_inference.infer_shapes(proto))


def taken_cases() -> list[Any]:
    found = []
    for case in cases():
        inputs, outputs = case.data_sets[0]
        values = {value.name: plain(data) for value, data in zip(case.model.graph.input, inputs, strict=False)}
        if not all(isinstance(value, np.ndarray) for value in values.values()):
            continue
        model = with_constants(case.model, values)
        if all(answer.ok for answer in supports(model, BOX, {})):
            found.append(pytest.param(model, values, [plain(data) for data in outputs], id=case.name))
    return found


TAKEN = taken_cases()


def test_no_rule_got_lost() -> None:
    assert len(TAKEN) >= NUM_TAKEN


@pytest.mark.parametrize(("model", "values", "wanted"), TAKEN)
def test_a_case_of_onnx_gives_what_onnx_expects(
    model: ir.Model, values: dict[str, np.ndarray], wanted: list[np.ndarray]
) -> None:
    named = {value.name: values[value.name] for value in model.graph.inputs if value.name in values}
    outputs = run_on_gpu(model, named)
    for got, want in zip(outputs.values(), wanted, strict=False):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        close = TOLERANCE.get(want.dtype.name, 0.0)
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=close, atol=close)
