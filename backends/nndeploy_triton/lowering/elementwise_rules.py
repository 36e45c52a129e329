# SPDX-License-Identifier: Apache-2.0
"""Rules for operators that work element by element: arithmetic, activations, comparisons, casts.

Source: ONNX operator specifications; each activation is spelled out in the steps of program.py.
"""

import math
from collections.abc import Callable
from functools import partial

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.node_parameters import cast_target, clip_bounds
from nndeploy.graph.operators import float_attribute, is_inference_batchnorm, text_attribute
from nndeploy_triton.lowering.context import FLOATS, WHOLE, Context
from nndeploy_triton.program import ProgramBuilder

Compute = Callable[..., int]

UNARY_OPERATORS = {
    "Abs": "abs", "Ceil": "ceil", "Cos": "cos", "Erf": "erf", "Exp": "exp", "Floor": "floor", "Log": "log",
    "Neg": "neg", "Reciprocal": "reciprocal", "Relu": "relu", "Round": "round", "Sigmoid": "sigmoid", "Sign": "sign",
    "Sin": "sin", "Softplus": "softplus", "Sqrt": "sqrt", "Tanh": "tanh",
}  # fmt: skip
BINARY_OPERATORS = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div"}
VARIADIC_OPERATORS = {"Sum": "add", "Mean": "add", "Max": "max", "Min": "min"}
COMPARISONS = {"Less": "less", "LessOrEqual": "less_equal", "Equal": "equal"}
MIRRORED = {"Greater": "less", "GreaterOrEqual": "less_equal"}
LOGICAL = {"And": "and", "Or": "or"}
WRITABLE = ("float16", "float32", "float64", "bool", "uint8", "int8", "int16", "int32", "int64")
READABLE = (*WRITABLE, "bfloat16")
"""Element types of casts. Rounding to bfloat16 cannot be checked: the interpreter cuts off instead."""


def unary(node: ir.Node, context: Context) -> None:
    """Lowers an operator that a program has as it is."""
    op = UNARY_OPERATORS[node.op_type]
    values = context.numbers(node, 1) if op in ("abs", "neg") else context.floats(node, 1)
    context.elementwise(node.outputs[0], values, lambda b, x: b.apply(op, x), op)


def binary(node: ir.Node, context: Context) -> None:
    """Lowers arithmetic of two broadcast inputs."""
    op = BINARY_OPERATORS[node.op_type]
    values = context.floats(node, 2) if op == "div" else context.numbers(node, 2)
    context.elementwise(node.outputs[0], values, lambda b, x, y: b.apply(op, x, y), op)


def variadic(node: ir.Node, context: Context) -> None:
    """Lowers Sum, Mean, Max and Min of any number of broadcast inputs."""
    op, count = VARIADIC_OPERATORS[node.op_type], len(node.inputs)

    def compute(builder: ProgramBuilder, *values: int) -> int:
        total = values[0]
        for value in values[1:]:
            total = builder.apply(op, total, value)
        if node.op_type == "Mean":
            return builder.apply("mul", total, builder.const(1.0 / count))
        return total

    context.elementwise(node.outputs[0], context.floats(node, count), compute, node.op_type.lower())


def compare(node: ir.Node, context: Context) -> None:
    """Lowers a comparison of numbers of one type."""
    is_mirrored = node.op_type in MIRRORED
    op = MIRRORED[node.op_type] if is_mirrored else COMPARISONS[node.op_type]
    values = _inputs_of_types(node, context, (*FLOATS, *WHOLE))
    context.elementwise(
        node.outputs[0],
        values[::-1] if is_mirrored else values,
        lambda b, x, y: b.apply(op, x, y),
        op,
    )


def logical(node: ir.Node, context: Context) -> None:
    """Lowers And, Or and Not."""
    values = _inputs_of_types(node, context, ("bool",))
    op = LOGICAL.get(node.op_type, "not")
    context.elementwise(node.outputs[0], values, lambda b, *operands: b.apply(op, *operands), op)


def where(node: ir.Node, context: Context) -> None:
    """Lowers Where."""
    condition, *values = node.inputs
    if condition is None or any(value is None or context.dtype_of(value) not in (*FLOATS, *WHOLE) for value in values):
        raise BuildRefusedError("Where is taken on float16, float32, int32 and int64 only")
    present = [value for value in (condition, *values) if value is not None]
    context.elementwise(node.outputs[0], present, lambda b, c, x, y: b.apply("where", c, x, y), "where")


def is_nan(node: ir.Node, context: Context) -> None:
    """Lowers IsNaN."""
    values = _inputs_of_types(node, context, FLOATS)
    context.elementwise(node.outputs[0], values, lambda b, x: b.apply("isnan", x), "isnan")


def clip(node: ir.Node, context: Context) -> None:
    """Lowers Clip with bounds that are known."""
    (x,) = context.floats(node, 1)
    assert x.dtype is not None
    bounds = clip_bounds(node, context.opset, x.dtype)
    if bounds is None:
        raise BuildRefusedError("the bounds of Clip are not constant")
    low, high = bounds

    def compute(builder: ProgramBuilder, x: int) -> int:
        bounded = x if math.isinf(low) else builder.apply("max", x, builder.const(low))
        return bounded if math.isinf(high) else builder.apply("min", bounded, builder.const(high))

    context.elementwise(node.outputs[0], [x], compute, "relu6" if bounds == (0, 6) else "clip")


def power(node: ir.Node, context: Context) -> None:
    """Lowers Pow with an exponent that is a small constant: a few products, a square root."""
    exponent = context.scalar(node.inputs[1])
    context.floats(node, 1)
    if exponent is None or abs(exponent) > 8 or exponent * 2 != int(exponent * 2):
        raise BuildRefusedError("the exponent of Pow is no constant multiple of 1/2 up to 8")
    known = exponent

    def compute(builder: ProgramBuilder, x: int) -> int:
        result = _integer_power(builder, x, int(abs(known)))
        if abs(known) % 1:
            root = builder.apply("sqrt", x)
            result = root if int(abs(known)) == 0 else builder.apply("mul", result, root)
        return builder.apply("reciprocal", result) if known < 0 else result

    context.elementwise(node.outputs[0], [context.view(node.inputs[0])], compute, "pow")


def prelu(node: ir.Node, context: Context) -> None:
    """Lowers PRelu, whose slope is broadcast to the input."""
    context.elementwise(node.outputs[0], context.floats(node, 2), _leaky, "prelu")


def cast(node: ir.Node, context: Context) -> None:
    """Lowers Cast between the numbers that Triton converts."""
    target, value = cast_target(node), node.inputs[0]
    if target is None or value is None:
        raise BuildRefusedError("the target of Cast is not known")
    dtypes = context.dtype_of(value), context.dtype_of(node.outputs[0])
    if dtypes[0] not in READABLE or dtypes[1] not in WRITABLE:
        raise BuildRefusedError(f"no kernel casts {dtypes[0]} to {dtypes[1]}")
    if dtypes[0] == dtypes[1]:
        context.alias(node.outputs[0], context.view(value))
    elif dtypes[1] == "bool":
        context.elementwise(node.outputs[0], [value], _is_not_zero, "tobool")
    elif dtypes[0] not in FLOATS and dtypes[1] in FLOATS:
        context.elementwise(node.outputs[0], [context.view(value)], lambda b, x: b.apply("float", x), "cast")
    else:
        context.copied(context.output(node.outputs[0]), context.view(value))


def batch_normalization(node: ir.Node, context: Context) -> None:
    """Lowers an inference BatchNormalization: (x - mean) / sqrt(variance + epsilon) * scale + shift by channel."""
    if not is_inference_batchnorm(node, context.opset):
        raise BuildRefusedError("a BatchNormalization that is trained")
    epsilon = float_attribute(node, "epsilon", 1e-5)
    x, *parameters = [context.view(value) for value in node.inputs]
    if {view.dtype for view in (x, *parameters)} - set(FLOATS) or len(x.shape) < 2:
        raise BuildRefusedError("kernels compute with float16 or float32")
    by_channel = (x.shape[1], *(1,) * (len(x.shape) - 2))
    columns = [view.reshaped(by_channel) for view in parameters]
    operands = [x, *(view for view in columns if view is not None)]
    if len(operands) != 5:
        raise BuildRefusedError("parameters that are not one for each channel")

    def compute(b: ProgramBuilder, value: int, scale: int, shift: int, mean: int, variance: int) -> int:
        deviation = b.apply("sqrt", b.apply("add", variance, b.const(epsilon)))
        centred = b.apply("div", b.apply("sub", value, mean), deviation)
        return b.apply("add", b.apply("mul", centred, scale), shift)

    context.elementwise(node.outputs[0], operands, compute, "batchnorm")


def activation(node: ir.Node, context: Context) -> None:
    """Lowers an activation that a program spells out."""
    compute = ACTIVATIONS[node.op_type](node)
    context.elementwise(node.outputs[0], context.floats(node, 1), compute, node.op_type.lower())


def _inputs_of_types(node: ir.Node, context: Context, dtypes: tuple[str, ...]) -> list[ir.Value]:
    present = [value for value in node.inputs if value is not None]
    found = {context.dtype_of(value) for value in present}
    if not found <= set(dtypes):
        raise BuildRefusedError(
            f"{node.op_type} is taken on {' and '.join(dtypes)}, not on {' and '.join(sorted(found))}"
        )
    return present


def _integer_power(builder: ProgramBuilder, x: int, exponent: int) -> int:
    """Returns x**exponent by squaring."""
    if exponent == 0:
        return builder.const(1.0)
    result = x
    for bit in f"{exponent:b}"[1:]:
        result = builder.apply("mul", result, result)
        result = builder.apply("mul", result, x) if bit == "1" else result
    return result


def _is_not_zero(builder: ProgramBuilder, x: int) -> int:
    return builder.apply("not", builder.apply("equal", x, builder.const(0.0)))


def _leaky(builder: ProgramBuilder, x: int, slope: int) -> int:
    is_negative = builder.apply("less", x, builder.const(0.0))
    return builder.apply("where", is_negative, builder.apply("mul", x, slope), x)


def _leaky_relu(node: ir.Node) -> Compute:
    slope = float_attribute(node, "alpha", 0.01)
    return lambda b, x: _leaky(b, x, b.const(slope))


def _hard_sigmoid(builder: ProgramBuilder, x: int, alpha: float, beta: float) -> int:
    line = builder.apply("add", builder.apply("mul", x, builder.const(alpha)), builder.const(beta))
    return builder.apply("min", builder.apply("max", line, builder.const(0.0)), builder.const(1.0))


def _hard_sigmoid_of(node: ir.Node) -> Compute:
    alpha, beta = float_attribute(node, "alpha", 0.2), float_attribute(node, "beta", 0.5)
    return partial(_hard_sigmoid, alpha=alpha, beta=beta)


def _hard_swish_of(_node: ir.Node) -> Compute:
    return lambda b, x: b.apply("mul", x, _hard_sigmoid(b, x, 1.0 / 6.0, 0.5))


def _swish_of(node: ir.Node) -> Compute:
    alpha = float_attribute(node, "alpha", 1.0)
    return lambda b, x: b.apply("mul", x, b.apply("sigmoid", b.apply("mul", x, b.const(alpha))))


def _elu(builder: ProgramBuilder, x: int, alpha: float, scale: float, steepness: float) -> int:
    """Returns scale * (x if x > 0 else alpha * (exp(x * steepness) - 1))."""
    grown = builder.apply(
        "sub", builder.apply("exp", builder.apply("mul", x, builder.const(steepness))), builder.const(1.0)
    )
    below = builder.apply("mul", builder.const(alpha), grown)
    is_above = builder.apply("less", builder.const(0.0), x)
    return builder.apply("mul", builder.const(scale), builder.apply("where", is_above, x, below))


def _elu_of(node: ir.Node) -> Compute:
    return partial(_elu, alpha=float_attribute(node, "alpha", 1.0), scale=1.0, steepness=1.0)


def _selu_of(node: ir.Node) -> Compute:
    alpha = float_attribute(node, "alpha", 1.67326319217681884765625)
    return partial(_elu, alpha=alpha, scale=float_attribute(node, "gamma", 1.05070102214813232421875), steepness=1.0)


def _celu_of(node: ir.Node) -> Compute:
    alpha = float_attribute(node, "alpha", 1.0)
    return partial(_elu, alpha=alpha, scale=1.0, steepness=1.0 / alpha)


def _gelu_of(node: ir.Node) -> Compute:
    return _gelu_tanh if text_attribute(node, "approximate", "none") == "tanh" else _gelu_erf


def _gelu_erf(builder: ProgramBuilder, x: int) -> int:
    part = builder.apply("erf", builder.apply("mul", x, builder.const(math.sqrt(0.5))))
    return builder.apply(
        "mul", builder.apply("mul", x, builder.const(0.5)), builder.apply("add", part, builder.const(1.0))
    )


def _gelu_tanh(builder: ProgramBuilder, x: int) -> int:
    cube = builder.apply("mul", x, builder.apply("mul", x, x))
    bent = builder.apply("add", x, builder.apply("mul", cube, builder.const(0.044715)))
    part = builder.apply("tanh", builder.apply("mul", bent, builder.const(math.sqrt(2.0 / math.pi))))
    return builder.apply(
        "mul", builder.apply("mul", x, builder.const(0.5)), builder.apply("add", part, builder.const(1.0))
    )


def _mish_of(_node: ir.Node) -> Compute:
    return lambda b, x: b.apply("mul", x, b.apply("tanh", b.apply("softplus", x)))


def _softsign_of(_node: ir.Node) -> Compute:
    return lambda b, x: b.apply("div", x, b.apply("add", b.const(1.0), b.apply("abs", x)))


def _thresholded_relu_of(node: ir.Node) -> Compute:
    threshold = float_attribute(node, "alpha", 1.0)
    return lambda b, x: b.apply("where", b.apply("less", b.const(threshold), x), x, b.const(0.0))


ACTIVATIONS: dict[str, Callable[[ir.Node], Compute]] = {
    "Celu": _celu_of, "Elu": _elu_of, "Gelu": _gelu_of, "HardSigmoid": _hard_sigmoid_of, "HardSwish": _hard_swish_of,
    "LeakyRelu": _leaky_relu, "Mish": _mish_of, "Selu": _selu_of, "Softsign": _softsign_of, "Swish": _swish_of,
    "ThresholdedRelu": _thresholded_relu_of,
}  # fmt: skip
