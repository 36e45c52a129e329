# SPDX-License-Identifier: Apache-2.0
"""Rules for elementwise operators: they stay in channel blocks where an operand is there, else they are plain.

Source: ONNX Add, Clip, HardSigmoid, HardSwish, LeakyRelu, Mish, PRelu and the like; broadcasting in ONNX.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, is_inference_batchnorm, operand, text_attribute
from nndeploy_native import expressions
from nndeploy_native.expressions import Expression, const
from nndeploy_native.lowering.context import Context, column_shape, image_shape
from nndeploy_native.steps.elementwise import MAX_OPERANDS, Elementwise, Operand
from nndeploy_native.tensors import Array, Layout, Shape, Tensor

UNARY_OPERATORS = {
    "Abs": "abs", "Ceil": "ceil", "Erf": "erf", "Exp": "exp", "Floor": "floor", "HardSwish": "hardswish", "Log": "log",
    "Neg": "neg", "Reciprocal": "reciprocal", "Relu": "relu", "Sigmoid": "sigmoid", "Softplus": "softplus",
    "Sqrt": "sqrt", "Tanh": "tanh",
}  # fmt: skip
BINARY_OPERATORS = {"Add": "add", "Div": "div", "Mul": "mul", "Sub": "sub"}
POWERS: dict[float, Callable[[Expression], Expression]] = {
    -2.0: lambda x: ("reciprocal", ("mul", x, x)),
    -1.0: lambda x: ("reciprocal", x),
    -0.5: lambda x: ("reciprocal", ("sqrt", x)),
    0.5: lambda x: ("sqrt", x),
    2.0: lambda x: ("mul", x, x),
    3.0: lambda x: ("mul", ("mul", x, x), x),
}
VARIADIC_OPERATORS = {"Max": "max", "Min": "min", "Sum": "add"}


def unary(node: ir.Node, context: Context) -> None:
    """Lowers an operator of one operand."""
    emit(node, context, [node.inputs[0]], lambda x: (UNARY_OPERATORS[node.op_type], x))


def binary(node: ir.Node, context: Context) -> None:
    """Lowers an operator of two operands."""
    emit(node, context, node.inputs, lambda a, b: (BINARY_OPERATORS[node.op_type], a, b))


def variadic(node: ir.Node, context: Context) -> None:
    """Lowers Max, Min and Sum."""
    if len(node.inputs) > MAX_OPERANDS:
        raise BuildRefusedError(f"more than {MAX_OPERANDS} inputs")

    def compute(*operands: Expression) -> Expression:
        result = operands[0]
        for one in operands[1:]:
            result = (VARIADIC_OPERATORS[node.op_type], result, one)
        return result

    emit(node, context, node.inputs, compute)


def clip(node: ir.Node, context: Context) -> None:
    """Lowers Clip with constant bounds. Source: ONNX Clip: min(max(x, low), high)."""
    low, high = _bound(node, context, 1, "min"), _bound(node, context, 2, "max")

    def compute(x: Expression) -> Expression:
        above: Expression = x if low is None else ("max", x, const(low))
        return above if high is None else ("min", above, const(high))

    emit(node, context, [node.inputs[0]], compute)


def power(node: ir.Node, context: Context) -> None:
    """Lowers Pow by a constant number that products, a root and a reciprocal make."""
    exponent = context.constant(operand(node, 1))
    number = exponent.item() if exponent is not None and exponent.size == 1 else None
    if number not in POWERS or context.shape_of(operand(node, 0)) != context.shape_of(node.outputs[0]):
        raise BuildRefusedError(f"a Pow by another constant number than {', '.join(map(str, POWERS))}")
    emit(node, context, [node.inputs[0]], POWERS[number])


def prelu(node: ir.Node, context: Context) -> None:
    """Lowers PRelu."""
    emit(node, context, node.inputs, lambda x, slope: ("where", ("less", x, const(0)), ("mul", x, slope), x))


def activation(node: ir.Node, context: Context) -> None:
    """Lowers activations with attributes."""
    emit(node, context, [node.inputs[0]], lambda x: _activation(node, x))


def batch_normalization(node: ir.Node, context: Context) -> None:
    """Lowers BatchNormalization of images to x * scale + shift, with numbers that are computed here."""
    if not is_inference_batchnorm(node, context.opset):
        raise BuildRefusedError("BatchNormalization in training")
    scale, shift, mean, variance = (context.floats(operand(node, i), "a parameter") for i in range(1, 5))
    factor = scale.astype(np.float64) / np.sqrt(variance.astype(np.float64) + float_attribute(node, "epsilon", 1e-5))
    rest = shift - mean * factor
    rank = len(context.shape_of(node.inputs[0]))
    arrays = [Operand(_channel_shape(one, rank), None, one.astype(np.float32)) for one in (factor, rest)]
    emit(node, context, [node.inputs[0], *arrays], lambda x, a, b: ("add", ("mul", x, a), b))


def emit(
    node: ir.Node,
    context: Context,
    operands: "Sequence[ir.Value | Operand | None]",
    compute: Callable[..., Expression],
) -> None:
    """Emits output = compute(operands...); constants of one element become part of the expression.

    Raises:
        BuildRefusedError: an operand is left out or no float32 of a fixed shape, or there are too many.
    """
    output, shape = node.outputs[0], context.shape_of(node.outputs[0])
    found: list[ir.Value | Operand] = []
    values: dict[int, Expression] = {}
    for number, one in enumerate(operands):
        if not isinstance(one, Operand):
            context.shape_of(one)
            array = context.constant(one)
            if array is not None and array.size == 1 and len(array.shape) <= len(shape):
                values[number] = const(float(array.reshape(-1)[0]))
                continue
        assert one is not None
        place = next((i for i, known in enumerate(found) if known is one), len(found))
        if place == len(found):
            found.append(one)
        values[number] = expressions.operand(place)
    if len(found) > MAX_OPERANDS:
        raise BuildRefusedError(f"more than {MAX_OPERANDS} operands")
    expression = compute(*(values[number] for number in range(len(operands))))
    if len(found) == 1 and _emit_before_movement(output, context, found[0], expression):
        return
    if all(_fits_blocks(one, context, shape) for one in found):
        images = [image for one in found if (image := _image(one, context)) is not None]
        if images:
            _emit_blocked(output, context, found, expression, is_column=images[0].is_column)
            return
    ready = tuple(_plain_operand(one, context, len(shape)) for one in found)
    _check_broadcast(shape, ready)
    context.emit(Elementwise(context.output(output, Layout.PLAIN), ready, expression))


def _emit_blocked(
    output: ir.Value,
    context: Context,
    found: Sequence[ir.Value | Operand],
    expression: Expression,
    *,
    is_column: bool,
) -> None:
    """Emits the step on images in blocks; those of (N, C, W) are all rows of pixels, or all columns."""
    rank = len(context.shape_of(output))
    oriented = column_shape if is_column and rank == 3 else image_shape
    target = context.output(output, Layout.BLOCKED, oriented)
    ready = []
    for one in found:
        full = oriented(_full(_shape_of(one, context), rank))
        array = _array(one, context)
        tensor = None if array is not None or isinstance(one, Operand) else replace(context.blocked(one), shape=full)
        ready.append(Operand(full, tensor, array))
    context.emit(Elementwise(target, tuple(ready), expression))


def _emit_before_movement(output: ir.Value, context: Context, one: ir.Value | Operand, expression: Expression) -> bool:
    """Computes an image in blocks whose moved elements are the operand, and moves the result; False where none is."""
    moved = context.moved_blocks(one) if isinstance(one, ir.Value) else None
    if moved is None or moved.places.size != moved.base.size or moved.places.min() < 0:
        return False
    target = context.temporary("elementwise", moved.base.shape, Layout.BLOCKED)
    context.emit(Elementwise(target, (Operand(moved.base.shape, moved.base),), expression))
    context.define_moved(output, target, moved.places)
    return True


def _shape_of(one: ir.Value | Operand, context: Context) -> Shape:
    return one.shape if isinstance(one, Operand) else context.shape_of(one)


def _image(one: ir.Value | Operand, context: Context) -> Tensor | None:
    """Returns an operand's blocks where it had better stay in them: (N, C, W) where it is nowhere else."""
    if isinstance(one, Operand):
        return None
    if len(context.shape_of(one)) == 4:
        return context.blocked(one) if context.is_blocked(one) else None
    return context.reshaped_blocks(one, context.shape_of(one))


def _fits_blocks(one: ir.Value | Operand, context: Context, out_shape: Shape) -> bool:
    """Whether an operand is whole or one number a channel, of each image or of all."""
    shape, rank = _shape_of(one, context), len(out_shape)
    if isinstance(one, Operand) and one.tensor is not None:
        return False  # a plain one
    if rank not in (3, 4) or (len(shape) != rank and _array(one, context) is None):
        return False
    full = _full(shape, rank)
    return full[0] in (1, out_shape[0]) and full[1] == out_shape[1] and full[2:] in (out_shape[2:], (1,) * (rank - 2))


def _full(shape: Shape, rank: int) -> Shape:
    return (*[1] * (rank - len(shape)), *shape)


def _array(one: ir.Value | Operand, context: Context) -> Array | None:
    """Returns the numbers of an operand that is constant."""
    if isinstance(one, Operand):
        return one.array
    array = context.constant(one)
    return None if array is None else np.asarray(array, np.float32)


def _plain_operand(one: ir.Value | Operand, context: Context, rank: int) -> Operand:
    if isinstance(one, Operand):
        return replace(one, shape=_full(one.shape, rank))
    array = _array(one, context)
    return Operand(_full(context.shape_of(one), rank), context.plain(one) if array is None else None, array)


def _check_broadcast(shape: Shape, operands: Sequence[Operand]) -> None:
    """Refuses operands of which it is not sure that they are whole or broadcast along each axis."""
    for one in operands:
        front = len(shape) - len(one.shape)
        if any(size not in (1, whole) for size, whole in zip(one.shape, shape[front:], strict=True)):
            raise BuildRefusedError(f"an operand of shape {one.shape} for {shape}")


def _channel_shape(array: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]", rank: int) -> Shape:
    return (1, array.size, *[1] * (rank - 2))


def _bound(node: ir.Node, context: Context, index: int, name: str) -> float | None:
    """Returns a bound of Clip: an attribute up to opset 6, an input later."""
    if context.opset < 11:
        return float_attribute(node, name, 0.0) if name in node.attributes else None
    if operand(node, index) is None:
        return None
    array = context.floats(operand(node, index), "a bound")
    if array.size != 1:
        raise BuildRefusedError("a bound that is not one number")
    return float(array.reshape(-1)[0])


def _activation(node: ir.Node, x: Expression) -> Expression:
    zero = const(0)
    match node.op_type:
        case "HardSigmoid":
            alpha, beta = float_attribute(node, "alpha", 0.2), float_attribute(node, "beta", 0.5)
            line: Expression = ("add", ("mul", x, const(alpha)), const(beta))
            return ("min", ("max", line, zero), const(1))
        case "LeakyRelu":
            alpha = float_attribute(node, "alpha", 0.01)
            return ("where", ("less", x, zero), ("mul", x, const(alpha)), x)
        case "Elu":
            alpha = float_attribute(node, "alpha", 1.0)
            return ("where", ("less", x, zero), ("mul", ("sub", ("exp", x), const(1)), const(alpha)), x)
        case "Mish":  # x * tanh(ln(1 + e^x)) in e^x, which is bounded: beyond, the factor is 1
            exponential: Expression = ("exp", ("min", x, const(20)))
            product: Expression = ("mul", exponential, ("add", exponential, const(2)))
            return ("mul", x, ("div", product, ("add", product, const(2))))
        case "Gelu" if text_attribute(node, "approximate", "none") == "none":
            half: Expression = ("mul", x, const(0.5))
            return ("mul", half, ("add", ("erf", ("mul", x, const(0.5**0.5))), const(1)))
    raise BuildRefusedError(f"a {node.op_type} with these attributes")
