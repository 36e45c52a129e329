# SPDX-License-Identifier: Apache-2.0
"""Matrix products of any first shape by static units, against builds for that very shape, ONNX Runtime and OpenVINO.

    python tests/bench/bench_units.py [--thousand] [--only NAME] [--shapes N] [--special N] [--seconds S] [--rounds N]
        [--json out.json]

relu(x W + b) with constant W at five K x N; M is drawn evenly by its logarithm from 1..2048, with 1 and primes.
Then x w with all three dimensions drawn from 1..1024. One process, one thread, interleaved rounds; CPU time of the
process, median over rounds. All are called the leanest way that they have: ours by one C function, ONNX Runtime with
bound memory, OpenVINO with shared tensors. `special`: the same tiles with every size a constant (units_special.py).
Outputs are compared with ONNX Runtime's; a difference over 1e-5 of the largest value, or of the root of K where all
cancel, ends the command. Last the costs of tables and of the interpreter, in loops in C (units_loops.h).
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import openvino
from native_engines import machine_line
from nndeploy_native.isa import Isa, isa_for
from nndeploy_native.library import library_from_source
from nndeploy_native.units.form import Form
from nndeploy_native.units.runtime import Matmul, Product, UnitLibrary
from nndeploy_native.units.table import table_at
from openvino._pyopenvino import InferRequest
from units_special import special_source

from nndeploy.target.target import host_target

SIZES = ((256, 256), (768, 768), (1024, 1000), (768, 3072), (3072, 768))
PRIMES = (2, 3, 5, 7, 13, 17, 31, 61, 113, 251, 509, 1021)
GOALS = {"special": (0.99, 0.97, 0.0), "onnxruntime": (1.2, 0.97, 0.0), "openvino": (1.1, 0.95, 0.0)}
"""Geometric mean, 10th percentile and least of all ratios, at least."""
DYNAMIC_GOALS = {"onnxruntime": (1.2, 1.0, 0.97), "openvino": (1.1, 0.95, 0.0)}
THOUSAND = {"shapes": 1000, "seconds": 0.001, "rounds": 5}
LONG_ROUNDS = 3
TOLERANCE = 1e-5
Array = np.ndarray[Any, Any]
Call = Callable[[], Any]


class _BoundCall(ctypes.Structure):
    """struct nnd_bound_call of units_loops.h; it begins with what a special build reads."""

    _fields_ = (
        ("op", Matmul), ("product", ctypes.c_void_p), ("m", ctypes.c_ssize_t), ("n", ctypes.c_ssize_t),
        ("k", ctypes.c_ssize_t), ("scratch", ctypes.c_ssize_t),
    )  # fmt: skip


@dataclass
class Ours:
    """Our library, with what loops and an interpreter without units need."""

    isa: Isa
    units: UnitLibrary
    idle: UnitLibrary

    def call(self, product: Product, x: Array, weights: Array | None, out: Array, by: Any = None) -> Call:
        """Returns one C function bound to its memory: look-up, table and units."""
        (m, k), n = x.shape, out.shape[1]
        product(x, weights, out)
        op = product.operation(x, weights, out)
        memory = np.zeros(1 << 24, np.float32)
        op.scratch = memory.ctypes.data + -memory.ctypes.data % 64
        bound = _BoundCall(op, product.handle, m, n, k, memory.size - 16)
        function, at = by or self.units.functions.nnd_bench_bound, ctypes.byref(bound)
        function.argtypes, function.restype = (ctypes.c_void_p,), None

        def call(_: Any = (op, memory, x, weights, out, bound)) -> None:
            function(at)

        return call


def main() -> None:
    """Prints the tables."""
    options = _options()
    print(machine_line(), end="\n\n")
    random, found = np.random.default_rng(options.seed), dict[str, Any]()
    with tempfile.TemporaryDirectory() as folder:
        ours = ours_in(Path(folder))
        print("| K x N | against | geometric mean | p50 | p10 | least | shapes | goal: mean, p10, least |")
        print("| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |")
        for k, n in SIZES:
            if options.only in f"{k}x{n}":
                found[f"{k}x{n}"] = _constant(ours, k, n, options, random, Path(folder))
        if options.only in "dynamic":
            found["dynamic"] = _dynamic(ours, options, random)
        print()
        found["tables"] = _tables(ours, random)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="products of any first shape against rivals")
    parser.add_argument("--thousand", action="store_true", help="1,000 shapes of each, timed more shortly")
    parser.add_argument("--only", default="", metavar="NAME", help="one K x N (768x768), or dynamic")
    parser.add_argument("--shapes", type=int, default=40, help="first shapes of each K x N, and of the dynamic product")
    parser.add_argument("--special", type=int, default=8, help="of them, how many are built for as well")
    parser.add_argument("--seconds", type=float, default=0.01, help="of an engine and round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.thousand:
        vars(options).update(THOUSAND)
    return options


def ours_in(folder: Path) -> Ours:
    """Returns our library with loops in C, built in a folder, its costs measured."""
    isa = isa_for(host_target())
    if isa is None:
        sys.exit("no units for this machine")
    loops = Path(__file__).with_name("units_loops.h").read_text(encoding="utf-8")
    units = UnitLibrary(library_from_source(loops, isa, folder))
    units.measure_costs()
    idle = UnitLibrary(library_from_source(f"#define NND_UNITS_IDLE\n{loops}", isa, folder))
    idle.costs = units.costs
    return Ours(isa, units, idle)


def _drawn(random: np.random.Generator, count: int, most: int) -> list[int]:
    """Returns sizes 1..most, evenly by their logarithm."""
    return [int(size) for size in np.exp(random.uniform(0, np.log(most + 1), count))]


def _constant(
    ours: Ours, k: int, n: int, options: argparse.Namespace, random: np.random.Generator, folder: Path
) -> list[dict[str, float]]:
    weights = (random.standard_normal((k, n)) / k**0.5).astype(np.float32)
    bias = random.standard_normal(n).astype(np.float32)
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[M,{k}] x) => (float[M,{n}] y) {{ z = Gemm(x, w, b)  y = Relu(z) }}"""
    )
    model.graph.initializer.extend(
        (onnx.numpy_helper.from_array(weights, "w"), onnx.numpy_helper.from_array(bias, "b"))
    )
    rivals = _Rivals(model)
    product = Product(ours.units, Form(k, n, "relu"), weights, bias)
    fixed = [1, *PRIMES][: max(1, options.shapes // 3)]
    shapes = [*fixed, *_drawn(random, options.shapes - len(fixed), 2048)]
    specials = set(range(0, len(shapes), max(1, len(shapes) // max(1, options.special)))) if options.special else set()
    rows = []
    for number, m in enumerate(shapes):
        x, out = random.standard_normal((m, k)).astype(np.float32), np.zeros((m, n), np.float32)
        calls = {"ours": ours.call(product, x, None, out)}
        if number in specials:
            source = special_source(table_at(product.table(m), m), relu=True)
            special = UnitLibraryFunction(library_from_source(source, ours.isa, folder)).function
            specially = np.zeros_like(out)
            calls["special"] = ours.call(product, x, None, specially, special)
            specially[:] = np.nan
            calls["special"]()
            if not np.array_equal(specially, product(x)):
                sys.exit(f"the special build at {x.shape} differs")
        calls |= rivals.calls({"x": x}, (m, n))
        rows.append({"m": m, **_raced(calls, out, rivals, options)})
    _report(f"{k}x{n}", rows)
    return rows


class UnitLibraryFunction:
    """The function of a library that is made for one shape."""

    def __init__(self, data: bytes) -> None:
        """Loads it."""
        from nndeploy.files.shared_object import library_from_bytes

        self.function = library_from_bytes(data).nnd_special
        self.function.argtypes, self.function.restype = (ctypes.c_void_p,), None


def _dynamic(ours: Ours, options: argparse.Namespace, random: np.random.Generator) -> list[dict[str, float]]:
    rivals = _Rivals(
        onnx.parser.parse_model(
            """<ir_version: 8, opset_import: ["": 17]>
            g (float[M,K] x, float[K,N] w) => (float[M,N] y) { y = MatMul(x, w) }"""
        )
    )
    product, rows = Product(ours.units, Form()), []
    for m, n, k in zip(*(_drawn(random, options.shapes, 1024) for _ in range(3)), strict=True):
        x, weights = (random.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
        out = np.zeros((m, n), np.float32)
        calls = {"ours": ours.call(product, x, weights, out), **rivals.calls({"x": x, "w": weights}, (m, n))}
        rows.append({"m": m, "n": n, "k": k, **_raced(calls, out, rivals, options, k**0.5)})
    _report("all dynamic", rows, DYNAMIC_GOALS)
    return rows


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
        self.output = np.zeros(0, np.float32)

    def calls(self, inputs: dict[str, Array], shape: tuple[int, int]) -> dict[str, Call]:
        self.output = np.zeros(shape, np.float32)
        binding = self._session.io_binding()
        for name, value in inputs.items():
            binding.bind_cpu_input(name, value)
        binding.bind_output("y", "cpu", 0, np.float32, shape, self.output.ctypes.data)
        tensors = {name: openvino.Tensor(value, shared_memory=True) for name, value in inputs.items()}
        feed = tensors["x"] if len(tensors) == 1 else tensors
        return {
            "onnxruntime": lambda: self._session.run_with_iobinding(binding),
            "openvino": lambda: InferRequest.infer(self._request, feed, share_outputs=True, decode_strings=False),
        }


def _raced(
    calls: dict[str, Call], out: Array, rivals: _Rivals, options: argparse.Namespace, usual: float = 0.0
) -> dict[str, float]:
    """Returns the microseconds of each; the outputs have been compared, by what is `usual` where all are smaller."""
    times: dict[str, int] = {}
    for name, call in calls.items():
        call()
        begin = time.process_time_ns()
        call()
        times[name] = max(1, int(options.seconds * 1e9 / max(1, time.process_time_ns() - begin)))
    error = float(np.abs(out - rivals.output).max() / max(1e-30, usual, np.abs(rivals.output).max()))
    if not error <= TOLERANCE:
        sys.exit(f"{out.shape}: {error:.1e} of the largest value from ONNX Runtime's")
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(options.rounds if max(times.values()) > 1 else min(LONG_ROUNDS, options.rounds)):
        names = [*calls][number % len(calls) :] + [*calls][: number % len(calls)]
        for name in names:
            call = calls[name]
            if times[name] > 1:
                call()  # what the others left in the caches is not this one's business
            begin = time.process_time_ns()
            for _ in range(times[name]):
                call()
            rounds[name].append((time.process_time_ns() - begin) / times[name] / 1e3)
    return {name: statistics.median(values) for name, values in rounds.items()}


def _report(name: str, rows: Sequence[dict[str, float]], goals: Mapping[str, tuple[float, ...]] = GOALS) -> None:
    for rival, goal in goals.items():
        ratios = sorted(row[rival] / row["ours"] for row in rows if rival in row)
        if ratios:
            mean, p10 = statistics.geometric_mean(ratios), float(np.quantile(ratios, 0.1))
            is_reached = all(found >= least for found, least in zip((mean, p10, ratios[0]), goal, strict=True))
            wanted = ", ".join(f"{least:g}" for least in goal if least)
            print(
                f"| {name} | {rival} | {mean:.2f} | {np.median(ratios):.2f} | {p10:.2f} | {ratios[0]:.2f} "
                f"| {len(ratios)} | {wanted}: {'reached' if is_reached else 'missed'} |",
                flush=True,
            )


def _tables(ours: Ours, random: np.random.Generator) -> dict[str, float]:
    """Returns and prints what tables and the interpreter cost, in nanoseconds, and bytes."""
    found: dict[str, float] = {}
    weights = np.zeros((768, 1000), np.float32)
    for name, product, columns in (
        ("one dimension", Product(ours.units, Form(768, 1000, "relu"), weights), None),
        ("three dimensions", Product(ours.units, Form()), 1024),
    ):
        shapes = np.array(
            [(m, *((1000, 768) if columns is None else _drawn(random, 2, columns))) for m in _drawn(random, 64, 2048)],
            np.int32,
        )
        ns = np.zeros(3)
        run = ours.units.functions.nnd_bench_tables
        run.argtypes, run.restype = (
            (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_ssize_t, ctypes.c_void_p),
            None,
        )
        run(product.handle, shapes.ctypes.data, len(shapes), 2000, ns.ctypes.data)
        for what, value in zip(("look-up and copy", "quick", "optimal"), ns, strict=True):
            found[f"{name}, {what}"] = float(value)
            print(f"{name}, {what}: {value:.0f} ns")
    product = Product(ours.units, Form(768, 1000, "relu"), weights)
    tables = {bytes(product.table_memory(m, 1000, 768)) for m in random.integers(1, 4096, 1000).tolist()}
    found["bytes"] = sum(int.from_bytes(one[24:28], "little") for one in tables)
    print(f"1,000 random M: {len(tables)} tables, {found['bytes']} bytes")
    for m, n, k in ((1, 256, 256), (14, 256, 256), (113, 768, 768), (1021, 1000, 768)):
        found[f"interpreter {m}x{n}x{k}"] = _interpreter_share(ours, m, n, k, random)
    return found


def _interpreter_share(ours: Ours, m: int, n: int, k: int, random: np.random.Generator) -> float:
    """Returns and prints the interpreter's part of a call's time."""
    x, out = random.standard_normal((m, k)).astype(np.float32), np.zeros((m, n), np.float32)
    weights, ns = random.standard_normal((k, n)).astype(np.float32), []
    memory = np.zeros(1 << 22, np.float32)
    for library in (ours.idle, ours.units):
        product = Product(library, Form(k, n), weights)
        op = product.operation(x, None, out)
        op.scratch = memory.ctypes.data + -memory.ctypes.data % 64
        run = library.functions.nnd_bench_call
        run.argtypes = (ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_ssize_t] * 5)
        run.restype = ctypes.c_double
        at = ctypes.byref(op)
        ns.append(min(run(product.handle, at, m, n, k, memory.size - 16, 50) for _ in range(20)))
    print(f"interpreter at {m} x {n} x {k}: {ns[0]:.0f} ns of {ns[1] / 1e3:.1f} us, {100 * ns[0] / ns[1]:.2f}%")
    return ns[0] / ns[1]


if __name__ == "__main__":
    main()
