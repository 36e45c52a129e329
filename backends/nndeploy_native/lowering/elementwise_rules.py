# SPDX-License-Identifier: Apache-2.0
"""Rules for elementwise operators: they stay in channel blocks where an operand is there, else they are plain.

Whole numbers and truths are plain. Source: ONNX Add, Clip, Pow and the like; broadcasting in ONNX.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, is_inference_batchnorm, operand
from nndeploy.values.size import may_be_equal, product
from nndeploy_native import expressions
from nndeploy_native.expression_program import OPERATORS
from nndeploy_native.expressions import Domain, Expression, const
from nndeploy_native.lowering.context import Context, column_shape, image_shape
from nndeploy_native.steps.elementwise import MAX_OPERANDS, Elementwise, Operand
from nndeploy_native.tensors import Array, Layout, Shape, Tensor

UNARY_OPERATORS = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh",
    "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp", "Floor": "floor",
    "HardSwish": "hardswish", "Log": "log", "Neg": "neg", "Reciprocal": "reciprocal", "Relu": "relu", "Round": "round",
    "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Softplus": "softplus", "Sqrt": "sqrt",
    "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip
DOMAINS = {"fp64": Domain.FLOAT64, "fp32": Domain.FLOAT32}
"""The domains in which floats are computed: the widest of the operands."""
BINARY_OPERATORS = {"Add": "add", "Div": "div", "Mul": "mul", "Sub": "sub"}
POWERS: dict[float, Callable[[Expression], Expression]] = {
    -2.0: lambda x: ("reciprocal", ("mul", x, x)),
    -1.0: lambda x: ("reciprocal", x),
    -0.5: lambda x: ("reciprocal", ("sqrt", x)),
    0.5: lambda x: ("sqrt", x),
    2.0: lambda x: ("mul", x, x),
    3.0: lambda x: ("mul", ("mul", x, x), x),
}
VARIADIC_OPERATORS = {"Max": "max", "Mean": "add", "Min": "min", "Sum": "add"}


def unary(node: ir.Node, context: Context) -> None:
    """Lowers an operator of one operand."""
    emit(node, context, [node.inputs[0]], lambda x: (UNARY_OPERATORS[node.op_type], x))


def binary(node: ir.Node, context: Context) -> None:
    """Lowers an operator of two operands."""
    emit(node, context, node.inputs, lambda a, b: (BINARY_OPERATORS[node.op_type], a, b))


def variadic(node: ir.Node, context: Context) -> None:
    """Lowers Max, Mean, Min and Sum; more operands than a step has go through steps of their own."""
    count, left = len(node.inputs), list(node.inputs)

    def compute(*operands: Expression) -> Expression:
        result = operands[0]
        for one in operands[1:]:
            result = (VARIADIC_OPERATORS[node.op_type], result, one)
        return result

    def mean(*operands: Expression) -> Expression:
        return ("div", compute(*operands), const(count))

    while len(left) > MAX_OPERANDS:
        left[:MAX_OPERANDS] = [_emit_part(node.outputs[0], context, left[:MAX_OPERANDS], compute)]
    emit(node, context, left, mean if node.op_type == "Mean" else compute)


def clip(node: ir.Node, context: Context) -> None:
    """Lowers Clip. Source: ONNX Clip: min(max(x, low), high); bounds are attributes up to opset 10."""
    if context.opset < 11:
        low, high = (
            const(float_attribute(node, name, 0.0)) if name in node.attributes else None for name in ("min", "max")
        )
        emit(node, context, [node.inputs[0]], lambda x: _clipped(x, low, high))
        return
    is_given = [operand(node, index) is not None for index in (1, 2)]

    def compute(x: Expression, *bounds: Expression) -> Expression:
        given = iter(bounds)
        low, high = (next(given) if one else None for one in is_given)
        return _clipped(x, low, high)

    emit(node, context, [value for value in node.inputs if value is not None], compute)


def _clipped(x: Expression, low: "Expression | None", high: "Expression | None") -> Expression:
    above: Expression = x if low is None else ("max", x, low)
    return above if high is None else ("min", above, high)


def power(node: ir.Node, context: Context) -> None:
    """Lowers Pow: by some constant numbers with products, a root and a reciprocal."""
    base, exponent = operand(node, 0), context.constant(operand(node, 1))
    number = exponent.item() if exponent is not None and exponent.size == 1 else None
    is_float = context.element_of(base) in DOMAINS
    if not is_float and context.element_of(operand(node, 1)) == "fp32" and number not in range(64):
        raise BuildRefusedError("a Pow of whole numbers by a float")
    if number in POWERS and is_float and context.sizes_of(base) == context.sizes_of(node.outputs[0]):
        emit(node, context, [base], POWERS[number])
    elif number in range(64) and not is_float:
        emit(node, context, [base], lambda x: ("pow", x, const(number or 0)))
    else:
        emit(node, context, [base, operand(node, 1)], lambda x, y: ("pow", x, y))


def prelu(node: ir.Node, context: Context) -> None:
    """Lowers PRelu."""
    emit(node, context, node.inputs, lambda x, slope: ("where", ("less", x, const(0)), ("mul", x, slope), x))


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
    """Emits the node's output = compute(operands...); constants of one element become part of the expression.

    The domain is that of the operands that are no truths: int64 where they are whole numbers, float64 where one is.
    Truths alone are float32.

    Raises:
        BuildRefusedError: an operand is left out or of a type that kernels do not read, there are too many, or the
            domain has no such operator.
    """
    emit_value(node.outputs[0], context, operands, compute)


def emit_value(
    output: ir.Value,
    context: Context,
    operands: "Sequence[ir.Value | Operand | None]",
    compute: Callable[..., Expression],
) -> None:
    """Emits a value as `emit` does.

    Raises:
        BuildRefusedError: as there.
    """
    shape = context.sizes_of(output)
    found: list[ir.Value | Operand] = []
    values: dict[int, Expression] = {}
    elements: set[str] = set()
    for number, one in enumerate(operands):
        elements.add(one.element if isinstance(one, Operand) else context.element_of(one))
        if not isinstance(one, Operand):
            context.sizes_of(one)
            array = context.constant(one)
            if array is not None and array.size == 1 and len(array.shape) <= len(shape):
                values[number] = const(array.reshape(-1)[0].item())
                continue
        assert one is not None
        place = next((i for i, known in enumerate(found) if known is one), len(found))
        if place == len(found):
            found.append(one)
        values[number] = expressions.operand(place)
    if len(found) > MAX_OPERANDS:
        raise BuildRefusedError(f"more than {MAX_OPERANDS} operands")
    expression = compute(*(values[number] for number in range(len(operands))))
    floats = [domain for element, domain in DOMAINS.items() if element in elements]
    domain = (floats or [Domain.FLOAT32 if elements <= {"bool"} else Domain.INT64])[0]
    if missing := set(expressions.operators_of(expression)).difference(OPERATORS[domain]):
        raise BuildRefusedError(f"no {min(missing)} of {domain} numbers")
    if _emit_channels_last(output, context, found, expression, domain):
        return
    if elements != {"fp32"} or context.element_of(output) != "fp32":
        _emit_plain(output, context, found, expression, domain)
        return
    if len(found) == 1 and _emit_before_movement(output, context, found[0], expression):
        return
    if all(_fits_blocks(one, context, shape) for one in found):
        images = [image for one in found if (image := _image(one, context)) is not None]
        if images:
            _emit_blocked(output, context, found, expression, is_column=images[0].is_column)
            return
    _emit_plain(output, context, found, expression, domain)


def emit_constant(output: ir.Value, context: Context, number: float) -> None:
    """Emits a value all of whose elements are one number."""
    domain = DOMAINS.get(context.element_of(output), Domain.INT64)
    _emit_plain(output, context, (), const(number), domain)


def _emit_part(
    output: ir.Value, context: Context, operands: Sequence[ir.Value | None], compute: Callable[..., Expression]
) -> ir.Value:
    """Emits a value that the model does not have, of the output's type and shape."""
    name = context.temporary("part", (), Layout.PLAIN).name
    part = ir.Value(name=name, shape=output.shape, type=output.type)
    context.lowered.copies[name] = output.name or ""
    emit_value(part, context, operands, compute)
    return part


def _emit_plain(
    output: ir.Value,
    context: Context,
    found: Sequence[ir.Value | Operand],
    expression: Expression,
    domain: Domain,
) -> None:
    shape = context.sizes_of(output)
    ready = tuple(_plain_operand(one, context, len(shape)) for one in found)
    _check_broadcast(shape, ready)
    context.emit(Elementwise(context.output(output, Layout.PLAIN), ready, expression, domain))


def _emit_blocked(
    output: ir.Value,
    context: Context,
    found: Sequence[ir.Value | Operand],
    expression: Expression,
    *,
    is_column: bool,
) -> None:
    """Emits the step on images in blocks; those of (N, C, W) are all rows of pixels, or all columns."""
    rank = len(context.sizes_of(output))
    oriented = column_shape if is_column and rank == 3 else image_shape
    target = context.output(output, Layout.BLOCKED, oriented)
    ready = []
    for one in found:
        full = oriented(_full(_shape_of(one, context), rank))
        array = _array(one, context)
        tensor = None if array is not None or isinstance(one, Operand) else replace(context.blocked(one), shape=full)
        ready.append(Operand(full, tensor, array))
    context.emit(Elementwise(target, tuple(ready), expression))


def _emit_channels_last(
    output: ir.Value,
    context: Context,
    found: Sequence[ir.Value | Operand],
    expression: Expression,
    domain: Domain,
) -> bool:
    """Emits the step where the channels of a pixel lie side by side in an operand; False where they do in none.

    Every operand is whole, one number, one number a channel or constant, and none that is whole lies in blocks.
    """
    shape = context.sizes_of(output)
    values = [one for one in found if isinstance(one, ir.Value) and context.constant(one) is None]
    wide = [one for one in values if context.sizes_of(one) == shape]
    narrow = [one for one in values if one not in wide]
    if not any(context.in_channels_last(one) is not None for one in wide) or any(map(context.is_blocked, wide)):
        return False
    if not all(_is_narrow(context.sizes_of(one), shape) for one in narrow):
        return False
    if any(isinstance(one, Operand) and one.tensor is not None for one in found):
        return False
    target, ready = context.output_channels_last(output), []
    for one in found:
        array = _array(one, context)
        if array is None:
            assert isinstance(one, ir.Value)
            last = context.channels_last(one) if one in wide else _narrow_last(one, context, len(shape))
            ready.append(Operand(last.shape, last))
        else:
            turned = np.moveaxis(array.reshape(_full(array.shape, len(shape))), 1, -1)
            ready.append(Operand(turned.shape, None, np.ascontiguousarray(turned)))
    _check_broadcast(target.shape, ready)
    context.emit(Elementwise(target, tuple(ready), expression, domain))
    return True


def _is_narrow(sizes: Shape, whole: Shape) -> bool:
    """Whether an operand is one number, or one a channel of each image or of all."""
    return product(sizes) == 1 or (len(sizes) == len(whole) and sizes[1] == whole[1] and product(sizes[2:]) == 1)


def _narrow_last(value: ir.Value, context: Context, rank: int) -> Tensor:
    """Returns such an operand as a plain tensor with its channels last, where they lie already."""
    tensor = context.plain(value)
    batch, channels, *_ = tensor.shape if product(tensor.shape) != 1 else (1, 1)
    return replace(tensor, shape=(batch, *[1] * (rank - 2), channels))


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
    return one.shape if isinstance(one, Operand) else context.sizes_of(one)


def _image(one: ir.Value | Operand, context: Context) -> Tensor | None:
    """Returns an operand's blocks where it had better stay in them: (N, C, W) where it is nowhere else."""
    if isinstance(one, Operand):
        return None
    if len(context.shape_of(one)) in (4, 5):
        return context.blocked(one) if context.is_blocked(one) else None
    return context.reshaped_blocks(one, context.shape_of(one))


def _fits_blocks(one: ir.Value | Operand, context: Context, out_shape: Shape) -> bool:
    """Whether an operand is whole or one number a channel, of each image or of all."""
    shape, rank = _shape_of(one, context), len(out_shape)
    if isinstance(one, Operand) and one.tensor is not None:
        return False  # a plain one
    if rank not in (3, 4, 5) or (len(shape) != rank and _array(one, context) is None):
        return False
    full = _full(shape, rank)
    is_whole = all(map(may_be_equal, full[2:], out_shape[2:])) or full[2:] == (1,) * (rank - 2)
    return (full[0] == 1 or may_be_equal(full[0], out_shape[0])) and full[1] == out_shape[1] and is_whole


def _full(shape: Shape, rank: int) -> Shape:
    return (*[1] * (rank - len(shape)), *shape)


def _array(one: ir.Value | Operand, context: Context) -> Array | None:
    """Returns the numbers of an operand that is constant."""
    if isinstance(one, Operand):
        return one.array
    return context.constant(one)


def _plain_operand(one: ir.Value | Operand, context: Context, rank: int) -> Operand:
    if isinstance(one, Operand):
        return replace(one, shape=_full(one.shape, rank))
    array = _array(one, context)
    return Operand(_full(context.sizes_of(one), rank), context.plain(one) if array is None else None, array)


def _check_broadcast(shape: Shape, operands: Sequence[Operand]) -> None:
    """Refuses operands that are neither whole nor broadcast along each axis, whatever their sizes are."""
    for one in operands:
        front = len(shape) - len(one.shape)
        pairs = zip(one.shape, shape[front:], strict=True)
        if not all(size == 1 or may_be_equal(size, whole) for size, whole in pairs):
            raise BuildRefusedError(f"an operand of shape {one.shape} for {shape}")


def _channel_shape(array: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]", rank: int) -> Shape:
    return (1, array.size, *[1] * (rank - 2)) if rank > 1 else (array.size,)
