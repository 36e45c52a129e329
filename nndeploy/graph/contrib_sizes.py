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
    "MatMulNBits": _packed_product,
    "MultiHeadAttention": _attention_of_three,
    "QGemm": partial(gemm, second=3),
}
"""What each operator tells of the sizes of its outputs."""
