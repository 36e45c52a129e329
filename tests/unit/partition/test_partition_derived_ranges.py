# SPDX-License-Identifier: Apache-2.0
"""Ranges of sizes in between follow from those of the inputs."""

import onnx.parser
import onnx.shape_inference
import onnx_ir as ir

from nndeploy.partition.derived_ranges import derived_ranges
from nndeploy.values.types import DimRange

_HALVED = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[N,3,H,32] x) => (float[N,3,h,16] y)
{
    t = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)
    y = Relu(t)
}
"""


def _model(text: str) -> ir.Model:
    proto = onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text), data_prop=True)
    return ir.from_proto(proto)


def _symbol(model: ir.Model, name: str, axis: int) -> str:
    value = next(output for node in model.graph for output in node.outputs if output.name == name)
    assert value.shape is not None
    dim = value.shape[axis]
    assert isinstance(dim, ir.SymbolicDim)
    assert dim.value is not None
    return dim.value


def test_half_of_a_range_is_the_range_of_the_pooled_size() -> None:
    model = _model(_HALVED)
    found = derived_ranges(model, {"N": DimRange(1, 8, 4), "H": DimRange(32, 64, 48)})
    assert found[_symbol(model, "t", 2)] == DimRange(16, 32, 24)


def test_symbols_of_the_inputs_are_not_derived() -> None:
    found = derived_ranges(_model(_HALVED), {"N": DimRange(1, 8, 4), "H": DimRange(32, 64, 48)})
    assert not {"N", "H"} & found.keys()


def test_nothing_follows_where_an_input_has_an_undeclared_size() -> None:
    assert derived_ranges(_model(_HALVED), {"N": DimRange(1, 8, 4)}) == {}


def test_symbol_with_two_sizes_is_left_out() -> None:
    model = _model(_HALVED)
    relu = model.graph.outputs[0]
    relu.shape = ir.Shape(["N", 3, "same", "same"])
    found = derived_ranges(model, {"N": DimRange(1, 8, 4), "H": DimRange(40, 64, 48)})
    assert "same" not in found


def test_model_without_symbols_has_no_ranges() -> None:
    model = _model('<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Relu(x) }')
    assert derived_ranges(model, {}) == {}
