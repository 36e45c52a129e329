# SPDX-License-Identifier: Apache-2.0
"""Rules along axes: softmax and reductions. Source: ONNX Softmax, LogSoftmax, ReduceMean, ReduceSum, ReduceMax."""

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import int_attribute, ints_attribute, operand
from nndeploy.values.size import product
from nndeploy_native.lowering.context import Context
from nndeploy_native.steps.convolution import Window
from nndeploy_native.steps.pooling import Pooling
from nndeploy_native.steps.reduction import AlongAxis
from nndeploy_native.tensors import Layout

REDUCTIONS = {"ReduceMean": "reduce_mean", "ReduceSum": "reduce_sum", "ReduceMax": "reduce_max"}
POOLS = {"ReduceMean": "mean", "ReduceMax": "max"}


def softmax(node: ir.Node, context: Context) -> None:
    """Lowers Softmax and LogSoftmax; up to opset 12 over all axes from the given one on."""
    shape = context.shape_of(operand(node, 0))
    kind = "softmax" if node.op_type == "Softmax" else "log_softmax"
    axis = int_attribute(node, "axis", -1 if context.opset >= 13 else 1) % len(shape)
    end = axis + 1 if context.opset >= 13 else len(shape)
    x = context.plain(node.inputs[0])
    output = context.output(node.outputs[0], Layout.PLAIN)
    outer, size, inner = (product(part) for part in (shape[:axis], shape[axis:end], shape[end:]))
    context.emit(AlongAxis(output, x, kind, outer, size, inner))


def reduce(node: ir.Node, context: Context) -> None:
    """Lowers a reduction over neighbouring axes; of a whole image in blocks, where it is there."""
    shape, out_shape = context.shape_of(operand(node, 0)), context.shape_of(node.outputs[0])
    axes = _axes(node, context, len(shape))
    if not axes or axes != tuple(range(axes[0], axes[-1] + 1)):
        raise BuildRefusedError("a reduction over axes that are no neighbours")
    value = node.inputs[0]
    assert value is not None
    is_pool = len(shape) == len(out_shape) == 4 and axes == (2, 3) and node.op_type in POOLS
    if is_pool and context.is_blocked(value):
        x = context.blocked(value)
        output, window = context.output(node.outputs[0], Layout.BLOCKED), Window((shape[2], shape[3]))
        context.emit(Pooling(output, x, window, (0, 0), POOLS[node.op_type]))
        return
    plain, output = context.plain(value), context.output(node.outputs[0], Layout.PLAIN)
    parts = (shape[: axes[0]], shape[axes[0] : axes[-1] + 1], shape[axes[-1] + 1 :])
    outer, size, inner = (product(part) for part in parts)
    context.emit(AlongAxis(output, plain, REDUCTIONS[node.op_type], outer, size, inner))


def _axes(node: ir.Node, context: Context, rank: int) -> tuple[int, ...]:
    given = ints_attribute(node, "axes")
    if operand(node, 1) is not None:
        array = context.constant(operand(node, 1))
        if array is None:
            raise BuildRefusedError("a reduction over axes that are not constant")
        given = tuple(int(axis) for axis in array.reshape(-1))
    if not given:
        if int_attribute(node, "noop_with_empty_axes", 0):
            raise BuildRefusedError("a reduction over no axes")
        return tuple(range(rank))
    return tuple(sorted(axis % rank for axis in given))
