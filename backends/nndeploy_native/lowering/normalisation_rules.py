# SPDX-License-Identifier: Apache-2.0
"""Rules for what divides by a norm along axes.

    InstanceNormalization of (N, C, H, W)   rows are (N * C), each (H * W), with a scale and a bias of its channel
    GroupNormalization in G groups          rows are (N * G), each (C / G, H, W)

Source: ONNX LayerNormalization, RMSNormalization, InstanceNormalization, GroupNormalization, LpNormalization,
MeanVarianceNormalization, LRN.
"""

from collections.abc import Sequence

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, has_one_output, int_attribute, ints_attribute, operand
from nndeploy.values.size import Dim, product
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.elementwise_rules import emit
from nndeploy_native.lowering.reduction_rules import along_axis
from nndeploy_native.steps.elementwise import Operand
from nndeploy_native.steps.movement import StridedCopy, View
from nndeploy_native.steps.normalisation import InstanceNorm, Normalise
from nndeploy_native.steps.reduction import AlongAxis
from nndeploy_native.tensors import Layout, Shape, may_be_same

MOST_IMAGE_AXES = 5
"""Volumes (N, C, D, H, W) may lie in blocks."""
MOST_NEIGHBOURS = 256
"""An LRN of more is refused, as by the kernel library."""
MVN_EPSILON = 1e-18
"""MeanVarianceNormalization adds 1e-9 to the root."""


def layer_normalization(node: ir.Node, context: Context) -> None:
    """Lowers LayerNormalization and RMSNormalization; a scale that is broadcast in another way is a step of its own."""
    if not has_one_output(node):
        raise BuildRefusedError("the mean and deviation of a LayerNormalization as outputs")
    shape = context.shape_of(operand(node, 0))
    axis = int_attribute(node, "axis", -1) % len(shape)
    norm = "standard" if node.op_type == "LayerNormalization" else "rms"
    x, epsilon = context.plain(node.inputs[0]), float_attribute(node, "epsilon", 1e-5)
    outer, size = product(shape[:axis]), product(shape[axis:])
    numbers = [value for value in node.inputs[1:] if value is not None]
    if all(_without_ones(context.shape_of(value)) == _without_ones(shape[axis:]) for value in numbers):
        scale, bias = (context.plain(one) if one is not None else None for one in (operand(node, 1), operand(node, 2)))
        output = context.output(node.outputs[0], Layout.PLAIN)
        context.emit(Normalise(output, x, norm, outer, size, 1, epsilon, scale, bias, parts=size))
        return
    made = context.temporary("normalised", shape, Layout.PLAIN)
    context.emit(Normalise(made, x, norm, outer, size, 1, epsilon))
    emit(
        node,
        context,
        [Operand(shape, made), *numbers],
        lambda x, scale, *bias: ("add", ("mul", x, scale), *bias) if bias else ("mul", x, scale),
    )


def instance_normalization(node: ir.Node, context: Context) -> None:
    """Lowers InstanceNormalization: of images in blocks, where they are there."""
    shape = context.shape_of(operand(node, 0))
    if len(shape) < 3:
        raise BuildRefusedError("an InstanceNormalization of what is no image")
    value = node.inputs[0]
    assert value is not None
    moved = context.moved_blocks(value)
    has_channels = moved is None or product(moved.base.shape[2:]) == product(shape[2:])  # else groups of them are one
    if len(shape) <= MOST_IMAGE_AXES and context.is_blocked(value) and has_channels:
        x = context.blocked(value)
        scale, bias = (context.plain(operand(node, index)) for index in (1, 2))
        output = context.output(node.outputs[0], Layout.BLOCKED, lambda _: x.shape)
        context.emit(InstanceNorm(output, x, scale, bias, float_attribute(node, "epsilon", 1e-5)))
        return
    _emit_of_groups(node, context, (shape[0] * shape[1], product(shape[2:])), shape[1], 1)


def group_normalization(node: ir.Node, context: Context) -> None:
    """Lowers GroupNormalization: scale and bias are those of groups up to opset 20, or of channels."""
    shape, groups = context.shape_of(operand(node, 0)), int_attribute(node, "num_groups", 1)
    if len(shape) < 2 or groups < 1 or shape[1] % groups != 0:
        raise BuildRefusedError(f"{groups} groups of the channels of {shape}")
    channels = shape[1] // groups
    has_channels = context.opset >= 21 or may_be_same(context.shape_of(operand(node, 1)), (shape[1],))
    parts: Dim = channels if has_channels else 1
    _emit_of_groups(node, context, (shape[0] * groups, channels * product(shape[2:])), groups, parts)


def _emit_of_groups(node: ir.Node, context: Context, rows: tuple[Dim, Dim], groups: Dim, parts: Dim) -> None:
    epsilon = float_attribute(node, "epsilon", 1e-5)
    x, scale, bias = (context.plain(operand(node, index)) for index in range(3))
    output = context.output(node.outputs[0], Layout.PLAIN)
    context.emit(Normalise(output, x, "standard", rows[0], rows[1], 1, epsilon, scale, bias, groups, parts))


def lp_normalization(node: ir.Node, context: Context) -> None:
    """Lowers LpNormalization. Source: ONNX LpNormalization: what has a norm of zero stays zero."""
    axis, p = int_attribute(node, "axis", -1), int_attribute(node, "p", 2)
    _emit_along(node, context, (axis % len(context.shape_of(operand(node, 0))),), "l1" if p == 1 else "l2", 0.0)


def mean_variance_normalization(node: ir.Node, context: Context) -> None:
    """Lowers MeanVarianceNormalization."""
    rank = len(context.shape_of(operand(node, 0)))
    axes = tuple(sorted(axis % rank for axis in ints_attribute(node, "axes") or (0, 2, 3)))
    _emit_along(node, context, axes, "standard", MVN_EPSILON)


def local_response_normalization(node: ir.Node, context: Context) -> None:
    """Lowers LRN."""
    context.shape_of(operand(node, 0))
    x, window = context.plain(operand(node, 0)), int_attribute(node, "size", 1)
    if len(x.shape) < 2 or not 0 < window <= MOST_NEIGHBOURS:
        raise BuildRefusedError(f"an LRN of more than {MOST_NEIGHBOURS} channels, or of what has none")
    defaults = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0}
    numbers = {name: float_attribute(node, name, default) for name, default in defaults.items()}
    output = context.output(node.outputs[0], Layout.PLAIN)
    context.emit(AlongAxis(output, x, "lrn", *along_axis(x.shape, 1), {"window": window, **numbers}))


def _emit_along(node: ir.Node, context: Context, axes: Sequence[int], norm: str, epsilon: float) -> None:
    """Emits a normalisation over any axes: those that are no neighbours are moved to the end, and back."""
    shape = context.shape_of(operand(node, 0))
    first, end = axes[0], axes[-1] + 1
    if tuple(axes) == tuple(range(first, end)):
        outer, size, inner = along_axis(shape, first, end)
        x, output = context.plain(node.inputs[0]), context.output(node.outputs[0], Layout.PLAIN)
        context.emit(Normalise(output, x, norm, outer, size, inner, epsilon))
        return
    order = (*(axis for axis in range(len(shape)) if axis not in axes), *axes)
    view = context.view(operand(node, 0)).transposed(order)
    moved, made = (context.temporary(kind, view.sizes, Layout.PLAIN) for kind in ("moved", "normalised"))
    kept = len(shape) - len(axes)
    context.emit(StridedCopy(moved, view))
    context.emit(Normalise(made, moved, norm, product(view.sizes[:kept]), product(view.sizes[kept:]), 1, epsilon))
    back = tuple(order.index(axis) for axis in range(len(shape)))
    context.define_view(node.outputs[0], View.of(made).transposed(back))


def _without_ones(shape: Shape) -> list[Dim]:
    return [size for size in shape if size != 1]
