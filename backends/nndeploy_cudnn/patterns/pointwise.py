# SPDX-License-Identifier: Apache-2.0
"""Element by element: operators that cuDNN has, and those that a few of its own make.

    Clip(x, lo, hi)   relu, or max, then min         Softplus    max(x, 0) + log(1 + exp(-|x|)), which cannot overflow
    HardSigmoid       min(relu(a * x + b), 1)        HardSwish   x * HardSigmoid(x; 1/6, 1/2)
    PRelu             relu(x) + slope * min(x, 0)    Mish        x * tanh(Softplus(x))
    Selu, Celu, Elu   cuDNN's elu, scaled            Pow         products and roots where the exponent is known

Constants are float32, as cuDNN computes; values in between are not rounded to halves as long as they stay in one
graph. Source: ONNX operators of the same names, opset 22.
"""

from collections.abc import Callable, Sequence
from functools import partial

import onnx_ir as ir

from nndeploy_cudnn.operations import Pointwise, Reshaped, Value
from nndeploy_cudnn.patterns.translation import NotTakenError, Translation, attribute, numbers_of, only_output, opset_of
from nndeploy_cudnn.views import broadcast_dims

Pattern = Callable[[ir.Node, Translation], None]

SAME_FUNCTION = {
    "Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Abs": "abs",
    "Neg": "neg", "Ceil": "ceil", "Floor": "floor", "Erf": "erf", "Sin": "sin", "Cos": "cos", "Tan": "tan",
    "Reciprocal": "reciprocal",
}  # fmt: skip
SAME_OF_TWO = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div"}
SAME_OF_MANY = {"Sum": "add", "Max": "max", "Min": "min", "Mean": "add"}
SELU_ALPHA, SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875  # Source: ONNX Selu, opset 22
FLOAT32_LOWEST, FLOAT32_LARGEST = -3.4028234663852886e38, 3.4028234663852886e38


class Writer:
    """Writes a formula: each call appends an operation and returns its value; the last is renamed to the output."""

    def __init__(self, translation: Translation, dtype: str) -> None:
        self._translation = translation
        self._dtype = dtype
        self._written: list[Pointwise] = []

    def __call__(self, mode: str, *inputs: "Value | float", **attributes: float) -> Value:
        """Returns mode(inputs); numbers become scalars."""
        values = tuple(self._translation.scalar(x) if isinstance(x, float) else x for x in inputs)
        y = self._translation.made(broadcast_dims(*(value.dims for value in values)), self._dtype)
        self._written.append(Pointwise(mode, values, y, attributes))
        return y

    def finish(self, made: Value, y: Value) -> None:
        """Makes `made` the value `y` and appends all that was written."""
        for operation in self._written:
            self._translation.add(operation)
        last = self._written[-1] if self._written else None
        if last is not None and last.y is made and made.dims == y.dims:
            self._translation.operations[-1] = Pointwise(last.mode, last.inputs, y, last.attributes)
        else:
            self._translation.add(Reshaped(made, y))


Formula = Callable[[Writer, ir.Node, Value], Value]


def same(mode: str, node: ir.Node, translation: Translation) -> None:
    """Writes an operator of one input that cuDNN has."""
    translation.add(Pointwise(mode, (translation.value(node.inputs[0]),), translation.value(node.outputs[0])))


def same_of_two(mode: str, node: ir.Node, translation: Translation) -> None:
    """Writes an operator of two inputs that cuDNN has."""
    inputs = (translation.value(node.inputs[0]), translation.value(node.inputs[1]))
    translation.add(Pointwise(mode, inputs, translation.value(node.outputs[0])))


def same_of_many(mode: str, node: ir.Node, translation: Translation) -> None:
    """Writes Sum, Max, Min and Mean: one input after the other."""
    y, write = translation.value(node.outputs[0]), Writer(translation, translation.value(node.outputs[0]).dtype)
    made = translation.value(node.inputs[0])
    for other in node.inputs[1:]:
        made = write(mode, made, translation.value(other))
    if node.op_type == "Mean":
        made = write("mul", made, 1.0 / len(node.inputs))
    write.finish(made, y)


def formula(of: Formula, node: ir.Node, translation: Translation) -> None:
    """Writes an operator of one input as a formula of several."""
    y = translation.value(node.outputs[0])
    write = Writer(translation, y.dtype)
    write.finish(of(write, node, translation.value(node.inputs[0])), y)


def leaky_relu(write: Writer, node: ir.Node, x: Value) -> Value:
    """Writes x where it is positive, else slope * x."""
    return write("relu", x, lower_slope=attribute(node, "alpha", 0.01))


def elu(write: Writer, node: ir.Node, x: Value) -> Value:
    """Writes x where it is positive, else alpha * (exp(x) - 1)."""
    return write("elu", x, elu_alpha=attribute(node, "alpha", 1.0))


def celu(write: Writer, node: ir.Node, x: Value) -> Value:
    """Writes max(0, x) + min(0, alpha * (exp(x / alpha) - 1)) = alpha * elu(x / alpha)."""
    alpha = attribute(node, "alpha", 1.0)
    return write("mul", write("elu", write("mul", x, 1.0 / alpha), elu_alpha=1.0), float(alpha))


def selu(write: Writer, node: ir.Node, x: Value) -> Value:
    """Writes gamma * elu(x; alpha)."""
    made = write("elu", x, elu_alpha=attribute(node, "alpha", SELU_ALPHA))
    return write("mul", made, float(attribute(node, "gamma", SELU_GAMMA)))


def hard_sigmoid(write: Writer, node: ir.Node, x: Value) -> Value:
    """Writes max(0, min(1, alpha * x + beta))."""
    return _hard_sigmoid(write, x, attribute(node, "alpha", 0.2), attribute(node, "beta", 0.5))


def hard_swish(write: Writer, _node: ir.Node, x: Value) -> Value:
    """Writes x * HardSigmoid(x; 1/6, 1/2)."""
    return write("mul", x, _hard_sigmoid(write, x, 1.0 / 6.0, 0.5))


def softplus(write: Writer, _node: ir.Node, x: Value) -> Value:
    """Writes log(1 + exp(x)), in a form that does not overflow."""
    small = write("log", write("add", write("exp", write("neg", write("abs", x))), 1.0))
    return write("add", write("relu", x), small)


def mish(write: Writer, node: ir.Node, x: Value) -> Value:
    """Writes x * tanh(Softplus(x))."""
    return write("mul", x, write("tanh", softplus(write, node, x)))


def softsign(write: Writer, _node: ir.Node, x: Value) -> Value:
    """Writes x / (1 + |x|)."""
    return write("div", x, write("add", write("abs", x), 1.0))


def gelu(write: Writer, node: ir.Node, x: Value) -> Value:
    """Writes x * (1 + erf(x / sqrt(2))) / 2, or its approximation by tanh."""
    approximate = attribute(node, "approximate", "none")
    if approximate not in ("none", "tanh"):
        raise NotTakenError("Gelu with an approximation that ONNX does not know")
    return write("gelu_tanh" if approximate == "tanh" else "gelu", x)


def swish(write: Writer, node: ir.Node, x: Value) -> Value:
    """Writes x * sigmoid(alpha * x)."""
    alpha = attribute(node, "alpha", 1.0)
    return write("mul", x, write("sigmoid", x if alpha == 1.0 else write("mul", x, float(alpha))))


def clip(write: Writer, node: ir.Node, x: Value) -> Value:
    """Writes min(max(x, lo), hi); a bound that no float32 passes is left out."""
    low, high = _bounds(node)
    made = write("relu", x) if low == 0.0 else x if low <= FLOAT32_LOWEST else write("max", x, low)
    return made if high >= FLOAT32_LARGEST else write("min", made, high)


def power(node: ir.Node, translation: Translation) -> None:
    """Writes a Pow."""
    x, exponent = translation.value(node.inputs[0]), translation.value(node.inputs[1])
    y = translation.value(node.outputs[0])
    write = Writer(translation, y.dtype)
    known = exponent.constant
    is_one = known is not None and known.size == 1 and len(exponent.dims) <= len(x.dims)
    write.finish(_power(write, x, exponent, float(known.item()) if known is not None and is_one else None), y)


def prelu(node: ir.Node, translation: Translation) -> None:
    """Writes a PRelu; the slope broadcasts as ONNX says."""
    x, slope = translation.value(node.inputs[0]), translation.value(node.inputs[1])
    y = translation.value(node.outputs[0])
    write = Writer(translation, y.dtype)
    write.finish(write("add", write("relu", x), write("mul", slope, write("min", x, 0.0))), y)


def cast(node: ir.Node, translation: Translation) -> None:
    """Writes a Cast between the types that cuDNN computes with."""
    x, y = translation.value(node.inputs[0]), translation.value(node.outputs[0])
    translation.add(Reshaped(x, y) if x.dtype == y.dtype else Pointwise("identity", (x,), y))


def identity(node: ir.Node, translation: Translation) -> None:
    """Writes an Identity, or a Dropout, which does nothing here."""
    translation.add(Reshaped(translation.value(node.inputs[0]), translation.value(only_output(node))))


def dropout(node: ir.Node, translation: Translation) -> None:
    """Writes a Dropout that is not in training mode."""
    if len(node.inputs) > 2 and node.inputs[2] is not None and any(numbers_of(node, 2)):
        raise NotTakenError("Dropout in training mode")
    identity(node, translation)


def _hard_sigmoid(write: Writer, x: Value, alpha: float, beta: float) -> Value:
    line = write("add", write("mul", x, float(alpha)), float(beta))
    return write("min", write("relu", line), 1.0)


def _power(write: Writer, x: Value, exponent: Value, known: float | None) -> Value:
    match known:
        case 1.0:
            return write("identity", x)
        case 2.0:
            return write("mul", x, x)
        case 3.0:
            return write("mul", write("mul", x, x), x)
        case 0.5:
            return write("sqrt", x)
        case -0.5:
            return write("rsqrt", x)
        case -1.0:
            return write("reciprocal", x)
    return write("pow", x, exponent)


def _bounds(node: ir.Node) -> tuple[float, float]:
    if opset_of(node) < 11:
        low, high = attribute(node, "min", FLOAT32_LOWEST), attribute(node, "max", FLOAT32_LARGEST)
        return float(low), float(high)
    lows: Sequence[float] = numbers_of(node, 1, default=(FLOAT32_LOWEST,))
    highs: Sequence[float] = numbers_of(node, 2, default=(FLOAT32_LARGEST,))
    if len(lows) != 1 or len(highs) != 1:
        raise NotTakenError("a bound of Clip is not one number")
    return float(lows[0]), float(highs[0])


_FORMULAS: dict[str, Formula] = {
    "LeakyRelu": leaky_relu, "Elu": elu, "Celu": celu, "Selu": selu, "HardSigmoid": hard_sigmoid,
    "HardSwish": hard_swish, "Softplus": softplus, "Mish": mish, "Softsign": softsign, "Gelu": gelu, "Swish": swish,
    "Clip": clip,
}  # fmt: skip

PATTERNS: dict[str, Pattern] = {
    **{name: partial(same, mode) for name, mode in SAME_FUNCTION.items()},
    **{name: partial(same_of_two, mode) for name, mode in SAME_OF_TWO.items()},
    **{name: partial(same_of_many, mode) for name, mode in SAME_OF_MANY.items()},
    **{name: partial(formula, of) for name, of in _FORMULAS.items()},
    "Pow": power,
    "PRelu": prelu,
    "Cast": cast,
    "Identity": identity,
    "Dropout": dropout,
}
