# SPDX-License-Identifier: Apache-2.0
"""Operators on quantised tensors become float32 arithmetic on whole numbers, where TensorRT has no kernel for them.

    y = QLinearConv(x, sx, zx, w, sw, zw, sy, zy, b)
        ->  y = Cast(Min(Max(Round(Conv(x - zx, w - zw, b) * (sx sw / sy)), ..), ..) + zy)

TensorRT quantises to int8 around zero only. Models that quantise to uint8, or around another number, keep their
numbers this way: each is rounded and clipped as the model says, and between two such operators nothing is converted.
Pairs of QuantizeLinear and DequantizeLinear that TensorRT runs in int8 are left alone.

Law: outputs do not change, but for sums beyond 2^24, which float32 rounds (a step of the output type at most).
Source: ONNX QLinearConv, QLinearMatMul, ConvInteger, MatMulInteger (opset 10), DynamicQuantizeLinear (11),
QuantizeLinear, DequantizeLinear (10 to 25); ONNX Runtime, docs/ContribOperators.md.
"""

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

from nndeploy.backend_kit.transforms.operator_versions import version_of
from nndeploy.plugin.interface import MayTouch
from nndeploy_tensorrt.transforms.node_maker import Floats, array_of
from nndeploy_tensorrt.transforms.quantised import INTEGERS, OLDEST_OPSET, QuantisedGraph, on_axis, zero_array

Inputs = list[ir.Value | None]
Lowering = Callable[[QuantisedGraph, ir.Node, Inputs], "Sequence[ir.Value] | None"]
"""Makes the nodes and returns the new outputs; None where this node cannot be lowered."""

_STEPS = 255.0


class LowerQuantised:
    """Replaces operators on quantised tensors by float32 arithmetic."""

    name = "lower-quantised"

    def __call__(self, model: ir.Model, may_touch: MayTouch) -> int:
        """Rewrites, in place, nodes of the main graph that `may_touch` allows; returns how many it replaced."""
        if (version_of(model.graph.opset_imports, "") or 0) < OLDEST_OPSET:
            return 0
        made = QuantisedGraph(model.graph)
        count = sum(_lower(made, node) for node in list(model.graph) if may_touch(node))
        if count:
            made.remove_unread()
            ShapeInferencePass()(model)
        return count


def _lower(made: QuantisedGraph, node: ir.Node) -> bool:
    lowering = LOWERINGS.get((node.domain.removeprefix("ai.onnx"), node.op_type))
    if lowering is None:
        return False
    made.at = node
    outputs = lowering(made, node, [*node.inputs, *[None] * 16])
    if outputs is None:
        return False
    made.replace_by(outputs)
    return True


def _quantize(made: QuantisedGraph, node: ir.Node, inputs: Inputs) -> Sequence[ir.Value] | None:
    x, scale, zero = inputs[:3]
    shift, to = zero_array(zero), node.outputs[0].dtype
    if (
        x is None
        or x.dtype != ir.DataType.FLOAT
        or array_of(scale) is None
        or shift is None
        or to not in INTEGERS
        or _has_blocks(node)
    ):
        return None
    if to == ir.DataType.INT8 and not shift.any():
        return None  # TensorRT's own
    reshape = on_axis(node.attributes.get_int("axis", 1), _rank(x))
    v = made.op("Div", [x, made.floats(reshape(_float(scale)))])
    return [made.quantised(v, zero, to, reshape)]


def _dequantize(made: QuantisedGraph, node: ir.Node, inputs: Inputs) -> Sequence[ir.Value] | None:
    q, scale, zero = inputs[:3]
    shift = zero_array(zero)
    if q is None or q.dtype not in INTEGERS or array_of(scale) is None or shift is None or _has_blocks(node):
        return None
    if node.outputs[0].dtype != ir.DataType.FLOAT or (q.dtype == ir.DataType.INT8 and not shift.any()):
        return None
    reshape = on_axis(node.attributes.get_int("axis", 1), _rank(q))
    constant = array_of(q)
    if constant is not None:
        # Whole numbers of 32 bits are taken off in 64 and rounded once, as a library's kernel does.
        whole = constant.astype(np.float64) - reshape(shift)
        real = made.floats(whole.astype(np.float32) * reshape(_float(scale)))
        return [made.op("Identity", [real]) if node.outputs[0].is_graph_output() else real]
    return [made.op("Mul", [made.whole(q, zero, reshape), made.floats(reshape(_float(scale)))])]


def _qlinear_conv(made: QuantisedGraph, node: ir.Node, inputs: Inputs) -> Sequence[ir.Value] | None:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = inputs[:9]
    if not _are_constant(x_scale, x_zero, w_scale, w_zero, y_scale, y_zero) or x is None or w is None:
        return None
    rank, to = _rank(w), node.outputs[0].dtype
    if to not in INTEGERS or (bias is not None and array_of(bias) is None):
        return None
    wholes = [made.whole(x, x_zero), made.whole(w, w_zero, on_axis(0, rank))]
    if bias is not None:
        wholes.append(made.whole(bias, None))
    factor = _float(x_scale) * on_axis(1, rank)(_float(w_scale)) / _float(y_scale)
    v = made.op("Mul", [made.op("Conv", wholes, list(node.attributes.values())), made.floats(factor)])
    return [made.quantised(v, y_zero, to)]


def _qlinear_matmul(made: QuantisedGraph, node: ir.Node, inputs: Inputs) -> Sequence[ir.Value] | None:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = inputs[:8]
    if not _are_constant(a_scale, a_zero, b_scale, b_zero, y_scale, y_zero) or a is None or b is None:
        return None
    to = node.outputs[0].dtype
    if to not in INTEGERS or _float(a_scale).size != 1 or _float(b_scale).ndim > 1:
        return None
    product = made.op("MatMul", [made.whole(a, a_zero), made.whole(b, b_zero)])
    factor = _float(a_scale).reshape(()) * _float(b_scale) / _float(y_scale)
    return [made.quantised(made.op("Mul", [product, made.floats(factor)]), y_zero, to)]


def _matmul_integer(made: QuantisedGraph, _node: ir.Node, inputs: Inputs) -> Sequence[ir.Value] | None:
    a, b, a_zero, b_zero = inputs[:4]
    if a is None or b is None or _is_vector(a_zero):
        return None
    product = made.op("MatMul", [made.whole(a, a_zero), made.whole(b, b_zero)])
    return [made.cast(product, ir.DataType.INT32)]


def _conv_integer(made: QuantisedGraph, node: ir.Node, inputs: Inputs) -> Sequence[ir.Value] | None:
    x, w, x_zero, w_zero = inputs[:4]
    if x is None or w is None or not _are_constant(w_zero):
        return None
    wholes = [made.whole(x, x_zero), made.whole(w, w_zero, on_axis(0, _rank(w)))]
    return [made.cast(made.op("Conv", wholes, list(node.attributes.values())), ir.DataType.INT32)]


def _dynamic_quantize(made: QuantisedGraph, _node: ir.Node, inputs: Inputs) -> Sequence[ir.Value] | None:
    x = inputs[0]
    if x is None:
        return None
    whole_input = [ir.AttrInt64("keepdims", 0)]
    nothing = made.floats(np.zeros(()))
    low = made.op("Min", [made.op("ReduceMin", [x], whole_input), nothing])
    high = made.op("Max", [made.op("ReduceMax", [x], whole_input), nothing])
    span = made.op("Sub", [high, low])
    is_flat = made.op("Equal", [span, nothing])
    scale = made.op("Where", [is_flat, made.floats(np.ones(())), made.op("Div", [span, made.floats(np.array(_STEPS))])])
    zero = _between_0_and_255(made, made.op("Round", [made.op("Sub", [nothing, made.op("Div", [low, scale])])]))
    rounded = made.op("Round", [made.op("Div", [x, scale])])
    q = _between_0_and_255(made, made.op("Add", [rounded, zero]))
    outputs = [made.cast(q, ir.DataType.UINT8), made.op("Identity", [scale]), made.cast(zero, ir.DataType.UINT8)]
    made.remember(outputs[0], made.op("Sub", [q, zero]), outputs[2])
    return outputs


def _between_0_and_255(made: QuantisedGraph, value: ir.Value) -> ir.Value:
    return made.op("Min", [made.op("Max", [value, made.floats(np.zeros(()))]), made.floats(np.array(_STEPS))])


def _qlinear_binary(op_type: str) -> Lowering:
    def lower(made: QuantisedGraph, node: ir.Node, inputs: Inputs) -> Sequence[ir.Value] | None:
        a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = inputs[:8]
        to = node.outputs[0].dtype
        if not _are_constant(a_scale, a_zero, b_scale, b_zero, y_scale, y_zero) or a is None or b is None:
            return None
        if to not in INTEGERS:
            return None
        real = [_real(made, a, a_scale, a_zero), _real(made, b, b_scale, b_zero)]
        return [_requantised(made, made.op(op_type, real), y_scale, y_zero, to)]

    return lower


def _qlinear_unary(op_type: str) -> Lowering:
    """`op_type` of the real values; attributes go along, but for the layout, which must be ONNX's."""

    def lower(made: QuantisedGraph, node: ir.Node, inputs: Inputs) -> Sequence[ir.Value] | None:
        x, x_scale, x_zero, y_scale, y_zero = inputs[:5]
        to = node.outputs[0].dtype
        if not _are_constant(x_scale, x_zero, y_scale, y_zero) or x is None or to not in INTEGERS:
            return None
        if node.attributes.get_int("channels_last", 0):
            return None
        attributes = [attribute for name, attribute in node.attributes.items() if name != "channels_last"]
        real = made.op(op_type, [_real(made, x, x_scale, x_zero)], attributes)
        return [_requantised(made, real, y_scale, y_zero, to)]

    return lower


def _qlinear_concat(made: QuantisedGraph, node: ir.Node, _inputs: Inputs) -> Sequence[ir.Value] | None:
    to = node.outputs[0].dtype
    given = [value for value in node.inputs if value is not None]
    y_scale, y_zero, *triples = given
    if len(given) != len(node.inputs) or len(triples) % 3 or to not in INTEGERS:
        return None
    if not _are_constant(y_scale, y_zero, *triples[1::3], *triples[2::3]):
        return None
    real = [_real(made, *triples[i : i + 3]) for i in range(0, len(triples), 3)]
    return [_requantised(made, made.op("Concat", real, list(node.attributes.values())), y_scale, y_zero, to)]


def _real(made: QuantisedGraph, q: ir.Value, scale: ir.Value | None, zero: ir.Value | None) -> ir.Value:
    return made.op("Mul", [made.whole(q, zero), made.floats(_float(scale))])


def _requantised(
    made: QuantisedGraph, real: ir.Value, scale: ir.Value | None, zero: ir.Value | None, to: ir.DataType
) -> ir.Value:
    return made.quantised(made.op("Div", [real, made.floats(_float(scale))]), zero, to)


def _float(scale: ir.Value | None) -> Floats:
    found = array_of(scale)
    assert found is not None, "the caller has looked"
    return found.astype(np.float32)


def _are_constant(*values: ir.Value | None) -> bool:
    return all(value is None or array_of(value) is not None for value in values)


def _is_vector(zero: ir.Value | None) -> bool:
    """Returns whether a zero point is one for each row; then it would need another shape."""
    return zero is not None and (zero.shape is None or (len(zero.shape) > 0 and zero.shape.numpy() != (1,)))


def _has_blocks(node: ir.Node) -> bool:
    return bool(node.attributes.get_int("block_size", 0))


def _rank(value: ir.Value | None) -> int:
    return 0 if value is None or value.shape is None else len(value.shape)


LOWERINGS: dict[tuple[str, str], Lowering] = {
    ("", "QuantizeLinear"): _quantize,
    ("", "DequantizeLinear"): _dequantize,
    ("", "QLinearConv"): _qlinear_conv,
    ("", "QLinearMatMul"): _qlinear_matmul,
    ("", "MatMulInteger"): _matmul_integer,
    ("", "ConvInteger"): _conv_integer,
    ("", "DynamicQuantizeLinear"): _dynamic_quantize,
    ("com.microsoft", "QLinearAdd"): _qlinear_binary("Add"),
    ("com.microsoft", "QLinearMul"): _qlinear_binary("Mul"),
    ("com.microsoft", "QLinearGlobalAveragePool"): _qlinear_unary("GlobalAveragePool"),
    ("com.microsoft", "QLinearAveragePool"): _qlinear_unary("AveragePool"),
    ("com.microsoft", "QLinearSigmoid"): _qlinear_unary("Sigmoid"),
    ("com.microsoft", "QLinearLeakyRelu"): _qlinear_unary("LeakyRelu"),
    ("com.microsoft", "QLinearConcat"): _qlinear_concat,
}
