# SPDX-License-Identifier: Apache-2.0
"""The kernel library: products of matrices against ONNX Runtime, and what the interpreter takes for a step.

`products`: x W + b with constant W (which ONNX Runtime packs too), x w of two values, and narrow weights, at several
K x N and M. Both run in this process on one thread with bound memory, in interleaved rounds; CPU time, the median over
rounds of the ratio within a round. Ours is one `nnd_run` through ctypes. Outputs are compared before each case is
timed: 1e-5 of the largest value, 5e-2 where ONNX Runtime makes bytes of its activations. GB/s counts the weights alone.

    connected, matmul         constant floats with a bias; two values
    float16                   constant halves, which ONNX Runtime is given as float32
    bits4, bits8              MatMulNBits in blocks of 32 with zero points, computed in float32
    bits4-int8, bits8-int8    the same with accuracy_level 4: activations may become bytes

`steps`: plans of few and of many steps that copy floats; the difference of their times over that of their numbers.
"""

import argparse
import ctypes
import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
import onnx.parser
from engines import ort_session
from figures import ROOT
from interleaved import Array, cpu_seconds
from nndeploy_native.steps.matmul import BitWeights, OfBlocks, Product
from nndeploy_native.steps.movement import JoinPlain, View
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Tensor
from report import Report, bench_parser, geometric_mean, numbers, words

sys.path.append(str(ROOT / "tests"))

from kernel_library import HOST, LEVELS_HERE, Options, RefusedError, library, loaded, opened, plan_of
from kernel_library import Call as CallOfLibrary

ROWS, SIZES = (1, 4, 7, 14, 64, 256, 1024), ((768, 768), (768, 3072), (3072, 768), (256, 1000), (512, 512))
NARROW_ROWS, NARROW_SIZES, BLOCK = (1, 128), ((768, 3072), (2048, 2048), (4096, 4096)), 32
MEAN, LEAST = 1.15, 0.97
TOLERANCE, TOLERANCE_OF_BYTES = 1e-5, 5e-2
FEW, GOALS_NS = 8, {1: 30.0, 2: 3000.0}
ALIGNMENT = 64
Call = Callable[[], Any]


def main() -> None:
    parser = bench_parser(__doc__)
    parser.add_argument("what", choices=("products", "steps"), nargs="?", default="products")
    parser.add_argument("--kind", type=words, default="connected,matmul", help="of `products`")
    parser.add_argument("--only", default="", metavar="KxN", help="of `products`: one of the sizes")
    parser.add_argument("--rows", type=numbers, default="", metavar="M,M...", help="of `products`")
    parser.add_argument("--steps", type=int, default=1000, help="of `steps`: in the longer plan")
    parser.add_argument("--seconds", type=float, default=0.01, help="of an engine and round")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--level", default=LEVELS_HERE[-1].removesuffix("-bf16"))
    parser.add_argument("--library", type=Path, help="a library that was built elsewhere")
    options = parser.parse_args()
    lib = loaded(options.library) if options.library else library(options.level)
    with Report(options, "speed.md", f"Kernel library: {options.what}") as report:
        (_products if options.what == "products" else _steps)(report, lib, options)


# Products


@dataclass(frozen=True)
class Case:
    """A product (K, N): what ONNX Runtime runs, what we do, what both are given beside x, and the bytes of weights."""

    kind: str
    k: int
    n: int
    model: onnx.ModelProto
    step_of: Callable[[Tensor, list[View]], NativeStep]
    weight_bytes: int
    given: tuple[Array, ...] = ()
    tolerance: float = TOLERANCE


def _products(report: Report, lib: ctypes.CDLL, options: argparse.Namespace) -> None:
    table = report.table("what", "K x N", "M:", "ours us:", "ONNX Runtime us:", "ratio:", "GFLOP/s:", "GB/s:")
    random, ratios = np.random.default_rng(0), list[float]()
    for kind in options.kind:
        is_narrow = kind.startswith(("bits", "float16"))
        make = _half_case if kind == "float16" else _bits_case if is_narrow else _case
        for k, n in NARROW_SIZES if is_narrow else SIZES:
            if options.only not in f"{k}x{n}":
                continue
            case = make(kind, k, n, random)
            for m in options.rows or (NARROW_ROWS if is_narrow else ROWS):
                x = aligned(random.standard_normal((m, k), dtype=np.float32))
                (ours, theirs), ratio = _raced(_calls(case, x, lib), options.seconds, options.rounds)
                ratios.append(ratio)
                rates = (f"{2 * m * n * k / ours / 1e9:.0f}", f"{case.weight_bytes / ours / 1e9:.1f}")
                table.row(kind, f"{k} x {n}", m, f"{ours * 1e6:.1f}", f"{theirs * 1e6:.1f}", f"{ratio:.2f}", *rates)
                report.sample(kind=kind, k=k, n=n, m=m, ours=ours, onnxruntime=theirs, ratio=ratio)
    mean, least = geometric_mean(ratios), min(ratios)
    reached = "reached" if mean >= MEAN and least >= LEAST else "missed"
    report.text(f"Geometric mean {mean:.3f}, least {least:.3f} of {len(ratios)}; goal {MEAN}, {LEAST}: {reached}.")


def _case(kind: str, k: int, n: int, random: np.random.Generator) -> Case:
    """Returns a product by constant floats, with a bias, or by another value."""
    weights = (random.standard_normal((k, n)) / k**0.5).astype(np.float32)
    bias = random.standard_normal(n).astype(np.float32)
    if kind == "connected":
        model = _parsed(f"float[M,{k}] x", n, "y = Gemm(x, w, b)", w=weights, b=bias)
        return Case(kind, k, n, model, lambda y, views: Product(y, views[0], weights, bias), weights.nbytes)
    model = _parsed(f"float[M,{k}] x, float[{k},{n}] w", n, "y = MatMul(x, w)")
    return Case(kind, k, n, model, lambda y, views: Product(y, views[0], views[1]), weights.nbytes, (aligned(weights),))


def _half_case(kind: str, k: int, n: int, random: np.random.Generator) -> Case:
    halves = (random.standard_normal((k, n)) / k**0.5).astype(np.float16)
    model = _parsed(f"float[M,{k}] x", n, "y = MatMul(x, w)", w=halves.astype(np.float32))
    weights = BitWeights(halves.reshape(-1), 16, False, k, n, (n, 1), k, None)
    return Case(kind, k, n, model, lambda y, views: Product(y, views[0], weights), halves.nbytes)


def _bits_case(kind: str, k: int, n: int, random: np.random.Generator) -> Case:
    bits, is_of_bytes, blocks = int(kind[4]), kind.endswith("int8"), k // BLOCK
    q = random.integers(0, 256, (n, blocks, BLOCK * bits // 8)).astype(np.uint8)
    scales = (random.random((n, blocks)) / k**0.5 / 2**bits).astype(np.float32)
    zeros = random.integers(0, 256, (n, blocks * bits // 8)).astype(np.uint8)
    attributes = f"K={k}, N={n}, bits={bits}, block_size={BLOCK}, accuracy_level={4 if is_of_bytes else 1}"
    body = f"y = com.microsoft.MatMulNBits<{attributes}>(x, q, s, z)"
    weights = BitWeights(
        q.reshape(-1), bits, False, k, n, (1, k), BLOCK, OfBlocks(scales.reshape(-1), 1, blocks),
        OfBlocks(zeros.reshape(-1), 1, blocks), rounds_rows=is_of_bytes and bits == 4,
    )  # fmt: skip
    return Case(
        kind, k, n, _parsed(f"float[M,{k}] x", n, body, q=q, s=scales, z=zeros),
        lambda y, views: Product(y, views[0], weights), q.nbytes + scales.nbytes + zeros.nbytes,
        tolerance=TOLERANCE_OF_BYTES if is_of_bytes else TOLERANCE,
    )  # fmt: skip


def _parsed(inputs: str, n: int, body: str, **constants: Array) -> onnx.ModelProto:
    opsets = '"": 17, "com.microsoft": 1'
    text = f"<ir_version: 8, opset_import: [{opsets}]> g ({inputs}) => (float[M,{n}] y) {{ {body} }}"
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())
    return model


def _calls(case: Case, x: Array, lib: ctypes.CDLL) -> list[Call]:
    """Returns our call and ONNX Runtime's, whose outputs agree."""
    ours, theirs = (aligned(np.zeros((len(x), case.n), np.float32)) for _ in range(2))
    fed = dict(zip("xw", (x, *case.given), strict=False))
    tensors, y = [Tensor(name, one.shape) for name, one in fed.items()], Tensor("y", ours.shape)
    session = ort_session(case.model.SerializeToString(), 1)
    binding = session.io_binding()
    for name, value in fed.items():
        binding.bind_cpu_input(name, value)
    binding.bind_output("y", "cpu", 0, np.float32, theirs.shape, theirs.ctypes.data)
    step = case.step_of(y, [View.of(one) for one in tensors])
    kept = (binding, fed, theirs)  # the binding holds addresses alone
    calls = [_plan_call(lib, [step], tensors, y, list(fed.values()), ours), lambda: session.run_with_iobinding(kept[0])]
    for call in calls:
        call()
    error = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    if not error <= case.tolerance:
        sys.exit(f"{case.kind} {len(x)} x {case.k} x {case.n}: {error:.1e} of the largest value from ONNX Runtime's")
    return calls


def _raced(calls: Sequence[Call], seconds: float, rounds: int) -> tuple[list[float], float]:
    """Returns the seconds of each call, and the median ratio of the second to the first."""
    times = [max(1, int(seconds / max(1e-9, cpu_seconds(call, 1)))) for call in calls]
    found: list[list[float]] = [[] for _ in calls]
    for number in range(rounds):
        for which in range(len(calls)) if number % 2 else reversed(range(len(calls))):
            calls[which]()  # what the other left in the caches is not this one's business
            found[which].append(cpu_seconds(calls[which], times[which]))
    return [statistics.median(one) for one in found], statistics.median(b / a for a, b in zip(*found, strict=True))


# Steps


def _steps(report: Report, lib: ctypes.CDLL, options: argparse.Namespace) -> None:
    table = report.table("threads:", "ns a step:", "goal:")
    for threads, goal in GOALS_NS.items():
        calls = [_copies(lib, number, threads) for number in (FEW, options.steps)]
        found = [[_ns(call) for call in calls] for _ in range(7 * options.rounds)]
        each = statistics.median((many - few) / (options.steps - FEW) for few, many in found)
        table.row(threads, f"{each:.1f}", f"{goal:.0f}")


def _ns(call: Call) -> int:
    call()
    begin = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - begin


def _copies(lib: ctypes.CDLL, number: int, threads: int) -> Call:
    """Returns a plan of steps of which each copies a float a thread; these wait for each other behind each."""
    shape = (threads, 1)
    tensors = [Tensor(f"t{place}", shape) for place in range(number + 1)]
    steps = [JoinPlain(to, (source,), threads) for source, to in itertools.pairwise(tensors)]
    given, made = aligned(np.arange(1.0, threads + 1, dtype=np.float32).reshape(shape)), aligned(np.zeros(shape, "f4"))
    call = _plan_call(lib, steps, tensors[:1], tensors[-1], [given], made, threads)
    call()
    assert np.array_equal(made, given)
    return call


# Plans as calls of the library, with nothing of Python between


def aligned(array: Array) -> Array:
    memory = np.zeros(array.nbytes + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    copy = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _plan_call(
    lib: ctypes.CDLL, steps: Sequence[NativeStep], inputs: Sequence[Tensor], output: Tensor, fed: Sequence[Array],
    out: Array, threads: int = 1,
) -> Call:  # fmt: skip
    """Returns one run of a plan; what it needs lives as long as it does, its threads for ever."""
    plan, raw = plan_of(steps, inputs, [output])
    weights = aligned(np.frombuffer(raw, np.uint8))
    options = Options(dict(HOST.caches).get("l2", 0), 0, threads)
    try:
        model, table = opened(lib, plan, weights.ctypes.data, weights.nbytes, options, fed)
    except RefusedError as err:
        sys.exit(str(err))
    pool = lib.nnd_pool_make(ctypes.c_void_p(model), threads) if threads > 1 else None
    scratch_bytes = lib.nnd_table_scratch_bytes(table)
    arena = aligned(np.zeros(lib.nnd_table_arena_bytes(table), np.uint8))
    scratch = aligned(np.zeros(scratch_bytes * threads, np.uint8))
    given, taken = (ctypes.c_void_p * len(fed))(*(one.ctypes.data for one in fed)), ctypes.c_void_p(out.ctypes.data)
    ends = (ctypes.addressof(given), ctypes.addressof(taken))
    call = CallOfLibrary(*ends, arena.ctypes.data, scratch.ctypes.data, scratch_bytes, None)
    at = ctypes.addressof(call)

    def run(_: Any = (weights, arena, scratch, given, taken, call, fed, out)) -> None:
        lib.nnd_run(table, at, pool)

    return run


if __name__ == "__main__":
    main()
