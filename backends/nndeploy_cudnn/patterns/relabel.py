# SPDX-License-Identifier: Apache-2.0
"""Operators that only say how elements are numbered: Reshape, Transpose, Slice and their kin.

The shape of the result is known from inference, so a Reshape's second input is not looked at.

Source: ONNX Reshape, Flatten, Squeeze, Unsqueeze, Transpose, Slice, Split, Gather, DepthToSpace, SpaceToDepth.
"""

from collections.abc import Callable, Sequence

import onnx_ir as ir

from nndeploy.backend_kit.query import constant_of
from nndeploy_cudnn.operations import Reshaped, Sliced, Transposed, Value
from nndeploy_cudnn.patterns.translation import (
    NotTakenError,
    Translation,
    attribute,
    attribute_ints,
    axis_within,
    input_of,
    integers_of,
)
from nndeploy_cudnn.views import Dims


def reshape(node: ir.Node, translation: Translation) -> None:
    """Writes Reshape, Flatten, Squeeze or Unsqueeze."""
    translation.add(Reshaped(translation.value(node.inputs[0]), translation.value(node.outputs[0])))


def transpose(node: ir.Node, translation: Translation) -> None:
    """Writes a Transpose."""
    x, y = translation.value(node.inputs[0]), translation.value(node.outputs[0])
    permutation = attribute_ints(node, "perm", tuple(reversed(range(len(x.dims)))))
    if sorted(permutation) != list(range(len(x.dims))):
        raise NotTakenError("perm is no permutation of the axes")
    translation.add(Transposed(x, y, permutation))


def slice_(node: ir.Node, translation: Translation) -> None:
    """Writes a Slice with positive steps."""
    x, y = translation.value(node.inputs[0]), translation.value(node.outputs[0])
    starts, ends, axes, steps = _slice_numbers(node, len(x.dims))
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step < 1:
            raise NotTakenError("a Slice that goes backwards")
        size = x.dims[axis]
        first, last = _within(start, size), _within(end, size)
        made = translation.made(_with(x.dims, axis, max(0, -(-(last - first) // step))), x.dtype)
        if 0 in made.dims:
            raise NotTakenError("an empty Slice")
        translation.add(Sliced(x, made, axis, first, step))
        x = made
    translation.add(Reshaped(x, y))


def split(node: ir.Node, translation: Translation) -> None:
    """Writes a Split: one slice for each output."""
    x = translation.value(node.inputs[0])
    axis, start = axis_within(attribute(node, "axis", 0), len(x.dims)), 0
    for output in node.outputs:
        y = translation.value(output)
        translation.add(Sliced(x, y, axis, start))
        start += y.dims[axis]


def gather(node: ir.Node, translation: Translation) -> None:
    """Writes a Gather of one element: a slice of size 1."""
    x, y = translation.value(node.inputs[0]), translation.value(node.outputs[0])
    axis = axis_within(attribute(node, "axis", 0), len(x.dims))
    indices = constant_of(input_of(node, 1))
    if indices is None or indices.size != 1:
        raise NotTakenError("cuDNN's graph API has no Gather of several elements")
    index = axis_within(int(indices.numpy().item()), x.dims[axis])
    made = translation.made(_with(x.dims, axis, 1), x.dtype)
    translation.add(Sliced(x, made, axis, index))
    translation.add(Reshaped(made, y))


def depth_to_space(node: ir.Node, translation: Translation) -> None:
    """Writes a DepthToSpace: reshape, transpose, reshape."""
    x, y = translation.value(node.inputs[0]), translation.value(node.outputs[0])
    n, c, h, w = x.dims
    size = attribute(node, "blocksize", 1)
    if attribute(node, "mode", "DCR") == "DCR":
        dims, order = (n, size, size, c // size**2, h, w), (0, 3, 4, 1, 5, 2)
    else:
        dims, order = (n, c // size**2, size, size, h, w), (0, 1, 4, 2, 5, 3)
    _through(translation, x, dims, order, y)


def space_to_depth(node: ir.Node, translation: Translation) -> None:
    """Writes a SpaceToDepth: reshape, transpose, reshape."""
    x, y = translation.value(node.inputs[0]), translation.value(node.outputs[0])
    n, c, h, w = x.dims
    size = attribute(node, "blocksize", 1)
    _through(translation, x, (n, c, h // size, size, w // size, size), (0, 3, 5, 1, 2, 4), y)


def _through(translation: Translation, x: Value, dims: Dims, order: Sequence[int], y: Value) -> None:
    apart = translation.made(dims, x.dtype)
    turned = translation.made([dims[axis] for axis in order], x.dtype)
    translation.add(Reshaped(x, apart))
    translation.add(Transposed(apart, turned, tuple(order)))
    translation.add(Reshaped(turned, y))


def _slice_numbers(node: ir.Node, rank: int) -> tuple[list[int], list[int], list[int], list[int]]:
    if "starts" in node.attributes:
        starts, ends = list(attribute_ints(node, "starts", ())), list(attribute_ints(node, "ends", ()))
        axes, steps = list(attribute_ints(node, "axes", range(len(starts)))), [1] * len(starts)
    else:
        starts, ends = integers_of(node, 1), integers_of(node, 2)
        axes = integers_of(node, 3, default=range(len(starts)))
        steps = integers_of(node, 4, default=(1,) * len(starts))
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise NotTakenError("starts, ends, axes and steps differ in number")
    return starts, ends, [axis_within(axis, rank) for axis in axes], steps


def _within(position: int, size: int) -> int:
    """Returns a start or end of a Slice counted from the front and kept inside."""
    return min(max(position + size if position < 0 else position, 0), size)


def _with(dims: Dims, axis: int, size: int) -> Dims:
    return (*dims[:axis], size, *dims[axis + 1 :])


PATTERNS: dict[str, Callable[[ir.Node, Translation], None]] = {
    "Reshape": reshape,
    "Flatten": reshape,
    "Squeeze": reshape,
    "Unsqueeze": reshape,
    "Transpose": transpose,
    "Slice": slice_,
    "Split": split,
    "Gather": gather,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
}
