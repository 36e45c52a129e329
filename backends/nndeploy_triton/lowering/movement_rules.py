# SPDX-License-Identifier: Apache-2.0
"""Rules for operators that rearrange elements: most only change a view; Concat, Pad and Gather copy.

Source: ONNX operator specifications.
"""

import itertools

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.constants import constant_ints
from nndeploy.graph.node_parameters import Padding, axes_of, padding_of, permutation_of, slice_bounds
from nndeploy.graph.operators import int_attribute, is_inference_dropout, operand, text_attribute
from nndeploy.values.size import Dim, Size, ceil_div, fixed, is_fixed, least, most
from nndeploy.values.types import numpy_dtype
from nndeploy_triton.lowering.context import Array, Context
from nndeploy_triton.program import identity
from nndeploy_triton.steps.elementwise import Elementwise
from nndeploy_triton.steps.gathering import Gather
from nndeploy_triton.steps.reduction import axis_of
from nndeploy_triton.views import Shape, View


def reshape(node: ir.Node, context: Context) -> None:
    """Lowers Reshape, Flatten, Squeeze and Unsqueeze: the output's sizes are known, so only they count."""
    if (
        node.op_type in ("Squeeze", "Unsqueeze")
        and operand(node, 1) is not None
        and axes_of(node, context.opset) is None
    ):
        raise BuildRefusedError(f"the axes of {node.op_type} are not constant")
    _reshaped(node, context, context.view(node.inputs[0]), context.shape_of(node.outputs[0]))


def same(node: ir.Node, context: Context) -> None:
    """Lowers Identity, and Dropout that hands on its input."""
    if node.op_type == "Dropout" and (not is_inference_dropout(node, context.opset) or _is_asked(node, 1)):
        raise BuildRefusedError("a Dropout that is trained, or whose mask is asked for")
    context.alias(node.outputs[0], context.view(node.inputs[0]))


def transpose(node: ir.Node, context: Context) -> None:
    """Lowers Transpose."""
    axes = permutation_of(node)
    if axes is None:
        raise BuildRefusedError("the permutation of Transpose is not known")
    context.alias(node.outputs[0], context.view(node.inputs[0]).transposed(axes))


def expand(node: ir.Node, context: Context) -> None:
    """Lowers Expand: the output's sizes are known, so only they count."""
    view = context.view(node.inputs[0])
    context.alias(node.outputs[0], context.broadcast(view, context.shape_of(node.outputs[0])))


def tile(node: ir.Node, context: Context) -> None:
    """Lowers Tile: each axis (d) is seen as (repeats, d) and stretched."""
    view, repeats = context.view(node.inputs[0]), constant_ints(operand(node, 1))
    if repeats is None or len(repeats) != len(view.shape):
        raise BuildRefusedError("the repeats of Tile are not constant")
    apart = view.reshaped(tuple(itertools.chain.from_iterable((1, size) for size in view.shape)))
    if apart is None:
        raise BuildRefusedError("a layout that cannot be tiled")
    pairs = zip(repeats, view.shape, strict=True)
    stretched = context.broadcast(apart, tuple(itertools.chain.from_iterable(pairs)))
    _reshaped(node, context, stretched, context.shape_of(node.outputs[0]))


def slice_(node: ir.Node, context: Context) -> None:
    """Lowers Slice with known bounds, steps of either sign."""
    view, bounds = context.view(node.inputs[0]), slice_bounds(node)
    if any(part is None for part in bounds):
        raise BuildRefusedError("the bounds of Slice are not constant")
    starts, ends, axes, steps = (part or () for part in bounds)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        first, length = _chosen(start, end, step, view.shape[axis])
        view = view.sliced(axis, first, step, length)
    context.alias(node.outputs[0], view)


def split(node: ir.Node, context: Context) -> None:
    """Lowers Split: the outputs' sizes are known, so only they count."""
    view = context.view(node.inputs[0])
    axis = int_attribute(node, "axis", 0) % len(view.shape)
    start: Dim = 0
    for output in node.outputs:
        length = context.shape_of(output)[axis]
        if start + length > view.shape[axis]:
            raise BuildRefusedError("the parts of Split are longer than its input")
        context.alias(output, view.sliced(axis, start, 1, length))
        start = start + length


def concat(node: ir.Node, context: Context) -> None:
    """Lowers Concat: each input is copied to its place; a later pass lets its producer write there."""
    target = context.output(node.outputs[0])
    axis = int_attribute(node, "axis", 1) % len(target.shape)
    start: Dim = 0
    for value in node.inputs:
        view = context.view(value)
        if view.dtype != target.dtype or len(view.shape) != len(target.shape):
            raise BuildRefusedError("inputs of Concat that differ in type or rank")
        place = target.sliced(axis, start, 1, view.shape[axis])
        if place.shape != view.shape or start + view.shape[axis] > target.shape[axis]:
            raise BuildRefusedError("inputs of Concat that do not fit together")
        context.emit(Elementwise(place, (view,), identity()))
        start = start + view.shape[axis]
    if start != target.shape[axis]:
        raise BuildRefusedError("inputs of Concat that do not fill its output")


def depth_to_space(node: ir.Node, context: Context) -> None:
    """Lowers DepthToSpace in both modes.

    Source: ONNX DepthToSpace: (b, b, c) for DCR, (c, b, b) for CRD, from the channels.
    """
    view, block = context.view(node.inputs[0]), int_attribute(node, "blocksize", 1)
    n, c, h, w = _image_shape(view)
    if c % (block * block):
        raise BuildRefusedError("channels that are no multiple of the block")
    inner = c // (block * block)
    shape: Shape
    if text_attribute(node, "mode", "DCR") == "CRD":
        shape, axes = (n, inner, block, block, h, w), (0, 1, 4, 2, 5, 3)
    else:
        shape, axes = (n, block, block, inner, h, w), (0, 3, 4, 1, 5, 2)
    _reshaped(node, context, _seen_as(context, view, shape).transposed(axes), (n, inner, h * block, w * block))


def space_to_depth(node: ir.Node, context: Context) -> None:
    """Lowers SpaceToDepth in both modes, the reverse of DepthToSpace.

    Source: ONNX SpaceToDepth: `mode` from opset 26 on, DCR before.
    """
    view, block = context.view(node.inputs[0]), int_attribute(node, "blocksize", 1)
    n, c, h, w = _image_shape(view)
    if h % block or w % block:
        raise BuildRefusedError("an image that is no multiple of the block")
    is_crd = text_attribute(node, "mode", "DCR") == "CRD"
    axes = (0, 1, 3, 5, 2, 4) if is_crd else (0, 3, 5, 1, 2, 4)
    apart = _seen_as(context, view, (n, c, h // block, block, w // block, block)).transposed(axes)
    _reshaped(node, context, apart, (n, c * block * block, h // block, w // block))


def gather(node: ir.Node, context: Context) -> None:
    """Lowers Gather: a slice where the indices are constant and evenly spaced, else by a table."""
    view, indices = context.view(node.inputs[0]), context.constant(operand(node, 1))
    axis = int_attribute(node, "axis", 0) % len(view.shape)
    if indices is None:
        _gathered_at_run_time(node, context, axis)
        return
    length = view.shape[axis]
    flat = indices.reshape(-1).astype(np.int64)
    if flat.size and (int(flat.min()) < -length or int(flat.max()) >= length):
        raise BuildRefusedError("an index of Gather is outside its axis")
    if isinstance(length, int):
        flat = np.where(flat < 0, flat + length, flat)
    shape = (*view.shape[:axis], *indices.shape, *view.shape[axis + 1 :])
    step = _even_step(flat)
    if step is not None:
        first = int(flat[0])
        _reshaped(node, context, view.sliced(axis, first + length if first < 0 else first, step, flat.size), shape)
        return
    _gathered(context, context.output(node.outputs[0]), context.dense(node.inputs[0]), axis, flat, 0.0)


def pad(node: ir.Node, context: Context) -> None:
    """Lowers Pad in every mode, one axis after the other, by tables of where each element comes from."""
    padding = padding_of(node, context.opset)
    if padding is None:
        raise BuildRefusedError("the padding of Pad is not constant")
    if padding.value and context.view(node.inputs[0]).dtype not in ("float16", "float32"):
        raise BuildRefusedError("a Pad of whole numbers with another value than 0")
    view = context.dense(node.inputs[0])
    changed = [axis for axis in range(len(view.shape)) if padding.begins[axis] or padding.ends[axis]]
    if not changed:
        context.alias(node.outputs[0], view)
    if not is_fixed(view.shape[axis] for axis in changed):
        _padded(context, context.output(node.outputs[0]), view, padding)
        return
    for axis in changed:
        table = _pad_table(fixed(view.shape[axis]), padding.begins[axis], padding.ends[axis], padding.mode)
        shape = (*view.shape[:axis], len(table), *view.shape[axis + 1 :])
        is_last = axis == changed[-1]
        target = context.output(node.outputs[0]) if is_last else context.temporary("pad", view.dtype, shape)
        _gathered(context, target, view, axis, table, padding.value)
        view = target


def _padded(context: Context, target: View, view: View, padding: Padding) -> None:
    """Fills the target and copies the view into its middle: for axes whose size is not fixed."""
    if padding.mode != "constant" or min(*padding.begins, *padding.ends) < 0:
        raise BuildRefusedError(
            f"a Pad of mode {padding.mode!r}, or one that cuts, along an axis whose size is not fixed"
        )
    value = context.new_constant(np.full((1,) * len(view.shape), padding.value, numpy_dtype(view.dtype)))
    context.emit(Elementwise(target, (context.broadcast(value, target.shape),), identity()))
    middle = target
    for axis, begin in enumerate(padding.begins):
        middle = middle.sliced(axis, begin, 1, view.shape[axis])
    context.emit(Elementwise(middle, (view,), identity()))


def _gathered_at_run_time(node: ir.Node, context: Context, axis: int) -> None:
    source, table = context.dense(node.inputs[0]), context.dense(operand(node, 1))
    target = context.output(node.outputs[0])
    axes = axis_of(source.shape, axis, axis)
    if target.size != axes.outer * table.size * axes.inner:
        raise BuildRefusedError("the model says another shape")
    context.emit(Gather(target, source, table, axes, wraps=True))


def _gathered(context: Context, target: View, source: View, axis: int, table: Array, fill: float) -> None:
    axes, wraps = axis_of(source.shape, axis, axis), isinstance(source.shape[axis], Size) and bool(np.any(table < 0))
    if target.size != axes.outer * table.size * axes.inner:
        raise BuildRefusedError("the model says another shape")
    context.emit(Gather(target, source, context.new_constant(table.astype(np.int32)), axes, fill, wraps))


def _reshaped(node: ir.Node, context: Context, view: View, shape: Shape) -> None:
    """Makes the node's output the view under another shape, copying where the layout does not allow it."""
    context.alias(node.outputs[0], _seen_as(context, view, shape))


def _seen_as(context: Context, view: View, shape: Shape) -> View:
    seen = view.reshaped(shape) or context.packed(view).reshaped(shape)
    if seen is None:
        raise BuildRefusedError(f"{view.shape} cannot be seen as {shape}")
    return seen


def _is_asked(node: ir.Node, index: int) -> bool:
    return len(node.outputs) > index and bool(node.outputs[index].name)


def _chosen(start: int, end: int, step: int, size: Dim) -> tuple[Dim, Dim]:
    """Returns the first place of an axis that a slice takes, and how many.

    Source: ONNX Slice: negative bounds count from the end once, then both are brought into the axis; for negative
    steps the start into 0 .. size - 1 and the end into -1 .. size - 1.
    """
    first, last = (bound + size if bound < 0 else bound for bound in (start, end))
    if step > 0:
        first, last = least(most(first, 0), size), least(most(last, 0), size)
        return first, most(0, ceil_div(last - first, step))
    first, last = least(most(first, 0), size - 1), least(most(last, -1), size - 1)
    return first, most(0, ceil_div(first - last, -step))


def _image_shape(view: View) -> tuple[Dim, Dim, Dim, Dim]:
    if len(view.shape) != 4:
        raise BuildRefusedError("an input that is no image")
    n, c, h, w = view.shape
    return n, c, h, w


def _even_step(indices: Array) -> int | None:
    """Returns the distance between neighbours where it is always the same, and not 0; None otherwise.

    Indices that count from the end of an axis whose size is not fixed have no distance to those from its beginning.
    """
    if indices.size == 1:
        return 1
    if np.unique(indices < 0).size == 2:
        return None
    steps = np.unique(np.diff(indices))
    return int(steps[0]) if steps.size == 1 and steps[0] != 0 else None


def _pad_table(length: int, begin: int, end: int, mode: str) -> Array:
    """Returns for each element of a padded axis the one it comes from, -1 where it is the fill value.

    Negative padding cuts. Source: ONNX Pad, its modes as numpy.pad has them.
    """
    inside = np.arange(max(0, -begin), length - max(0, -end))
    widths = (max(0, begin), max(0, end))
    if mode == "constant":
        return np.pad(inside, widths, constant_values=-1)
    modes = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}
    if mode not in modes or not inside.size:
        raise BuildRefusedError(f"a Pad of mode {mode!r}")
    return np.pad(inside, widths, mode=modes[mode])  # type: ignore[call-overload, no-any-return]
