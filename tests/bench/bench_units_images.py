# SPDX-License-Identifier: Apache-2.0
"""Convolution, separable pairs and pooling of any first shape by static units, against rivals.

    python tests/bench/bench_units_images.py [--shapes N] [--special N] [--rounds N] [--only NAME] [--json out.json]

Each case is one operator for every shape: ours by tables; ONNX Runtime and OpenVINO a session with dynamic axes; and,
at some shapes, `special`: what this project's own backend compiles for that very shape (its tensors are plain too). H
and W are drawn evenly by their logarithm, with 1 and primes, and the size that networks have. One process, one thread,
interleaved rounds, CPU time of the process, median over rounds. Ours and `special` are called through Python, ONNX
Runtime with bound memory, OpenVINO with shared tensors. Outputs are compared with ONNX Runtime's; a difference over
1e-5 of the largest value ends the command.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import onnxruntime
import openvino
from native_engines import machine_line
from nndeploy_native.build import build
from nndeploy_native.isa import Isa, isa_for
from nndeploy_native.session import open_session
from nndeploy_native.steps.step import Machine
from nndeploy_native.units.compile_units import build_units
from nndeploy_native.units.images import Convolution, ImageUnits, Pooling, Separable
from nndeploy_native.units.runtime import UnitLibrary
from openvino._pyopenvino import InferRequest

from nndeploy.plugin.interface import OpenOptions
from nndeploy.target.target import host_target

Array = np.ndarray[Any, Any]
Call = Callable[[], Any]
RIVALS = ("special", "onnxruntime", "openvino")
TOLERANCE = 1e-5
PRIMES = (1, 2, 3, 5, 7, 13, 31, 61, 113)
MOST_FLOATS = 1 << 22


@dataclass(frozen=True)
class Case:
    """An operator: `kind` conv, depthwise, separable, max or mean; `size`: H = W in a network."""

    name: str
    kind: str
    channels: int
    out_channels: int
    kernel: int
    stride: int
    size: int

    @property
    def pad(self) -> int:
        """Pads on each side: "same" for odd kernels."""
        return self.kernel // 2 if self.kernel % 2 else 0


CASES = (
    Case("3x3 64 to 64", "conv", 64, 64, 3, 1, 56),
    Case("3x3 256 to 256", "conv", 256, 256, 3, 1, 14),
    Case("3x3 stride 2, 64 to 128", "conv", 64, 128, 3, 2, 56),
    Case("3x3 stride 2, 3 to 32", "conv", 3, 32, 3, 2, 224),
    Case("7x7 stride 2, 3 to 64", "conv", 3, 64, 7, 2, 224),
    Case("1x1 64 to 256", "conv", 64, 256, 1, 1, 56),
    Case("1x1 512 to 128", "conv", 512, 128, 1, 1, 28),
    Case("1x1 stride 2, 256 to 512", "conv", 256, 512, 1, 2, 56),
    Case("depthwise 3x3, 128", "depthwise", 128, 128, 3, 1, 56),
    Case("depthwise 3x3 stride 2, 96", "depthwise", 96, 96, 3, 2, 112),
    Case("depthwise 5x5, 240", "depthwise", 240, 240, 5, 1, 14),
    Case("separable 32 to 64", "separable", 32, 64, 3, 1, 112),
    Case("separable stride 2, 64 to 128", "separable", 64, 128, 3, 2, 112),
    Case("separable 256 to 256", "separable", 256, 256, 3, 1, 28),
    Case("separable 512 to 512", "separable", 512, 512, 3, 1, 14),
    Case("separable 5x5, 240 to 40", "separable", 240, 40, 5, 1, 28),
    Case("max 3x3 stride 2, 64", "max", 64, 64, 3, 2, 112),
    Case("max 2x2 stride 2, 128", "max", 128, 128, 2, 2, 56),
    Case("mean 3x3, 128", "mean", 128, 128, 3, 1, 28),
)


def main() -> None:
    """Prints the table."""
    options = _options()
    isa = isa_for(host_target())
    if isa is None:
        sys.exit("no units for this machine")
    print(machine_line(), end="\n\n")
    random, found = np.random.default_rng(options.seed), dict[str, Any]()
    print("| operator | against | geometric mean | p50 | p10 | least | shapes |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        units = UnitLibrary(build_units(isa, Path(folder)))
        units.measure_costs()
        for case in CASES:
            if options.only in case.name:
                found[case.name] = _case(case, units, isa, options, random)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="image operators of any first shape against rivals")
    parser.add_argument("--shapes", type=int, default=10, help="first shapes of each operator")
    parser.add_argument("--special", type=int, default=3, help="of them, how many are built for as well")
    parser.add_argument("--seconds", type=float, default=0.01, help="of an engine and round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _shapes(case: Case, count: int, random: np.random.Generator) -> list[tuple[int, int, int]]:
    """Returns (N, H, W): the network's first, then drawn ones, a third of them of 1 and primes."""
    found, least = [(1, case.size, case.size)], max(1, case.kernel - 2 * case.pad)
    while len(found) < count:
        if len(found) % 3 == 0:
            height, width = (int(size) for size in random.choice(PRIMES, 2))
        else:
            height, width = (int(size) for size in np.exp(random.uniform(0, np.log(2 * case.size), 2)))
        images = int(random.choice([1, 1, 1, 2, 4]))
        shape = (images, max(least, height), max(least, width))
        if np.prod(shape) * max(case.channels, case.out_channels) <= MOST_FLOATS:
            found.append(shape)
    return found


def _operator(case: Case, units: UnitLibrary, random: np.random.Generator) -> tuple[ImageUnits, onnx.ModelProto]:
    """Returns ours, and the model for the others."""

    def drawn(*shape: int) -> Array:
        return (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    k, pads, strides = case.kernel, (case.pad,) * 4, (case.stride,) * 2
    moves = f"kernel_shape = [{k}, {k}], strides = {list(strides)}, pads = {list(pads)}"
    constants: dict[str, Array] = {}
    if case.kind in ("max", "mean"):
        name = "MaxPool" if case.kind == "max" else "AveragePool"
        ours: ImageUnits = Pooling(units, case.kind, case.channels, (k, k), strides=strides, pads=pads)
        body = f"y = {name}<{moves}>(x)"
    else:
        groups = 1 if case.kind == "conv" else case.channels
        first = case.out_channels if case.kind == "conv" else case.channels
        constants = {"w": drawn(first, case.channels // groups, k, k), "b": drawn(first)}
        body = f"c = Conv<{moves}, group = {groups}>(x, w, b)  y = Relu(c)"
        if case.kind == "separable":
            constants |= {"v": drawn(case.out_channels, case.channels, 1, 1), "d": drawn(case.out_channels)}
            body = body.replace("y =", "r =") + "  p = Conv(r, v, d)  y = Relu(p)"
            ours = Separable(
                units, constants["w"], constants["b"], constants["v"][:, :, 0, 0], constants["d"],
                strides=strides, pads=pads, activation="relu", point_activation="relu",
            )  # fmt: skip
        else:
            ours = Convolution(
                units, constants["w"], constants["b"], strides=strides, pads=pads, groups=groups, activation="relu"
            )
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[N,{case.channels},H,W] x) => (float[N,{case.out_channels},P,Q] y) {{ {body} }}"""
    )
    model.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in constants.items())
    return ours, model


def _special(model: onnx.ModelProto, x: Array, isa: Isa) -> Call:
    """Returns a call of what the own backend compiles for the shape of x."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for dim, size in zip(fixed.graph.input[0].type.tensor_type.shape.dim, x.shape, strict=True):
        dim.dim_value = size
    fixed.graph.output[0].type.tensor_type.ClearField("shape")
    inferred = ir.from_proto(onnx.shape_inference.infer_shapes(fixed, data_prop=True))
    with tempfile.TemporaryDirectory() as folder:
        artifact = build(inferred, Machine(isa), {}, Path(folder))
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    session, feed = open_session(files, artifact.metadata, OpenOptions(threads=1)), {"x": x}
    return lambda: session.run(feed)["y"]


class _Rivals:
    """ONNX Runtime and OpenVINO with one model of dynamic sizes."""

    def __init__(self, model: onnx.ModelProto) -> None:
        data = model.SerializeToString()
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = settings.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(data, settings, providers=["CPUExecutionProvider"])
        core = openvino.Core()
        fixed = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY"}
        self._request = core.compile_model(core.read_model(data), "CPU", fixed).create_infer_request()

    def calls(self, x: Array, out: Array) -> dict[str, Call]:
        """Returns both; ONNX Runtime's result is written to `out`."""
        binding = self._session.io_binding()
        binding.bind_cpu_input("x", x)
        binding.bind_output("y", "cpu", 0, np.float32, out.shape, out.ctypes.data)
        tensor = openvino.Tensor(x, shared_memory=True)
        return {
            "onnxruntime": lambda: self._session.run_with_iobinding(binding),
            "openvino": lambda: InferRequest.infer(self._request, tensor, share_outputs=True, decode_strings=False),
        }


def _case(
    case: Case, units: UnitLibrary, isa: Isa, options: argparse.Namespace, random: np.random.Generator
) -> list[dict[str, Any]]:
    ours, model = _operator(case, units, random)
    rivals, rows = _Rivals(model), []
    for number, (images, height, width) in enumerate(_shapes(case, options.shapes, random)):
        x = random.standard_normal((images, case.channels, height, width)).astype(np.float32)
        out = ours(x)
        wanted = np.zeros_like(out)
        calls: dict[str, Call] = {"ours": lambda x=x, out=out: ours(x, out), **rivals.calls(x, wanted)}  # type: ignore[misc]
        if number < options.special:
            calls["special"] = _special(model, x, isa)
        calls["onnxruntime"]()
        for name in {*calls} - {"onnxruntime", "openvino"}:
            error = float(np.abs(calls[name]() - wanted).max() / max(1e-30, np.abs(wanted).max()))
            if not error <= TOLERANCE:
                sys.exit(f"{case.name}, {x.shape}, {name}: {error:.1e} of the largest value from ONNX Runtime's")
        rows.append({"shape": x.shape, **_raced(calls, options)})
    _report(case.name, rows)
    return rows


def _raced(calls: dict[str, Call], options: argparse.Namespace) -> dict[str, float]:
    """Returns the microseconds of each."""
    times: dict[str, int] = {}
    for name, call in calls.items():
        begin = time.process_time_ns()
        call()
        times[name] = max(1, int(options.seconds * 1e9 / max(1, time.process_time_ns() - begin)))
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(options.rounds):
        names = [*calls][number % len(calls) :] + [*calls][: number % len(calls)]
        for name in names:
            call = calls[name]
            call()  # what the others left in the caches is not this one's business
            begin = time.process_time_ns()
            for _ in range(times[name]):
                call()
            rounds[name].append((time.process_time_ns() - begin) / times[name] / 1e3)
    return {name: statistics.median(values) for name, values in rounds.items()}


def _report(name: str, rows: Sequence[dict[str, Any]]) -> None:
    for rival in RIVALS:
        ratios = sorted(row[rival] / row["ours"] for row in rows if rival in row)
        if ratios:
            mean = statistics.geometric_mean(ratios)
            print(
                f"| {name} | {rival} | {mean:.2f} | {np.median(ratios):.2f} | {np.quantile(ratios, 0.1):.2f} "
                f"| {ratios[0]:.2f} | {len(ratios)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
