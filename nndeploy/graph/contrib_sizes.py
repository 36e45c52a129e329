# SPDX-License-Identifier: Apache-2.0
"""How the sizes of the outputs of ONNX Runtime's own operators (com.microsoft) follow from the inputs.

Those that are elementwise, products and attention; `nndeploy.frontend.contrib_types` gives the same operators types.
Source: ONNX Runtime, docs/ContribOperators.md.
"""

from collections.abc import Callable
from functools import partial

import onnx_ir as ir

from nndeploy.graph.arithmetic_sizes import broadcast_shape, gemm, same
from nndeploy.graph.known_sizes import KnownSizes, Rule, Shape
from nndeploy.graph.operators import int_attribute, operand
from nndeploy.graph.text_sizes import tokens
from nndeploy.values.size import most, symbol

DOMAIN = "com.microsoft"


def _of_inputs(*numbers: int) -> Callable[[Callable[..., Shape | None]], Rule]:
    """Makes a rule of a function that gets a node and the shapes of some inputs, all of which are known."""

    def decorated(shape_of: Callable[..., Shape | None]) -> Rule:
        def rule(node: ir.Node, known: KnownSizes) -> None:
            shapes = [known.shape(operand(node, number)) for number in numbers]
            if all(shape is not None for shape in shapes):
                found = shape_of(node, *shapes)
                if found is not None:
                    known.learn_shape(node.outputs[0], found)

        return rule

    return decorated


@_of_inputs(0, 3)
def _broadcast(_node: ir.Node, left: Shape, right: Shape) -> Shape:
    return broadcast_shape([left, right])


@_of_inputs(0)
def _packed_product(node: ir.Node, left: Shape) -> Shape | None:
    columns = int_attribute(node, "N", 0)
    return (*left[:-1], columns) if left and columns else None


@_of_inputs(0, 1)
def _product(node: ir.Node, left: Shape, right: Shape) -> Shape | None:
    if len(left) < 2 or len(right) < 2 or _turns_batches(node):
        return None
    rows = left[-1] if int_attribute(node, "transA", 0) else left[-2]
    columns = right[-2] if int_attribute(node, "transB", 0) else right[-1]
    return (*broadcast_shape([left[:-2], right[:-2]]), rows, columns)


@_of_inputs(0, 2)
def _attention_of_three(_node: ir.Node, query: Shape, value: Shape) -> Shape | None:
    return (*query[:2], value[2]) if len(query) == len(value) == 3 else None


@_of_inputs(0, 1)
def _attention_of_one(node: ir.Node, x: Shape, weights: Shape) -> Shape | None:
    if len(x) != 3 or len(weights) != 2 or "qkv_hidden_sizes" in node.attributes or not isinstance(weights[1], int):
        return None
    return (*x[:2], weights[1] // 3)


def _attention_with_past(node: ir.Node, known: KnownSizes) -> None:
    """The caches of keys and values, if they are there, are those of the past with what is new."""
    _attention_of_three(node, known)
    for number in (1, 2):
        new, past = (known.shape(operand(node, one)) for one in (number, number + 5))
        if new is not None and past is not None and len(new) == 3 and len(past) == 4:
            _learn_cache(node, number, (*past[:2], past[2] + new[1], past[3]), known)


def _group_query_attention(node: ir.Node, known: KnownSizes) -> None:
    """A cache has as many places as its past, or as all of a sequence where these are more, which may be data."""
    query, past, total = (
        known.shape(operand(node, 0)),
        known.shape(operand(node, 3)),
        known.elements(operand(node, 6)),
    )
    if query is None or len(query) != 3:
        return
    heads, shared = (int_attribute(node, name, 0) for name in ("num_heads", "kv_num_heads"))
    parts = heads if operand(node, 1) is not None else heads + 2 * shared
    columns = query[2]
    if heads < 1 or shared < 1 or not isinstance(columns, int) or columns % parts:
        return
    size = columns // parts
    known.learn_shape(node.outputs[0], (*query[:2], heads * size))
    if (past is not None and len(past) != 4) or (past is None and operand(node, 3) is not None):
        return
    for number in (1, 2):
        if total is not None:
            places = total[0] if past is None else most(past[2], total[0])
        else:
            places = symbol(f"{node.outputs[number].name}.2") if number < len(node.outputs) else 0
        _learn_cache(node, number, (query[0], shared, places, size), known)


def _learn_cache(node: ir.Node, number: int, shape: Shape, known: KnownSizes) -> None:
    if number < len(node.outputs) and node.outputs[number].name:
        known.learn_shape(node.outputs[number], shape)


def _normalised_sum(node: ir.Node, known: KnownSizes) -> None:
    """The output at 3 is the sum before it is normalised."""
    shape = known.shape(operand(node, 0))
    for number in (0, 3):
        if shape is not None and number < len(node.outputs):
            known.learn_shape(node.outputs[number], shape)


def _turns_batches(node: ir.Node) -> bool:
    return any(int_attribute(node, name, 0) for name in ("transBatchA", "transBatchB"))


_SAME = (
    "BiasGelu", "FastGelu", "Gelu", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QuickGelu",
    "RotaryEmbedding",
)  # fmt: skip
RULES: dict[str, Rule] = {
    **dict.fromkeys(_SAME, same),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), _broadcast),
    **dict.fromkeys(("DynamicQuantizeMatMul", "FusedMatMul", "MatMulIntegerToFloat"), _product),
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), _normalised_sum),
    "Attention": _attention_of_one,
    "GroupQueryAttention": _group_query_attention,
    "MatMulNBits": _packed_product,
    "MultiHeadAttention": _attention_with_past,
    "QGemm": partial(gemm, second=3),
    "Tokenizer": tokens,
}
"""What each operator tells of the sizes of its outputs."""
