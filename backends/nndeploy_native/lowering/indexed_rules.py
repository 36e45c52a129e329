# SPDX-License-Identifier: Apache-2.0
"""Rules for operators whose places are data, or constants where a shape is not fixed.

Source: ONNX EyeLike, Gather, GatherElements, GatherND, OneHot, ReverseSequence, ScatterElements, ScatterND and
Trilu.
"""

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.constants import constant_array
from nndeploy.graph.operators import int_attribute, operand, text_attribute
from nndeploy_native.lowering.bits_rules import LEAST_HALVES
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.elementwise_rules import emit_constant, emit_value
from nndeploy_native.steps.indexed import (
    PICKS,
    REDUCTIONS,
    OneHot,
    Picked,
    ReverseSequence,
    Scattered,
    Triangle,
)
from nndeploy_native.steps.movement import View
from nndeploy_native.tensors import Layout, Tensor


def pick(node: ir.Node, context: Context) -> None:
    """Lowers Gather, GatherElements and GatherND: of a large table of float16 what was picked is widened."""
    table, value = constant_array(operand(node, 0)), node.outputs[0]
    is_narrow = table is not None and table.dtype == np.float16 and table.size >= LEAST_HALVES
    axis = int_attribute(node, "batch_dims" if node.op_type == "GatherND" else "axis", 0)
    if table is not None and is_narrow:
        data = context.constant_of("halves", table)
        output = context.temporary("picked", context.sizes_of(value), Layout.PLAIN, "fp16")
    else:
        data, output = context.plain(operand(node, 0)), context.output(value, Layout.PLAIN)
    numbers = context.whole_numbers(operand(node, 1))
    context.emit(Picked(PICKS[node.op_type], output, data, numbers, axis % len(data.shape)))
    if is_narrow:
        context.define_widened(value, View.of(output))


def scatter(node: ir.Node, context: Context) -> None:
    """Lowers ScatterElements and ScatterND."""
    data, updates = context.plain(operand(node, 0)), context.plain(operand(node, 2))
    numbers, reduction = context.whole_numbers(operand(node, 1)), text_attribute(node, "reduction", "none")
    if reduction not in REDUCTIONS:
        raise BuildRefusedError(f"a reduction {reduction!r}")
    if data.element in ("bool", "fp64") and reduction != "none":
        raise BuildRefusedError(f"a reduction of {data.element}")
    axis = None if node.op_type == "ScatterND" else int_attribute(node, "axis", 0) % len(data.shape)
    context.emit(Scattered(context.output(node.outputs[0], Layout.PLAIN), data, numbers, updates, reduction, axis))


def one_hot(node: ir.Node, context: Context) -> None:
    """Lowers OneHot: the model says the depth."""
    numbers, values = _whole(operand(node, 0), context), context.plain(operand(node, 2))
    output = context.output(node.outputs[0], Layout.PLAIN)
    context.emit(OneHot(output, numbers, values, int_attribute(node, "axis", -1) % len(output.shape)))


def _whole(value: ir.Value | None, context: Context) -> Tensor:
    """Returns numbers of any type as whole ones."""
    if context.element_of(value) in ("int32", "int64"):
        return context.plain(value)
    assert value is not None
    name = context.temporary("numbers", (), Layout.PLAIN).name
    whole = ir.Value(name=name, shape=value.shape, type=ir.TensorType(ir.DataType.INT64))
    emit_value(whole, context, [value], lambda x: x)
    return context.plain(whole)


def reverse_sequence(node: ir.Node, context: Context) -> None:
    """Lowers ReverseSequence."""
    x, lengths = context.plain(operand(node, 0)), context.whole_numbers(operand(node, 1))
    is_time_first = int_attribute(node, "time_axis", 0) == 0
    context.emit(ReverseSequence(context.output(node.outputs[0], Layout.PLAIN), x, lengths, is_time_first))


def trilu(node: ir.Node, context: Context) -> None:
    """Lowers Trilu, also with a diagonal that is data."""
    x = context.plain(operand(node, 0))
    diagonal = context.whole_numbers(operand(node, 1)) if operand(node, 1) is not None else 0
    is_upper = int_attribute(node, "upper", 1) == 1
    context.emit(Triangle(context.output(node.outputs[0], Layout.PLAIN), x, diagonal, is_upper))


def eye_like(node: ir.Node, context: Context) -> None:
    """Lowers EyeLike: ones, of which two triangles leave a diagonal."""
    output, diagonal = node.outputs[0], int_attribute(node, "k", 0)
    ones = ir.Value(name=context.temporary("ones", (), Layout.PLAIN).name, shape=output.shape, type=output.type)
    emit_constant(ones, context, 1)
    all_ones = context.plain(ones)
    upper = context.temporary("triangle", all_ones.shape, Layout.PLAIN, all_ones.element)
    context.emit(Triangle(upper, all_ones, diagonal, is_upper=True))
    context.emit(Triangle(context.output(output, Layout.PLAIN), upper, diagonal, is_upper=False))
