# SPDX-License-Identifier: Apache-2.0
"""How the sizes of results follow from those of operands: elementwise operators, products, reductions, recurrences.

A rule tells `KnownSizes` what it finds; one that cannot find anything says nothing. Source: ONNX's operators.
"""

from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir

from nndeploy.graph.constants import constant_ints
from nndeploy.graph.einsum import parsed_equation
from nndeploy.graph.known_sizes import KnownSizes, Rule, Shape
from nndeploy.graph.node_parameters import cast_target
from nndeploy.graph.operators import int_attribute, ints_attribute, operand, text_attribute
from nndeploy.values.size import Dim, UndecidedError, bounds, ceil_div, least, may_be_equal, most, product

_SAME = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization", "BitwiseNot", "CastLike",
    "Ceil", "Celu", "Clip", "Cos",
    "Cosh", "CumSum", "DequantizeLinear", "Dropout", "Elu", "Erf", "Exp", "EyeLike", "Floor", "Gelu",
    "GroupNormalization", "HardSigmoid",
    "HardSwish", "Hardmax", "Identity", "InstanceNormalization", "IsInf", "IsNaN", "LRN", "LayerNormalization",
    "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "Mish", "PRelu",
    "QuantizeLinear", "RMSNormalization", "Reciprocal", "Relu", "ReverseSequence", "RotaryEmbedding", "Round",
    "Scatter", "ScatterElements", "ScatterND", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax",
    "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Trilu",
)  # fmt: skip


_BROADCAST = (
    "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Greater", "GreaterOrEqual", "Less",
    "LessOrEqual", "Mean", "Or", "Pow", "Sum", "Xor",
)  # fmt: skip


_REDUCE = (
    "ArgMax", "ArgMin", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip


_REDUCED: Mapping[str, Callable[[Shape], Dim]] = {
    "ReduceMax": lambda elements: most(*elements),
    "ReduceMin": lambda elements: least(*elements),
    "ReduceProd": product,
    "ReduceSum": sum,
}


def same(node: ir.Node, known: KnownSizes) -> None:
    """The output has the sizes of the first input."""
    shape, elements = known.shape(operand(node, 0)), known.elements(operand(node, 0))
    if shape is not None:
        known.learn_shape(node.outputs[0], shape)
    if elements is not None and node.op_type in ("Identity", "Dropout"):
        known.learn_elements(node.outputs[0], elements)


def _cast(node: ir.Node, known: KnownSizes) -> None:
    same(node, known)
    elements, target = known.elements(operand(node, 0)), cast_target(node)
    if elements is None or target not in (ir.DataType.INT64, ir.DataType.INT32):
        return
    if target == ir.DataType.INT64 or all(bounds(one)[1] < 2**31 and bounds(one)[0] >= -(2**31) for one in elements):
        known.learn_elements(node.outputs[0], elements)


def _broadcast(node: ir.Node, known: KnownSizes) -> None:
    shapes = [known.shape(value) for value in node.inputs if value is not None]
    if all(shape is not None for shape in shapes):
        known.learn_shape(node.outputs[0], broadcast_shape([shape for shape in shapes if shape is not None]))


def _arithmetic(node: ir.Node, known: KnownSizes) -> None:
    _broadcast(node, known)
    rows = _together([known.elements(operand(node, index)) for index in range(2)])
    if rows is not None:
        known.learn_elements(node.outputs[0], tuple(_computed(node.op_type, a, b) for a, b in rows))


def _together(parts: Sequence[Shape | None]) -> list[tuple[Dim, ...]] | None:
    """Returns the elements of lists side by side, those of one element for all; None where one is not known."""
    lists = [part for part in parts if part is not None]
    count = max(map(len, lists), default=0)
    if len(lists) < len(parts) or any(len(one) not in (1, count) for one in lists):
        return None
    return list(zip(*(one * (count // len(one)) for one in lists), strict=True)) if count else []


def _equal(node: ir.Node, known: KnownSizes) -> None:
    _broadcast(node, known)
    rows = _together([known.elements(operand(node, index)) for index in range(2)])
    if rows is not None and all(a == b or not may_be_equal(a, b) for a, b in rows):
        known.learn_elements(node.outputs[0], tuple(int(a == b) for a, b in rows))


def _not(node: ir.Node, known: KnownSizes) -> None:
    same(node, known)
    elements = known.elements(operand(node, 0))
    if elements is not None:
        known.learn_elements(node.outputs[0], tuple(1 - one for one in elements))


def _negative(node: ir.Node, known: KnownSizes) -> None:
    same(node, known)
    elements = known.elements(operand(node, 0))
    if elements is not None:
        known.learn_elements(node.outputs[0], tuple(-one for one in elements))


def _where(node: ir.Node, known: KnownSizes) -> None:
    _broadcast(node, known)
    rows = _together([known.elements(operand(node, index)) for index in range(3)])
    if rows is not None and all(isinstance(chosen, int) for chosen, _, _ in rows):
        known.learn_elements(node.outputs[0], tuple(a if chosen else b for chosen, a, b in rows))


def _computed(operator: str, a: Dim, b: Dim) -> Dim:
    match operator:
        case "Add":
            return a + b
        case "Sub":
            return a - b
        case "Mul":
            return a * b
        case "Max":
            return most(a, b)
        case "Min":
            return least(a, b)
        case "Mod":
            if bounds(b)[0] < 1:
                raise UndecidedError("a remainder whose sign depends on a size")
            return a % b
    if bounds(a)[0] < 0:
        raise UndecidedError("a division that may round towards zero")
    return a // b


def broadcast_shape(shapes: Sequence[Shape]) -> Shape:
    """Returns the shape of an elementwise result, as NumPy broadcasts, where none of the sizes is zero."""
    rank = max((len(shape) for shape in shapes), default=0)
    full = [(*[1] * (rank - len(shape)), *shape) for shape in shapes]
    return tuple(_broadcast_size(list(dict.fromkeys(dims))) for dims in zip(*full, strict=True))


def _broadcast_size(dims: list[Dim]) -> Dim:
    others = [dim for dim in dims if dim != 1]
    large = [dim for dim in others if bounds(dim)[0] > 1]
    if len(others) <= 1:
        return others[0] if others else 1
    if not large:
        return most(others[0], *others[1:])  # whichever are one
    return next((dim for dim in large if isinstance(dim, int)), large[0])  # a valid model: all large ones are equal


def _dynamic_quantise(node: ir.Node, known: KnownSizes) -> None:
    same(node, known)
    for output in node.outputs[1:]:
        known.learn_shape(output, ())


def _matmul(node: ir.Node, known: KnownSizes, *, second: int = 1) -> None:
    left, right = known.shape(operand(node, 0)), known.shape(operand(node, second))
    if not left or not right:
        return
    columns = right[-1:] if len(right) > 1 else ()  # a vector has neither rows nor columns
    known.learn_shape(node.outputs[0], (*broadcast_shape([left[:-2], right[:-2]]), *left[-2:-1], *columns))


def _qlinear_matmul(node: ir.Node, known: KnownSizes) -> None:
    """Source: ONNX QLinearMatMul: the second matrix is the input at 3."""
    _matmul(node, known, second=3)


def _einsum(node: ir.Node, known: KnownSizes) -> None:
    shapes = [shape for value in node.inputs if (shape := known.shape(value)) is not None]
    equation = parsed_equation(text_attribute(node, "equation", ""), [len(shape) for shape in shapes])
    if equation is None or len(shapes) < len(node.inputs):
        return
    sizes: dict[str, Dim] = {}
    for labels, shape in zip(equation.operands, shapes, strict=True):
        for label, size in zip(labels, shape, strict=True):
            sizes[label] = size if sizes.get(label, 1) == 1 else sizes[label]
    known.learn_shape(node.outputs[0], tuple(sizes[label] for label in equation.output))


def gemm(node: ir.Node, known: KnownSizes, *, second: int = 1) -> None:
    """The output is the product of two matrices, of the inputs at 0 and `second`, each of which may be turned."""
    left, right = known.shape(operand(node, 0)), known.shape(operand(node, second))
    if left is not None and right is not None and len(left) == len(right) == 2:
        rows, columns = int_attribute(node, "transA", 0), 1 - int_attribute(node, "transB", 0)
        known.learn_shape(node.outputs[0], (left[rows], right[columns]))


def _reduce(node: ir.Node, known: KnownSizes) -> None:
    shape, axes = known.shape(operand(node, 0)), ints_attribute(node, "axes")
    if shape is None:
        return
    if operand(node, 1) is not None:
        axes = constant_ints(operand(node, 1))
        if axes is None:
            return
    if node.op_type in ("ArgMax", "ArgMin"):
        axes = (int_attribute(node, "axis", 0),)
    if not axes and int_attribute(node, "noop_with_empty_axes", 0):
        known.learn_shape(node.outputs[0], shape)
        return
    gone = {axis % len(shape) for axis in axes} if axes else set(range(len(shape)))
    keeps = int_attribute(node, "keepdims", 1) == 1
    sizes = [1 if axis in gone else size for axis, size in enumerate(shape) if keeps or axis not in gone]
    known.learn_shape(node.outputs[0], tuple(sizes))
    elements, reduced = known.elements(operand(node, 0)), _REDUCED.get(node.op_type)
    if reduced is not None and elements and len(gone) == len(shape):
        known.learn_elements(node.outputs[0], (reduced(elements),))


def _top(node: ir.Node, known: KnownSizes) -> None:
    """Source: ONNX TopK: the number is an attribute up to opset 9."""
    shape, count = known.shape(operand(node, 0)), known.elements(operand(node, 1))
    if known.opset < 10:
        count = (int_attribute(node, "k", 0),)
    if shape is None or count is None or len(count) != 1:
        return
    axis = int_attribute(node, "axis", -1) % len(shape)
    for output in node.outputs:
        known.learn_shape(output, (*shape[:axis], count[0], *shape[axis + 1 :]))


def _recurrent(node: ir.Node, known: KnownSizes) -> None:
    shape, hidden = known.shape(operand(node, 0)), int_attribute(node, "hidden_size", 0)
    if shape is None or len(shape) != 3 or not hidden:
        return
    directions = 2 if text_attribute(node, "direction", "forward") == "bidirectional" else 1
    if int_attribute(node, "layout", 0):  # batch first
        whole: Shape = (shape[0], shape[1], directions, hidden)
        state: Shape = (shape[0], directions, hidden)
    else:
        whole, state = (shape[0], directions, shape[1], hidden), (directions, shape[1], hidden)
    for output, sizes in zip(node.outputs, (whole, state, state), strict=False):
        known.learn_shape(output, sizes)


def _range(node: ir.Node, known: KnownSizes) -> None:
    numbers = [known.elements(operand(node, index)) for index in range(3)]
    if any(one is None or len(one) != 1 for one in numbers):
        return
    start, end, step = (one[0] for one in numbers if one is not None)
    if isinstance(step, int) and step:
        count = ceil_div(end - start if step > 0 else start - end, abs(step))
        known.learn_shape(node.outputs[0], (count if bounds(count)[0] >= 0 else most(count, 0),))


RULES: dict[str, Rule] = {
    **dict.fromkeys(_SAME, same),
    **dict.fromkeys(_BROADCAST, _broadcast),
    **dict.fromkeys(("Add", "Div", "Max", "Min", "Mod", "Mul", "Sub"), _arithmetic),
    **dict.fromkeys(_REDUCE, _reduce),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrent),
    "Cast": _cast,
    "DynamicQuantizeLinear": _dynamic_quantise,
    "Einsum": _einsum,
    "Equal": _equal,
    "Gemm": gemm,
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "QLinearMatMul": _qlinear_matmul,
    "Neg": _negative,
    "Not": _not,
    "Range": _range,
    "TopK": _top,
    "Where": _where,
}
