# SPDX-License-Identifier: Apache-2.0
"""The rule for RotaryEmbedding of com.microsoft: pairs of numbers of each head are turned by angles of its place.

    y1 = x1 * cos - x2 * sin        y2 = x2 * cos + x1 * sin

x1 and x2 are the halves of what is turned of a head, or every second number of it; what is beyond stays. Source: ONNX
Runtime, docs/ContribOperators.md.
"""

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


def rotary_embedding(node: ir.Node, context: Context) -> None:
    """Lowers RotaryEmbedding: inputs x, places, cosines and sines of each place."""
    if int_attribute(node, "is_packed_batching", 0) or float_attribute(node, "scale", 1.0) != 1.0:
        raise BuildRefusedError("a RotaryEmbedding that is packed or scaled")
    tables = [operand(node, number) for number in (2, 3)]
    for table in tables:
        if not is_fixed(context.shape_of(table)) or len(context.shape_of(table)) != 2:
            raise BuildRefusedError(f"cosines or sines of shape {context.shape_of(table)}")
    half, x = fixed(context.shape_of(tables[0])[1]), context.view(operand(node, 0))
    context.shape_of(operand(node, 0))
    heads = _heads_of(x, half, node)
    turned = x.parted(2, heads, fixed(x.sizes[2]) // heads) if len(x.sizes) == 3 else x
    places = 1 if len(x.sizes) == 3 else 2
    batch, count, size = x.sizes[0], turned.sizes[places], fixed(turned.sizes[3])
    if 2 * half > size:
        raise BuildRefusedError(f"heads of {size} numbers, of which {2 * half} are turned")
    numbers = _places(operand(node, 1), batch, count, context)
    seen: list[Dim] = [batch, 1, 1, half]
    seen[places] = count
    angles = []
    for table in tables:
        picked = context.temporary("angles", (*numbers.shape, half), Layout.PLAIN)
        context.emit(Picked("gather", picked, context.plain(table), numbers, 0))
        shape = (numbers.shape[0], *seen[1:])
        angles.append(Operand(shape, Tensor(picked.name, shape)))
    step = 2 if int_attribute(node, "interleaved", 0) else 1
    parts = [turned.taken(3, first, half, step) for first in ((0, 1) if step == 2 else (0, half))]
    operands = (*(Operand(part.sizes, context.stored(part, "half")) for part in parts), *angles)
    made = [context.temporary("turned", parts[0].sizes, Layout.PLAIN) for _ in parts]
    for one, expression in zip(made, _TURNED, strict=True):
        context.emit(Elementwise(one, operands, expression))
    _join(made, turned, node, context, is_interleaved=step == 2)


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


def _places(value: ir.Value | None, batch: Dim, count: Dim, context: Context) -> Tensor:
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


def _join(made: list[Tensor], whole: View, node: ir.Node, context: Context, *, is_interleaved: bool) -> None:
    """Emits the output: what was turned, number by number or half by half, and behind it what stays."""
    (*axes, half), size = made[0].shape, whole.sizes[3]
    output, outer = context.output(node.outputs[0], Layout.PLAIN), size_of(tuple(axes))
    turned, rest = 2 * fixed(half), fixed(size) - 2 * fixed(half)
    if is_interleaved:
        to = output if not rest else context.temporary("turned", (*axes, turned), Layout.PLAIN)
        context.emit(JoinPlain(to, tuple(made), outer * half))
        made = [to]
    if rest:
        made = [*made, context.stored(whole.taken(3, turned, rest, 1), "rest")]
    if rest or not is_interleaved:
        context.emit(JoinPlain(output, tuple(made), outer))
