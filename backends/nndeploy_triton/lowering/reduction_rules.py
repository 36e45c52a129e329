# SPDX-License-Identifier: Apache-2.0
"""Rules for reductions, softmax and normalisation.

Source: ONNX ReduceX, GlobalXPool, Softmax, LayerNormalization, InstanceNormalization, GroupNormalization,
RMSNormalization.
"""

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.constants import constant_ints
from nndeploy.graph.operators import float_attribute, int_attribute, ints_attribute, operand
from nndeploy.values.size import most, product
from nndeploy_triton.lowering.context import Context
from nndeploy_triton.steps.reduction import (
    Axis,
    Normalization,
    Reduction,
    ScalePlaces,
    Softmax,
    axis_of,
)
from nndeploy_triton.views import Shape, View

REDUCTIONS = {
    "ReduceL1": "l1", "ReduceL2": "l2", "ReduceMax": "max", "ReduceMean": "mean", "ReduceMin": "min",
    "ReduceSum": "sum", "ReduceSumSquare": "sum_square",
}  # fmt: skip
GLOBAL_POOLS = {"GlobalAveragePool": "mean", "GlobalMaxPool": "max"}


def reduce(node: ir.Node, context: Context) -> None:
    """Lowers a reduction over known axes; axes apart from each other are brought together first."""
    context.floats(node, 1)
    axes = _reduced_axes(node)
    view = context.view(node.inputs[0])
    axes = tuple(sorted({axis % len(view.shape) for axis in axes}) if axes else range(len(view.shape)))
    output = context.output(node.outputs[0])
    reduced(context, output, view, axes, REDUCTIONS[node.op_type])


def reduced(context: Context, output: View, view: View, axes: tuple[int, ...], kind: str) -> None:
    """Emits a reduction of `view` over `axes`, sorted, into `output`."""
    if not axes or axes[-1] - axes[0] + 1 != len(axes):
        kept = [axis for axis in range(len(view.shape)) if axis not in axes]
        view, axes = view.transposed((*kept, *axes)), tuple(range(len(kept), len(view.shape)))
    dense = view if view.is_dense else context.packed(view)
    axis = axis_of(dense.shape, axes[0], axes[-1]) if axes else Axis(dense.size, 1, 1)
    if axis.outer * axis.inner != output.size or not axis.length:
        raise BuildRefusedError("an empty reduction, or another shape than the model says")
    context.emit(Reduction(output, dense, axis, kind))


def global_pool(node: ir.Node, context: Context) -> None:
    """Lowers GlobalAveragePool and GlobalMaxPool."""
    context.floats(node, 1)
    view = context.view(node.inputs[0])
    if len(view.shape) < 3:
        raise BuildRefusedError("a global pooling of something that is no image")
    output = context.output(node.outputs[0])
    reduced(context, output, view, tuple(range(2, len(view.shape))), GLOBAL_POOLS[node.op_type])


def softmax(node: ir.Node, context: Context) -> None:
    """Lowers Softmax and LogSoftmax.

    Source: ONNX Softmax: from opset 13 over one axis, -1 by default; before over all axes from `axis`, 1 by default.
    """
    context.floats(node, 1)
    x = context.dense(node.inputs[0])
    rank, is_new = len(x.shape), context.opset >= 13
    first = int_attribute(node, "axis", -1 if is_new else 1)
    if not -rank <= first < rank + (not is_new):
        raise BuildRefusedError("the axis of Softmax is outside its input")
    first = first % rank if first < rank else rank
    axis = axis_of(x.shape, first, first) if is_new else Axis(product(x.shape[:first]), product(x.shape[first:]), 1)
    context.emit(Softmax(context.output(node.outputs[0]), x, axis, node.op_type == "LogSoftmax"))


def layer_normalization(node: ir.Node, context: Context) -> None:
    """Lowers LayerNormalization and RMSNormalization over the last axes."""
    if any(output.name for output in node.outputs[1:]):
        raise BuildRefusedError("the mean or deviation of LayerNormalization is asked for")
    centered, shift_value = node.op_type == "LayerNormalization", operand(node, 2)
    context.floats(node, 3 if shift_value is not None else 2)
    x = context.dense(node.inputs[0])
    first = int_attribute(node, "axis", -1) % len(x.shape)
    length = product(x.shape[first:])
    scale = _parameter(context, node, 1, x.shape[first:])
    shift = _parameter(context, node, 2, x.shape[first:]) if shift_value is not None else None
    places, epsilon = ScalePlaces(1, 0, 1), float_attribute(node, "epsilon", 1e-5)
    output = context.output(node.outputs[0])
    context.emit(Normalization(output, x, scale, shift, product(x.shape[:first]), length, places, epsilon, centered))


def instance_normalization(node: ir.Node, context: Context) -> None:
    """Lowers InstanceNormalization: rows are (image, channel)."""
    context.floats(node, 3)
    x = context.dense(node.inputs[0])
    rows, channels = product(x.shape[:2]), x.shape[1]
    length = product(x.shape[2:])
    scale, shift = (_parameter(context, node, index, (channels,)) for index in (1, 2))
    places, epsilon = ScalePlaces(channels, 1, most(1, length)), float_attribute(node, "epsilon", 1e-5)
    context.emit(Normalization(context.output(node.outputs[0]), x, scale, shift, rows, length, places, epsilon))


def group_normalization(node: ir.Node, context: Context) -> None:
    """Lowers GroupNormalization with a scale for each channel (opset 21)."""
    context.floats(node, 3)
    x, groups = context.dense(node.inputs[0]), int_attribute(node, "num_groups", 1)
    if len(x.shape) < 2 or groups < 1 or x.shape[1] % groups:
        raise BuildRefusedError("channels that are no multiple of the groups")
    channels, pixels = x.shape[1], product(x.shape[2:])
    scale, shift = (_parameter(context, node, index, (channels,)) for index in (1, 2))
    rows, length = x.shape[0] * groups, channels // groups * pixels
    places = ScalePlaces(groups, channels // groups, most(1, pixels))
    epsilon = float_attribute(node, "epsilon", 1e-5)
    context.emit(Normalization(context.output(node.outputs[0]), x, scale, shift, rows, length, places, epsilon))


def _parameter(context: Context, node: ir.Node, index: int, shape: Shape) -> View:
    """Returns a scale or shift as a dense view of `shape`."""
    view = context.view(operand(node, index))
    stretched = context.broadcast(view, shape)
    return stretched if stretched.is_dense else context.packed(stretched)


def _reduced_axes(node: ir.Node) -> tuple[int, ...]:
    """Returns the axes that a reduction names, () for all.

    Source: ONNX ReduceX: an attribute up to opset 17 (ReduceSum up to 12), an input from then on.
    """
    value = operand(node, 1)
    if value is None:
        axes = ints_attribute(node, "axes") or ()
    else:
        known = constant_ints(value)
        if known is None:
            raise BuildRefusedError(f"the axes of {node.op_type} are not constant")
        axes = known
    if not axes and int_attribute(node, "noop_with_empty_axes", 0):
        raise BuildRefusedError(f"a {node.op_type} that reduces nothing")
    return axes
