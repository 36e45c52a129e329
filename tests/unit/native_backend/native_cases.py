# SPDX-License-Identifier: Apache-2.0
"""Random steps of convolutions and LSTMs with what NumPy makes of them in float64; the same for the same seed.

Sizes, padding (asymmetric, or wider than a register tile), dilation, odd channel counts, ends and the capacity of the
window buffer are drawn at random; kernel sizes, strides, ends and capacities take turns, so that each comes up.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np
from native_models import Array
from nndeploy_native.expressions import Expression, const, operand
from nndeploy_native.steps.convolution import Convolution, Depth, Window
from nndeploy_native.steps.inverted_residual import InvertedResidual
from nndeploy_native.steps.recurrent import Recurrent, States
from nndeploy_native.steps.separable import Separable
from nndeploy_native.steps.stem import Stem
from nndeploy_native.steps.step import Epilogue, NativeStep
from nndeploy_native.tensors import Layout, Tensor, fixed_shape

from nndeploy.values.size import fixed

X, R, S = operand(0), operand(1), operand(2)
CAPACITIES = (1, 300, 1500, 5000, 20_000, 70_000, 1 << 18, 1 << 20)
CHANNELS = (1, 3, 5, 8, 12, 15, 16, 17, 19, 20, 24, 31, 32, 33, 37, 40, 48, 63, 70)
"""Multiples of each set's lanes, of half of them (two pixels may share a vector then), and neither."""

End = tuple[Expression, Callable[[Array, Array, Array], Array]]


def _clip(x: Expression, low: float, high: float) -> Expression:
    return ("min", ("max", x, const(low)), const(high))


ENDS: dict[str, End] = {
    "none": (X, lambda x, r, s: x),
    "relu": (("relu", X), lambda x, r, s: np.maximum(x, 0)),
    "relu6": (_clip(X, 0, 6), lambda x, r, s: np.clip(x, 0, 6)),
    "hardswish": (("hardswish", X), lambda x, r, s: x * np.clip(x / 6 + 0.5, 0, 1)),
    "silu": (("mul", X, ("sigmoid", X)), lambda x, r, s: x / (1 + np.exp(-x))),
    "hard sigmoid": (
        _clip(("add", ("mul", X, const(0.2)), const(0.5)), 0, 1),
        lambda x, r, s: np.clip(0.2 * x + 0.5, 0, 1),
    ),
    "tanh": (("tanh", X), lambda x, r, s: np.tanh(x)),
    "leaky relu": (
        ("where", ("less", X, const(0)), ("mul", X, const(0.1)), X),
        lambda x, r, s: np.where(x < 0, 0.1 * x, x),
    ),
    "prelu": (("where", ("less", X, const(0)), ("mul", X, S), X), lambda x, r, s: np.where(x < 0, s * x, x)),
}
RESIDUAL_ENDS: dict[str, End] = {
    "residual": (("add", X, R), lambda x, r, s: x + r),
    "residual, then relu": (("relu", ("add", X, R)), lambda x, r, s: np.maximum(x + r, 0)),
    "relu6, then residual": (("add", _clip(X, 0, 6), R), lambda x, r, s: np.clip(x, 0, 6) + r),
    "times residual, times number": (("mul", ("mul", X, R), S), lambda x, r, s: x * r * s),
}
TURNS = (
    "relu", "prelu", "times residual, times number", "hardswish", "residual, then relu", "silu", "none",
    "relu6, then residual", "hard sigmoid", "residual", "leaky relu", "tanh", "relu6",
)  # fmt: skip
"""All of them: what reads most first."""


@dataclass(frozen=True, eq=False)
class Case:
    """A step, the bytes of its window buffer, the values that it reads (N, C, H, W), and the result in float64.

    `l2_bytes` are those of the second cache, 0 for the usual ones.
    """

    name: str
    step: NativeStep
    buffer_bytes: int
    values: Mapping[str, Array]
    wanted: Array
    l2_bytes: int = 0


@dataclass
class Draw:
    """What is drawn for cases of a precision: number `count` of a kind takes the turn `count` of each table."""

    precision: str
    seed: int

    def __post_init__(self) -> None:
        """Starts the sequence."""
        self.random = random.Random(self.seed)  # noqa: S311
        self.numbers = np.random.default_rng(self.seed)

    def normal(self, *shape: int) -> Array:
        """Returns normal numbers, such that bfloat16 holds them exactly where that is the precision."""
        return self.rounded(self.numbers.standard_normal(shape).astype(np.float32))

    def rounded(self, array: Array) -> Array:
        """Returns what the inner layout keeps of an array."""
        if self.precision == "fp32":
            return array
        return array.astype(np.float32).astype(ml_dtypes.bfloat16).astype(array.dtype)

    def weights(self, *shape: int) -> Array:
        """Returns weights whose products keep the size of what they meet."""
        return self.rounded(self.normal(*shape) / np.float32(np.sqrt(np.prod(shape[1:]))))

    def buffer_bytes(self, turn: int) -> int:
        """Returns the capacity of a window buffer."""
        return CAPACITIES[turn % len(CAPACITIES)]

    def image(self, channels: int, width: int = 45, least: int = 1) -> Tensor:
        """Returns a blocked tensor of 1 to 3 images, `least` to `width` wide."""
        shape = (self.random.randint(1, 3), channels, self.random.randint(1, 12), self.random.randint(least, width))
        return Tensor("x", shape, Layout.BLOCKED)

    def window(self, x: Tensor, kernel: int, turn: int) -> tuple[Window, tuple[int, int]]:
        """Returns a window over an image, and the sizes of its output."""
        one = [self._axis(x.shape[2 + i], kernel, turn + i) for i in range(2)]
        window = Window(*(tuple(axis[k] for axis in one) for k in range(4)))  # type: ignore[arg-type]
        return window, (one[0][4], one[1][4])

    def _axis(self, size: int, kernel: int, turn: int) -> tuple[int, int, int, int, int]:
        dilation = self.random.choice((1, 1, 2, 3))
        reach = (kernel - 1) * dilation
        pads = {
            0: (reach // 2, reach - reach // 2),
            1: (0, 0),
            2: (self.random.randint(0, reach), self.random.randint(0, reach)),
            3: (20, 17),
        }[turn % 4]
        before, after = pads if size + sum(pads) > reach else (reach // 2, reach - reach // 2)
        stride = 1 + turn // 2 % 2
        return kernel, stride, before, dilation, (size + before + after - reach - 1) // stride + 1

    def epilogue(self, name: str, output: Tensor, values: dict[str, Array]) -> Epilogue:
        """Returns an end; its residual goes to the values."""
        expression = {**ENDS, **RESIDUAL_ENDS}[name][0]
        residual = Tensor("r", output.shape, Layout.BLOCKED) if "residual" in name else None
        if residual is not None:
            values["r"] = self.normal(*output.shape)
        return Epilogue(expression, residual, self.normal(output.shape[1]) if _reads(expression, 2) else None)

    def end(self, turn: int, *, may_add: bool = True) -> str:
        """Returns the name of an end."""
        names = [name for name in TURNS if may_add or name in ENDS]
        return names[(turn + self.seed) % len(names)]


def _reads(expression: Expression, number: int) -> bool:
    if expression[0] == "const":
        return False
    if expression[0] == "operand":
        return expression[1] == number
    return any(isinstance(part, tuple) and _reads(part, number) for part in expression[1:])


def separable(draw: Draw, turn: int) -> Case:
    """Returns depthwise and pointwise as one step."""
    x = draw.image(draw.random.choice(CHANNELS))
    values = {"x": draw.normal(*x.shape)}
    first, hidden, said = _depthwise(draw, turn, x, values["x"])
    second, wanted, ended = _pointwise(draw, turn, first.output, hidden, values, draw.end(3 * turn))
    buffer_bytes = draw.buffer_bytes(turn)
    name = f"separable {turn}: {said} then {ended}, {x.shape}, {buffer_bytes} bytes"
    return Case(name, Separable(first, second), buffer_bytes, values, wanted)


def inverted_residual(draw: Draw, turn: int) -> Case:
    """Returns pointwise, depthwise and pointwise as one step."""
    x = draw.image(draw.random.choice((1, 3, 5, 8, 10, 16)), width=30)
    values = {"x": draw.normal(*x.shape)}
    expand, wide, before = _pointwise(
        draw, turn, x, values["x"], {}, draw.end(turn, may_add=False), draw.random.choice((17, 24, 40, 70, 150)), "e"
    )
    first, hidden, said = _depthwise(draw, turn, expand.output, wide)
    second, wanted, ended = _pointwise(draw, turn, first.output, hidden, values, draw.end(3 * turn))
    buffer_bytes = draw.buffer_bytes(turn)
    name = f"inverted {turn}: {before} then {said} then {ended}, {x.shape}, {buffer_bytes} bytes"
    return Case(name, InvertedResidual(expand, Separable(first, second)), buffer_bytes, values, wanted)


def planar_separable(draw: Draw, turn: int) -> Case:
    """Returns depthwise and pointwise as one step that reads the order of ONNX, writes it, or both."""
    x = draw.image(draw.random.choice(CHANNELS))
    values = {"x": draw.normal(*x.shape)}
    first, hidden, said = _depthwise(draw, turn, x, values["x"])
    second, wanted, ended = _pointwise(draw, turn, first.output, hidden, {}, draw.end(3 * turn, may_add=False))
    if turn % 3 != 1:
        first = replace(first, x=replace(x, layout=Layout.PLAIN))
    if turn % 3 != 0:
        second = replace(second, output=replace(second.output, layout=Layout.PLAIN))
    buffer_bytes = (1 << 16, 1 << 20)[turn % 2]
    name = f"planar {turn}: {said} then {ended}, {x.shape}"
    return Case(name, Separable(first, second), buffer_bytes, values, wanted)


def stem(draw: Draw, turn: int) -> Case:
    """Returns a dense convolution from the order of ONNX, depthwise and pointwise as one step."""
    image = draw.image(draw.random.choice((1, 2, 3, 4)), width=30)
    x = Tensor(image.name, image.shape)
    values = {"x": draw.numbers.standard_normal(x.shape).astype(np.float32)}
    kernel, channels, end = (3, 5, 2)[turn % 3], draw.random.choice(CHANNELS), draw.end(turn, may_add=False)
    window, sizes = draw.window(x, kernel, turn)
    output = Tensor("e", (x.shape[0], channels, *sizes), Layout.BLOCKED)
    weights, bias = draw.weights(channels, x.shape[1], kernel, kernel), draw.normal(channels)
    wide = Convolution(output, x, weights, bias, window)
    wide = wide.with_epilogue(draw.epilogue(end, output, {}), output)
    made = draw.rounded(_ended(wide, end, convolved(values["x"], weights, bias, window, sizes), {}))
    first, hidden, said = _depthwise(draw, turn + 1, output, made)
    second, wanted, ended = _pointwise(draw, turn, first.output, hidden, values, draw.end(3 * turn))
    buffer_bytes = (1000, 1 << 17, 1 << 20)[turn % 3]
    name = f"stem {turn}: {window} {end} then {said} then {ended}, {x.shape}"
    return Case(name, Stem(wide, Separable(first, second)), buffer_bytes, values, wanted)


def pointwise(draw: Draw, turn: int) -> Case:
    """Returns a pointwise convolution; every second one of an odd number of channels."""
    x = draw.image(draw.random.choice([one for one in CHANNELS if one % 2] if turn % 2 else CHANNELS))
    values = {"x": draw.normal(*x.shape)}
    step, wanted, said = _pointwise(draw, turn, x, values["x"], values, draw.end(turn))
    buffer_bytes = draw.buffer_bytes(turn)
    name = f"pointwise {turn}: {said}, {x.shape}, {buffer_bytes} bytes"
    return Case(name, step, buffer_bytes, values, draw.rounded(wanted))


def depthwise(draw: Draw, turn: int) -> Case:
    """Returns a depthwise convolution by itself."""
    x = draw.image(draw.random.choice(CHANNELS))
    values = {"x": draw.normal(*x.shape)}
    step, wanted, said = _depthwise(draw, turn, x, values["x"], (1, 3, 5, 7)[turn % 4])
    return Case(f"depthwise {turn}: {said}, {x.shape}", step, 0, values, wanted)


def dense(draw: Draw, turn: int) -> Case:
    """Returns a convolution over all channels; every second one reads the order of ONNX."""
    channels = draw.random.choice((1, 2, 3, 4) if turn % 2 else CHANNELS)
    x = draw.image(channels, width=30)
    if turn % 2:
        x = Tensor(x.name, x.shape)
    return _convolution(draw, turn, x, draw.random.choice(CHANNELS), 1)


def small_images(draw: Draw, turn: int) -> Case:
    """Returns a convolution of few pixels, of which the second cache holds half of what they meet."""
    channels, outputs = draw.random.choice((16, 32, 48)), draw.random.choice((80, 97, 120, 136))
    shape = (draw.random.randint(1, 3), channels, draw.random.randint(3, 6), draw.random.randint(3, 6))
    case = _convolution(draw, turn, Tensor("x", shape, Layout.BLOCKED), outputs, 1)
    step = case.step
    assert isinstance(step, Convolution)
    pixels, of_element = int(np.prod(fixed_shape(step.output.shape)[2:])), 2 if draw.precision == "bf16" else 4
    return replace(case, l2_bytes=pixels * int(np.prod(step.weights.shape[1:])) * of_element)


def long_rows(draw: Draw, turn: int) -> Case:
    """Returns a convolution of few long rows, as of sounds: every second one of some planes, the others depthwise."""
    planes, height, width = draw.random.randint(1, 4), draw.random.randint(1, 2), draw.random.randint(600, 1500)
    if turn % 2:
        x = Tensor("x", (1, planes, height, width))
        return _convolution(draw, turn, x, draw.random.choice(CHANNELS), 1)
    x = Tensor("x", (1, draw.random.choice(CHANNELS), height, width), Layout.BLOCKED)
    values = {"x": draw.normal(*x.shape)}
    step, wanted, said = _depthwise(draw, turn, x, values["x"])
    return Case(f"long rows {turn}: {said}, {x.shape}", step, 0, values, wanted)


def many_channels(draw: Draw, turn: int) -> Case:
    """Returns a 3 x 3 convolution of so many channels and pixels that Winograd's products pay, of odd sizes."""
    channels, outputs = draw.random.choice((40, 56, 64, 75)), draw.random.choice((40, 64, 72, 100))
    height, width = draw.random.randint(14, 23), draw.random.randint(19, 33)
    x = Tensor("x", (draw.random.randint(1, 2), channels, height, width), Layout.BLOCKED)
    before = [draw.random.randint(0, 2) for _ in range(2)]
    sizes = [size + pad + draw.random.randint(0, 2) - 2 for size, pad in zip((height, width), before, strict=True)]
    values, output = {"x": draw.normal(*x.shape)}, Tensor("y", (x.shape[0], outputs, *sizes), Layout.BLOCKED)
    weights, bias, end = draw.weights(outputs, channels, 3, 3), draw.normal(outputs), draw.end(turn)
    step = Convolution(output, x, weights, bias, window := Window((3, 3), (1, 1), (before[0], before[1])))
    step = step.with_epilogue(draw.epilogue(end, output, values), output)
    sums = convolved(values["x"], weights, bias, window, (sizes[0], sizes[1]))
    name = f"many channels {turn}: {window}, {x.shape}->{outputs}, {end}"
    return Case(name, step, 0, values, _ended(step, end, sums, values))


def grouped(draw: Draw, turn: int) -> Case:
    """Returns a convolution with groups of more than one output channel."""
    groups = draw.random.choice((2, 3, 5))
    inputs, outputs = groups * draw.random.choice((1, 2, 3, 7, 20)), groups * draw.random.choice((2, 3, 7, 20))
    return _convolution(draw, turn, draw.image(inputs, width=30), outputs, groups)


def transposed(draw: Draw, turn: int) -> Case:
    """Returns a transposed convolution, every third one with groups, every fourth one of volumes."""
    groups, of_group = (1, 1, draw.random.choice((2, 3, 16)))[turn % 3], draw.random.choice((1, 5, 17, 33))
    x = draw.image(groups * draw.random.choice((1, 3, 16, 19) if groups < 16 else (1, 2)), 34, 23 if turn % 2 else 1)
    outputs = groups * (of_group if groups < 16 else 1 + of_group % 3)
    kernel, stride, dilation = (2, 3, 4)[turn % 3], (2, 1, 3)[turn % 3], (1, 1, 1, 2)[turn % 4]
    reach, last = (kernel - 1) * dilation + 1, (x.shape[2] - 1, x.shape[3] - 1)
    pads = tuple(draw.random.randint(0, min(reach, size * stride + reach - 1) // 2) for size in last)
    sizes = [size * stride + reach - pad for size, pad in zip(last, pads, strict=True)]
    sizes = [max(1, size - draw.random.randint(0, min(pad, size - 1))) for size, pad in zip(sizes, pads, strict=True)]
    window = Window((kernel, kernel), (stride, stride), (pads[0], pads[1]), (dilation, dilation))
    depth = None
    if turn % 4 == 1:
        deep, by = draw.random.randint(1, 4), draw.random.choice((1, 2, 3))
        taps, pad = draw.random.choice((1, 2, 3)), draw.random.randint(0, 1)
        depth = Depth(taps, by, 1 + turn % 2, pad, deep, max(1, (deep - 1) * by + taps - pad))
    return _spread(draw, turn, x, outputs, groups, window, (sizes[0], sizes[1]), depth)


def _spread(
    draw: Draw, turn: int, x: Tensor, outputs: int, groups: int, window: Window, sizes: tuple[int, int],
    depth: Depth | None,
) -> Case:  # fmt: skip
    """Returns a transposed convolution of `x`, of as many of them below each other as there is depth."""
    deep, out_deep = (1, 1) if depth is None else (fixed(depth.size), fixed(depth.out_size))
    batch, channels, height, width = fixed_shape(x.shape)
    x = replace(x, shape=(batch, channels, deep * height, width))
    output = Tensor("y", (batch, outputs, out_deep * sizes[0], sizes[1]), Layout.BLOCKED)
    taps = (1 if depth is None else depth.kernel, *map(fixed, window.kernel))
    weights = draw.rounded(draw.normal(outputs, channels // groups, *taps) / np.float32(np.sqrt(channels // groups)))
    values, bias, end = {"x": draw.normal(*fixed_shape(x.shape))}, draw.normal(outputs), draw.end(turn)
    kernels = weights.reshape(outputs, -1, taps[0] * taps[1], taps[2])
    step = Convolution(output, x, kernels, bias, window, groups, is_transposed=True, depth=depth)
    step = step.with_epilogue(draw.epilogue(end, output, values), output)
    data = values["x"].reshape(batch, channels, deep, height, width)
    sums = np.zeros((batch, outputs, out_deep, *sizes))
    for at, tap in np.ndindex(deep, taps[0]):
        place = at if depth is None else at * depth.stride + tap * depth.dilation - fixed(depth.pad)
        if 0 <= place < out_deep:
            part = [
                convolved_transposed(one, kernel, window, (batch, outputs // groups, *sizes))
                for one, kernel in zip(
                    np.split(data[:, :, at], groups, 1), np.split(weights[:, :, tap], groups), strict=True
                )
            ]
            sums[:, :, place] += np.concatenate(part, 1)
    sums = sums.reshape(fixed_shape(output.shape)) + bias.astype(np.float64)[:, None, None]
    name = f"transposed {turn}: {window}, {depth}, {x.shape}->{output.shape}, {groups} groups, {end}"
    return Case(name, step, 0, values, _ended(step, end, sums, values))


def volume(draw: Draw, turn: int) -> Case:
    """Returns a convolution of volumes, every third one with groups."""
    groups = (1, 1, draw.random.choice((2, 3, 16)))[turn % 3]
    image = draw.image(groups * draw.random.choice((1, 3, 16, 19) if groups < 16 else (1, 2)), 30)
    outputs = groups * (draw.random.choice((1, 5, 17, 33)) if groups < 16 else 2)
    window, sizes = draw.window(image, (3, 1, 2)[turn % 3], turn)
    batch, channels, height, width = fixed_shape(image.shape)
    deep, taps, stride, dilation = (draw.random.randint(1, 4) for _ in range(4))
    pad = draw.random.randint(0, (taps - 1) * dilation)
    out_deep = max(1, (deep + 2 * pad - (taps - 1) * dilation - 1) // stride + 1)
    depth = Depth(taps, stride, dilation, pad, deep, out_deep)
    x = replace(image, shape=(batch, channels, deep * height, width))
    output = Tensor("y", (batch, outputs, out_deep * sizes[0], sizes[1]), Layout.BLOCKED)
    values = {"x": draw.normal(*fixed_shape(x.shape))}
    kernel = (taps, *map(fixed, window.kernel))
    weights, bias, end = draw.weights(outputs, channels // groups, *kernel), draw.normal(outputs), draw.end(turn)
    kernels = weights.reshape(outputs, -1, kernel[0] * kernel[1], kernel[2])
    step = Convolution(output, x, kernels, bias, window, groups, depth=depth)
    step = step.with_epilogue(draw.epilogue(end, output, values), output)
    data = values["x"].reshape(batch, channels, deep, height, width)
    sums = np.zeros((batch, outputs, out_deep, *sizes))
    for at, tap in np.ndindex(out_deep, taps):
        place = at * stride + tap * dilation - pad
        if 0 <= place < deep:
            zeros = np.zeros(outputs)
            sums[:, :, at] += convolved(data[:, :, place], weights[:, :, tap], zeros, window, sizes, groups)
    sums = sums.reshape(fixed_shape(output.shape)) + bias.astype(np.float64)[:, None, None]
    name = f"volume {turn}: {window}, {depth}, {x.shape}->{output.shape}, {groups} groups, {end}"
    return Case(name, step, 0, values, _ended(step, end, sums, values))


def lstm(draw: Draw, turn: int) -> Case:
    """Returns the walk of an LSTM: forwards, backwards or both, with first states or none, with last states or none."""
    directions, is_reverse = (2 if turn % 3 == 0 else 1), turn % 3 == 1
    steps, batch = draw.random.randint(1, 9), (1, 5, 3, 17, 8)[turn % 5]
    hidden = (33, 16, 5, 48, 64, 7)[turn % 6]
    shape = (steps + 2 * (turn % 2), batch, directions, hidden)
    values = {
        "gates": draw.numbers.standard_normal((steps, batch, directions, 4 * hidden)).astype(np.float32),
        **{name: draw.numbers.standard_normal((directions, batch, hidden)).astype(np.float32) for name in ("h", "c")},
    }
    weights = (draw.numbers.standard_normal((directions, 4 * hidden, hidden)) / np.sqrt(hidden)).astype(np.float32)
    tensors = {name: Tensor(name, array.shape) for name, array in values.items()}
    first_h, first_c = (tensors[name] if turn % 4 != skipped else None for name, skipped in (("h", 1), ("c", 2)))
    states = States(first_h, first_c)
    step = Recurrent("lstm", Tensor("y", shape), tensors["gates"], weights, states, None, is_reverse)
    first = [values[one.name] if one is not None else np.zeros_like(values["h"]) for one in (first_h, first_c)]
    wanted = walked(values["gates"], weights, *first, (is_reverse, True))
    said = f"{steps} steps, {batch} sequences, {directions} directions, {hidden} units"
    return Case(f"lstm {turn}: {said}", step, 0, values, np.concatenate(wanted)[: shape[0]])


def walked(
    gates: Array, weights: Array, first_h: Array, first_c: Array, backwards: tuple[bool, bool]
) -> tuple[Array, Array, Array]:
    """Returns h of each step, the last h and the last c of an LSTM in float64, each (steps or 1, batch, directions,
    hidden); `backwards` are the directions.

    Source: ONNX LSTM: gates stand in the order input, output, forget, cell.
    """
    steps, batch, directions, width = gates.shape
    states, last = np.zeros((steps, batch, directions, width // 4)), np.zeros((2, batch, directions, width // 4))
    for d in range(directions):
        h, c = first_h[d].astype(np.float64), first_c[d].astype(np.float64)
        for step in reversed(range(steps)) if backwards[d] else range(steps):
            i, o, f, new = np.split(gates[step, :, d] + h @ weights[d].astype(np.float64).T, 4, axis=1)
            c = c / (1 + np.exp(-f)) + np.tanh(new) / (1 + np.exp(-i))
            h = np.tanh(c) / (1 + np.exp(-o))
            states[step, :, d] = h
        last[:, :, d] = h, c
    return states, last[:1], last[1:]


KINDS: dict[str, Callable[[Draw, int], Case]] = {
    "separable": separable,
    "planar_separable": planar_separable,
    "stem": stem,
    "inverted_residual": inverted_residual,
    "pointwise": pointwise,
    "depthwise": depthwise,
    "dense": dense,
    "long rows": long_rows,
    "small images": small_images,
    "many channels": many_channels,
    "grouped": grouped,
    "transposed": transposed,
    "volume": volume,
    "lstm": lstm,
}


def _convolution(draw: Draw, turn: int, x: Tensor, outputs: int, groups: int) -> Case:
    inputs = x.shape[1]
    values = {"x": draw.numbers.standard_normal(x.shape).astype(np.float32)}
    if x.is_blocked:
        values = {"x": draw.rounded(values["x"])}
    kernel = (3, 1, 5, 7, 3)[turn % 5]
    window, sizes = draw.window(x, kernel, turn)
    output = Tensor("y", (x.shape[0], outputs, *sizes), Layout.BLOCKED)
    weights, bias, end = draw.weights(outputs, inputs // groups, kernel, kernel), draw.normal(outputs), draw.end(turn)
    step = Convolution(output, x, weights, bias, window, groups)
    step = step.with_epilogue(draw.epilogue(end, output, values), output)
    wanted = _ended(step, end, convolved(values["x"], weights, bias, window, sizes, groups), values)
    name = f"{step.kind} {turn}: {window}, {x.shape}->{outputs}, {groups} groups, {end}"
    return Case(name, step, 0, values, wanted)


def _depthwise(draw: Draw, turn: int, x: Tensor, data: Array, kernel: int = 0) -> tuple[Convolution, Array, str]:
    """Returns the step, its result as the inner layout keeps it, and its name."""
    channels, kernel = x.shape[1], kernel or (3, 5, 7)[turn % 3]
    window, sizes = draw.window(x, kernel, turn)
    output = Tensor("d", (x.shape[0], channels, *sizes), Layout.BLOCKED)
    weights, bias, end = draw.weights(channels, 1, kernel, kernel), draw.normal(channels), draw.end(turn, may_add=False)
    step = Convolution(output, x, weights, bias, window, channels).with_epilogue(draw.epilogue(end, output, {}), output)
    result = _ended(step, end, convolved(data, weights, bias, window, sizes, channels), {})
    return step, draw.rounded(result), f"{window} {end}"


def _pointwise(
    draw: Draw, turn: int, x: Tensor, data: Array, values: dict[str, Array], end: str, outputs: int = 0, root: str = "y"
) -> tuple[Convolution, Array, str]:
    """Returns the step, its result as the inner layout keeps it, and its name; a residual goes to the values."""
    reads_numbers = _reads({**ENDS, **RESIDUAL_ENDS}[end][0], 2)  # which many panels of outputs must find
    outputs = outputs or (100 if reads_numbers else draw.random.choice(CHANNELS))
    output = Tensor(root, (x.shape[0], outputs, *x.shape[2:]), Layout.BLOCKED)
    weights, bias = draw.weights(outputs, x.shape[1], 1, 1), None if turn % 5 == 4 else draw.normal(outputs)
    step = Convolution(output, x, weights, bias, Window((1, 1)))
    step = step.with_epilogue(draw.epilogue(end, output, values), output)
    sums = np.einsum("oc,nchw->nohw", weights[:, :, 0, 0].astype(np.float64), data.astype(np.float64))
    sums += 0 if bias is None else bias.astype(np.float64)[:, None, None]
    return step, draw.rounded(_ended(step, end, sums, values)), f"{x.shape[1]}->{outputs} {end}"


def _ended(step: Convolution, end: str, sums: Array, values: dict[str, Array]) -> Array:
    number = step.epilogue.channel
    zeros = np.zeros(step.output.shape[1])
    residual = values["r"].astype(np.float64) if step.epilogue.residual is not None else np.zeros(1)
    numbers = (zeros if number is None else number.astype(np.float64))[:, None, None]
    return {**ENDS, **RESIDUAL_ENDS}[end][1](sums, residual, numbers)


def convolved(x: Array, weights: Array, bias: Array, window: Window, sizes: tuple[int, int], groups: int = 1) -> Array:
    """Returns a convolution in float64; whatever the window reads outside the image is zero. Source: ONNX Conv."""
    (batch, channels), (outputs, of_group, *kernel) = x.shape[:2], weights.shape
    spans = [(sizes[i] - 1) * window.strides[i] + (kernel[i] - 1) * window.dilations[i] + 1 for i in range(2)]
    behind = [max(0, spans[i] - window.pads[i] - x.shape[2 + i]) for i in range(2)]
    pads = ((0, 0), (0, 0), *((window.pads[i], behind[i]) for i in range(2)))
    padded = np.pad(x.astype(np.float64), pads).reshape(
        batch, groups, channels // groups, -1, x.shape[3] + pads[3][0] + pads[3][1]
    )
    grouped_weights = weights.astype(np.float64).reshape(groups, outputs // groups, of_group, *kernel)
    result = np.zeros((batch, groups, outputs // groups, *sizes))
    for ky in range(kernel[0]):
        for kx in range(kernel[1]):
            places = [
                slice(tap * window.dilations[i], tap * window.dilations[i] + (sizes[i] - 1) * window.strides[i] + 1,
                      window.strides[i])
                for i, tap in enumerate((ky, kx))
            ]  # fmt: skip
            part = padded[:, :, :, places[0], places[1]]
            result += np.einsum("goc,ngchw->ngohw", grouped_weights[..., ky, kx], part, optimize=True)
    return result.reshape(batch, outputs, *sizes) + bias.astype(np.float64)[:, None, None]


def convolved_transposed(x: Array, weights: Array, window: Window, shape: tuple[int, ...]) -> Array:
    """Returns a transposed convolution in float64, weights (O, I, H, W). Source: ONNX ConvTranspose."""
    reach = [(window.kernel[i] - 1) * window.dilations[i] + 1 for i in range(2)]
    sizes = (max(shape[2 + i] + window.pads[i], x.shape[2 + i] * window.strides[i] + reach[i]) for i in range(2))
    full = np.zeros((*shape[:2], *sizes))
    for y in range(x.shape[2]):
        for column in range(x.shape[3]):
            top, left = y * window.strides[0], column * window.strides[1]
            rows = slice(top, top + reach[0], window.dilations[0])
            columns = slice(left, left + reach[1], window.dilations[1])
            full[:, :, rows, columns] += np.einsum(
                "nc,ochw->nohw", x[:, :, y, column].astype(np.float64), weights.astype(np.float64)
            )
    top, left = window.pads
    return full[:, :, top : top + shape[2], left : left + shape[3]]
