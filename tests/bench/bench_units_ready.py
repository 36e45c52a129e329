# SPDX-License-Identifier: Apache-2.0
"""From a shape never seen to its first result: static units, ONNX Runtime, OpenVINO, and builds for that very shape.

    python tests/bench/bench_units_ready.py [--shapes N] [--builds N] [--json out.json]

relu(x W + b) with constant W; M from 1 to 256, each M once for an engine, which has just run M = 257. What is told is
the first call less the median of five later ones: what a shape costs that is new. Ours in C, another product having
just run the same, and through Python as it is called. For OpenVINO's static
rebuild (reshape, compile_model, the first call) and TensorRT-RTX's ahead-of-time part (network and engine, no GPU) all
of it is told. Of CPU and clock time the less is taken, which is kind to what works with threads. Outputs are
compared with NumPy in float64.
"""

import argparse
import ctypes
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import openvino
from bench_units import Array, Ours, ours_in
from native_engines import machine_line
from nndeploy_native.units.form import Form
from nndeploy_native.units.runtime import Product
from nndeploy_tensorrt.engine import EngineRequest, build_engine
from nndeploy_tensorrt.library import RTX, installed_version, is_installed

SIZES = ((256, 256), (768, 768), (1024, 1000), (768, 3072))
MOST_M, LATER = 256, 5
OPENVINO = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY"}
CAPABILITY = "8.9"
TOLERANCE = 1e-4
GOALS_US = {"ours, in C": 5.0, "ours, Python": 50.0}
BUILDS = ("OpenVINO, rebuilt", "TensorRT-RTX, built")
TIMES = 500
Run = Callable[[Array], Array]


def main() -> None:
    """Prints a table, and whether each goal is reached."""
    options = _options()
    print(machine_line())
    reason = f"TensorRT-RTX {installed_version(RTX.flavour)}" if is_installed(RTX.flavour) else f"no {RTX.package}"
    print(f"{reason}; M 1 to {MOST_M}, {options.shapes} of them, {options.builds} for builds\n")
    print("| K x N | what | median us | p90 us | median over ours through Python | goal |")
    print("| --- | --- | ---: | ---: | ---: | --- |")
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        ours = ours_in(Path(folder))
        for k, n in SIZES:
            found[f"{k}x{n}"] = over = _measured(ours, k, n, options)
            _print(f"{k}x{n}", over)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="time to the first result at a new shape")
    parser.add_argument("--shapes", type=int, default=40, help="of each K x N")
    parser.add_argument("--builds", type=int, default=4, help="of them, how many are built for")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _measured(ours: Ours, k: int, n: int, options: argparse.Namespace) -> dict[str, list[float]]:
    """Returns microseconds by engine, one for each M."""
    random = np.random.default_rng(k + n)
    weights = (random.standard_normal((k, n)) / k**0.5).astype(np.float32)
    bias = random.standard_normal(n).astype(np.float32)
    model = _model(weights, bias)
    shapes = random.permutation(np.arange(1, MOST_M + 1))[: options.shapes].tolist()
    product = Product(ours.units, Form(k, n, "relu"), weights, bias)
    engines: dict[str, Run] = {
        "ours, Python": product,
        "ONNX Runtime": _onnxruntime(model),
        "OpenVINO, dynamic": _openvino(openvino.Core().read_model(model.SerializeToString())),
    }
    over: dict[str, list[float]] = {"ours, in C": _in_c(ours, k, n, shapes, weights)}
    before = np.ones((MOST_M + 1, k), np.float32)
    for number, m in enumerate(shapes):
        fresh = random.standard_normal((m, k)).astype(np.float32)
        x = fresh.copy()
        wanted = np.maximum(x.astype(np.float64) @ weights + bias, 0)
        for name, run in engines.items():
            run(before)  # what another engine left in the caches is not this one's business
            np.copyto(x, fresh)  # as the operator before it would
            over.setdefault(name, []).append(_first_over_later(name, run, x, wanted))
        if number < options.builds:
            for name, took in _builds(model, x, wanted).items():
                over.setdefault(name, []).append(took)
    return over


def _model(weights: Array, bias: Array) -> onnx.ModelProto:
    k, n = weights.shape
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[M,{k}] x) => (float[M,{n}] y) {{ z = Gemm(x, w, b)  y = Relu(z) }}"""
    )
    arrays = (onnx.numpy_helper.from_array(weights, "w"), onnx.numpy_helper.from_array(bias, "b"))
    model.graph.initializer.extend(arrays)
    return model


def _onnxruntime(model: onnx.ModelProto) -> Run:
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    return lambda x: np.asarray(session.run(None, {"x": x})[0])


def _openvino(model: openvino.Model) -> Run:
    request = openvino.Core().compile_model(model, "CPU", OPENVINO).create_infer_request()
    return lambda x: np.asarray(request.infer([x], share_inputs=True)[0])


def _builds(model: onnx.ModelProto, x: Array, wanted: Array) -> dict[str, float]:
    """Returns the microseconds of each way to build for the shape of x."""
    read = openvino.Core().read_model(model.SerializeToString())

    def rebuilt() -> Array:
        read.reshape({"x": list(x.shape)})
        return _openvino(read)(x)

    took, out = _timed(rebuilt)
    _check(BUILDS[0], out, wanted)
    found = {BUILDS[0]: took}
    if is_installed(RTX.flavour):
        fixed = onnx.ModelProto.FromString(model.SerializeToString())
        for value in (*fixed.graph.input, *fixed.graph.output):
            value.type.tensor_type.shape.dim[0].dim_value = x.shape[0]
        data, request = fixed.SerializeToString(), EngineRequest(RTX.flavour, (CAPABILITY,))
        found[BUILDS[1]] = _timed(lambda: build_engine(data, request))[0]
    return found


def _first_over_later(name: str, run: Run, x: Array, wanted: Array) -> float:
    first, out = _timed(lambda: run(x))
    _check(name, out, wanted)
    return first - statistics.median(_timed(lambda: run(x))[0] for _ in range(LATER))


def _in_c(ours: Ours, k: int, n: int, shapes: Sequence[int], weights: Array) -> list[float]:
    """Returns a first call less later ones, in C; the product has served no shape, another one has just run it."""
    warm, over = Product(ours.units, Form(k, n), weights), []
    memory = np.zeros(1 << 22, np.float32)
    run = ours.units.functions.nnd_bench_call
    run.argtypes, run.restype = (ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_ssize_t] * 5), ctypes.c_double
    for m in shapes:
        x, out = np.ones((m, k), np.float32), np.zeros((m, n), np.float32)
        fresh, op = Product(ours.units, Form(k, n), weights), warm.operation(x, None, out)
        op.scratch = memory.ctypes.data + -memory.ctypes.data % 64
        products = (*[warm] * (LATER + 1), fresh, *[warm] * LATER)
        times = [run(product.handle, ctypes.byref(op), m, n, k, memory.size - 16, 1) for product in products]
        first = times.pop(LATER + 1)
        over.append((first - statistics.median(times[1:])) / 1e3)
    return over


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Returns microseconds, the less of CPU and clock time, and the result."""
    clock, cpu = time.perf_counter_ns(), time.process_time_ns()
    result = call()
    cpu, clock = time.process_time_ns() - cpu, time.perf_counter_ns() - clock
    return min(clock, cpu) / 1e3, result


def _check(name: str, out: Array, wanted: Array) -> None:
    error = float(np.abs(out - wanted).max()) / max(1.0, float(np.abs(wanted).max()))
    if out.shape != wanted.shape or not error <= TOLERANCE:
        sys.exit(f"{name} at {wanted.shape}: wrong by {error:.1e}")


def _print(name: str, over: Mapping[str, Sequence[float]]) -> None:
    ours = max(1.0, statistics.median(over["ours, Python"]))
    for what, values in over.items():
        median, times = statistics.median(values), statistics.median(values) / ours
        goal = "-"
        if what in GOALS_US:
            goal = f"<= {GOALS_US[what]:g} us: {'reached' if median <= GOALS_US[what] else 'missed'}"
        elif what in BUILDS:
            goal = f">= {TIMES} x: {'reached' if times >= TIMES else 'missed'}"
        print(f"| {name} | {what} | {median:.1f} | {np.quantile(values, 0.9):.1f} | {times:.1f} | {goal} |", flush=True)


if __name__ == "__main__":
    main()
