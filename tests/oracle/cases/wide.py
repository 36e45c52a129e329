# SPDX-License-Identifier: Apache-2.0
"""Cases of odd and large sizes: rows shorter and longer than vectors, tiles and blocks, and enough for two threads.

They are no part of `all_cases`: each has a size that the page of operators does not speak of.
"""

from collections.abc import Iterator
from itertools import cycle, product
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx.parser import parse_model

from oracle.cases.case import IR_VERSION, Case, Fixed, one

F32, F16, U8, I8, I32, I64 = np.float32, np.float16, np.uint8, np.int8, np.int32, np.int64
_RANDOM = np.random.default_rng(1117)
SIZES = ((1,), (15,), (16,), (17,), (3, 11), (65,), (2, 65), (7, 1, 19), (1000,), (5, 3, 70))
SUMS = ("ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare")
PLANES = ((2, 37), (37, 2), (3, 19, 70), (19, 3, 33), (5, 130, 3), (1, 1000), (300, 1), (40, 16))
LARGE = 300_000
"""Elements that threads share even where a step must be worth it."""


def cases() -> Iterator[Case]:
    for family in (
        _elementwise, _pairs, _casts, _along_axes, _normalised, _pooled, _convolved, _transposed, _fused, _of_bytes,
        _multiplied, _attended, _recurrent, _moved, _picked, _resized, _trees,
    ):  # fmt: skip
        yield from family()


def floats(*shape: int, dtype: Any = F32, low: int = -24, high: int = 24) -> Any:
    """Returns eighths, so that sums are exact."""
    return np.asarray(_RANDOM.integers(low, high + 1, shape) / 8).astype(dtype)


def whole(*shape: int, dtype: Any = I64, low: int = -5, high: int = 6) -> Any:
    return _RANDOM.integers(low, high, shape).astype(dtype)


def bytes_(*shape: int, dtype: Any) -> Any:
    """Returns numbers of which many are the least and the greatest."""
    limits = np.iinfo(dtype)
    ends = _RANDOM.choice([limits.min, limits.max], shape)
    return np.where(_RANDOM.random(shape) < 0.2, ends, _RANDOM.integers(limits.min, limits.max + 1, shape)).astype(
        dtype
    )


def of_type(dtype: Any, *shape: int) -> Any:
    if np.dtype(dtype).kind == "f":
        return floats(*shape, dtype=dtype)
    return whole(*shape, dtype=dtype, low=0, high=2 if dtype is np.bool_ else 9)


def held(*shape: int) -> Fixed:
    return Fixed(floats(*shape))


def ints(*values: int) -> Fixed:
    return Fixed(np.array(values, I64))


def net(name: str, body: str, x: Any, opset: int = 21, steps: float = 1.0, **constants: Any) -> Case:
    """Returns a case of several nodes from x to y."""
    kinds = {"float32": "float", "uint8": "uint8", "int8": "int8"}
    shape = ",".join(map(str, x.shape))
    header = f'<ir_version: {IR_VERSION}, opset_import: ["" : {opset}]>'
    model = parse_model(f"{header} g ({kinds[x.dtype.name]}[{shape}] x) => (y) {{{body}}}")
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(held_), key) for key, held_ in constants.items())
    return Case(f"{name} {x.dtype.name}[{shape}]", name.split()[0], model, {"x": x}, steps=steps)


UNARY = (
    "Sin", "Tan", "Asin", "Atan", "Sinh", "Tanh", "Asinh", "Atanh", "Erf", "Sqrt", "Floor", "Ceil", "Round", "Neg",
    "Abs", "Exp", "Log", "Reciprocal", "Cos", "Acos", "Cosh", "Acosh", "Sign", "Relu", "Sigmoid", "Softplus",
    "Softsign", "Mish", "HardSwish", "IsNaN", "IsInf", "Elu", "Celu", "Selu", "LeakyRelu", "ThresholdedRelu",
    "HardSigmoid", "Shrink", "Gelu",
)  # fmt: skip


def _elementwise() -> Iterator[Case]:
    sizes = cycle(SIZES)
    for name in UNARY:
        for _ in range(3):
            yield one(name, 22, floats(*next(sizes)))
    for name in ("Tanh", "Exp", "Neg", "Relu"):
        yield one(name, 22, floats(3, 67, dtype=F16))
        yield one(name, 22, floats(LARGE))
    for name, dtype in product(("Abs", "Neg", "Sign", "BitwiseNot"), (I8, I32, I64)):
        yield one(name, 18, whole(*next(sizes), dtype=dtype))
    for shape in ((67,), (3, 130)):
        yield one("Not", 1, of_type(np.bool_, *shape))
        yield one("Clip", 13, floats(*shape), Fixed(F32(-1)), Fixed(F32(1.5)))
        yield one("Clip", 13, whole(*shape, dtype=I32), np.array(-2, I32), np.array(3, I32))
        yield one("Sum", 13, floats(*shape), floats(shape[-1]), floats(1))


OPERANDS = (
    ((3, 37), (37,)), ((3, 37), (3, 1)), ((2, 5, 19), (5, 1)), ((1, 33), (4, 33)), ((17, 1), (1, 33)),
    ((2, 1, 3, 130), (4, 1, 1)), ((65,), ()), ((1000,), (1000,)), ((2, 3, 4, 5), (3, 1, 5)), ((1, 1), (15, 16)),
)  # fmt: skip


def _pairs() -> Iterator[Case]:
    shapes = cycle(OPERANDS)
    for name in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Equal", "Less", "GreaterOrEqual"):
        for dtype in (F32, F32, I32, I64, F16, *((U8, I8) if name not in ("Equal", "Less") else ())):
            a, b = next(shapes)
            x, y = of_type(dtype, *a), of_type(dtype, *b)
            yield one(name, 18, x, np.where(y == 0, np.asarray(2, dtype), y).astype(dtype))
    for name, dtype in (("Mod", I32), ("Mod", I64), ("Mod", I8), ("Pow", F32), ("Pow", F32), ("PRelu", F32)):
        a, b = ((3, 5, 37), (5, 1)) if name == "PRelu" else next(shapes)
        y = of_type(dtype, *b)
        yield one(name, 16, of_type(dtype, *a), np.where(y == 0, np.asarray(3, dtype), y).astype(dtype))
    yield one("Mod", 13, floats(3, 37), np.abs(floats(37)) + F32(0.5), fmod=1)
    for name in ("And", "Or", "Xor"):
        yield one(name, 7, *(of_type(np.bool_, *shape) for shape in next(shapes)))
    for name, dtype in product(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), (I32, U8)):
        yield one(name, 18, *(whole(*shape, dtype=dtype, low=0, high=99) for shape in next(shapes)))
    for direction in ("LEFT", "RIGHT"):
        yield one("BitShift", 11, *(of_type(U8, *shape) for shape in next(shapes)), direction=direction)
    for dtype in (F32, I32, I64, U8, np.bool_, F16):
        a, b = next(shapes)
        yield one("Where", 16, of_type(np.bool_, *a), of_type(dtype, *b), of_type(dtype, *a))
    yield one("Add", 14, floats(LARGE // 1000, 1000), floats(1000))
    ends = "a = Mul(x, c) b = Add(a, d) e = Sigmoid(b) f = Less(x, c) h = Where(f, e, x) y = Sub(h, d)"
    yield net("Where chain", ends, floats(3, 5, 37), c=floats(37), d=floats(5, 1))


def _casts() -> Iterator[Case]:
    kinds = (F32, F16, I8, I32, I64, U8, np.bool_)
    for number, (source, target) in enumerate(product(kinds, kinds)):
        shape = ((67,), (3, 130), (15,))[number % 3]
        x = np.abs(of_type(source, *shape)).astype(source)
        to = TensorProto.DataType.Value(
            {"float32": "FLOAT", "bool": "BOOL"}.get(np.dtype(target).name, np.dtype(target).name.upper())
        )
        yield one("Cast", 13, x, to=to, note=f"{np.dtype(source).name} to {np.dtype(target).name} {shape}")


def _along_axes() -> Iterator[Case]:
    for shape in PLANES:
        rank = len(shape)
        for name in (*SUMS, "ReduceLogSumExp"):
            x = floats(*shape, low=4, high=9) if name == "ReduceProd" else floats(*shape)
            axis = _RANDOM.integers(rank)
            yield one(
                name, 18 if name != "ReduceSum" else 13, x, ints(axis), keepdims=int(axis % 2), note=f"{shape} {axis}"
            )
        yield one("ReduceSum", 13, whole(*shape, dtype=(I32, I64)[rank % 2]), ints(rank - 1))
        yield one("ReduceMax", 20, whole(*shape, dtype=(I32, I64)[rank % 2]), ints(0))
        for axis in range(rank):
            for name in ("Softmax", "LogSoftmax", "Hardmax"):
                yield one(name, 13, floats(*shape), axis=axis)
            for name, dtype in product(("ArgMax", "ArgMin"), (F32, I32)):
                last = int(_RANDOM.integers(2))
                yield one(name, 13, of_type(dtype, *shape), axis=axis, select_last_index=last, keepdims=last)
            k, which = min(shape[axis], 5), int(_RANDOM.integers(2))
            yield one("TopK", 11, floats(*shape), ints(k), axis=axis, largest=which, outputs=2)
            yield one(
                "CumSum", 14, floats(*shape), Fixed(np.array(axis)), exclusive=which, reverse=int(_RANDOM.integers(2))
            )
        yield one("CumSum", 14, whole(*shape), Fixed(np.array(0)))
    for axes in ([0, 1], [0, 2], [1, 2], [0, 1, 2]):
        for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2"):
            yield one(name, 13 if name == "ReduceSum" else 18, floats(3, 17, 21), ints(*axes), keepdims=0)
    for axis in (0, 1):
        yield one("ReduceMean", 18, floats(600, 500), ints(axis), note=f"large {axis}")
        yield one("Softmax", 13, floats(600, 500), axis=axis)
        yield one("TopK", 11, floats(40, 70), ints(33), axis=axis, outputs=2)
    nan = floats(5, 37)
    nan[_RANDOM.random(nan.shape) < 0.05] = np.nan
    for name in ("ReduceMax", "ReduceMin", "ArgMax", "ArgMin"):
        yield one(name, 13, nan, note="NaN", **({"axis": 1} if name.startswith("Arg") else {"axes": [1]}))
    for shape, size in (((2, 19, 3, 5), 3), ((1, 40, 17), 5), ((1, 3, 7, 9), 8)):
        yield one("LRN", 13, floats(*shape), size=size, alpha=0.02, beta=0.75, bias=1.5)


def _normalised() -> Iterator[Case]:
    for shape in ((3, 1), (5, 15), (2, 3, 37), (40, 64), (2, 1000), (300, 700)):
        for axis in {-1, 1 - len(shape)}:
            numbers = held(*shape[axis:]), held(*shape[axis:])
            yield one("LayerNormalization", 17, floats(*shape), *numbers, axis=axis)
            yield one("RMSNormalization", 23, floats(*shape), numbers[0], axis=axis)
    yield one("LayerNormalization", 17, floats(5, 37) + F32(1000), held(37), note="far from zero")
    for shape in ((1, 18, 2, 3), (2, 8, 37), (2, 32, 5, 7), (1, 40, 17, 19)):
        c = shape[1]
        yield one("InstanceNormalization", 6, floats(*shape), held(c), held(c))
        for groups in (1, 2, c):
            yield one("GroupNormalization", 21, floats(*shape), held(c), held(c), num_groups=groups)
        statistics = held(c), held(c), held(c), Fixed(floats(c, low=1))
        yield one("BatchNormalization", 15, floats(*shape), *statistics)
        for p, axis in product((1, 2), (1, -1)):
            yield one("LpNormalization", 22, floats(*shape), p=p, axis=axis)
        yield one("MeanVarianceNormalization", 13, floats(*shape), axes=[0, *range(2, len(shape))])


WINDOWS = (
    ((1, 19, 7, 30), [2, 2], [2, 2], [0, 0, 0, 0]), ((2, 33, 9, 11), [3, 3], [2, 2], [1, 1, 1, 1]),
    ((1, 16, 6, 13), [3, 3], [1, 1], [1, 1, 1, 1]), ((1, 5, 11, 9), [5, 4], [1, 3], [2, 0, 1, 3]),
    ((1, 17, 8, 8), [1, 3], [1, 2], [0, 1, 0, 1]), ((1, 2, 23), [3], [2], [1, 0]),
    ((1, 1, 70, 9), [7, 7], [3, 2], [3, 3, 3, 3]),
    ((1, 3, 5, 6, 7), [2, 3, 2], [1, 2, 1], [0, 1, 0, 1, 1, 0]), ((1, 20, 4, 3), [3, 3], [1, 1], [1, 1, 1, 1]),
)  # fmt: skip


def _pooled() -> Iterator[Case]:
    for shape, kernel, strides, pads in WINDOWS:
        window = {"kernel_shape": kernel, "strides": strides, "pads": pads}
        yield one("MaxPool", 12, floats(*shape), **window)
        yield one("MaxPool", 12, floats(*shape), outputs=2, **window)
        yield one("AveragePool", 19, floats(*shape), count_include_pad=len(kernel) % 2, **window)
        yield one("AveragePool", 19, floats(*shape), count_include_pad=1 - len(kernel) % 2, **window)
        yield one("LpPool", 18, floats(*shape), **window)
        yield one("MaxPool", 12, floats(*shape), dilations=[2] * len(kernel), kernel_shape=[2] * len(kernel))
        if max(strides) > 1:
            yield one("MaxPool", 22, floats(*shape), ceil_mode=1, **window)
        for name in ("GlobalMaxPool", "GlobalAveragePool"):
            yield one(name, 1, floats(*shape))
    for dtype, shape in product((U8, I8), ((1, 16, 7, 9), (2, 35, 5, 6))):
        yield one("MaxPool", 12, bytes_(*shape, dtype=dtype), kernel_shape=[3, 2], strides=[2, 1], pads=[1, 1, 0, 0])


CONVOLUTIONS = (
    # image, outputs, kernel, strides, pads, dilations, groups
    ((1, 3, 33, 35), 16, (3, 3), 2, (1, 1, 1, 1), 1, 1), ((2, 16, 7, 6), 40, (3, 3), 1, (1, 1, 1, 1), 1, 1),
    ((1, 20, 8, 5), 33, (3, 2), (1, 2), (0, 1, 2, 0), (2, 1), 1), ((1, 64, 5, 5), 65, (1, 1), 2, (0, 0, 0, 0), 1, 1),
    ((1, 18, 6, 7), 8, (5, 3), 1, (2, 1, 2, 1), 1, 1), ((1, 1, 4, 13), 7, (3, 7), 1, (1, 3, 1, 3), 1, 1),
    ((1, 8, 6, 6), 12, (3, 3), 1, (1, 1, 1, 1), 1, 2), ((1, 40, 5, 7), 80, (3, 3), 1, (1, 1, 1, 1), 1, 2),
    ((1, 5, 3, 3), 4, (3, 3), 1, (3, 3, 3, 3), 2, 1), ((1, 17, 2, 3), 3, (2, 3), 1, (0, 0, 0, 0), 1, 1),
    ((2, 5, 2, 2), 6, (3, 4), (1, 2), (3, 5, 3, 4), 1, 1), ((1, 7, 30, 3), 20, (3, 3), 1, (1, 1, 1, 1), 1, 1),
    ((1, 1, 40, 5), 3, (4, 2), 1, (9, 0, 9, 0), (3, 1), 1), ((2, 3, 5, 61), 16, (3, 3), 2, (1, 1, 1, 1), 1, 1),
    ((1, 16, 9, 26), 20, (3, 3), (1, 2), (5, 5, 5, 5), 5, 1), ((1, 32, 13, 14), 48, (1, 1), 1, (0, 0, 0, 0), 1, 1),
    ((1, 19, 9, 11), 19, (3, 3), 1, (1, 1, 1, 1), 1, 19), ((2, 64, 8, 7), 64, (3, 3), 2, (0, 0, 1, 1), 1, 64),
    ((1, 70, 7, 40), 70, (5, 5), 1, (2, 2, 2, 2), 1, 70), ((1, 33, 6, 5), 33, (1, 3), (1, 2), (0, 1, 0, 1), 1, 33),
    ((1, 16, 11, 5), 16, (7, 4), 1, (3, 2, 3, 2), 1, 16), ((1, 16, 9, 9), 16, (3, 3), 1, (2, 2, 2, 2), 2, 16),
    ((1, 4, 3, 2), 4, (2, 2), 1, (5, 5, 5, 5), 1, 4), ((2, 16, 5, 131), 16, (3, 3), 1, (1, 1, 1, 1), 1, 16),
    ((1, 16, 7, 45), 16, (5, 2), (1, 3), (2, 3, 2, 0), (1, 2), 16),
    ((1, 17, 40, 9), 17, (3, 3), 3, (1, 0, 0, 1), 1, 17),
    ((1, 6, 9, 8), 12, (3, 3), 1, (1, 1, 1, 1), 1, 6), ((1, 48, 24, 24), 64, (3, 3), 1, (1, 1, 1, 1), 1, 1),
)  # fmt: skip
ENDS = (
    "y = Identity(a)", "y = Relu(a)", "y = HardSwish(a)", "b = Add(a, r) y = Relu(b)", "b = Relu(a) y = Add(b, r)",
    "s = Sigmoid(a) y = Mul(a, s)", "y = Clip(a, low, high)", "b = PRelu(a, p) y = Mul(b, r)",
)  # fmt: skip


def _window(strides: Any, pads: Any, dilations: Any, groups: int) -> dict[str, Any]:
    pair = [[two, two] if isinstance(two, int) else [*two] for two in (strides, dilations)]
    return {"strides": pair[0], "pads": [*pads], "dilations": pair[1], "group": groups}


def _attributes(given: dict[str, Any]) -> str:
    return "<" + ", ".join(f"{name} = {value}" for name, value in given.items()) + ">"


def _sizes(image: Any, kernel: Any, window: dict[str, Any]) -> list[int]:
    pads = window["pads"]
    return [
        (image[2 + i] + pads[i] + pads[2 + i] - (kernel[i] - 1) * window["dilations"][i] - 1) // window["strides"][i]
        + 1
        for i in range(2)
    ]


def _convolved() -> Iterator[Case]:
    ends = cycle(ENDS)
    for image, outputs, kernel, *rest in CONVOLUTIONS:
        window = _window(*rest)
        made = (1, outputs, *_sizes(image, kernel, window))
        w = floats(outputs, image[1] // window["group"], *kernel)
        for number in range(2):
            yield net(
                "Conv then", f"a = Conv{_attributes(window)}(x, w{', c' if number else ''}) {next(ends)}",
                floats(*image), w=w, c=floats(outputs), r=floats(*made), p=floats(outputs, 1, 1),
                low=F32(-1), high=F32(6), steps=32.0 if image[3] == 24 else 1.0,
            )  # fmt: skip
    yield one("Conv", 11, floats(2, 17, 70), held(33, 17, 3), strides=[2], pads=[1, 0])
    yield one("Conv", 11, floats(1, 5, 6, 7, 9), held(18, 5, 2, 3, 2), held(18), pads=[0, 1, 0, 1, 0, 0])
    yield one("Conv", 22, floats(1, 17, 9, 7, dtype=F16), Fixed(floats(20, 17, 3, 3, dtype=F16)), steps=2.0)


def _transposed() -> Iterator[Case]:
    for image, outputs, kernel, strides, pads, dilations, groups in (
        ((1, 17, 5, 7), 33, (3, 3), 2, (1, 1, 1, 1), 1, 1), ((2, 16, 6, 4), 8, (2, 2), 2, (0, 0, 0, 0), 1, 1),
        ((1, 5, 4, 19), 3, (4, 2), (1, 3), (1, 0, 2, 1), 1, 1), ((1, 32, 5, 5), 16, (3, 2), 1, (0, 1, 0, 0), 2, 1),
        ((1, 8, 4, 9), 3, (3, 3), 2, (0, 0, 1, 1), 1, 4), ((1, 40, 3, 17), 1, (4, 4), 4, (0, 0, 0, 0), 1, 1),
    ):  # fmt: skip
        w = held(image[1], outputs, *kernel)
        yield one(
            "ConvTranspose", 11, floats(*image), w, held(outputs * groups), **_window(strides, pads, dilations, groups)
        )


def _fused() -> Iterator[Case]:
    """Convolutions that become one step, of one block of channels and more."""
    around = {"pads": [1, 1, 1, 1]}
    for c, wide, size, stride in (
        (16, 24, (9, 11), 1), (20, 33, (7, 70), 1), (3, 16, (33, 20), 2), (40, 17, (5, 5), 2),
    ):  # fmt: skip
        depthwise = _attributes({**around, "strides": [stride] * 2, "group": c})
        yield net(
            "Conv pair", f"a = Conv{depthwise}(x, w, b) d = Relu(a) e = Conv(d, v) y = HardSwish(e)",
            floats(2, c, *size), w=floats(c, 1, 3, 3), b=floats(c), v=floats(wide, c, 1, 1),
        )  # fmt: skip
        inner = _attributes({**around, "strides": [stride] * 2, "group": wide})
        body = f"a = Conv(x, u) b = Relu(a) d = Conv{inner}(b, w) e = Relu(d) f = Conv(e, v) "
        yield net(
            "Conv triple", body + ("y = Add(f, x)" if stride == 1 else "y = Identity(f)"), floats(1, c, *size),
            u=floats(wide, c, 1, 1), w=floats(wide, 1, 3, 3), v=floats(c, wide, 1, 1),
        )  # fmt: skip
        yield net(
            "Conv stem", f"a = Conv{_attributes({**around, 'strides': [2, 2]})}(x, u) b = Relu(a) "
            f"d = Conv{inner}(b, w) e = Relu(d) y = Conv(e, v)", floats(1, 3, *size),
            u=floats(wide, 3, 3, 3), w=floats(wide, 1, 3, 3), v=floats(c, wide, 1, 1),
        )  # fmt: skip
    for c, groups in ((24, 2), (32, 4)):
        turned = "a = Relu(x) b = Reshape(a, s) d = Transpose<perm=[0,2,1,3,4]>(b) e = Reshape(d, t) y = Conv(e, v)"
        yield net(
            "Conv shuffled", turned, floats(1, c, 5, 7), s=np.array([1, groups, c // groups, 5, 7]),
            t=np.array([1, c, 5, 7]), v=floats(19, c, 1, 1),
        )  # fmt: skip
    branch = """a = Conv(x, u) b, d = Split<axis=1, num_outputs=2>(a) e = MaxPool<kernel_shape=[1,1]>(b)
    y = Concat<axis=1>(e, x, d)"""
    for c in (16, 18):
        yield net("Concat channels", branch, floats(2, c, 5, 7), u=floats(2 * c, c, 1, 1))


def _of_bytes() -> Iterator[Case]:
    kinds = cycle(((U8, I8), (I8, I8), (U8, U8), (I8, U8)))
    for number, (image, outputs, kernel, *rest) in enumerate(CONVOLUTIONS[:-1]):
        of_x, of_w = next(kinds)
        window = _window(*rest)
        x, w = bytes_(*image, dtype=of_x), bytes_(outputs, image[1] // window["group"], *kernel, dtype=of_w)
        zeros = Fixed(bytes_(dtype=of_x)), Fixed(bytes_(*(() if number % 2 else (outputs,)), dtype=of_w))
        yield one("ConvInteger", 10, x, Fixed(w), *zeros, **window)
        scales = Fixed(np.exp2(_RANDOM.integers(-3, 1, outputs)).astype(F32))
        to, many = Fixed(np.array(512, F32)), Fixed(np.zeros(outputs, of_w))
        bias = Fixed(whole(outputs, dtype=I32, low=-500, high=500))
        y_zero = Fixed(np.array(7, of_x))
        yield one("QLinearConv", 10, x, Fixed(F32(1)), zeros[0], Fixed(w), scales, many, to, y_zero, bias, **window)
    for rows, inner, columns in (
        (1, 70, 131), (2, 300, 97), (3, 17, 2), (5, 33, 33), (14, 45, 64), (40, 257, 20), (9, 4, 16),
    ):  # fmt: skip
        a, b = next(kinds)
        x, w = bytes_(rows, inner, dtype=a), bytes_(inner, columns, dtype=b)
        zeros = Fixed(bytes_(dtype=a)), Fixed(bytes_(*(() if rows % 2 else (columns,)), dtype=b))
        yield one("MatMulInteger", 10, x, Fixed(w), *zeros)
        scales = Fixed(np.exp2(_RANDOM.integers(-3, 1, columns)).astype(F32)), Fixed(np.zeros(columns, b))
        to = Fixed(F32(2048)), Fixed(np.array(3, a))
        yield one("QLinearMatMul", 10, x, Fixed(F32(1)), zeros[0], Fixed(w), *scales, *to)
    for shape, dtype in product(((67,), (3, 5, 130)), (U8, I8)):
        zero = Fixed(np.array(3, dtype))
        yield one("QuantizeLinear", 13, floats(*shape), Fixed(F32(0.25)), zero)
        yield one("DequantizeLinear", 13, bytes_(*shape, dtype=dtype), Fixed(F32(0.25)), zero)
        many = (
            Fixed(np.exp2(_RANDOM.integers(-3, 1, shape[-1])).astype(F32)),
            Fixed(whole(shape[-1], dtype=dtype, low=0)),
        )
        for name, x in (("QuantizeLinear", floats(*shape)), ("DequantizeLinear", bytes_(*shape, dtype=dtype))):
            yield one(name, 13, x, *many, axis=-1)
    for shape in ((1, 3, 17, 31), (2, 4, 5, 7), (1, 1, 1031), (300, 1000)):
        yield one("DynamicQuantizeLinear", 11, floats(*shape), outputs=3)
    line = "p = DequantizeLinear(x, s, z) q = Mul(p, c) r = Add(q, d) t = Relu(r) y = QuantizeLinear(t, u, z)"
    for dtype, shape in product((U8, I8), ((7, 1), (3, 5, 19), (40, 192))):
        numbers = {"c": floats(shape[-1]), "d": floats(shape[-1])}
        scales = {"s": F32(0.25), "u": F32(0.5), "z": np.array(9, dtype)}
        yield net("QuantizeLinear line", line, bytes_(*shape, dtype=dtype), **scales, **numbers)
        one_number = "p = DequantizeLinear(x, s, z) t = Sigmoid(p) y = QuantizeLinear(t, u, z)"
        yield net(
            "QuantizeLinear table", one_number, bytes_(*shape, dtype=dtype), s=F32(0.25), u=F32(0.01),
            z=np.array(9, dtype),
        )  # fmt: skip


PRODUCTS = (
    (1, 3, 5), (1, 70, 131), (2, 300, 97), (3, 17, 2), (4, 33, 33), (7, 40, 300), (9, 16, 16), (14, 45, 64),
    (15, 31, 1), (29, 1, 40), (64, 129, 50), (131, 65, 4), (3, 1100, 40), (40, 1100, 35), (211, 301, 66),
)  # fmt: skip


def _multiplied() -> Iterator[Case]:
    for number, (rows, inner, columns) in enumerate(PRODUCTS):
        x, w = floats(rows, inner), floats(inner, columns)
        yield one("MatMul", 13, x, Fixed(w))
        yield one("MatMul", 13, x, w)
        a, b = number % 2, number // 2 % 2
        given = (x.T if a else x).copy(), Fixed((w.T if b else w).copy())
        c = held(*((columns,), (rows, columns), (rows, 1), ())[number % 4])
        yield one(
            "Gemm", 13, *given, c, transA=a, transB=b, alpha=(1.0, 0.5)[number % 2], beta=(1.0, 2.0)[number // 2 % 2]
        )
        ends = ("b = Add(a, c) y = Relu(b)", "b = Add(a, r) y = Sigmoid(b)", "b = Mul(a, c) d = Tanh(b) y = Add(d, r)")
        yield net(
            "MatMul then",
            f"a = MatMul(x, w) {ends[number % 3]}",
            x,
            w=w,
            r=floats(rows, columns),
            c=floats(columns) / np.float32(64),  # few of the sums are beyond what Tanh tells apart
        )
    for a, b in (
        ((3, 5, 17), (3, 17, 33)), ((2, 3, 4, 19), (19, 40)), ((33,), (33, 17)), ((2, 1, 3, 8), (5, 8, 37)),
        ((5, 40), (40,)),
    ):  # fmt: skip
        yield one("MatMul", 13, floats(*a), floats(*b))
        yield one("MatMul", 13, floats(*a), held(*b))
    yield one("MatMul", 13, floats(3, 37, dtype=F16), Fixed(floats(37, 19, dtype=F16)))
    for equation, *sizes in (
        ("bhid,bhjd->bhij", (2, 3, 5, 17), (2, 3, 19, 17)), ("bij,bkj->bik", (3, 7, 33), (3, 16, 33)),
        ("ij,kj->ki", (15, 40), (17, 40)),
        ("bchw,cd->bdhw", (2, 19, 3, 5), (19, 33)), ("bid,bjd,bjk->bik", (2, 5, 17), (2, 9, 17), (2, 9, 3)),
        ("abc->cab", (3, 17, 33)), ("ab,a->b", (33, 17), (33,)),
    ):  # fmt: skip
        yield one("Einsum", 12, *(floats(*size) for size in sizes), equation=equation)


def _attended() -> Iterator[Case]:
    for number, (rows, inner, keys, columns) in enumerate(
        ((1, 4, 7, 3), (2, 8, 16, 16), (3, 33, 17, 40), (5, 16, 33, 1), (14, 64, 64, 64), (29, 24, 130, 70))
    ):
        q = floats(2, 4, rows, inner) / F32(4)
        k, v = (floats(2, 2 if number % 2 else 4, keys, c) / F32(4) for c in (inner, columns))
        masks = None, floats(rows, keys), whole(rows, keys, low=0, high=2).astype(bool)
        for mask in masks[: 1 + number % 3]:
            yield one(
                "Attention", 23, q, k, v, mask, note=f"{q.shape} {k.shape} {mask is not None and mask.dtype}",
                is_causal=number // 2 % 2,
            )  # fmt: skip
    for width in (16, 34):
        for interleaved in (0, 1):
            caches = floats(2, 7, width // 2), floats(2, 7, width // 2)
            yield one("RotaryEmbedding", 23, floats(2, 3, 7, width), *caches, interleaved=interleaved)
    spelled = """k = Transpose<perm=[0,1,3,2]>(x) a = MatMul(x, k) b = Mul(a, c) d = Add(b, m) e = Softmax<axis=-1>(d)
    y = MatMul(e, x)"""
    for rows, inner in ((1, 8), (19, 24), (37, 16)):
        yield net("MatMul attention", spelled, floats(2, 3, rows, inner), c=F32(0.125), m=floats(rows, rows))
    for size, end in product((5, 19, 33), ("y = Add(a, x)", "b = Tanh(a) y = Mul(b, x)")):
        for body in ("k = Transpose<perm=[0,1,3,2]>(x) a = MatMul(x, k)", "k = Abs(x) a = MatMul(x, k)"):
            yield net("MatMul residual", f"{body} {end}", floats(2, 3, size, size))


def _recurrent() -> Iterator[Case]:
    for op, gates, states in (("LSTM", 4, 2), ("GRU", 3, 1), ("RNN", 1, 1)):
        for hidden, batch, size, direction in (
            (5, 1, 3, "forward"), (16, 2, 19, "reverse"), (37, 7, 8, "bidirectional"), (70, 1, 33, "bidirectional"),
        ):  # fmt: skip
            ways = 2 if direction == "bidirectional" else 1
            weights = [Fixed(floats(ways, gates * hidden, n) / F32(8)) for n in (size, hidden)]
            bias = Fixed(floats(ways, 2 * gates * hidden) / F32(8))
            lengths = np.array([5, *whole(batch - 1, low=1)], I32) if batch > 1 else None
            initial = [floats(ways, batch, hidden) / F32(8) for _ in range(states)]
            yield one(
                op, 14, floats(5, batch, size) / F32(4), *weights, bias, lengths, *initial, hidden_size=hidden,
                direction=direction,
                note=f"{hidden} {batch} {size} {direction}", outputs=["y", "h", "c"][: 1 + states],
                **({"linear_before_reset": batch % 2} if op == "GRU" else {}),
            )  # fmt: skip


def _moved() -> Iterator[Case]:
    kinds = cycle((F32, I64, U8, F32, np.bool_, I32, F16))
    for shape, order in (
        ((33, 17), (1, 0)), ((2, 65, 40), (0, 2, 1)), ((5, 3, 19), (2, 1, 0)), ((2, 3, 17, 16), (0, 2, 3, 1)),
        ((2, 9, 33, 3), (0, 3, 1, 2)),
        ((3, 4, 5, 17), (0, 2, 1, 3)), ((2, 3, 4, 5, 6), (4, 2, 0, 1, 3)), ((1000, 3), (1, 0)), ((3, 1000), (1, 0)),
        ((300, 1030), (1, 0)), ((3, 3, 4, 20, 4), (1, 3, 0, 2, 4)),
    ):  # fmt: skip
        for _ in range(2):
            yield one("Transpose", 13, of_type(next(kinds), *shape), perm=order)
    for begin, end, axis, step in ((1, 60, 1, 1), (-1, -99, 1, -1), (0, 65, 1, 3), (2, 7, 0, 1), (8, -99, 0, -2)):
        yield one("Slice", 13, of_type(next(kinds), 9, 65), ints(begin), ints(end), ints(axis), ints(step))
        given = np.array([begin]), np.array([end]), ints(axis), ints(step)
        yield one("Slice", 13, floats(9, 65, 3), *given, note=f"given {begin} {end} {axis} {step}")
    for mode, pads in (
        ("constant", (1, 0, 17, 2)), ("reflect", (2, 15, 3, 4)), ("edge", (0, 33, 1, 1)), ("wrap", (5, 6, 0, 7)),
    ):  # fmt: skip
        opset = 19 if mode == "wrap" else 18
        for dtype in (F32, I64):
            yield one("Pad", opset, of_type(dtype, 7, 37), ints(*pads), mode=mode)
        yield one("Pad", opset, floats(7, 37), np.array(pads), mode=mode, note=f"given {mode}")
        yield one("Pad", opset, floats(1, 19, 7, 9), ints(0, 0, 2, 3, 0, 0, 1, 6), mode=mode)
        body = f'a = Conv(x, u) b = Pad<mode = "{mode}">(a, p) y = Conv(b, v)'
        yield net(
            f"Pad {mode} between", body, floats(1, 5, 7, 9), opset, u=floats(19, 5, 1, 1), v=floats(3, 19, 1, 1),
            p=np.array([0, 0, 2, 3, 0, 0, 1, 6]),
        )  # fmt: skip
    for axis, dtype in product((0, 1, 2), (F32, U8)):
        yield one(
            "Concat", 13,
            *(of_type(dtype, *(n if i == axis else s for i, s in enumerate((3, 5, 17)))) for n in (1, 16, 9)),
            axis=axis,
        )  # fmt: skip
        yield one("Split", 13, of_type(dtype, 9, 10, 33), ints(1, 3, (9, 10, 33)[axis] - 4), axis=axis, outputs=3)
    yield one("Concat", 13, *(floats(2, 1 + n % 3, 7) for n in range(37)), axis=1, note="many")
    for shape, times in (((3, 17), (2, 3)), ((5, 1, 33), (1, 4, 2)), ((1, 7), (40, 1))):
        yield one("Tile", 13, of_type(next(kinds), *shape), ints(*times))
        yield one(
            "Expand", 13, of_type(next(kinds), *shape[:-1], 1), ints(2, *(s if s > 1 else 3 for s in shape[:-1]), 19)
        )
    for blocks, mode in product((2, 3), ("DCR", "CRD")):
        yield one("DepthToSpace", 13, floats(1, 2 * blocks**2, 5, 7), blocksize=blocks, mode=mode)
        body = f't = Transpose<perm = [0,1,3,2]>(x) y = DepthToSpace<blocksize = {blocks}, mode = "{mode}">(t)'
        yield net("DepthToSpace turned", body, floats(2, 2 * blocks**2, 5, 7))
        yield one("SpaceToDepth", 13, floats(2, 3, 4 * blocks, 5 * blocks), blocksize=blocks)
    for number, k in enumerate((0, 5, -5, 40)):
        yield one("Trilu", 14, of_type(next(kinds), 2, 17, 33), Fixed(np.array(k)), upper=number % 2)
    yield one(
        "MaxUnpool", 11, floats(1, 2, 3, 5), whole(1, 2, 3, 5, low=0, high=60), kernel_shape=[2, 2], strides=[2, 2]
    )
    for time, dtype in product((0, 1), (F32, np.bool_)):
        lengths = np.array([1, 9, 0, 4, 7, 9, 2, 3, 5])
        yield one("ReverseSequence", 10, of_type(dtype, 9, 9, 17), lengths, time_axis=time, batch_axis=1 - time)
    yield one("Range", 11, *(np.array(n) for n in (3, 400, 3)))
    yield one("EyeLike", 9, floats(17, 33), k=3)


def _picked() -> Iterator[Case]:
    kinds, many = cycle((F32, I64, np.bool_, U8, I32)), cycle((I32, I64))
    for shape, numbers, axis in (
        ((40, 65), (2, 9), 0), ((3, 17, 5), (4,), 1), ((3, 5, 17), (2, 33), 2), ((6, 4), (3,), 0), ((1, 33), (5,), 0),
        ((900, 3), (LARGE // 3,), 0),
    ):  # fmt: skip
        n = _RANDOM.integers(-shape[axis], shape[axis], numbers)
        yield one("Gather", 13, of_type(next(kinds), *shape), n.astype(next(many)), axis=axis)
        yield one("Gather", 13, floats(*shape), Fixed(n.astype(next(many))), axis=axis)
    for shape, numbers, axis in (
        ((7,), (12,), 0), ((3, 17), (3, 33), 1), ((5, 33), (9, 33), 0), ((4, 5, 6), (4, 8, 6), 1),
        ((2, 3, 4, 5), (2, 3, 7, 5), 2),
    ):  # fmt: skip
        n = _RANDOM.integers(-shape[axis], shape[axis], numbers).astype(next(many))
        yield one("GatherElements", 13, of_type(next(kinds), *shape), n, axis=axis)
        for reduction, dtype in product(("add", "mul", "max", "min"), (F32, I32)):
            updates = of_type(dtype, *numbers)
            yield one("ScatterElements", 18, of_type(dtype, *shape), n, updates, axis=axis, reduction=reduction)
        n = np.argsort(_RANDOM.random(shape), axis)  # no place twice
        yield one("ScatterElements", 18, floats(*shape), n.astype(next(many)), floats(*shape), axis=axis)
    for shape, numbers, batch in (
        ((7,), (5, 1), 0), ((4, 5, 6), (3, 3), 0), ((4, 5, 6), (2, 3, 2), 0), ((4, 5, 17), (4, 9, 1), 1),
    ):  # fmt: skip
        n = np.stack([_RANDOM.integers(-s, s, numbers[:-1]) for s in shape[batch : batch + numbers[-1]]], -1)
        yield one("GatherND", 13, of_type(next(kinds), *shape), n, batch_dims=batch)
        if not batch:
            for reduction, dtype in product(("add", "mul", "max", "min"), (F32, I32)):
                updates = of_type(dtype, *numbers[:-1], *shape[numbers[-1] :])
                yield one("ScatterND", 18, of_type(dtype, *shape), n, updates, reduction=reduction)
    yield one("ScatterND", 18, floats(40, 33), np.array([[3], [-1], [17]]), floats(3, 33))
    for numbers, depth, axis in (((3, 4), 17, 2), ((33,), 9, 1), ((3, 4), 2, 0), ((2, 5, 17), 3, 1)):
        dtype = next(kinds)
        values = Fixed(np.array([0, 1]).astype(dtype))
        yield one(
            "OneHot", 11, np.asarray(_RANDOM.integers(-depth, 2 * depth, numbers)), Fixed(np.array(depth)), values,
            axis=axis,
        )  # fmt: skip


def _resized() -> Iterator[Case]:
    for mode, scales, where in product(
        ("nearest", "linear", "cubic"), ((2, 2), (1.5, 3), (0.6, 0.4)), ("half_pixel", "asymmetric", "align_corners")
    ):
        if where == "align_corners" and scales != (2, 2):
            continue
        fixed = Fixed(np.array([1, 1, *scales], F32))
        yield one("Resize", 18, floats(1, 5, 9, 19), None, fixed, mode=mode, coordinate_transformation_mode=where)
    for shape, scales in (
        ((1, 17, 5, 7), (2, 2)), ((2, 33, 3, 5), (1, 3)), ((1, 16, 9, 4), (3, 1)), ((1, 3, 70, 33), (2, 4)),
    ):  # fmt: skip
        for mode, where in (("nearest", "asymmetric"), ("linear", "half_pixel")):
            fixed = Fixed(np.array([1, 1, *scales], F32))
            yield one(
                "Resize", 18, floats(*shape), None, fixed, mode=mode, coordinate_transformation_mode=where,
                nearest_mode="floor",
            )  # fmt: skip
    grid = floats(2, 7, 5, 2) / F32(2) + F32(0.01)
    for mode, pad in product(("linear", "nearest", "cubic"), ("zeros", "border", "reflection")):
        yield one("GridSample", 20, floats(2, 17, 5, 9), grid, mode=mode, padding_mode=pad)
    rois = np.array([[0, 0, 4, 4], [1, 2, 5, 7], [-1, -1, 3, 2], [2.5, 1.25, 12.75, 7.5], [0, 0, 19, 16]], F32)
    for ratio in (0, 2):
        yield one(
            "RoiAlign", 16, floats(2, 19, 17, 20), rois, np.array([0, 1, 0, 1, 1]), output_height=3, output_width=5,
            sampling_ratio=ratio,
        )  # fmt: skip
    for corners in (0, 1):
        yield one("AffineGrid", 20, floats(2, 2, 3), ints(2, 1, 17, 19), align_corners=corners)


def _trees() -> Iterator[Case]:
    """Trees of random nodes, of one depth, over rows and targets of odd numbers."""
    for rows, features, count, depth, targets, mode in (
        (1, 3, 1, 1, 1, "LEQ"), (17, 5, 33, 4, 3, "LT"), (70, 9, 16, 5, 1, "GTE"), (9, 300, 5, 3, 2, "GT"),
    ):  # fmt: skip
        inner, every = 2**depth - 1, 2 ** (depth + 1) - 1
        of_tree, number = np.repeat(np.arange(count), every), np.tile(np.arange(every), count)
        leaf = number >= inner
        below = [np.where(leaf, 0, 2 * number + i) for i in (1, 2)]
        nodes: dict[str, Any] = {
            "nodes_treeids": of_tree, "nodes_nodeids": number,
            "nodes_featureids": _RANDOM.integers(0, features, number.size),
            "nodes_values": floats(number.size), "nodes_truenodeids": below[0], "nodes_falsenodeids": below[1],
            "target_treeids": of_tree[leaf], "target_nodeids": number[leaf], "target_weights": floats(leaf.sum()),
            "target_ids": _RANDOM.integers(0, targets, leaf.sum()),
        }  # fmt: skip
        given = {key: value.tolist() for key, value in nodes.items()}
        modes = np.where(leaf, "LEAF", f"BRANCH_{mode}").tolist()
        yield one(
            "TreeEnsembleRegressor", 3, floats(rows, features), domain="ai.onnx.ml", n_targets=targets,
            nodes_modes=modes,
            note=f"{rows} {features} {count} {depth} {targets} {mode}", **given,
        )  # fmt: skip
