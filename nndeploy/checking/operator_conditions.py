# SPDX-License-Identifier: Apache-2.0
"""What operators that compute ask of sizes: products, convolutions, recurrences, normalisations, attention, trees.

Source: ONNX's operators, ONNX Runtime's own.
"""

import onnx_ir as ir

from nndeploy.checking import movement_conditions
from nndeploy.checking.relations import AT_LEAST, BROADCAST, EQUAL, MULTIPLE, Found, Rule, broadcast, equal, shapes_of
from nndeploy.graph.einsum import parsed_equation
from nndeploy.graph.known_sizes import KnownSizes
from nndeploy.graph.operators import int_attribute, ints_attribute, operand, text_attribute
from nndeploy.values.size import Dim

_LEAST_PATCH = 4
"""Convolutions whose windows do not overlap and are so large cut an image into patches."""


def _elementwise(node: ir.Node, known: KnownSizes) -> Found:
    return broadcast(shapes_of(node, known, *range(len(node.inputs))))


def _quantised_elementwise(node: ir.Node, known: KnownSizes) -> Found:
    return broadcast(shapes_of(node, known, 0, 3))


def _convolution(weights_at: int) -> Rule:
    def rule(node: ir.Node, known: KnownSizes) -> Found:
        x, w = shapes_of(node, known, 0, weights_at)
        if len(x) < 3 or len(w) != len(x):
            return
        yield EQUAL, x[1], w[1] * int_attribute(node, "group", 1)
        for size, kernel, stride in zip(x[2:], w[2:], ints_attribute(node, "strides") or (), strict=False):
            if kernel == stride >= _LEAST_PATCH:  # none should be cut off
                yield MULTIPLE, size, stride, False

    return rule


def _transposed_convolution(node: ir.Node, known: KnownSizes) -> Found:
    x, w = shapes_of(node, known, 0, 1)
    yield EQUAL, x[1], w[0]


def _channels(node: ir.Node, known: KnownSizes) -> Found:
    x, scale = shapes_of(node, known, 0, 1)
    yield EQUAL, x[1], scale[0]


def _last_axes(node: ir.Node, known: KnownSizes) -> Found:
    x, scale = shapes_of(node, known, 0, 1)
    return equal(x[::-1], scale[::-1])


def _quantised_axis(node: ir.Node, known: KnownSizes) -> Found:
    x, scale = shapes_of(node, known, 0, 1)
    if len(scale) == 1 and len(x) > 1 and scale[0] != 1:
        yield EQUAL, x[int_attribute(node, "axis", 1)], scale[0]


def _product(second: int, *, may_turn: bool = False) -> Rule:
    def rule(node: ir.Node, known: KnownSizes) -> Found:
        left, right = shapes_of(node, known, 0, second)
        if not left or not right:
            return
        turned = [may_turn and bool(int_attribute(node, name, 0)) for name in ("transA", "transB")]
        inner = right[-1] if len(right) == 1 or turned[1] else right[-2]
        yield EQUAL, left[-2] if turned[0] else left[-1], inner
        yield from broadcast([left[:-2], right[:-2]])

    return rule


def _packed_product(node: ir.Node, known: KnownSizes) -> Found:
    (left,) = shapes_of(node, known, 0)
    yield EQUAL, left[-1], int_attribute(node, "K", 0)


def _recurrent(node: ir.Node, known: KnownSizes) -> Found:
    x, w, hidden = *shapes_of(node, known, 0, 1), int_attribute(node, "hidden_size", 0)
    batch = 0 if int_attribute(node, "layout", 0) else 1
    weights_input = w[2] if node.domain == "" else w[1]
    yield EQUAL, x[2], weights_input
    for state in shapes_of(node, known, 5, 6) if node.op_type.endswith("LSTM") else shapes_of(node, known, 5):
        if state:
            yield EQUAL, state[1 - batch], w[0]
            yield EQUAL, state[batch], x[batch]
            yield EQUAL, state[2], hidden
    (lengths,) = shapes_of(node, known, 4)
    yield from equal(lengths, x[batch : batch + 1])


def _einsum(node: ir.Node, known: KnownSizes) -> Found:
    shapes = shapes_of(node, known, *range(len(node.inputs)))
    equation = parsed_equation(text_attribute(node, "equation", ""), [len(shape) for shape in shapes])
    sizes: dict[str, Dim] = {}
    for labels, shape in zip(equation.operands if equation else (), shapes, strict=False):
        for label, size in zip(labels, shape, strict=False):
            yield BROADCAST, sizes.setdefault(label, size), size


def _grid(node: ir.Node, known: KnownSizes) -> Found:
    x, grid = shapes_of(node, known, 0, 1)
    yield EQUAL, x[0], grid[0]
    yield EQUAL, grid[-1], len(x) - 2


def _regions(node: ir.Node, known: KnownSizes) -> Found:
    regions, images = shapes_of(node, known, 1, 2)
    yield EQUAL, regions[1], 4
    yield from equal(regions[:1], images[:1])


def _frames(node: ir.Node, known: KnownSizes) -> Found:
    (signal, window), length = shapes_of(node, known, 0, 2), known.elements(operand(node, 3))
    yield AT_LEAST, signal[1], length[0] if length else window[0]


def _projected(node: ir.Node, known: KnownSizes) -> Found:
    x, w = shapes_of(node, known, 0, 1)
    yield EQUAL, x[2], w[0]


def _embedded(node: ir.Node, known: KnownSizes) -> Found:
    ids, segments, positions = shapes_of(node, known, 0, 1, 3)
    yield AT_LEAST, positions[0], ids[1]
    yield from equal(ids, segments)


def _cached_attention(node: ir.Node, known: KnownSizes) -> Found:
    (query, past), total = shapes_of(node, known, 0, 3), known.elements(operand(node, 6))
    yield EQUAL, past[0], query[0]
    if total:
        yield EQUAL, total[0], past[2] + query[1]


def _features(name: str, *, is_list: bool) -> Rule:
    """Returns the rule of an operator on rows, one of whose attributes has one number for each, or numbers them."""

    def rule(node: ir.Node, known: KnownSizes) -> Found:
        (shape,) = shapes_of(node, known, 0)
        attribute = node.attributes.get(name)
        if attribute is not None and is_list and len(attribute.value) > 1:
            yield EQUAL, shape[-1], len(attribute.value)
        elif attribute is not None and not is_list:
            yield AT_LEAST, shape[-1], max(attribute.as_ints()) + 1

    return rule


def _linear(node: ir.Node, known: KnownSizes) -> Found:
    (shape,), rows = shapes_of(node, known, 0), node.attributes["coefficients"].value
    columns = node.attributes.get("intercepts")
    count = int_attribute(node, "targets", 1) if columns is None else len(columns.value)
    yield EQUAL, shape[-1], len(rows) // count


_ELEMENTWISE = (
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub", "Sum", "Where", "Xor",
)  # fmt: skip
WINDOWS = frozenset(
    {"AveragePool", "Conv", "ConvInteger", "ConvTranspose", "LpPool", "MaxPool", "QLinearAveragePool", "QLinearConv"}
)
_OWN: dict[str, Rule] = {
    **movement_conditions.RULES,
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), _channels),
    **dict.fromkeys(("Conv", "ConvInteger"), _convolution(1)),
    **dict.fromkeys(("DequantizeLinear", "QuantizeLinear"), _quantised_axis),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrent),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _last_axes),
    **dict.fromkeys(("MatMul", "MatMulInteger"), _product(1)),
    "ConvTranspose": _transposed_convolution,
    "Einsum": _einsum,
    "Gemm": _product(1, may_turn=True),
    "GridSample": _grid,
    "QLinearConv": _convolution(3),
    "QLinearMatMul": _product(3),
    "RoiAlign": _regions,
    "STFT": _frames,
}
_LIBRARY: dict[str, Rule] = {
    **dict.fromkeys(("DynamicQuantizeMatMul", "FusedMatMul", "MatMulIntegerToFloat"), _product(1, may_turn=True)),
    **dict.fromkeys(("LayerNormalization", "SimplifiedLayerNormalization"), _last_axes),
    **dict.fromkeys(("QLinearAdd", "QLinearMul"), _quantised_elementwise),
    **dict.fromkeys(("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"), _elementwise),
    "Attention": _projected,
    "DynamicQuantizeLSTM": _recurrent,
    "EmbedLayerNormalization": _embedded,
    "GroupQueryAttention": _cached_attention,
    "MatMulNBits": _packed_product,
    "QGemm": _product(3, may_turn=True),
}
_CLASSICAL: dict[str, Rule] = {
    **dict.fromkeys(("LinearClassifier", "LinearRegressor"), _linear),
    **dict.fromkeys(("TreeEnsembleClassifier", "TreeEnsembleRegressor"), _features("nodes_featureids", is_list=False)),
    "Scaler": _features("offset", is_list=True),
}
RULES: dict[tuple[str, str], Rule] = {
    (domain, name): rule
    for domain, rules in (("", _OWN), ("com.microsoft", _LIBRARY), ("ai.onnx.ml", _CLASSICAL))
    for name, rule in rules.items()
}
"""(Domain, operator) -> what it asks of the sizes of its inputs."""
