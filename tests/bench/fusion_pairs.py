# SPDX-License-Identifier: Apache-2.0
"""Random pairs of a depthwise and a pointwise convolution: as one step of the kernel library, and apart.

A pair has a number, from which all of it follows: kernel, strides, dilations, channels, multiplier, ends, the layout
before and behind it, and the sizes of its images. What stands in blocks is converted before the first of `REPEATS`
equal pairs and behind the last, so that the conversions of both plans are little of their time.
"""

import argparse
import ctypes
import itertools
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import onnx
import onnx_ir as ir
from interleaved import Array
from model_sets import network, real_model, with_constant_weights
from nndeploy_native.expressions import Expression, const, operand
from nndeploy_native.fusion import fused
from nndeploy_native.lowering.table import lower
from nndeploy_native.step_choices import BY_RULE, StepChoice
from nndeploy_native.steps.convolution import Convolution, Window
from nndeploy_native.steps.movement import ChannelParts, Convert
from nndeploy_native.steps.separable import Separable
from nndeploy_native.steps.step import PLAIN, Epilogue, NativeStep
from nndeploy_native.tensors import Layout, Tensor, fixed_shape
from nndeploy_native.transforms import transformed
from plan_calls import Call, aligned, plan_call, raced
from report import Report, geometric_mean
from tuned_plan import tuned_choices

from nndeploy.passes import optimise

SIZES, REPEATS = 5, 4
NETWORK_SIZES, REAL_NETWORKS = (128, 224, 640), ("ppocr_det_mobile_v2", "silero_vad_v2_mini")
MOST_CHANNELS, MOST_SIDE, MOST_OF_ROW, MOST_OF_SOUND = 512, 640, 9000, 160_000
MOST_PRODUCTS, MOST_FLOATS = 6e8, 1.6e7
LEAST, AGAIN, TOLERANCE, PLACE = 0.99, 2, 1e-6, 1800
X: Expression = operand(0)
ENDS: tuple[Expression, ...] = (
    X,
    ("max", X, const(0)),
    ("min", ("max", X, const(0)), const(6)),
    ("div", ("mul", X, ("min", ("max", ("add", X, const(3)), const(0)), const(6))), const(6)),
)
KINDS = ("images", "images", "images", "one row", "1-D")


@dataclass(frozen=True)
class Pair:
    """A pair without the sizes of its images; `kernel`, `strides`, `dilations`: (height, width) each."""

    number: int
    kind: str
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int]
    channels: int
    multiplier: int
    outputs: int
    before: Layout
    behind: Layout
    ends: tuple[Expression, Expression]
    has_residual: bool

    @property
    def between(self) -> int:
        """Channels of what is between the two."""
        return self.channels * self.multiplier

    @property
    def label(self) -> str:
        window = f"{self.kernel[0]}x{self.kernel[1]} s{self.strides[1]} d{self.dilations[1]}"
        sides = f"{self.before} to {self.behind}{' + residual' if self.has_residual else ''}"
        return f"{window} {self.channels}->{self.between}->{self.outputs} {sides}"

    def made(self, size: tuple[int, int]) -> tuple[int, int]:
        """Returns the size of what becomes of images of a size."""
        reach = ((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))
        parts = zip(size, self.pads, reach, self.strides, strict=True)
        height, width = ((one + 2 * pad - far) // stride + 1 for one, pad, far, stride in parts)
        return height, width

    def is_possible(self, size: tuple[int, int]) -> bool:
        height, width = self.made(size)
        most = max(size[0] * size[1] * self.channels, height * width * max(self.between, self.outputs))
        products = height * width * self.between * (self.kernel[0] * self.kernel[1] + self.outputs)
        return min(height, width) > 0 and most <= MOST_FLOATS and products <= MOST_PRODUCTS


def drawn(number: int) -> tuple[Pair, list[tuple[int, int]]]:
    """Returns the pair of a number and the sizes of its images."""
    random = np.random.default_rng((2, number))

    def one_of(*choices: int) -> int:
        return int(random.choice(choices))

    def up_to(most: int, least: int = 1) -> int:
        return round(np.exp(random.uniform(np.log(least), np.log(most))))

    kind = KINDS[number % len(KINDS)]
    is_row = kind == "1-D"
    width = one_of(3, 5, 9, 33) if is_row else one_of(3, 3, 3, 5, 7, 2)
    height = 1 if is_row else width if random.random() < 0.8 else one_of(1, 3, 5)
    stride, dilation = one_of(1, 1, 1, 2, 3), one_of(1, 1, 1, 1, 2, 4)
    kernel, strides = (height, width), (1 if is_row else stride, stride)
    dilations = (1 if is_row else dilation, dilation)
    is_padded = random.random() < 0.85 or kind == "one row"
    pads = [((k - 1) * d + 1) // 2 if is_padded else 0 for k, d in zip(kernel, dilations, strict=True)]
    behind = Layout.PLAIN if random.random() < 0.4 else Layout.BLOCKED
    pair = Pair(
        number=number,
        kind=kind,
        kernel=kernel,
        strides=strides,
        dilations=dilations,
        pads=(pads[0], pads[1]),
        channels=up_to(MOST_CHANNELS),
        multiplier=one_of(1, 1, 1, 1, 1, 1, 2, 3),
        outputs=up_to(MOST_CHANNELS),
        before=Layout.PLAIN if random.random() < 0.4 else Layout.BLOCKED,
        behind=behind,
        ends=(ENDS[one_of(*range(len(ENDS)))], ENDS[one_of(*range(len(ENDS)))]),
        has_residual=behind is Layout.BLOCKED and random.random() < 0.25,
    )
    sizes: list[tuple[int, int]] = []
    while len(sizes) < SIZES:
        if kind == "images":
            size = up_to(MOST_SIDE, 4), up_to(MOST_SIDE, 4)
        else:
            size = 1, up_to(MOST_OF_SOUND if is_row else MOST_OF_ROW, 16)
        if pair.is_possible(size):
            sizes.append(size)
    return pair, sorted(sizes, key=lambda one: one[0] * one[1])


@dataclass(frozen=True)
class Found:
    """What came of a pair at one size: seconds apart and fused, the ratios of apart to fused in each memory.

    `num_chosen`: the steps that are not done by the rule.
    """

    apart: float
    fused: float
    ratios: list[float]
    has_same_bits: bool
    num_chosen: int

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)


def race_pairs(report: Report, lib: ctypes.CDLL, options: argparse.Namespace) -> None:
    """Races pairs and writes what came of them."""
    ratios: dict[str, list[float]] = {}
    slow: list[tuple[object, ...]] = []
    kept = others = tuned = 0
    seconds_of_tuning = options.tuning if options.tuned else 0.0
    for number in options.pairs or range(options.count):
        pair, sizes = drawn(number)
        for size in sizes:
            found = _found(pair, size, lib, options.seconds, options.rounds, seconds_of_tuning)
            if found is None:
                kept += 1
                continue
            others += not found.has_same_bits
            tuned += found.num_chosen > 0
            for name in (pair.kind, f"{pair.before} to {pair.behind}", "all"):
                ratios.setdefault(name, []).append(found.ratio)
            report.sample(number=number, size=size, kind=pair.kind, pair=pair.label, **asdict(found))
            if found.ratio < LEAST:
                times = (f"{seconds * 1e6:.0f}" for seconds in (found.apart, found.fused))
                slow.append((number, pair.label, f"{size[0]}x{size[1]}", *times, f"{found.ratio:.3f}"))
    table = report.table("pairs", "times:", "geometric mean:", "least:", f"below {LEAST}:")
    for name, some in sorted(ratios.items()):
        table.row(name, len(some), f"{geometric_mean(some):.3f}", f"{min(some):.3f}", sum(one < LEAST for one in some))
    report.text(
        f"{others} have other bits fused than apart, within {TOLERANCE} of the largest value. {kept} more are no pair "
        "to the backend: the same steps either way."
    )
    if options.tuned:
        report.text(f"{tuned} cases are not done by the rules, after {options.tuning:g} s of tuning each.")
    if slow:
        table = report.table("number:", "pair", "image", "apart us:", "fused us:", "ratio:")
        for row in slow:
            table.row(*row)


def _found(
    pair: Pair, size: tuple[int, int], lib: ctypes.CDLL, seconds: float, rounds: int, seconds_of_tuning: float
) -> Found | None:
    """Returns what came of a pair at a size, tuned if there is time for that; None where it is no one step."""
    choices = _choices(pair, size, lib, seconds_of_tuning) if seconds_of_tuning else None
    races: list[tuple[list[float], float]] = []
    memory: list[object] = []
    while not races or (len(races) <= AGAIN and statistics.median(ratio for _, ratio in races) < LEAST):
        made = _calls(pair, size, lib, choices)
        if made is None:
            return None
        calls, has_same_bits = made
        races.append(raced(calls[::-1], seconds, rounds))
        memory.append((calls, np.ones(PLACE * len(races), np.uint8)))  # so that the next ones lie elsewhere
    fused_seconds, apart = (statistics.median(times[side] for times, _ in races) for side in range(2))
    num_chosen = sum(one != BY_RULE for one in choices or ())
    return Found(apart, fused_seconds, [ratio for _, ratio in races], has_same_bits, num_chosen)


def _choices(pair: Pair, size: tuple[int, int], lib: ctypes.CDLL, seconds: float) -> tuple[StepChoice, ...] | None:
    """Returns how the tuner does the steps of a pair after so many seconds; None where it is no one step."""
    _, together = _plans(pair, size)
    if not any(isinstance(step, Separable) for step in together):
        return None
    inputs, y, fed = _fed(pair, size)
    return tuned_choices(lib, together, inputs, y, fed, aligned(np.zeros(y.shape, np.float32)), seconds)


def _fed(pair: Pair, size: tuple[int, int]) -> tuple[list[Tensor], Tensor, list[Array]]:
    """Returns the inputs and the output of a plan, and what it is given."""
    random = np.random.default_rng((3, pair.number))
    x, y, residual = _ends(pair, size)
    inputs = [x, residual] if pair.has_residual else [x]
    return inputs, y, [aligned(random.standard_normal(fixed_shape(one.shape), dtype=np.float32)) for one in inputs]


def _calls(
    pair: Pair, size: tuple[int, int], lib: ctypes.CDLL, choices: Sequence[StepChoice] | None
) -> tuple[list[Call], bool] | None:
    """Returns the pair apart and as one step, and whether their outputs have the same bits; None where it is no step.

    The one step is done as `choices` say. Where a window has some eight pixels, its sums are taken in another order.
    """
    plans = _plans(pair, size)
    if not any(isinstance(step, Separable) for step in plans[1]):
        return None
    inputs, y, fed = _fed(pair, size)
    outputs = [aligned(np.zeros(y.shape, np.float32)) for _ in plans]
    ways = zip(plans, outputs, (None, choices), strict=True)
    calls = [plan_call(lib, steps, inputs, y, fed, out, choices=how) for steps, out, how in ways]
    for call in calls:
        call()
    apart, together = outputs
    error = float(np.abs(apart - together).max() / (np.abs(apart).max() or 1))
    if not error <= TOLERANCE:
        sys.exit(f"pair {pair.number} at {size}: {pair.label}: {error:.1e} of the largest value from what it is apart")
    return calls, np.array_equal(apart.view(np.uint32), together.view(np.uint32))


def _ends(pair: Pair, size: tuple[int, int]) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the input, the output and the residual of a plan, in the order of ONNX."""
    made = (1, pair.outputs, *pair.made(size))
    return Tensor("x", (1, pair.channels, *size)), Tensor("y", made), Tensor("r", made)


def _plans(pair: Pair, size: tuple[int, int]) -> tuple[list[NativeStep], list[NativeStep]]:
    """Returns the steps with pairs apart, and with pairs as one step."""
    x, y, residual = _ends(pair, size)
    repeats = 1 if pair.before is pair.behind is Layout.PLAIN else REPEATS
    blocked = {one.name: replace(one, name=f"{one.name}_blocked", layout=Layout.BLOCKED) for one in (x, y, residual)}
    before: list[NativeStep] = [Convert(blocked["r"], residual)] if pair.has_residual else []
    before += [Convert(blocked["x"], x)] if pair.before is Layout.BLOCKED else []
    last = y if pair.behind is Layout.PLAIN else blocked["y"]
    outs = [replace(last, name=last.name if n == repeats - 1 else f"{last.name}{n}") for n in range(repeats)]
    copies = [list(_apart(pair, x, blocked, n, out)) for n, out in enumerate(outs)]
    behind: list[NativeStep] = [Convert(y, blocked["y"])] if pair.behind is Layout.BLOCKED else []
    together = [step for copy, out in zip(copies, outs, strict=True) for step in fused(copy, {out.name})]
    return [*before, *(step for copy in copies for step in copy), *behind], [*before, *together, *behind]


def _apart(pair: Pair, x: Tensor, blocked: dict[str, Tensor], copy: int, out: Tensor) -> Iterator[NativeStep]:
    """Passes the steps of a pair that writes `out`; its own conversions are those of sides that are plain."""
    random = np.random.default_rng((4, pair.number))

    def weights(*shape: int) -> Array:
        return (random.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32)

    image = blocked["x"]
    if pair.before is Layout.PLAIN:
        image = replace(image, name=f"{image.name}{copy}")
        yield Convert(image, x)
    if pair.multiplier > 1:  # as the rule for such convolutions has it
        once, image = image, replace(image, name=f"r{copy}", shape=(1, pair.between, *x.shape[2:]))
        yield ChannelParts(image, (once,), tuple((0, n // pair.multiplier) for n in range(pair.between)))
    shape = (1, pair.between, *out.shape[2:])
    between, made = Tensor(f"d{copy}", shape, Layout.BLOCKED), replace(blocked["y"], name=f"p{copy}")
    window = Window(pair.kernel, pair.strides, pair.pads, pair.dilations)
    first, second = (Epilogue(end) for end in pair.ends)
    yield Convolution(between, image, weights(pair.between, 1, *pair.kernel), weights(pair.between), window,
                      pair.between, first if pair.ends[0] != X else PLAIN)  # fmt: skip
    if pair.has_residual:
        second = replace(second, expression=("add", second.expression, operand(1)), residual=blocked["r"])
    made = out if out.is_blocked else made
    yield Convolution(made, between, weights(pair.outputs, pair.between, 1, 1), weights(pair.outputs), Window((1, 1)),
                      epilogue=second)  # fmt: skip
    if not out.is_blocked:
        yield Convert(out, made)


def race_networks(report: Report, lib: ctypes.CDLL, options: argparse.Namespace) -> None:
    """Races networks whose pairs, with what is fused to these, are one step against the same with pairs apart."""
    table = report.table("network", "steps apart:", "steps fused:", "apart us:", "fused us:", "ratio:")
    for name, model in _networks(options.models):
        optimise(model, {})
        lowered = lower(transformed(model), {})
        (x,), (y,) = lowered.inputs.values(), lowered.outputs.values()
        together = fused(lowered.steps, {y.name})
        with patch("nndeploy_native.fusion.fuse_separable", lambda steps, _: steps):
            apart = fused(lowered.steps, {y.name})
        fed = [aligned(np.random.default_rng(5).standard_normal(fixed_shape(x.shape), dtype=np.float32))]
        outs = [aligned(np.zeros(fixed_shape(y.shape), np.float32)) for _ in range(2)]
        calls = [
            plan_call(lib, steps, [x], y, fed, out, constants=lowered.constants)
            for steps, out in zip((together, apart), outs, strict=True)
        ]
        (fast, slow), ratio = raced(calls, options.seconds, options.rounds)
        error = float(np.abs(outs[0] - outs[1]).max() / np.abs(outs[1]).max())
        if not error <= TOLERANCE:
            sys.exit(f"{name}: {error:.1e} of the largest value from what it is apart")
        table.row(name, len(apart), len(together), f"{slow * 1e6:.0f}", f"{fast * 1e6:.0f}", f"{ratio:.3f}")
        report.sample(network=name, apart=slow, fused=fast, ratio=ratio)


def _networks(folder: Path) -> Iterator[tuple[str, ir.Model]]:
    for kind, size in itertools.product(("v1", "v2"), NETWORK_SIZES):
        yield f"MobileNet{kind.upper()}, {size} x {size}", ir.from_proto(network(kind, size))
    for name in REAL_NETWORKS if folder.exists() else ():
        one = real_model(folder, name)
        proto = with_constant_weights(one.path)
        for value in proto.graph.input:
            for axis, size in zip(value.type.tensor_type.shape.dim, one.inputs[value.name].shape, strict=True):
                axis.dim_value = size
        yield name, ir.from_proto(onnx.shape_inference.infer_shapes(proto))
