# SPDX-License-Identifier: Apache-2.0
"""Operators that go element by element: activations, arithmetic, comparison, logic, bits.

Integers: division truncates toward zero, x / 0 = 0, x mod 0 = 0, results wrap. NaN is handed on by Max, Min, Clip and
Relu; comparisons with NaN are false.
"""

import math
from typing import Any

import numpy as np

from oracle.registry import Call, InvalidError, UnspecifiedError, is_float, operator

_erf = np.vectorize(math.erf, otypes=[np.float64])


def old_broadcast(call: Call, a: Any, b: Any) -> Any:
    """Returns b in the rank of a by the rules before opset 7: `broadcast` must be set, `axis` says where b begins."""
    if not call.broadcast:
        if a.shape != b.shape:
            raise InvalidError(f"shapes {a.shape} and {b.shape} differ without broadcast=1")
        return b
    if b.size == 1:
        return b.reshape(())
    axis = a.ndim - b.ndim if call.axis is None else call.axis
    if a.shape[axis : axis + b.ndim] != b.shape or axis < 0:
        raise InvalidError(f"{b.shape} is no part of {a.shape} at axis {axis}")
    return b.reshape(b.shape + (1,) * (a.ndim - axis - b.ndim))


def broadcasts(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape that shapes have in common by NumPy's rules."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as err:
        raise InvalidError(str(err)) from err


def binary(*names: str, new: int = 7) -> Any:
    """Declares a function of two tensors, with the old rules of broadcasting before version `new`."""

    def declare(function: Any) -> Any:
        def compute(call: Call, a: Any, b: Any) -> Any:
            if call.version < new:
                b = old_broadcast(call, a, b)
            broadcasts(a.shape, b.shape)
            return function(call, a, b)

        return operator(*names)(compute)

    return declare


@binary("Add", "Sub", "Mul")
def _arithmetic(call: Call, a: Any, b: Any) -> Any:
    return {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[call.op](a, b)


@binary("Div")
def _div(_: Call, a: Any, b: Any) -> Any:
    return a / b if is_float(a.dtype) else _by_pairs(_truncated_quotient, a, b)


def _truncated_quotient(a: int, b: int) -> int:
    if b == 0:
        return 0
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _by_pairs(function: Any, a: Any, b: Any) -> Any:
    """Returns a function of pairs of Python's integers for all elements; results wrap into the type of a."""
    bits = a.dtype.itemsize * 8
    shape = broadcasts(a.shape, b.shape)
    pairs = zip(np.broadcast_to(a, shape).ravel().tolist(), np.broadcast_to(b, shape).ravel().tolist(), strict=True)
    found = [function(x, y) % 2**bits for x, y in pairs]
    return np.array(found, np.dtype(f"u{a.dtype.itemsize}")).view(a.dtype).reshape(shape)


@operator("Mod")
def _mod(call: Call, a: Any, b: Any) -> Any:
    if not is_float(a.dtype):
        rule = (lambda x, y: x - _truncated_quotient(x, y) * y) if call.fmod else (lambda x, y: x % y)
        return _by_pairs(lambda x, y: 0 if y == 0 else rule(x, y), a, b)
    if not call.fmod and call.version < 28:
        raise InvalidError("Mod of floats needs fmod=1")
    return np.fmod(a, b) if call.fmod else np.mod(a, b)


@binary("Pow")
def _pow(call: Call, a: Any, b: Any) -> Any:
    if is_float(a.dtype):
        return np.power(a, b.astype(np.float64))
    info = np.iinfo(a.dtype)

    def power(x: int, y: float) -> int:
        if x == 0 and y < 0:
            raise UnspecifiedError("0 to a negative power is no integer")
        value = x**y if y >= 0 and y == int(y) else math.pow(x, y) if x >= 0 or y == int(y) else math.nan
        if math.isnan(value) or not info.min <= value <= info.max:
            raise UnspecifiedError("a power outside of the type")
        return int(value)

    if is_float(b.dtype) and not (np.isfinite(b).all() and (np.abs(a.astype(np.float64)) < 2.0**53).all()):
        raise UnspecifiedError("an integer beyond float64, or a power that is not finite")
    return _by_pairs(lambda x, y: power(x, int(y) if y == int(y) else y), a, b)


@binary("And", "Or", "Xor")
def _logic(call: Call, a: Any, b: Any) -> Any:
    return {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}[call.op](a, b)


@binary("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
def _compare(call: Call, a: Any, b: Any) -> Any:
    functions = {"Equal": np.equal, "Greater": np.greater, "Less": np.less}
    functions |= {"GreaterOrEqual": np.greater_equal, "LessOrEqual": np.less_equal}
    return functions[call.op](a, b).astype(bool)


@operator("Not")
def _not(_: Call, x: Any) -> Any:
    return np.logical_not(x)


@operator("BitwiseAnd", "BitwiseOr", "BitwiseXor")
def _bitwise(call: Call, a: Any, b: Any) -> Any:
    broadcasts(a.shape, b.shape)
    return {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor}[call.op](a, b)


@operator("BitwiseNot")
def _bitwise_not(_: Call, x: Any) -> Any:
    return np.invert(x)


@operator("BitShift")
def _bit_shift(call: Call, a: Any, b: Any) -> Any:
    bits = a.dtype.itemsize * 8

    def shifted(x: int, y: int) -> int:
        if call.direction == "LEFT":
            return x << y if 0 <= y < bits else 0
        return x >> (y if 0 <= y < bits else bits)  # Python's shift keeps the sign

    return _by_pairs(shifted, a, b)


@operator("Max", "Min")
def _extreme(call: Call, *xs: Any) -> Any:
    found = _same_or_broadcast(call, xs)
    choose = np.maximum if call.op == "Max" else np.minimum
    result = found[0]
    for x in found[1:]:
        result = choose(result, x)
    return result


@operator("Sum", "Mean")
def _sum(call: Call, *xs: Any) -> Any:
    found = _same_or_broadcast(call, xs)
    total = found[0]
    for x in found[1:]:
        total = total + x
    return total / len(xs) if call.op == "Mean" else total


def _same_or_broadcast(call: Call, xs: tuple[Any, ...]) -> list[Any]:
    """Before version 8 all inputs must have one shape."""
    if call.version < 8 and any(x.shape != xs[0].shape for x in xs):
        raise InvalidError("inputs of different shapes")
    shape = broadcasts(*(x.shape for x in xs))
    return [np.broadcast_to(x, shape) for x in xs]


@operator("Clip")
def _old_clip(call: Call, x: Any) -> Any:
    given = {a.name for a in call.node.attribute}
    return _clipped(x, *(np.float64(getattr(call, name)) if name in given else None for name in ("min", "max")))


@operator("Clip", since=11)
def _clip(_: Call, x: Any, low: Any = None, high: Any = None) -> Any:
    if any(bound is not None and bound.size != 1 for bound in (low, high)):
        raise InvalidError("a bound is a scalar")
    return _clipped(x, *(None if bound is None else bound.reshape(()) for bound in (low, high)))


def _clipped(x: Any, low: Any, high: Any) -> Any:
    """Absent bounds are the least and greatest number of the type: whether these are infinities is left open."""
    if (low is None and np.isneginf(x).any()) or (high is None and np.isposinf(x).any()):
        raise UnspecifiedError("an infinity without a bound")
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


@operator("Where")
def _where(_: Call, condition: Any, x: Any, y: Any) -> Any:
    broadcasts(condition.shape, x.shape, y.shape)
    return np.where(condition, x, y)


@operator("PRelu")
def _prelu(call: Call, x: Any, slope: Any) -> Any:
    if call.version < 7 and slope.size != 1:  # one slope for each channel
        slope = slope.reshape((-1,) + (1,) * (x.ndim - 2)) if slope.ndim == 1 and x.ndim > 1 else slope
    elif call.version < 7:
        slope = slope.reshape(())
    if broadcasts(x.shape, slope.shape) != x.shape:
        raise InvalidError("the slope is larger than the input")
    return np.where(x < 0, slope * x, x)


def unary(name: str, function: Any) -> None:
    """Declares an operator without attributes that matter by a function of one tensor."""
    operator(name)(lambda _, x: function(x))


for _name, _function in {
    "Abs": np.abs, "Neg": np.negative, "Exp": np.exp, "Log": np.log, "Sqrt": np.sqrt, "Reciprocal": lambda x: 1 / x,
    "Floor": np.floor, "Ceil": np.ceil, "Round": np.rint, "Sign": np.sign, "Erf": _erf,
    "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan,
    "Sinh": np.sinh, "Cosh": np.cosh, "Tanh": np.tanh, "Asinh": np.arcsinh, "Acosh": np.arccosh, "Atanh": np.arctanh,
    "Relu": lambda x: np.maximum(x, 0), "Sigmoid": lambda x: sigmoid(x), "Softplus": lambda x: np.logaddexp(0, x),
    "Softsign": lambda x: x / (1 + np.abs(x)), "Mish": lambda x: x * np.tanh(np.logaddexp(0, x)), "IsNaN": np.isnan,
    "HardSwish": lambda x: x * np.maximum(0, np.minimum(1, x / 6 + 0.5)),
}.items():  # fmt: skip
    unary(_name, _function)


def sigmoid(x: Any) -> Any:
    """Returns 1 / (1 + e^-x), which overflows nowhere."""
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


@operator("IsInf")
def _is_inf(call: Call, x: Any) -> Any:
    return (np.isposinf(x) & bool(call.detect_positive)) | (np.isneginf(x) & bool(call.detect_negative))


@operator("Elu")
def _elu(call: Call, x: Any) -> Any:
    return np.where(x < 0, call.alpha * np.expm1(x), x)


@operator("Celu")
def _celu(call: Call, x: Any) -> Any:
    return np.maximum(0, x) + np.minimum(0, call.alpha * np.expm1(x / call.alpha))


@operator("Selu")
def _selu(call: Call, x: Any) -> Any:
    return call.gamma * np.where(x <= 0, call.alpha * np.expm1(x), x)


@operator("LeakyRelu")
def _leaky_relu(call: Call, x: Any) -> Any:
    return np.where(x < 0, call.alpha * x, x)


@operator("ThresholdedRelu")
def _thresholded_relu(call: Call, x: Any) -> Any:
    return np.where(x > call.alpha, x, 0)


@operator("HardSigmoid")
def _hard_sigmoid(call: Call, x: Any) -> Any:
    return np.maximum(0, np.minimum(1, call.alpha * x + call.beta))


@operator("Shrink")
def _shrink(call: Call, x: Any) -> Any:
    """The operator's function casts both attributes to the type of the input."""
    bias, lambd = (np.float64(v) if is_float(x.dtype) else x.dtype.type(int(v)) for v in (call.bias, call.lambd))
    return np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))


@operator("Gelu")
def _gelu(call: Call, x: Any) -> Any:
    if call.approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + _erf(x / np.sqrt(2)))


@operator("Swish")
def _swish(call: Call, x: Any) -> Any:
    return x * sigmoid(call.alpha * x)


@operator("SwiGLU")
def _swiglu(call: Call, a: Any, b: Any) -> Any:
    if a.shape != b.shape:
        raise InvalidError("gate and value have different shapes")
    return a * sigmoid(call.alpha * a) * b
