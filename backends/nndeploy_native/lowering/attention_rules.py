# SPDX-License-Identifier: Apache-2.0
"""Rules for attention as ONNX Runtime's optimiser writes it: one step, whose heads are read where they lie.

    MultiHeadAttention(query, key, value, bias, mask of keys, bias of scores)
    Attention(x, weights, bias, mask of keys, -, bias of scores)      the same of three parts of x by weights

Rows (batch, places, heads * size) are seen as (batch, heads, places, size). Without a past. Source: ONNX Runtime,
docs/ContribOperators.md.
"""

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, int_attribute, ints_attribute, operand
from nndeploy.values.size import Dim, fixed, is_fixed
from nndeploy_native.expressions import Expression, const
from nndeploy_native.expressions import operand as nth
from nndeploy_native.lowering.bits_rules import narrow_weights
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.matrices import factor, matrix, product
from nndeploy_native.steps.attention import Attention
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.movement import View
from nndeploy_native.tensors import Array, Layout, may_be_same

MASK_FILTER = -10000.0
MOST_CAUSAL = 2048
"""Places, squared numbers of which a mask that looks back alone takes in a plan."""


def multi_head_attention(node: ir.Node, context: Context) -> None:
    """Lowers MultiHeadAttention of separate queries, keys and values."""
    heads = int_attribute(node, "num_heads", 0)
    if any(operand(node, number) is not None for number in range(6, 10)) or _has_more_outputs(node):
        raise BuildRefusedError("a MultiHeadAttention with a past")
    values = [operand(node, number) for number in range(3)]
    if any(value is None or len(context.shape_of(value)) != 3 for value in values):
        raise BuildRefusedError("a MultiHeadAttention of what is not three times (batch, places, size)")
    views, bias = [matrix(value, context) for value in values], operand(node, 3)
    if bias is not None:
        numbers = context.floats(bias, "a bias").reshape(-1)
        ends = np.cumsum([fixed(view.sizes[2]) for view in views])
        if numbers.size != ends[-1]:
            raise BuildRefusedError(f"a bias of {numbers.size} numbers for {ends[-1]} columns")
        views = [_biased(view, part, context) for view, part in zip(views, np.split(numbers, ends[:-1]), strict=True)]
    _attend(node, context, (views[0], views[1], views[2]), heads, operand(node, 4), operand(node, 5))


def attention(node: ir.Node, context: Context) -> None:
    """Lowers Attention, whose queries, keys and values are one product."""
    heads, given = int_attribute(node, "num_heads", 0), ints_attribute(node, "qkv_hidden_sizes")
    if any(operand(node, number) is not None for number in (4, 6)) or _has_more_outputs(node):
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
    whole, (of_q, of_k, of_v) = View.of(made), parts
    q, k = whole.taken(2, 0, of_q, 1), whole.taken(2, of_q, of_k, 1)
    v = whole.taken(2, of_q + of_k, of_v, 1)
    _attend(node, context, (q, k, v), heads, operand(node, 3), operand(node, 5))


def _has_more_outputs(node: ir.Node) -> bool:
    return any(output.name for output in node.outputs[1:])


def _biased(view: View, numbers: Array, context: Context) -> View:
    """Returns what a view is with one number more a column."""
    made = context.temporary("biased", view.sizes, Layout.PLAIN)
    tensor = context.stored(view, "rows")
    bias = Operand((1, 1, numbers.size), None, np.ascontiguousarray(numbers).reshape(1, 1, -1))
    context.emit(Elementwise(made, (Operand(view.sizes, tensor), bias), ("add", nth(0), nth(1))))
    return View.of(made)


def _attend(
    node: ir.Node,
    context: Context,
    views: tuple[View, View, View],
    heads: int,
    mask: ir.Value | None,
    added: ir.Value | None,
) -> None:
    """Emits the attention of rows (batch, places, heads * size)."""
    shape = context.shape_of(node.outputs[0])
    sizes = [fixed(view.sizes[2]) if is_fixed(view.sizes[2:]) else 0 for view in views]
    if heads < 1 or any(size < heads or size % heads for size in sizes) or sizes[0] != sizes[1]:
        raise BuildRefusedError(f"{heads} heads of rows of {sizes}")
    batch, rows, keys = views[0].sizes[0], views[0].sizes[1], views[1].sizes[1]
    if not may_be_same(shape, (batch, rows, sizes[2])):
        raise BuildRefusedError(f"the model says the attention is {shape}")
    q, k, v = (
        view.parted(2, heads, size // heads).transposed(order)
        for view, size, order in zip(views, sizes, ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3)), strict=True)
    )
    scale = float_attribute(node, "scale", 0.0) or (sizes[0] // heads) ** -0.5
    score: Expression = ("mul", nth(0), const(scale))
    others: list[Operand] = []
    if mask is not None:
        others.append(_mask(mask, (batch, rows, keys), context))
        low = const(float_attribute(node, "mask_filter_value", MASK_FILTER))
        score = ("add", score, ("where", ("less", const(0), nth(len(others))), const(0), low))
    if added is not None:
        context.shape_of(added)
        others.append(Operand(context.sizes_of(added), context.plain(added)))
        if len(others[-1].shape) != 4:
            raise BuildRefusedError(f"scores to which {others[-1].shape} is added")
        score = ("add", score, nth(len(others)))
    if int_attribute(node, "unidirectional", 0):
        others.append(_causal(rows, keys))
        score = ("add", score, nth(len(others)))
    output = context.output(node.outputs[0], Layout.PLAIN)
    written = View.of(replace(output, shape=(batch, rows, sizes[2]))).parted(2, heads, sizes[2] // heads)
    strides = written.transposed((0, 2, 1, 3)).strides
    context.emit(Attention(output, q, k, v, score, tuple(others), strides=strides))


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


def _causal(rows: Dim, keys: Dim) -> Operand:
    """Returns what is added to scores of rows that look at no key behind their own."""
    if rows != keys or not is_fixed((rows,)) or fixed(rows) > MOST_CAUSAL:
        raise BuildRefusedError(f"rows that look back alone, {rows} by {keys}: sizes that are not fixed, or large")
    count = fixed(rows)
    behind = np.triu(np.full((count, count), np.finfo(np.float32).min, np.float32), 1)
    return Operand((1, 1, count, count), None, behind.reshape(1, 1, count, count))
