# SPDX-License-Identifier: Apache-2.0
"""What operators that move elements ask of sizes: reshaped, joined, split, gathered. Source: ONNX's operators."""

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from nndeploy.checking.relations import AT_LEAST, EQUAL, MULTIPLE, Found, Rule, broadcast, equal, shapes_of
from nndeploy.graph.constants import constant_array, constant_ints
from nndeploy.graph.known_sizes import KnownSizes
from nndeploy.graph.node_parameters import axes_of, pad_axes, reshape_target
from nndeploy.graph.operators import int_attribute, ints_attribute, operand, text_attribute
from nndeploy.values.size import Dim, most, product


def _concat(node: ir.Node, known: KnownSizes) -> Found:
    first, *others = shapes_of(node, known, *range(len(node.inputs)))
    axis = int_attribute(node, "axis", 0) % max(1, len(first))
    for other in others:
        if len(other) == len(first):
            yield from equal(first[:axis] + first[axis + 1 :], other[:axis] + other[axis + 1 :])


def _reshape(node: ir.Node, known: KnownSizes) -> Found:
    (shape,) = shapes_of(node, known, 0)
    target = reshape_target(node, known.opset) or known.elements(operand(node, 1))
    if not shape or target is None:
        return
    copied = int_attribute(node, "allowzero", 0) == 0
    sizes = [shape[i] if size == 0 and copied and i < len(shape) else size for i, size in enumerate(target)]
    others = [size for size in sizes if size != -1]
    if len(others) == len(sizes):
        yield EQUAL, product(shape), product(sizes)
        return
    row = product(others)
    yield MULTIPLE, product(shape), row
    if (
        sizes[0] == -1
        and isinstance(row, int)
        and not any(product(shape[axis:]) == row for axis in range(1, len(shape) + 1))
    ):
        yield EQUAL, product(shape[1:]), row, False  # what is flattened is a row of the same batch


def _squeeze(node: ir.Node, known: KnownSizes) -> Found:
    (shape,) = shapes_of(node, known, 0)
    for axis in axes_of(node, known.opset) or ():
        yield EQUAL, shape[axis], 1


def _expand(node: ir.Node, known: KnownSizes) -> Found:
    target = known.elements(operand(node, 1))
    return broadcast([*shapes_of(node, known, 0), target or ()])


def _split(node: ir.Node, known: KnownSizes) -> Found:
    (shape,) = shapes_of(node, known, 0)
    size = shape[int_attribute(node, "axis", 0)]
    parts = ints_attribute(node, "split") or constant_ints(operand(node, 1))
    if parts is not None:
        yield EQUAL, size, sum(parts)
    elif operand(node, 1) is None:
        yield MULTIPLE, size, len(node.outputs), known.opset < 18


def _gather(node: ir.Node, known: KnownSizes) -> Found:
    (shape,) = shapes_of(node, known, 0)
    size = shape[int_attribute(node, "axis", 0)]
    for least in _sizes_for(operand(node, 1), known):
        yield AT_LEAST, size, least


def _gather_nd(node: ir.Node, known: KnownSizes) -> Found:
    (shape,), places = shapes_of(node, known, 0), constant_array(operand(node, 1))
    if places is None or not places.size or not places.ndim:
        return
    for axis, column in enumerate(places.reshape(-1, places.shape[-1]).T, int_attribute(node, "batch_dims", 0)):
        yield AT_LEAST, shape[axis], _size_for(column)


def _size_for(places: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]") -> int:
    """Returns how large an axis must be to have these places, of which negative ones count from its end."""
    return max(int(places.max()) + 1, -int(places.min()))


def _sizes_for(places: ir.Value | None, known: KnownSizes) -> Iterator[Dim]:
    constant = constant_array(places)
    if constant is not None:
        if constant.size and np.issubdtype(constant.dtype, np.integer):
            yield _size_for(constant)
    elif (largest := _largest(places, known, depth=16)) is not None:
        yield largest + 1


def _largest(value: ir.Value | None, known: KnownSizes, depth: int) -> "Dim | None":
    """Returns the largest number that a computed tensor of places may hold, None where that is not known.

    Positions are counted (Range), moved behind a past (Add), or summed up of a mask (CumSum).
    """
    constant = constant_array(value)
    if constant is not None:
        return int(constant.max()) if constant.size and constant.dtype.kind in "iub" else None
    if elements := known.elements(value):
        return most(*elements)
    node = value.producer() if value is not None else None
    if node is None or depth == 0 or node.domain != "":
        return None
    if node.op_type == "Range":
        end = known.elements(operand(node, 1))
        return end[0] - 1 if end else None
    if node.op_type in ("Not", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or"):
        return 1
    first = _largest(operand(node, 0), known, depth - 1)
    if first is None or node.op_type in _MOVING:
        return first
    if node.op_type == "CumSum":
        shape, axis = known.shape(operand(node, 0)), constant_ints(operand(node, 1))
        return first * shape[axis[0]] if shape and axis else None
    second = _largest(operand(node, 1), known, depth - 1)
    if second is not None and node.op_type in ("Add", "Mul"):
        return first + second if node.op_type == "Add" else first * second
    return None


_MOVING = frozenset(
    {"Cast", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze"}
)


def _top(node: ir.Node, known: KnownSizes) -> Found:
    (shape,) = shapes_of(node, known, 0)
    count = (int_attribute(node, "k", 0),) if known.opset < 10 else known.elements(operand(node, 1))
    if count:
        yield AT_LEAST, shape[int_attribute(node, "axis", -1)], count[0]


def _pad(node: ir.Node, known: KnownSizes) -> Found:
    (shape,) = shapes_of(node, known, 0)
    pads = ints_attribute(node, "pads") or known.elements(operand(node, 1)) or ()
    if text_attribute(node, "mode", "constant") == "reflect":
        for axis, width in zip((pad_axes(node, len(shape)) or ()) * 2, pads, strict=False):
            yield AT_LEAST, shape[axis], width + 1


def _blocks(node: ir.Node, known: KnownSizes) -> Found:
    (shape,), block = shapes_of(node, known, 0), int_attribute(node, "blocksize", 1)
    if node.op_type == "DepthToSpace":
        yield MULTIPLE, shape[1], block * block
    else:
        yield from ((MULTIPLE, size, block) for size in shape[2:])


def _scatter(node: ir.Node, known: KnownSizes) -> Found:
    places, updates = shapes_of(node, known, 1, 2)
    return equal(places[:-1] if node.op_type == "ScatterND" else places, updates)


RULES: dict[str, Rule] = {
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _blocks),
    **dict.fromkeys(("Gather", "GatherElements"), _gather),
    **dict.fromkeys(("Scatter", "ScatterElements", "ScatterND"), _scatter),
    "Concat": _concat,
    "Expand": _expand,
    "GatherND": _gather_nd,
    "Pad": _pad,
    "Reshape": _reshape,
    "Split": _split,
    "Squeeze": _squeeze,
    "TopK": _top,
}
"""Operator -> what it asks of the sizes of its inputs."""
