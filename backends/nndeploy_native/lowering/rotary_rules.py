# SPDX-License-Identifier: Apache-2.0
"""The rules for RotaryEmbedding, ONNX's and that of com.microsoft: heads are turned by angles of their place.

    y1 = x1 * cos - x2 * sin        y2 = x2 * cos + x1 * sin

x1 and x2 are the halves of what is turned of a head, or every second number of it; what is beyond stays. Source: ONNX
RotaryEmbedding, opset 23; ONNX Runtime, docs/ContribOperators.md.
"""

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, int_attribute, operand
from nndeploy.values.size import Dim, fixed, is_fixed
from nndeploy.values.size import product as size_of
from nndeploy_native.expressions import Domain, Expression
from nndeploy_native.expressions import operand as nth
from nndeploy_native.lowering.context import Context
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.indexed import Picked
from nndeploy_native.steps.movement import JoinPlain, View
from nndeploy_native.tensors import Layout, Shape, Tensor, may_be_same

_TURNED: tuple[Expression, Expression] = (
    ("sub", ("mul", nth(0), nth(2)), ("mul", nth(1), nth(3))),
    ("add", ("mul", nth(1), nth(2)), ("mul", nth(0), nth(3))),
)
"""What becomes of (x1, x2, cos, sin)."""


class Angles(NamedTuple):
    """Cosines and sines (batch or 1, places, half), and whether what they turn are neighbours, no halves."""

    cos: Tensor
    sin: Tensor
    are_neighbours: bool

    @property
    def half(self) -> int:
        """How many pairs of numbers of a head are turned."""
        return fixed(self.cos.shape[2])


def rotary_embedding(node: ir.Node, context: Context) -> None:
    """Lowers RotaryEmbedding of com.microsoft: inputs x, places, cosines and sines of each place."""
    if int_attribute(node, "is_packed_batching", 0) or float_attribute(node, "scale", 1.0) != 1.0:
        raise BuildRefusedError("a RotaryEmbedding that is packed or scaled")
    tables = [operand(node, number) for number in (2, 3)]
    half = half_of(tables, context)
    x, of_places = _parts_of(node, half, context)
    numbers = places_of(operand(node, 1), x.sizes[0], x.sizes[of_places], context)
    angles = picked_angles(tables, numbers, context, are_neighbours=bool(int_attribute(node, "interleaved", 0)))
    turn(x, of_places, angles, context.output(node.outputs[0], Layout.PLAIN), context)


def rotary_embedding_of_onnx(node: ir.Node, context: Context) -> None:
    """Lowers ONNX's RotaryEmbedding: inputs x, cosines and sines of each place, or of each row where there are none."""
    tables, places = [operand(node, number) for number in (1, 2)], operand(node, 3)
    shapes = [context.shape_of(table) for table in tables]
    if shapes[0] != shapes[1] or len(shapes[0]) != (3 if places is None else 2) or not is_fixed(shapes[0][-1:]):
        raise BuildRefusedError(f"cosines and sines of shapes {shapes[0]} and {shapes[1]}")
    x, of_places = _parts_of(node, fixed(shapes[0][-1]), context)
    batch, count, size = x.sizes[0], x.sizes[of_places], fixed(x.sizes[3])
    turned = int_attribute(node, "rotary_embedding_dim", 0) or size
    if turned != 2 * fixed(shapes[0][-1]):
        raise BuildRefusedError(f"{turned} numbers of a head turned by {shapes[0][-1]} angles")
    are_neighbours = bool(int_attribute(node, "interleaved", 0))
    if places is None:
        if not may_be_same(shapes[0][:2], (batch, count)):
            raise BuildRefusedError(f"angles of {shapes[0]} for {batch} times {count}")
        angles = Angles(context.plain(tables[0]), context.plain(tables[1]), are_neighbours)
    else:
        numbers = places_of(places, batch, count, context)
        angles = picked_angles(tables, numbers, context, are_neighbours=are_neighbours)
    turn(x, of_places, angles, context.output(node.outputs[0], Layout.PLAIN), context)


def half_of(tables: list[ir.Value | None], context: Context) -> int:
    """Returns how many cosines, and sines, there are of each place.

    Raises:
        BuildRefusedError: the tables are not alike, or not fixed.
    """
    shapes = [context.shape_of(table) for table in tables]
    for shape in shapes:
        if not is_fixed(shape) or shape != shapes[0] or len(shape) != 2:
            raise BuildRefusedError(f"cosines or sines of shape {shape}")
    return fixed(shapes[0][1])


def picked_angles(tables: list[ir.Value | None], numbers: Tensor, context: Context, *, are_neighbours: bool) -> Angles:
    """Returns the angles of places (batch or 1, count)."""
    cos, sin = (_picked(table, numbers, context) for table in tables)
    return Angles(cos, sin, are_neighbours)


def _picked(table: ir.Value | None, numbers: Tensor, context: Context) -> Tensor:
    """Returns the rows of a table at some places, which are picked once for all that is turned by them."""
    rows = context.plain(table)

    def make() -> Tensor:
        made = context.temporary("angles", (*numbers.shape, rows.shape[1]), Layout.PLAIN)
        context.emit(Picked("gather", made, rows, numbers, 0))
        return made

    return context.once(("angles", rows, numbers), make)


def turn(x: View, of_places: int, angles: Angles, output: Tensor, context: Context) -> None:
    """Emits `output`, which is x of four axes, the first the batch, the last numbers of a head, turned."""
    half = angles.half
    if 2 * half > fixed(x.sizes[3]):
        raise BuildRefusedError(f"heads of {x.sizes[3]} numbers, of which {2 * half} are turned")
    seen: list[Dim] = [angles.cos.shape[0], 1, 1, half]
    seen[of_places] = angles.cos.shape[1]
    shape: Shape = tuple(seen)
    by = [Operand(shape, Tensor(table.name, shape)) for table in angles[:2]]
    step = 2 if angles.are_neighbours else 1
    parts = [x.taken(3, first, half, step) for first in ((0, 1) if step == 2 else (0, half))]
    operands = (*(Operand(part.sizes, context.stored(part, "half")) for part in parts), *by)
    made = [context.temporary("turned", parts[0].sizes, Layout.PLAIN) for _ in parts]
    for one, expression in zip(made, _TURNED, strict=True):
        context.emit(Elementwise(one, operands, expression))
    _join(made, x, output, context, is_interleaved=step == 2)


def _parts_of(node: ir.Node, half: int, context: Context) -> tuple[View, int]:
    """Returns what is turned with an axis of heads, and which of its axes is that of places."""
    context.shape_of(operand(node, 0))
    x = context.view(operand(node, 0))
    heads = _heads_of(x, half, node)
    return (x.parted(2, heads, fixed(x.sizes[2]) // heads), 1) if len(x.sizes) == 3 else (x, 2)


def _heads_of(x: View, half: int, node: ir.Node) -> int:
    """Returns how many heads lie in a row."""
    if len(x.sizes) not in (3, 4) or not is_fixed(x.sizes[-1:]):
        raise BuildRefusedError(f"a RotaryEmbedding of {x.sizes}")
    heads = int_attribute(node, "num_heads", 0)
    if len(x.sizes) == 4:
        return 1
    heads = heads or fixed(x.sizes[2]) // (2 * half)
    if heads < 1 or fixed(x.sizes[2]) % heads:
        raise BuildRefusedError(f"{heads} heads of rows of {x.sizes[2]}")
    return heads


def places_of(value: ir.Value | None, batch: Dim, count: Dim, context: Context) -> Tensor:
    """Returns places (batch or 1, count): those that are given, or that go on from the one that is."""
    sizes, given = context.sizes_of(value), context.whole_numbers(value)
    if len(sizes) == 2 and may_be_same(sizes, (batch, count)):
        return given
    if sizes != (1,) or not is_fixed((count,)):
        raise BuildRefusedError(f"places of shape {sizes} for {batch} times {count}")
    shape: Shape = (1, fixed(count))
    made = context.temporary("places", shape, Layout.PLAIN, given.element)
    numbers = np.arange(fixed(count), dtype=np.int64).reshape(1, -1)
    begin = Operand((1, 1), Tensor(given.name, (1, 1), element=given.element))
    context.emit(Elementwise(made, (begin, Operand(shape, None, numbers)), ("add", nth(0), nth(1)), Domain.INT64))
    return made


def _join(made: list[Tensor], whole: View, output: Tensor, context: Context, *, is_interleaved: bool) -> None:
    """Emits the output: what was turned, number by number or half by half, and behind it what stays."""
    (*axes, half), size = made[0].shape, whole.sizes[3]
    outer = size_of(tuple(axes))
    turned, rest = 2 * fixed(half), fixed(size) - 2 * fixed(half)
    if is_interleaved:
        to = output if not rest else context.temporary("turned", (*axes, turned), Layout.PLAIN)
        context.emit(JoinPlain(to, tuple(made), outer * half))
        made = [to]
    if rest:
        made = [*made, context.stored(whole.taken(3, turned, rest, 1), "rest")]
    if rest or not is_interleaved:
        context.emit(JoinPlain(output, tuple(made), outer))
