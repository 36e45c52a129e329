# SPDX-License-Identifier: Apache-2.0
"""Rules for attention as ONNX Runtime's optimiser writes it: one step, whose heads are read where they lie.

    MultiHeadAttention(query, key, value, bias, mask of keys, bias of scores, past keys, past values)
    Attention(x, weights, bias, mask of keys, -, bias of scores)      the same of three parts of x by weights

Rows (batch, places, heads * size) are seen as (batch, heads, places, size), as keys and values of another sequence may
be already. Source: ONNX Runtime, docs/ContribOperators.md.
"""

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, int_attribute, ints_attribute, operand
from nndeploy.values.size import Dim, fixed, is_fixed
from nndeploy_native.expressions import const
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
from nndeploy_native.lowering.bits_rules import narrow_weights
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.matrices import factor, matrix, product
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.movement import View
from nndeploy_native.tensors import Array, Layout, may_be_same

MASK_FILTER = -10000.0


def multi_head_attention(node: ir.Node, context: Context) -> None:
    """Lowers MultiHeadAttention of separate queries, keys and values."""
    heads = int_attribute(node, "num_heads", 0)
    if any(operand(node, number) is not None for number in (8, 9)) or _has(node, 3):
        raise BuildRefusedError("a MultiHeadAttention whose past is shared, or whose scores are an output")
    found = _projected(node, heads, context)
    pasts = [operand(node, number) for number in (6, 7)]
    if (pasts[0] is None) != (pasts[1] is None):
        raise BuildRefusedError("a MultiHeadAttention with one past")
    q, new = found.q, found[1:]
    k, v = (
        with_past(node, past, one, node.outputs[number] if _has(node, number) else None, None, context)
        for number, past, one in zip((1, 2), pasts, new, strict=True)
    )
    before = context.sizes_of(pasts[0])[2] if pasts[0] is not None else 0
    _attend(node, context, Heads(q, k, v), before, operand(node, 4), operand(node, 5))


def _projected(node: ir.Node, heads: int, context: Context) -> Heads:
    """Returns queries, keys and values with their bias, before what is of a past."""
    given = [operand(node, number) for number in range(3)]
    ranks = [0 if value is None else len(context.shape_of(value)) for value in given]
    if ranks == [3, 4, 4]:  # of another sequence, projected before
        (q,) = _with_bias(node, [matrix(given[0], context)], heads, context)
        return Heads(q, context.view(given[1]), context.view(given[2]))
    if ranks != [3, 3, 3]:
        raise BuildRefusedError("a MultiHeadAttention of what is not three times (batch, places, size)")
    return Heads(*_with_bias(node, [matrix(value, context) for value in given], heads, context))


def _with_bias(node: ir.Node, rows: list[View], heads: int, context: Context) -> list[View]:
    """Returns rows, the queries first, with their parts of the bias that the model has, as heads."""
    bias = operand(node, 3)
    sizes = [fixed(one.sizes[2]) if is_fixed(one.sizes[2:]) else 0 for one in rows]
    if not all(sizes):
        raise BuildRefusedError(f"rows of {[one.sizes for one in rows]}")
    if bias is not None:
        numbers, ends = context.floats(bias, "a bias").reshape(-1), np.cumsum(sizes)
        if numbers.size != ends[-1] if len(rows) == 3 else numbers.size < ends[-1]:
            raise BuildRefusedError(f"a bias of {numbers.size} numbers for {ends[-1]} columns")
        rows = [
            _biased(one, part, context) for one, part in zip(rows, np.split(numbers, ends)[: len(rows)], strict=True)
        ]
    return [heads_of(one, heads) for one in rows]


def attention(node: ir.Node, context: Context) -> None:
    """Lowers Attention, whose queries, keys and values are one product."""
    heads, given = int_attribute(node, "num_heads", 0), ints_attribute(node, "qkv_hidden_sizes")
    if any(operand(node, number) is not None for number in (4, 6)) or _has(node, 1):
        raise BuildRefusedError("an Attention with a past")
    if int_attribute(node, "do_rotary", 0):
        raise BuildRefusedError("an Attention that turns its queries")
    shape, value = context.shape_of(operand(node, 0)), operand(node, 1)
    weights = narrow_weights(value) or factor(value, context)
    if isinstance(weights, View) or len(weights.shape) != 2 or len(shape) != 3:
        raise BuildRefusedError("an Attention of what is not (batch, places, size), or without constant weights")
    columns = weights.shape[1]
    parts = given or (columns // 3,) * 3
    if len(parts) != 3 or sum(parts) != columns or parts[0] != parts[1]:
        raise BuildRefusedError(f"an Attention of {columns} columns in parts of {parts}")
    made = context.temporary("projected", (*shape[:2], columns), Layout.PLAIN)
    step, bias = product(made, matrix(operand(node, 0), context, shares_b=True), weights), operand(node, 2)
    if bias is not None:
        step = replace(step, bias=context.floats(bias, "a bias").reshape(-1))
    context.emit(step)
    whole, begin, found = View.of(made), 0, []
    for part in parts:
        found.append(heads_of(whole.taken(2, begin, part, 1), heads))
        begin += part
    _attend(node, context, Heads(*found), 0, operand(node, 3), operand(node, 5))


def _has(node: ir.Node, number: int) -> bool:
    return any(output.name for output in node.outputs[number:])


def _biased(view: View, numbers: Array, context: Context) -> View:
    """Returns what a view is with one number more a column."""
    made = context.temporary("biased", view.sizes, Layout.PLAIN)
    tensor = context.stored(view, "rows")
    bias = Operand((1, 1, numbers.size), None, np.ascontiguousarray(numbers).reshape(1, 1, -1))
    context.emit(Elementwise(made, (Operand(view.sizes, tensor), bias), ("add", nth(0), nth(1))))
    return View.of(made)


def _attend(
    node: ir.Node, context: Context, heads: Heads, past: Dim, mask: ir.Value | None, added: ir.Value | None
) -> None:
    """Emits the attention of heads; `past` keys come before that of the first row."""
    shape = context.shape_of(node.outputs[0])
    (batch, count, rows, size), keys = heads.q.sizes, heads.k.sizes[2]
    if not may_be_same(shape, (batch, rows, count * heads.v.sizes[3])):
        raise BuildRefusedError(f"the model says the attention is {shape}")
    scores = Scores(float_attribute(node, "scale", 0.0) or fixed(size) ** -0.5)
    if mask is not None:
        of_mask = scores.operand(_mask(mask, (batch, rows, keys), context))
        low = const(float_attribute(node, "mask_filter_value", MASK_FILTER))
        scores.expression = ("add", scores.expression, ("where", ("less", const(0), of_mask), const(0), low))
    if added is not None:
        context.shape_of(added)
        scores.add(added_operand(added, (batch, count, rows, keys), context))
    if int_attribute(node, "unidirectional", 0):
        hide_outside(scores, as_rows(places_along(past, rows, context)), heads, context, right=0)
    attend(context.output(node.outputs[0], Layout.PLAIN), heads, scores, context)


def _mask(value: ir.Value, of_scores: tuple[Dim, Dim, Dim], context: Context) -> Operand:
    """Returns numbers for each key, of all rows or of each, that are zero where it is not looked at."""
    sizes, (batch, rows, keys) = context.sizes_of(value), of_scores
    if len(sizes) == 2 and may_be_same(sizes, (batch, keys)):
        shape: tuple[Dim, ...] = (sizes[0], 1, 1, sizes[1])
    elif len(sizes) == 3 and may_be_same(sizes, (batch, rows, keys)):
        shape = (sizes[0], 1, *sizes[1:])
    else:
        raise BuildRefusedError(f"a mask of {sizes} for {batch} times {rows} by {keys}")
    return Operand(shape, replace(context.plain(value), shape=shape))
