# SPDX-License-Identifier: Apache-2.0
"""The rule for GroupQueryAttention of com.microsoft: heads that share keys, a cache, and rotary embedding in one node.

    GroupQueryAttention(query, key, value, past keys, past values, last places, size, cosines, sines, places, bias)

Each element b of a batch has its own length: what is new begins in its cache at past[b], and zeros stand behind it; row
s looks at the keys up to it, none behind the last, and at `local_window_size` of these alone.

    past[b] = max(last[b] + 1 - rows, 0)        seen[b, s] = min(past[b] + s, last[b])

Query, key and value may be one tensor. How many places a cache has is what the model says of the outputs. Source: ONNX
Runtime, docs/ContribOperators.md, and contrib_ops/cpu/bert/gqa_attention_base.h for what padded rows come to.
"""

from dataclasses import replace
from typing import NamedTuple

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, int_attribute, operand, text_attribute
from nndeploy.values.size import Dim, fixed, is_fixed
from nndeploy_native.expressions import Domain, Expression, const
from nndeploy_native.expressions import operand as nth
from nndeploy_native.lowering.attention_heads import (
    Heads,
    Scores,
    added_operand,
    as_rows,
    attend,
    heads_of,
    hide_outside,
    places_along,
    with_past,
)
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.rotary_rules import Angles, half_of, picked_angles, places_of, turn
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.movement import View
from nndeploy_native.tensors import Layout, Shape, Tensor, may_be_same

_REFUSED = {"causal": 1, "qk_output": 0, "sliding_window_cache": 0, "smooth_softmax": 0}
"""Attributes, and the numbers that they may have."""


class _Lengths(NamedTuple):
    """Whole numbers: where what is new begins, (batch, 1); each row's own place, and its last key, (batch, rows)."""

    begin: Tensor
    own: Tensor
    seen: Tensor


def group_query_attention(node: ir.Node, context: Context) -> None:
    """Lowers GroupQueryAttention."""
    _check(node)
    q, k, v = _rows_of(node, context)
    batch, rows = q.sizes[:2]
    lengths = _lengths(operand(node, 5), batch, rows, context)
    heads, shared, window = (
        int_attribute(node, name, -1) for name in ("num_heads", "kv_num_heads", "local_window_size")
    )
    found = Heads(heads_of(q, heads), heads_of(k, shared), heads_of(v, shared))
    if int_attribute(node, "do_rotary", 0):
        angles = _angles(node, batch, rows, lengths.own, context)
        found = found._replace(q=_turned(found.q, angles, context), k=_turned(found.k, angles, context))
    pasts, presents = [operand(node, number) for number in (3, 4)], _presents(node)
    if (pasts[0] is None) != (pasts[1] is None) or (pasts[0] is not None and None in presents):
        raise BuildRefusedError("a GroupQueryAttention with one past, or without the caches that are made of it")
    k, v = (
        with_past(node, past, new, present, lengths.begin, context)
        for past, new, present in zip(pasts, found[1:], presents, strict=True)
    )
    found = Heads(found.q, k, v)
    scores = Scores(float_attribute(node, "scale", 0.0) or fixed(found.q.sizes[3]) ** -0.5)
    scores.cap(float_attribute(node, "softcap", 0.0))
    bias = operand(node, 10)
    if bias is not None:
        scores.add(added_operand(bias, (batch, heads, rows, k.sizes[2]), context))
    seen = as_rows(lengths.seen, lengths.seen.shape[0])
    hide_outside(scores, seen, found, context, right=0, left=window - 1)
    attend(context.output(node.outputs[0], Layout.PLAIN), found, scores, context)


def _check(node: ir.Node) -> None:
    """Passes a node that uses nothing that no kernel does.

    Raises:
        BuildRefusedError: it does.
    """
    for name, number in _REFUSED.items():
        if int_attribute(node, name, number) not in (number, -1):
            raise BuildRefusedError(f"a GroupQueryAttention with {name}={int_attribute(node, name, number)}")
    if not int_attribute(node, "local_window_size", -1):
        raise BuildRefusedError("a GroupQueryAttention whose rows look at no key")
    if any(operand(node, number) is not None for number in range(11, 15)):
        raise BuildRefusedError("a GroupQueryAttention with a sink, a cache of few bits, or rows that it normalises")
    if any(text_attribute(node, f"{one}_quant_type", "NONE") != "NONE" for one in "kv"):
        raise BuildRefusedError("a GroupQueryAttention whose cache is of few bits")


def _presents(node: ir.Node) -> list[ir.Value | None]:
    outputs = [*node.outputs[1:3], None, None][:2]
    return [one if one is not None and one.name else None for one in outputs]


def _rows_of(node: ir.Node, context: Context) -> list[View]:
    """Returns queries, keys and values, each (batch, rows, heads * size): parts of one tensor, or three."""
    given = [operand(node, number) for number in range(3)]
    shapes = [context.shape_of(value) for value in given if value is not None]
    if len(shapes) not in (1, 3) or any(len(shape) != 3 or not is_fixed(shape[2:]) for shape in shapes):
        raise BuildRefusedError(f"a GroupQueryAttention of {shapes}")
    if len(shapes) == 3:
        return [context.view(value) for value in given]
    heads, shared = (int_attribute(node, name, 0) for name in ("num_heads", "kv_num_heads"))
    whole, columns, parts = context.view(given[0]), fixed(shapes[0][2]), heads + 2 * shared
    if heads < 1 or shared < 1 or columns % parts:
        raise BuildRefusedError(f"{parts} heads in rows of {columns}")
    size, begin, found = columns // parts, 0, []
    for count in (heads, shared, shared):
        found.append(whole.taken(2, begin * size, count * size, 1))
        begin += count
    return found


def _lengths(value: ir.Value | None, batch: Dim, rows: Dim, context: Context) -> _Lengths:
    """Returns what the last places of a batch lead to, which is computed once for all layers."""
    last = context.whole_numbers(value)
    if last.size != batch and not may_be_same((last.size,), (batch,)):
        raise BuildRefusedError(f"last places of {last.shape} for a batch of {batch}")
    of_last = Operand((batch, 1), replace(last, shape=(batch, 1)))
    first, row = (_of_rows(places_along(start, rows, context)) for start in (1 - rows, 0))
    begin = places_along(1 - rows, 1, context)
    behind = ("add", nth(0), nth(1))

    def made(what: str, shape: Shape, operands: tuple[Operand, ...], expression: Expression) -> Tensor:
        def make() -> Tensor:
            tensor = context.temporary(what, shape, Layout.PLAIN, "int64")
            context.emit(Elementwise(tensor, operands, expression, Domain.INT64))
            return tensor

        return context.once((what, last.name, rows), make)

    own: Expression = ("max", behind, nth(2))
    of_row = (of_last, first, row)
    return _Lengths(
        made("begin", (batch, 1), (of_last, Operand((1, 1), replace(begin, shape=(1, 1)))), ("max", behind, const(0))),
        made("own", (batch, rows), of_row, own),
        made("seen", (batch, rows), of_row, ("min", own, nth(0))),
    )


def _of_rows(tensor: Tensor) -> Operand:
    shape: Shape = (1, *tensor.shape)
    return Operand(shape, replace(tensor, shape=shape))


def _angles(node: ir.Node, batch: Dim, rows: Dim, places: Tensor, context: Context) -> Angles:
    """Returns the angles by which heads are turned, at places that are given or follow from the lengths."""
    tables, given = [operand(node, number) for number in (7, 8)], operand(node, 9)
    half_of(tables, context)
    if given is not None:
        places = _given_places(node, given, batch, rows, context)
    are_neighbours = bool(int_attribute(node, "rotary_interleaved", 0))
    return picked_angles(tables, places, context, are_neighbours=are_neighbours)


def _given_places(node: ir.Node, given: ir.Value, batch: Dim, rows: Dim, context: Context) -> Tensor:
    """Returns the places that are given; those of a first prompt, whose rows are all, go on from the first."""
    places, total = places_of(given, batch, rows, context), context.whole_numbers(operand(node, 6))

    def one(tensor: Tensor) -> Operand:
        return Operand((1, 1), replace(tensor, shape=(1, 1)))

    def make() -> Tensor:
        first = context.stored(View.of(places).taken(0, 0, 1, 1).taken(1, 0, 1, 1), "first")
        behind, made = (
            context.temporary("places", shape, Layout.PLAIN, "int64") for shape in ((1, rows), (batch, rows))
        )
        row = _of_rows(places_along(0, rows, context))
        context.emit(Elementwise(behind, (one(first), row), ("add", nth(0), nth(1)), Domain.INT64))
        operands = (one(total), one(places_along(rows, 1, context)), Operand(behind.shape, behind))
        expression: Expression = ("where", ("equal", nth(0), nth(1)), nth(2), nth(3))
        context.emit(Elementwise(made, (*operands, Operand(places.shape, places)), expression, Domain.INT64))
        return made

    return context.once(("given", places.name, total.name, rows), make)


def _turned(heads: View, angles: Angles, context: Context) -> View:
    """Returns heads (batch, heads, places, size), turned."""
    rows = heads.transposed((0, 2, 1, 3))
    output = context.temporary("turned", rows.sizes, Layout.PLAIN)
    turn(rows, 1, angles, output, context)
    return View.of(output).transposed((0, 2, 1, 3))
