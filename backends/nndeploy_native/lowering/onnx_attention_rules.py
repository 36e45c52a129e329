# SPDX-License-Identifier: Apache-2.0
"""The rule for ONNX's own Attention, with a past or over a cache that is kept elsewhere.

    Attention(q, k, v, mask, past keys, past values, lengths)      y = softmax(cap(q * k * scale) + mask) * v

Values are (batch, heads, places, size) or rows (batch, places, heads * size). A row that looks at no key gives zeros.
Row s stands at place past + s, of a batch of lengths at length - rows + s: it looks at no later key where that
`is_causal`, and at so many on each side where there is a window. Source: ONNX Attention, opset 25.
"""

import math
from dataclasses import replace

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, int_attribute, operand
from nndeploy.values.size import Dim, fixed, is_fixed
from nndeploy_native.expressions import Domain
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
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.movement import View
from nndeploy_native.tensors import Layout, Tensor, may_be_same


def attention(node: ir.Node, context: Context) -> None:
    """Lowers Attention."""
    if len(node.outputs) > 3 and node.outputs[3].name:
        raise BuildRefusedError("an Attention whose scores are an output")
    counts = [int_attribute(node, f"{one}_num_heads", 0) for one in ("q", "kv")]
    q, k, v = (
        _heads(operand(node, number), count, context) for number, count in enumerate((counts[0], counts[1], counts[1]))
    )
    if not is_fixed((q.sizes[3],)):
        raise BuildRefusedError(f"heads of {q.sizes[3]}")
    pasts = [operand(node, number) for number in (4, 5)]
    lengths = operand(node, 6)
    if (pasts[0] is None) != (pasts[1] is None) or (pasts[0] is not None and lengths is not None):
        raise BuildRefusedError("an Attention with one past, or with a past and lengths")
    presents = [node.outputs[number] if number < len(node.outputs) else None for number in (1, 2)]
    k, v = (
        with_past(node, past, new, present, None, context)
        for past, new, present in zip(pasts, (k, v), presents, strict=True)
    )
    before = context.sizes_of(pasts[0])[2] if pasts[0] is not None else 0
    heads = Heads(q, k, v)
    scores = Scores(float_attribute(node, "scale", 0.0) or fixed(q.sizes[3]) ** -0.5, -math.inf)
    scores.cap(float_attribute(node, "softcap", 0.0))
    _mask(operand(node, 3), heads, scores, context)
    _hide(node, lengths, before, heads, scores, context)
    output = context.output(node.outputs[0], Layout.PLAIN)
    attend(output, heads, scores, context, by_head=len(output.shape) == 4)


def _heads(value: ir.Value | None, count: int, context: Context) -> View:
    """Returns (batch, heads, places, size)."""
    shape = context.shape_of(value)
    return context.view(value) if len(shape) == 4 else heads_of(context.view(value), count)


def _mask(value: ir.Value | None, heads: Heads, scores: Scores, context: Context) -> None:
    """Adds a mask of numbers, or hides where one of truths is false."""
    if value is None:
        return
    keys = heads.k.sizes[2]
    if not may_be_same(context.sizes_of(value)[-1:], (keys,)):
        raise BuildRefusedError(f"a mask of {context.sizes_of(value)} for {keys} keys")
    one = added_operand(value, (*heads.q.sizes[:3], keys), context)
    if value.dtype == ir.DataType.BOOL:
        scores.hide(("not", scores.operand(one)))
    else:
        context.shape_of(value)
        scores.add(one)


def _hide(node: ir.Node, lengths: ir.Value | None, past: Dim, heads: Heads, scores: Scores, context: Context) -> None:
    """Hides what no row looks at: later keys, those outside of its window, and those behind the end of a sequence."""
    left, right = (int_attribute(node, f"{side}_window_size", -1) for side in ("left", "right"))
    right = 0 if int_attribute(node, "is_causal", 0) else right
    rows = heads.q.sizes[2]
    if lengths is not None:
        own = _places_before_end(lengths, rows, heads, context)
        end = None if right == 0 else _places_before_end(lengths, 1, heads, context)
        hide_outside(scores, own, heads, context, left=left, right=right, end=end)
    elif left >= 0 or right >= 0:
        own = as_rows(places_along(past, rows, context))
        hide_outside(scores, own, heads, context, left=left, right=right)


def _places_before_end(value: ir.Value, count: Dim, heads: Heads, context: Context) -> Operand:
    """Returns the last places of sequences of some lengths, (batch, 1, count, 1)."""
    lengths, batch = context.whole_numbers(value), heads.q.sizes[0]
    if not may_be_same(lengths.shape, (batch,)):
        raise BuildRefusedError(f"lengths of {lengths.shape} for a batch of {batch}")
    behind = places_along(-count, count, context)

    def make() -> Tensor:
        made = context.temporary("last", (batch, count), Layout.PLAIN, "int64")
        operands = (
            Operand((batch, 1), replace(lengths, shape=(batch, 1))),
            Operand((1, count), replace(behind, shape=(1, count))),
        )
        context.emit(Elementwise(made, operands, ("add", nth(0), nth(1)), Domain.INT64))
        return made

    return as_rows(context.once(("last", lengths.name, count), make), batch)
