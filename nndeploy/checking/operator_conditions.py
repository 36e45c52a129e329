# SPDX-License-Identifier: Apache-2.0
"""What each operator asks of the sizes of its inputs, as (relation, left, right) of sizes.

A fourth entry, False, says that sizes which break the relation are legal but unusual. A rule may index axes that are
not there: that ends it, as a size does that is not worth following. Source: ONNX's operators, ONNX Runtime's own.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, zip_longest

import numpy as np
import onnx_ir as ir

from nndeploy.graph.constants import constant_array, constant_ints
from nndeploy.graph.einsum import parsed_equation
from nndeploy.graph.known_sizes import KnownSizes, Shape
from nndeploy.graph.node_parameters import axes_of, pad_axes, reshape_target
from nndeploy.graph.operators import int_attribute, ints_attribute, operand, text_attribute
from nndeploy.values.size import Dim, most, product

EQUAL, BROADCAST, AT_LEAST, MULTIPLE = "equals", "equals, or either is 1,", "is at least", "is a multiple of"

_LEAST_PATCH = 4
"""Convolutions whose windows do not overlap and are so large cut an image into patches."""

Found = Iterator[tuple[str, Dim, Dim] | tuple[str, Dim, Dim, bool]]
Rule = Callable[[ir.Node, KnownSizes], Found]


def _shapes(node: ir.Node, known: KnownSizes, *indices: int) -> list[Shape]:
    """Returns the shapes of inputs, () where one is not known or absent."""
    return [known.shape(operand(node, index)) or () for index in indices]


def _broadcast(shapes: Iterable[Shape]) -> Found:
    for dims in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        for left, right in pairwise(dict.fromkeys(dims)):
            yield BROADCAST, left, right


def _equal(left: Shape, right: Shape) -> Found:
    for one, other in zip(left, right, strict=False):
        yield EQUAL, one, other


def _elementwise(node: ir.Node, known: KnownSizes) -> Found:
    return _broadcast(_shapes(node, known, *range(len(node.inputs))))


def _quantised_elementwise(node: ir.Node, known: KnownSizes) -> Found:
    return _broadcast(_shapes(node, known, 0, 3))


def _convolution(weights_at: int) -> Rule:
    def rule(node: ir.Node, known: KnownSizes) -> Found:
        x, w = _shapes(node, known, 0, weights_at)
        if len(x) < 3 or len(w) != len(x):
            return
        yield EQUAL, x[1], w[1] * int_attribute(node, "group", 1)
        for size, kernel, stride in zip(x[2:], w[2:], ints_attribute(node, "strides") or (), strict=False):
            if kernel == stride >= _LEAST_PATCH:  # none should be cut off
                yield MULTIPLE, size, stride, False

    return rule


def _transposed_convolution(node: ir.Node, known: KnownSizes) -> Found:
    x, w = _shapes(node, known, 0, 1)
    yield EQUAL, x[1], w[0]


def _channels(node: ir.Node, known: KnownSizes) -> Found:
    x, scale = _shapes(node, known, 0, 1)
    yield EQUAL, x[1], scale[0]


def _last_axes(node: ir.Node, known: KnownSizes) -> Found:
    x, scale = _shapes(node, known, 0, 1)
    return _equal(x[::-1], scale[::-1])


def _quantised_axis(node: ir.Node, known: KnownSizes) -> Found:
    x, scale = _shapes(node, known, 0, 1)
    if len(scale) == 1 and len(x) > 1 and scale[0] != 1:
        yield EQUAL, x[int_attribute(node, "axis", 1)], scale[0]


def _product(second: int, *, may_turn: bool = False) -> Rule:
    def rule(node: ir.Node, known: KnownSizes) -> Found:
        left, right = _shapes(node, known, 0, second)
        if not left or not right:
            return
        turned = [may_turn and bool(int_attribute(node, name, 0)) for name in ("transA", "transB")]
        inner = right[-1] if len(right) == 1 or turned[1] else right[-2]
        yield EQUAL, left[-2] if turned[0] else left[-1], inner
        yield from _broadcast([left[:-2], right[:-2]])

    return rule


def _packed_product(node: ir.Node, known: KnownSizes) -> Found:
    (left,) = _shapes(node, known, 0)
    yield EQUAL, left[-1], int_attribute(node, "K", 0)


def _recurrent(node: ir.Node, known: KnownSizes) -> Found:
    x, w, hidden = *_shapes(node, known, 0, 1), int_attribute(node, "hidden_size", 0)
    batch = 0 if int_attribute(node, "layout", 0) else 1
    weights_input = w[2] if node.domain == "" else w[1]
    yield EQUAL, x[2], weights_input
    for state in _shapes(node, known, 5, 6) if node.op_type.endswith("LSTM") else _shapes(node, known, 5):
        if state:
            yield EQUAL, state[1 - batch], w[0]
            yield EQUAL, state[batch], x[batch]
            yield EQUAL, state[2], hidden
    (lengths,) = _shapes(node, known, 4)
    yield from _equal(lengths, x[batch : batch + 1])


def _concat(node: ir.Node, known: KnownSizes) -> Found:
    first, *others = _shapes(node, known, *range(len(node.inputs)))
    axis = int_attribute(node, "axis", 0) % max(1, len(first))
    for other in others:
        if len(other) == len(first):
            yield from _equal(first[:axis] + first[axis + 1 :], other[:axis] + other[axis + 1 :])


def _reshape(node: ir.Node, known: KnownSizes) -> Found:
    (shape,) = _shapes(node, known, 0)
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
    (shape,) = _shapes(node, known, 0)
    for axis in axes_of(node, known.opset) or ():
        yield EQUAL, shape[axis], 1


def _expand(node: ir.Node, known: KnownSizes) -> Found:
    target = known.elements(operand(node, 1))
    return _broadcast([*_shapes(node, known, 0), target or ()])


def _split(node: ir.Node, known: KnownSizes) -> Found:
    (shape,) = _shapes(node, known, 0)
    size = shape[int_attribute(node, "axis", 0)]
    parts = ints_attribute(node, "split") or constant_ints(operand(node, 1))
    if parts is not None:
        yield EQUAL, size, sum(parts)
    elif operand(node, 1) is None:
        yield MULTIPLE, size, len(node.outputs), known.opset < 18


def _gather(node: ir.Node, known: KnownSizes) -> Found:
    (shape,) = _shapes(node, known, 0)
    size = shape[int_attribute(node, "axis", 0)]
    for least in _sizes_for(operand(node, 1), known):
        yield AT_LEAST, size, least


def _gather_nd(node: ir.Node, known: KnownSizes) -> Found:
    (shape,), places = _shapes(node, known, 0), constant_array(operand(node, 1))
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
    (shape,) = _shapes(node, known, 0)
    count = (int_attribute(node, "k", 0),) if known.opset < 10 else known.elements(operand(node, 1))
    if count:
        yield AT_LEAST, shape[int_attribute(node, "axis", -1)], count[0]


def _pad(node: ir.Node, known: KnownSizes) -> Found:
    (shape,) = _shapes(node, known, 0)
    pads = ints_attribute(node, "pads") or known.elements(operand(node, 1)) or ()
    if text_attribute(node, "mode", "constant") == "reflect":
        for axis, width in zip((pad_axes(node, len(shape)) or ()) * 2, pads, strict=False):
            yield AT_LEAST, shape[axis], width + 1


def _einsum(node: ir.Node, known: KnownSizes) -> Found:
    shapes = _shapes(node, known, *range(len(node.inputs)))
    equation = parsed_equation(text_attribute(node, "equation", ""), [len(shape) for shape in shapes])
    sizes: dict[str, Dim] = {}
    for labels, shape in zip(equation.operands if equation else (), shapes, strict=False):
        for label, size in zip(labels, shape, strict=False):
            yield BROADCAST, sizes.setdefault(label, size), size


def _blocks(node: ir.Node, known: KnownSizes) -> Found:
    (shape,), block = _shapes(node, known, 0), int_attribute(node, "blocksize", 1)
    if node.op_type == "DepthToSpace":
        yield MULTIPLE, shape[1], block * block
    else:
        yield from ((MULTIPLE, size, block) for size in shape[2:])


def _grid(node: ir.Node, known: KnownSizes) -> Found:
    x, grid = _shapes(node, known, 0, 1)
    yield EQUAL, x[0], grid[0]
    yield EQUAL, grid[-1], len(x) - 2


def _regions(node: ir.Node, known: KnownSizes) -> Found:
    regions, images = _shapes(node, known, 1, 2)
    yield EQUAL, regions[1], 4
    yield from _equal(regions[:1], images[:1])


def _scatter(node: ir.Node, known: KnownSizes) -> Found:
    places, updates = _shapes(node, known, 1, 2)
    return _equal(places[:-1] if node.op_type == "ScatterND" else places, updates)


def _frames(node: ir.Node, known: KnownSizes) -> Found:
    (signal, window), length = _shapes(node, known, 0, 2), known.elements(operand(node, 3))
    yield AT_LEAST, signal[1], length[0] if length else window[0]


def _projected(node: ir.Node, known: KnownSizes) -> Found:
    x, w = _shapes(node, known, 0, 1)
    yield EQUAL, x[2], w[0]


def _embedded(node: ir.Node, known: KnownSizes) -> Found:
    ids, segments, positions = _shapes(node, known, 0, 1, 3)
    yield AT_LEAST, positions[0], ids[1]
    yield from _equal(ids, segments)


def _cached_attention(node: ir.Node, known: KnownSizes) -> Found:
    (query, past), total = _shapes(node, known, 0, 3), known.elements(operand(node, 6))
    yield EQUAL, past[0], query[0]
    if total:
        yield EQUAL, total[0], past[2] + query[1]


def _features(name: str, *, is_list: bool) -> Rule:
    """Returns the rule of an operator on rows, one of whose attributes has one number for each, or numbers them."""

    def rule(node: ir.Node, known: KnownSizes) -> Found:
        (shape,) = _shapes(node, known, 0)
        attribute = node.attributes.get(name)
        if attribute is not None and is_list and len(attribute.value) > 1:
            yield EQUAL, shape[-1], len(attribute.value)
        elif attribute is not None and not is_list:
            yield AT_LEAST, shape[-1], max(attribute.as_ints()) + 1

    return rule


def _linear(node: ir.Node, known: KnownSizes) -> Found:
    (shape,), rows = _shapes(node, known, 0), node.attributes["coefficients"].value
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
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    **dict.fromkeys(("BatchNormalization", "InstanceNormalization"), _channels),
    **dict.fromkeys(("Conv", "ConvInteger"), _convolution(1)),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _blocks),
    **dict.fromkeys(("DequantizeLinear", "QuantizeLinear"), _quantised_axis),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrent),
    **dict.fromkeys(("Gather", "GatherElements"), _gather),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _last_axes),
    **dict.fromkeys(("MatMul", "MatMulInteger"), _product(1)),
    **dict.fromkeys(("Scatter", "ScatterElements", "ScatterND"), _scatter),
    "Concat": _concat,
    "ConvTranspose": _transposed_convolution,
    "Einsum": _einsum,
    "Expand": _expand,
    "GatherND": _gather_nd,
    "Gemm": _product(1, may_turn=True),
    "GridSample": _grid,
    "Pad": _pad,
    "QLinearConv": _convolution(3),
    "QLinearMatMul": _product(3),
    "Reshape": _reshape,
    "RoiAlign": _regions,
    "STFT": _frames,
    "Split": _split,
    "Squeeze": _squeeze,
    "TopK": _top,
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
