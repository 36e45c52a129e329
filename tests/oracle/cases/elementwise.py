# SPDX-License-Identifier: Apache-2.0
"""Cases of operators that go element by element."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from oracle.cases.case import Case, Fixed, edges, floats, integers, one, pairs

F32, F64, F16, BF16 = np.float32, np.float64, np.float16, ml_dtypes.bfloat16
ODD = ("Sin", "Tan", "Asin", "Atan", "Sinh", "Tanh", "Asinh", "Atanh", "Erf", "Sqrt", "Floor", "Ceil", "Round", "Neg")
EVEN = ("Abs", "Exp", "Log", "Reciprocal", "Cos", "Acos", "Cosh", "Acosh", "Sign", "Relu", "Sigmoid", "Softplus")
MORE = ("Softsign", "Mish", "HardSwish", "IsNaN", "IsInf", "Elu", "Celu", "Selu", "LeakyRelu", "ThresholdedRelu")
LAST = ("HardSigmoid", "Shrink", "Gelu", "Swish")
NEWEST = {"Gelu": 20, "Swish": 24}


def cases() -> Iterator[Case]:
    yield from _unary()
    yield from _with_attributes()
    yield from _arithmetic()
    yield from _integer_edges()
    yield from _old_broadcasting()
    yield from _comparisons()
    yield from _variadic()
    yield from _clips()


def _unary() -> Iterator[Case]:
    for name in (*ODD, *EVEN, *MORE, *LAST):
        for dtype in (F32, F64, F16):
            if name == "HardSwish" and dtype is F64:
                continue  # a sixth is a float32 in its function
            x = edges(dtype, largest=name not in ("Softplus", "Gelu"))
            note = f"{np.dtype(dtype).name} edges"
            yield one(name, NEWEST.get(name, 22), x, note=note, signed_zeros=name in ODD)
    for name in ("Relu", "Exp", "Tanh", "Sigmoid", "Sqrt"):
        yield one(name, 22, floats(2, 3, dtype=BF16))
        yield one(name, 13, floats(), note="scalar")
        yield one(name, 22, floats(0, 3))
        yield one(name, 6, floats(2, 3))
        yield one(name, 1, floats(2, 3))
    for name in ("Abs", "Neg", "Sign"):
        for dtype in (np.int8, np.int32, np.int64):
            yield one(name, 13, edges(dtype), note=f"{np.dtype(dtype).name} edges")
    yield one("Abs", 13, edges(np.uint8))
    yield one("Relu", 14, edges(np.int32))
    yield one("Not", 1, np.array([[True, False]]))
    yield one("BitwiseNot", 18, edges(np.int32))
    yield one("BitwiseNot", 18, edges(np.uint8))


def _with_attributes() -> Iterator[Case]:
    x = floats(3, 5)
    for name, opset, attributes in (
        ("Elu", 6, {"alpha": 0.5}), ("Elu", 1, {"alpha": 2.0}), ("Celu", 12, {"alpha": 0.5}),
        ("Celu", 28, {"alpha": 1.5}), ("Selu", 6, {"alpha": 1.5, "gamma": 2.0}), ("LeakyRelu", 6, {"alpha": 0.3}),
        ("LeakyRelu", 16, {"alpha": -0.3}), ("ThresholdedRelu", 10, {"alpha": 0.5}), ("HardSigmoid", 6, {"alpha": 0.5}),
        ("HardSigmoid", 1, {"alpha": -0.5, "beta": 0.25}), ("Shrink", 9, {"lambd": 1.0, "bias": 0.5}),
        ("Gelu", 20, {"approximate": "tanh"}), ("Swish", 24, {"alpha": 1.7}), ("Softplus", 1, {}),
        ("HardSwish", 14, {}), ("IsInf", 10, {"detect_negative": 0}), ("IsInf", 20, {"detect_positive": 0}),
    ):  # fmt: skip
        yield one(name, opset, np.append(edges(F32), x) if name == "IsInf" else x, **attributes)
    for dtype in (np.int32, np.uint8, np.int64):
        yield one("Shrink", 9, integers(4, 4, dtype=dtype, low=0), lambd=1.5, bias=1.5)
    yield one("SwiGLU", 28, floats(2, 4), floats(2, 4), alpha=0.5)
    yield one("PRelu", 16, floats(2, 3, 4), floats(3, 1))
    yield one("PRelu", 9, integers(2, 3, dtype=np.int32), integers(3, dtype=np.int32))
    yield one("PRelu", 7, floats(2, 3), floats(1))
    yield one("PRelu", 16, edges(F32), np.full(12, -0.5, F32), note="edges")
    yield one("Selu", 1, floats(3, 5, dtype=F64))
    yield one("PRelu", 16, np.array([-1, 0, 1], F32), np.full(3, np.nan, F32), note="slope NaN")


def _arithmetic() -> Iterator[Case]:
    for name in ("Add", "Sub", "Mul", "Div", "Pow"):
        for opset in (7, 13, 14 if name != "Pow" else 15):
            yield one(name, opset, floats(2, 1, 4), floats(3, 1), note="broadcast")
        for dtype in (F64, F16, BF16):
            yield one(name, 14, floats(2, 3, dtype=dtype), floats(3, dtype=dtype))
        yield one(name, 14, floats(0, 3), floats(1, 3))
        a, b = pairs(edges(F32))
        yield one(name, 14, a, b, note="float32 edges")
    for dtype in (np.int32, np.int64):
        yield one("Pow", 15, integers(3, 4, dtype=dtype), integers(4, dtype=np.int32, low=0, high=4))
        yield one("Pow", 15, integers(5, dtype=dtype, low=0), np.array([0.5, 2, 1, 0, 1.5], F32))
    yield one("Pow", 12, floats(4), np.array([2, -1, 0, 3], np.int64))
    for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield one(name, 18, integers(2, 3, dtype=np.int32), integers(3, dtype=np.int32))
        yield one(name, 18, *pairs(edges(np.uint8)), note="uint8 edges")
    for direction in ("LEFT", "RIGHT"):
        for dtype in (np.uint8, np.uint16, np.uint32, np.uint64):
            width = np.dtype(dtype).itemsize * 8
            amounts = np.array([0, 1, width - 1, width, width + 1], dtype)
            yield one("BitShift", 11, np.full(5, 129, dtype), amounts, direction=direction)
        amounts = np.array([0, 1, 31, 32, -1], np.int32)
        yield one("BitShift", 28, np.full(5, -129, np.int32), amounts, direction=direction)
    yield one("Where", 9, np.array([[True], [False]]), floats(1, 3), floats(2, 1))
    yield one("Where", 16, np.array([True, False]), np.array(["a", "b"], object), np.array(["c", "d"], object))
    yield one(
        "Where", 16, np.array([True, False, True]), np.array([np.nan, 1, -0.0], F32), np.zeros(3, F32),
        signed_zeros=True,
    )  # fmt: skip


def _integer_edges() -> Iterator[Case]:
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint32, np.uint64):
        for name in ("Add", "Sub", "Mul", "Div"):
            yield one(name, 14, *pairs(edges(dtype)), note=f"{np.dtype(dtype).name} edges")
        for fmod in (0, 1):
            note = f"{np.dtype(dtype).name} edges fmod={fmod}"
            yield one("Mod", 13, *pairs(edges(dtype)), fmod=fmod, note=note)
    a, b = pairs(np.array([7, -7, 2.5, -2.5, 0.0, np.inf, -np.inf, np.nan], F32))
    yield one("Mod", 13, a, b, fmod=1, note="float32 fmod=1")
    yield one("Mod", 10, a, b, fmod=1, note="float32 fmod=1")
    yield one("Mod", 28, a, b, fmod=0, note="float32 fmod=0")


def _old_broadcasting() -> Iterator[Case]:
    x = floats(2, 3, 4)
    for name in ("Add", "Sub", "Mul", "Div", "Pow"):
        other = floats(3, low=1, high=24)
        yield one(name, 1 if name == "Pow" else 6, np.abs(x), other, broadcast=1, axis=1)
        yield one(name, 1, np.abs(x), floats(3, 4, low=1), broadcast=1)
        yield one(name, 1, np.abs(x), floats(1, 1, low=1), broadcast=1)
        yield one(name, 6, np.abs(x), floats(2, 3, 4, low=1), note="same shapes")
        yield one(name, 6, np.abs(x), floats(2, low=1), broadcast=1, axis=0)
    flags, row = integers(2, 3, low=0, high=2).astype(bool), np.array([True, False])
    for name in ("And", "Or", "Xor"):
        yield one(name, 1, flags, row, broadcast=1, axis=0)
        yield one(name, 7, flags, np.array([True, False, True]))
    for name, dtype in (("Greater", F32), ("Less", F32), ("Equal", np.int32)):
        yield one(name, 1, integers(2, 3, dtype=dtype), integers(2, dtype=dtype), broadcast=1, axis=0)
    yield one("PRelu", 6, x, floats(3), note="a slope for each channel")
    yield one("PRelu", 1, x, floats(3), note="a slope for each channel")
    yield one("PRelu", 6, x, floats(1), note="one slope")


def _comparisons() -> Iterator[Case]:
    for name in ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"):
        for dtype in (F32, F16, np.int64, np.uint8):
            opset = 16 if "Or" in name else 13
            yield one(name, opset, *pairs(edges(dtype)), note=f"{np.dtype(dtype).name} edges")
        yield one(name, 12 if "Or" in name else 9, floats(2, 1, 4), floats(3, 1))
    yield one("Equal", 19, np.array(["a", "b"], object), np.array(["a", "c"], object))
    yield one("Equal", 13, np.array([True, False]), np.array([True, True]))


def _variadic() -> Iterator[Case]:
    for name in ("Max", "Min", "Sum", "Mean"):
        yield one(name, 13, *pairs(edges(F32, largest=name != "Mean")), note="float32 edges")
        yield one(name, 13, floats(2, 1, 4), floats(3, 1), floats(4))
        yield one(name, 13, floats(2, 3))
        yield one(name, 8, floats(2, 3), floats(1))
        yield one(name, 6, floats(2, 3), floats(2, 3))
        yield one(name, 1, floats(2, 3), floats(2, 3), floats(2, 3))
        yield one(name, 13, floats(2, 3, dtype=F16), floats(2, 3, dtype=F16))
    for name in ("Max", "Min"):
        for dtype in (np.int8, np.uint8, np.int32, np.int64, np.uint64):
            yield one(name, 13, *pairs(edges(dtype)), note=f"{np.dtype(dtype).name} edges")
        yield one(name, 12, *pairs(edges(F64)), note="float64 edges")


def _clips() -> Iterator[Case]:
    x, finite = edges(F32), np.array([np.nan, -0.0, 1.5, 3e38, -3e38], F32)
    low, high = np.array(-1, F32), np.array(2, F32)
    yield one("Clip", 1, floats(3, 4), max=1.5)
    yield one("Clip", 6, floats(3, 4), min=-0.5, max=1.5)
    yield one("Clip", 6, finite, note="no bounds")
    yield one("Clip", 6, x, min=-2.0, max=1.0, note="edges")
    for opset in (11, 13):
        yield one("Clip", opset, x, Fixed(low), Fixed(high))
        yield one("Clip", opset, x, low, high)
        yield one("Clip", opset, finite, None, Fixed(high))
        yield one("Clip", opset, finite, Fixed(low))
    yield one("Clip", 13, x, Fixed(high), Fixed(low), note="min > max")
    yield one("Clip", 13, floats(3), Fixed(np.array(np.nan, F32)), Fixed(high), note="min NaN")
    for dtype in (np.int8, np.uint8, np.int32, np.int64):
        yield one("Clip", 13, edges(dtype), np.array(1, dtype), np.array(2, dtype))
        yield one("Clip", 13, edges(dtype), None, Fixed(np.array(2, dtype)))
