# SPDX-License-Identifier: Apache-2.0
"""Rules for QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear: elementwise steps, which join their neighbours.

    QuantizeLinear      saturate(round(x / scale) + zero_point)      to the nearest, ties to even; a NaN is the least
    DequantizeLinear    (x - zero_point) * scale

One scale, one for each place of an axis, or one for each block of it. Source: ONNX, the operators of these names;
for a NaN, which ONNX leaves open, ONNX Runtime on x86-64.
"""

from collections.abc import Callable
from dataclasses import replace

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import operand
from nndeploy_native.expressions import Expression, const
from nndeploy_native.expressions import operand as nth
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.quantised_constants import is_zero, parameter_shapes
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.reduction import AlongAxis
from nndeploy_native.tensors import Layout, Tensor

SATURATED = {"uint8": "saturated_uint8", "int8": "saturated_int8"}
"""The operator that makes a float a number of a type: the nearest one of those that it has."""


def quantise(node: ir.Node, context: Context) -> None:
    """Lowers QuantizeLinear to uint8 and int8."""
    x, output = operand(node, 0), node.outputs[0]
    element = context.element_of(output)
    if element not in SATURATED:
        raise BuildRefusedError(f"a QuantizeLinear to {element}")
    context.shape_of(x)
    _emit(node, context, lambda value, scale, zero: quantised(("div", value, scale), zero, element))


def dequantise(node: ir.Node, context: Context) -> None:
    """Lowers DequantizeLinear from uint8, int8 and int32 to float32; a constant, of 4 bits too, is known as floats."""
    x = operand(node, 0)
    context.shape_of(node.outputs[0])
    if context.constant(node.outputs[0]) is not None:
        return
    element, zero_point = context.element_of(x), operand(node, 2)
    if element not in (*SATURATED, "int32"):
        raise BuildRefusedError(f"a DequantizeLinear from {element}")
    if element == "int32" and zero_point is not None and not is_zero(zero_point):
        raise BuildRefusedError("a DequantizeLinear from int32 with a zero point")
    _emit(node, context, lambda value, scale, zero: ("mul", _less(value, zero), scale))


def dynamic_quantise(node: ir.Node, context: Context) -> None:
    """Lowers DynamicQuantizeLinear: the range of what is there, with zero, becomes that of uint8."""
    context.shape_of(operand(node, 0))
    y, scale, zero = (context.output(value, Layout.PLAIN) for value in node.outputs)
    _emit_dynamically_quantised(context.plain(operand(node, 0)), y, scale, zero, context)


def dynamically_quantised(x: Tensor, context: Context) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the bytes of floats, uint8, with their scale and zero point, by steps that are emitted."""
    y, zero = (context.temporary(*one, Layout.PLAIN, "uint8") for one in (("quantised", x.shape), ("zero", ())))
    scale = context.temporary("scale", (), Layout.PLAIN)
    _emit_dynamically_quantised(x, y, scale, zero, context)
    return y, scale, zero


def _emit_dynamically_quantised(x: Tensor, y: Tensor, scale: Tensor, zero: Tensor, context: Context) -> None:
    """Emits the steps that make y of uint8, its scale and its zero point of x."""
    least, most = (context.temporary(kind, (), Layout.PLAIN) for kind in ("least", "most"))
    for kind, to in (("reduce_min", least), ("reduce_max", most)):
        context.emit(AlongAxis(to, x, kind, 1, x.size, 1))
    low, high = ("min", nth(0), const(0)), ("max", nth(1), const(0))
    step: Expression = ("div", ("sub", high, low), const(255))
    ends = (Operand((), least), Operand((), most))
    context.emit(Elementwise(scale, ends, ("where", ("equal", low, high), const(1), step)))
    number: Expression = ("round", ("div", ("neg", ("min", nth(0), const(0))), nth(1)))
    context.emit(Elementwise(zero, (ends[0], Operand((), scale)), ("saturated_uint8", number)))
    ones = (1,) * len(x.shape)
    operands = (
        Operand(x.shape, x),
        Operand(ones, replace(scale, shape=ones)),
        Operand(ones, replace(zero, shape=ones)),
    )
    context.emit(Elementwise(y, operands, quantised(("div", nth(0), nth(1)), nth(2), "uint8")))


def quantised(value: Expression, zero: "Expression | None", element: str) -> Expression:
    """Returns what a number becomes that was divided by its scale."""
    whole: Expression = ("round", value)
    return (SATURATED[element], whole if zero is None else ("add", whole, zero))


def _less(value: Expression, zero: "Expression | None") -> Expression:
    return value if zero is None else ("sub", value, zero)


def _emit(node: ir.Node, context: Context, compute: Callable[..., Expression]) -> None:
    """Emits the step of an operator: compute(x, scale, zero point or None)."""
    x, scale, zero = (operand(node, index) for index in range(3))
    shape, spread = parameter_shapes(node, context.sizes_of(x), context.sizes_of(scale))
    last, base = (context.in_channels_last(x), context.moved_base(x)) if spread == () else (None, None)
    if spread == () and last is None and base is None and x is not None and context.has_near_channels(x):
        last = context.channels_last(x)
    if last is not None:
        output, operands = context.output_channels_last(node.outputs[0]), [Operand(last.shape, last)]
    elif base is not None:  # before they are moved
        assert x is not None
        output = context.temporary("unmoved", base.shape, Layout.PLAIN, context.element_of(node.outputs[0]))
        operands = [Operand(base.shape, base)]
        context.define_alike(node.outputs[0], x, output)
    else:
        operands = [Operand(shape, replace(context.plain(x), shape=shape))]
        output = replace(context.output(node.outputs[0], Layout.PLAIN), shape=shape)

    def parameter(value: ir.Value) -> Expression:
        array = context.constant(value)
        if array is not None and array.size == 1:
            return const(array.item())
        if array is None:
            operands.append(Operand(spread, replace(context.plain(value), shape=spread)))
        else:
            operands.append(Operand(spread, None, array))
        return nth(len(operands) - 1)

    assert scale is not None
    numbers = parameter(scale), None if zero is None or is_zero(zero) else parameter(zero)
    context.emit(Elementwise(output, tuple(operands), compute(nth(0), *numbers)))
