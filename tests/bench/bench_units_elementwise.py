# SPDX-License-Identifier: Apache-2.0
"""Element-wise chains, softmax, layer normalisation and reductions at random shapes: own units, ONNX Runtime, OpenVINO.

    python tests/bench/bench_units_elementwise.py [--quick] [--shapes N] [--only NAME] [--json out.json]

Each case is one program for every shape: ours by tables, theirs a session with dynamic axes. Each shape is given to all
three in turn in this process, one thread each, through Python as a user calls them; the least of a few turns of CPU
time is taken for each, so that other work on the machine counts less. The first call on a shape is not timed. Shapes
are drawn logarithmically; a quarter of the sizes are 1 or prime. Every output is compared with NumPy in float64.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import openvino
from nndeploy_native.isa import isa_for
from nndeploy_native.units.compile_units import build_units
from nndeploy_native.units.rows import RowStep, RowUnits
from nndeploy_native.units.runtime import UnitLibrary

from nndeploy.target.target import host_target

Array = np.ndarray[Any, Any]
TOLERANCE = 2e-5
"""Of the largest value; a row of two nearly equal numbers is ill conditioned in layer normalisation."""
GOAL = 2.5  # of the geometric mean over ONNX Runtime
TURNS = 5
TURN_SECONDS = 0.001
MOST_FLOATS = 1 << 20
PRIMES = (1, 1, 2, 3, 7, 13, 31, 61, 127, 257, 509, 1021, 2039)


@dataclass(frozen=True)
class Case:
    """A model as ONNX text with its dynamic axes, our steps for it, and its operands' shapes for M x N."""

    name: str
    text: str
    steps: tuple[RowStep, ...]
    shapes: Callable[[int, int], list[tuple[int, ...]]]
    wanted: Callable[..., Array]


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def _layer_norm(x: Array, scale: Array, shift: Array) -> Array:
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return np.asarray(y * scale + shift)


_AXES = "axes = Constant<value_ints = [-1]>()  "
_IN = "g (float[M, N] x{}) => (float[{}] y) {{ {} }}"
CASES = (
    Case("softmax", _IN.format("", "M, N", "y = Softmax<axis = -1>(x)"), ("softmax",), lambda m, n: [(m, n)], _softmax),
    Case(
        "layer-norm",
        _IN.format(", float[N] s, float[N] b", "M, N", "y = LayerNormalization<axis = -1, epsilon = 0.00001>(x, s, b)"),
        ("layer_norm",), lambda m, n: [(m, n), (n,), (n,)], _layer_norm,
    ),
    Case(
        "scale-shift-relu (M, N) * (N) + (N)",
        _IN.format(", float[N] s, float[N] b", "M, N", "p = Mul(x, s)  q = Add(p, b)  y = Relu(q)"),
        (("mul", 1), ("add", 2), "relu"), lambda m, n: [(m, n), (n,), (n,)],
        lambda x, s, b: np.maximum(x * s + b, 0),
    ),
    Case(
        "gate (M, N) * (M, 1) + (N), tanh",
        _IN.format(", float[M, 1] s, float[N] b", "M, N", "p = Mul(x, s)  q = Add(p, b)  y = Tanh(q)"),
        (("mul", 1), ("add", 2), "tanh"), lambda m, n: [(m, n), (m, 1), (n,)], lambda x, s, b: np.tanh(x * s + b),
    ),
    Case(
        "silu (M, N) + (M, N)",
        _IN.format(", float[M, N] b", "M, N", "p = Add(x, b)  q = Sigmoid(p)  y = Mul(p, q)"),
        (("add", 1), "silu"), lambda m, n: [(m, n), (m, n)], lambda x, b: (x + b) / (1 + np.exp(-(x + b))),
    ),
    Case(
        "distance |(M, N) - (N)| / (M, 1)",
        _IN.format(", float[N] b, float[M, 1] s", "M, N", "p = Sub(x, b)  q = Abs(p)  y = Div(q, s)"),
        (("sub", 1), "abs", ("div", 2)), lambda m, n: [(m, n), (n,), (m, 1)], lambda x, b, s: np.abs(x - b) / s,
    ),
    Case(
        "mean", _IN.format("", "M, 1", _AXES + "y = ReduceMean<keepdims = 1>(x, axes)"),
        ("mean",), lambda m, n: [(m, n)], lambda x: x.mean(-1, keepdims=True),
    ),
    Case(
        "largest", _IN.format("", "M, 1", _AXES + "y = ReduceMax<keepdims = 1>(x, axes)"),
        ("largest",), lambda m, n: [(m, n)], lambda x: x.max(-1, keepdims=True),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Sample:
    """One shape, measured: microseconds of CPU time."""

    case: str
    m: int
    n: int
    ours_us: float
    onnxruntime_us: float
    openvino_us: float


def main() -> None:
    """Prints a row for each case: medians and the ratios' geometric mean, 10th percentile and least."""
    parser = argparse.ArgumentParser(description="element-wise units against ONNX Runtime and OpenVINO, one thread")
    parser.add_argument("--quick", action="store_true", help="100 shapes a case")
    parser.add_argument("--shapes", type=int, default=1000)
    parser.add_argument("--only", default="", help="cases whose name has this")
    parser.add_argument("--json", type=Path, help="all samples as JSON")
    options = parser.parse_args()
    isa = isa_for(host_target())
    if isa is None:
        sys.exit("no fp32 kernels for this machine")
    with tempfile.TemporaryDirectory() as folder:
        library = UnitLibrary(build_units(isa, Path(folder)))
    versions = f"ONNX Runtime {onnxruntime.__version__}, OpenVINO {openvino.__version__}"
    print(f"{isa.name}, {versions}; ratio: theirs over ours\n")
    print("| case | ours us, p50 | ONNX Runtime: geomean, p10, least | OpenVINO: geomean, p10, least | goal |")
    print("| --- | ---: | ---: | ---: | --- |")
    samples: list[Sample] = []
    for case in CASES:
        if options.only in case.name:
            found = _measured(case, library, 100 if options.quick else options.shapes)
            samples += found
            print(_line(case, found), flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(one) for one in samples], indent=1))


def _measured(case: Case, library: UnitLibrary, count: int) -> list[Sample]:
    random = np.random.default_rng(20261122)
    units = RowUnits(library, list(case.steps), epsilon=1e-5)
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {case.text}')
    names = [one.name for one in proto.graph.input]
    session, request = _onnxruntime(proto), _openvino(proto)
    samples = []
    for _ in range(count):
        m, n = _shape(random)
        operands = [random.uniform(0.5, 2, shape).astype(np.float32) for shape in case.shapes(m, n)]
        operands[0] = random.standard_normal((m, n)).astype(np.float32)
        feeds = dict(zip(names, operands, strict=True))
        wanted = case.wanted(*(one.astype(np.float64) for one in operands))
        calls: tuple[Callable[[], Any], ...] = (
            lambda operands=operands: units(*operands),
            lambda feeds=feeds: session.run(None, feeds)[0],
            lambda operands=operands: request.infer(operands, share_inputs=True, share_outputs=True)[0],
        )
        for who, call in zip(("own units", "ONNX Runtime", "OpenVINO"), calls, strict=True):
            _check(f"{who}, {case.name} {m} x {n}", call(), wanted, who == "own units")
        samples.append(Sample(case.name, m, n, *_times(calls)))
    return samples


def _shape(random: np.random.Generator) -> tuple[int, int]:
    def size(most: int) -> int:
        if random.random() < 0.25:
            return int(random.choice([prime for prime in PRIMES if prime <= most]))
        return int(np.exp(random.uniform(0, np.log(most + 1))))

    n = size(4096)
    return size(min(4096, MOST_FLOATS // n)), n


def _onnxruntime(proto: onnx.ModelProto) -> Any:
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(proto.SerializeToString(), settings, providers=["CPUExecutionProvider"])


def _openvino(proto: onnx.ModelProto) -> Any:
    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": "1", "NUM_STREAMS": "1", "INFERENCE_PRECISION_HINT": "f32"}
    model = core.read_model(proto.SerializeToString())
    return core.compile_model(model, "CPU", settings).create_infer_request()


def _check(where: str, got: Array, wanted: Array, is_ours: bool) -> None:
    error = float(np.abs(got - wanted).max()) / max(1.0, float(np.abs(wanted).max()))
    if is_ours and not (got.shape == wanted.shape and error <= TOLERANCE):
        sys.exit(f"{where}: wrong by {error:.1e}")
    if not is_ours and not error <= 1e-3:
        print(f"{where}: differs from float64 by {error:.1e}", file=sys.stderr)


def _times(calls: tuple[Callable[[], Any], ...]) -> list[float]:
    """Returns the microseconds of each, the least of turns that take about as long for all."""
    repeats = [max(1, int(TURN_SECONDS / max(1e-6, _turn(call, 1)))) for call in calls]
    turns = [[_turn(call, many) for call, many in zip(calls, repeats, strict=True)] for _ in range(TURNS)]
    return [1e6 * min(turn[number] for turn in turns) for number in range(len(calls))]


def _turn(call: Callable[[], Any], times: int) -> float:
    begin = time.process_time_ns()
    for _ in range(times):
        call()
    return (time.process_time_ns() - begin) / times / 1e9


def _line(case: Case, samples: list[Sample]) -> str:
    def ratios(theirs: str) -> tuple[float, float, float]:
        found = sorted(getattr(one, theirs) / one.ours_us for one in samples)
        return statistics.geometric_mean(found), found[len(found) // 10], found[0]

    ours = statistics.median(one.ours_us for one in samples)
    by_rival = [ratios("onnxruntime_us"), ratios("openvino_us")]
    goal = f"{GOAL:g}: {'reached' if by_rival[0][0] >= GOAL else 'missed'}"
    cells = [", ".join(f"{ratio:.2f}" for ratio in found) for found in by_rival]
    return f"| {case.name} | {ours:.1f} | {' | '.join(cells)} | {goal} |"


if __name__ == "__main__":
    main()
