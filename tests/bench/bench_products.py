# SPDX-License-Identifier: Apache-2.0
"""Products of matrices by the kernel library against ONNX Runtime: fully connected layers and MatMul of two values.

    python tests/bench/bench_products.py [--only KxN] [--kind connected,matmul,float16,bits4,bits8,...]
        [--rows M,M...] [--seconds S] [--rounds N] [--level x86-64-v4] [--library PATH] [--json out.json]

x W + b with constant W (what ONNX Runtime packs too), then x w of two values; M from 1 to 1024 at five K x N. One
process, one thread, all optimisations of ONNX Runtime, both called with bound memory, in interleaved rounds; CPU time
of the process, the median over rounds of the ratio within a round. Ours is one `nnd_run` through ctypes. Outputs are
compared before each case is timed; a difference over 1e-5 of the largest value ends the command. GB/s counts the
weights alone.

`float16` are constant weights of float16, which ONNX Runtime is given as float32: it makes these of them itself.
`bits4` and `bits8` are MatMulNBits in blocks of 32 with zero points, at three K x N, M 1 and 128. ONNX Runtime computes
them in float32, as we do; as `bits4-int8` and `bits8-int8` it may make bytes of its activations (accuracy_level 4), as
we do for weights of 4 bits; 5e-2 is allowed then.
"""

import argparse
import ctypes
import json
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
import numpy.typing as npt
import onnx
import onnx.parser
import onnxruntime
from native_engines import machine_line
from nndeploy_native.steps.matmul import BitWeights, OfBlocks, Product
from nndeploy_native.steps.movement import View
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Tensor
from plan_calls import BEST_LEVEL, Call, aligned, library_of, plan_call

ROWS = (1, 4, 7, 14, 64, 256, 1024)
SIZES = ((768, 768), (768, 3072), (3072, 768), (256, 1000), (512, 512))
BIT_ROWS = (1, 128)
BIT_SIZES = ((768, 3072), (2048, 2048), (4096, 4096))
BLOCK = 32
MEAN, LEAST = 1.15, 0.97
TOLERANCE = 1e-5
TOLERANCE_OF_BYTES = 5e-2
"""Of activations of which ONNX Runtime makes bytes, in parts of the largest value."""


@dataclass(frozen=True)
class Case:
    """A product (K, N): what ONNX Runtime runs, what we do, what both are given beside x, and the bytes of weights."""

    kind: str
    k: int
    n: int
    model: onnx.ModelProto
    step_of: Callable[[Tensor, list[Tensor]], NativeStep]
    given: tuple[npt.NDArray[np.float32], ...]
    weight_bytes: int
    tolerance: float = TOLERANCE


def main() -> None:
    """Prints a row a case, and the geometric mean."""
    options = _options()
    print(machine_line(), end="\n\n")
    lib = library_of(options.level, options.library)
    random, found = np.random.default_rng(0), list[dict[str, Any]]()
    print("| what | K x N | M | ours, us | ONNX Runtime, us | ratio | GFLOP/s | GB/s |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for kind in options.kind.split(","):
        is_narrow = kind.startswith(("bits", "float16"))
        make = _half_case if kind == "float16" else _bits_case if is_narrow else _case
        for k, n in BIT_SIZES if is_narrow else SIZES:
            if options.only in f"{k}x{n}":
                found += _measured(make(kind, k, n, random), lib, options, random)
    ratios = [one["ratio"] for one in found]
    mean, least = statistics.geometric_mean(ratios), min(ratios)
    reached = "reached" if mean >= MEAN and least >= LEAST else "missed"
    print(f"\ngeometric mean {mean:.3f}, least {least:.3f} of {len(ratios)}; goal {MEAN}, {LEAST}: {reached}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="products of matrices against ONNX Runtime, on one thread")
    parser.add_argument("--only", default="", metavar="KxN", help="one of the sizes")
    parser.add_argument("--kind", default="connected,matmul")
    parser.add_argument("--rows", default="", metavar="M,M...")
    parser.add_argument("--seconds", type=float, default=0.01, help="of an engine and round")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--level", default=BEST_LEVEL)
    parser.add_argument("--library", type=Path, help="a library that was built elsewhere")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _case(kind: str, k: int, n: int, random: np.random.Generator) -> Case:
    """Returns a product by constant floats, with a bias, or by another value."""
    weights = (random.standard_normal((k, n)) / k**0.5).astype(np.float32)
    bias = random.standard_normal(n).astype(np.float32)
    is_connected = kind == "connected"
    body = "y = Gemm(x, w, b)" if is_connected else "y = MatMul(x, w)"
    model = _parsed(f"float[M,{k}] x" if is_connected else f"float[M,{k}] x, float[{k},{n}] w", n, body)
    if is_connected:
        initializers = (onnx.numpy_helper.from_array(weights, "w"), onnx.numpy_helper.from_array(bias, "b"))
        model.graph.initializer.extend(initializers)

    def step_of(y: Tensor, inputs: list[Tensor]) -> NativeStep:
        views = [View.of(one) for one in inputs]
        return Product(y, views[0], weights, bias) if is_connected else Product(y, views[0], views[1])

    return Case(kind, k, n, model, step_of, () if is_connected else (aligned(weights),), 4 * n * k)


def _half_case(kind: str, k: int, n: int, random: np.random.Generator) -> Case:
    """Returns a product by constant weights of float16."""
    halves = (random.standard_normal((k, n)) / k**0.5).astype(np.float16)
    model = _parsed(f"float[M,{k}] x", n, "y = MatMul(x, w)")
    model.graph.initializer.append(onnx.numpy_helper.from_array(halves.astype(np.float32), "w"))
    weights = BitWeights(halves.reshape(-1), 16, False, k, n, (n, 1), k, None)

    def step_of(y: Tensor, inputs: list[Tensor]) -> NativeStep:
        return Product(y, View.of(inputs[0]), weights)

    return Case(kind, k, n, model, step_of, (), halves.nbytes)


def _bits_case(kind: str, k: int, n: int, random: np.random.Generator) -> Case:
    """Returns a MatMulNBits."""
    bits, is_of_bytes, blocks = int(kind[4]), kind.endswith("int8"), k // BLOCK
    numbers = random.integers(0, 256, (n, blocks, BLOCK * bits // 8)).astype(np.uint8)
    scales = (random.random((n, blocks)) / k**0.5 / 2**bits).astype(np.float32)
    zeros = random.integers(0, 256, (n, blocks * bits // 8)).astype(np.uint8)
    attributes = f"K={k}, N={n}, bits={bits}, block_size={BLOCK}, accuracy_level={4 if is_of_bytes else 1}"
    model = _parsed(f"float[M,{k}] x", n, f"y = com.microsoft.MatMulNBits<{attributes}>(x, q, s, z)")
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(array, name) for name, array in (("q", numbers), ("s", scales), ("z", zeros))
    )
    weights = BitWeights(
        numbers.reshape(-1), bits, False, k, n, (1, k), BLOCK,
        OfBlocks(scales.reshape(-1), 1, blocks), OfBlocks(zeros.reshape(-1), 1, blocks),
        rounds_rows=is_of_bytes and bits == 4,
    )  # fmt: skip
    weight_bytes = sum(array.nbytes for array in (numbers, scales, zeros))
    tolerance = TOLERANCE_OF_BYTES if is_of_bytes else TOLERANCE
    return Case(
        kind, k, n, model, lambda y, inputs: Product(y, View.of(inputs[0]), weights), (), weight_bytes, tolerance
    )


def _parsed(inputs: str, n: int, body: str) -> onnx.ModelProto:
    opsets = '"": 17, "com.microsoft": 1'
    return onnx.parser.parse_model(
        f"<ir_version: 8, opset_import: [{opsets}]> g ({inputs}) => (float[M,{n}] y) {{ {body} }}"
    )


def _measured(
    case: Case, lib: ctypes.CDLL, options: argparse.Namespace, random: np.random.Generator
) -> list[dict[str, Any]]:
    """Prints and returns the rows of a case, one for each M."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(case.model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    rows, (k, n) = [], (case.k, case.n)
    usual = BIT_ROWS if case.kind.startswith(("bits", "float16")) else ROWS
    for m in map(int, options.rows.split(",")) if options.rows else usual:
        x = aligned(random.standard_normal((m, k)).astype(np.float32))
        ours, theirs = aligned(np.zeros((m, n), np.float32)), aligned(np.zeros((m, n), np.float32))
        fed = [x, *case.given]
        tensors = [Tensor(name, one.shape) for name, one in zip(("x", "w"), fed, strict=False)]
        y = Tensor("y", ours.shape)
        step = case.step_of(y, tensors)
        binding = session.io_binding()
        for name, value in zip(("x", "w"), fed, strict=False):
            binding.bind_cpu_input(name, value)
        binding.bind_output("y", "cpu", 0, np.float32, ours.shape, theirs.ctypes.data)
        calls = [plan_call(lib, [step], tensors, y, fed, ours), lambda bound=binding: session.run_with_iobinding(bound)]
        seconds, ratio = _raced(calls, options)
        error = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
        if not error <= case.tolerance:
            sys.exit(f"{case.kind} {m} x {k} x {n}: {error:.1e} of the largest value from ONNX Runtime's")
        row = {"kind": case.kind, "k": k, "n": n, "m": m, "ours": seconds[0], "onnxruntime": seconds[1], "ratio": ratio}
        print(
            f"| {case.kind} | {k} x {n} | {m} | {seconds[0] * 1e6:.1f} | {seconds[1] * 1e6:.1f} | {ratio:.2f} "
            f"| {2 * m * n * k / seconds[0] / 1e9:.0f} | {case.weight_bytes / seconds[0] / 1e9:.1f} |",
            flush=True,
        )
        rows.append(row)
    return rows


def _raced(calls: Sequence[Call], options: argparse.Namespace) -> tuple[list[float], float]:
    """Returns the seconds of each, and the median ratio of the second to the first."""
    times = []
    for call in calls:
        call()
        begin = time.process_time_ns()
        call()
        times.append(max(1, int(options.seconds * 1e9 / max(1, time.process_time_ns() - begin))))
    rounds: list[list[float]] = [[] for _ in calls]
    for number in range(options.rounds):
        for which in range(len(calls)) if number % 2 else reversed(range(len(calls))):
            call = calls[which]
            call()  # what the other left in the caches is not this one's business
            begin = time.process_time_ns()
            for _ in range(times[which]):
                call()
            rounds[which].append((time.process_time_ns() - begin) / times[which] / 1e9)
    ratios = [theirs / ours for ours, theirs in zip(*rounds, strict=True)]
    return [statistics.median(one) for one in rounds], statistics.median(ratios)


if __name__ == "__main__":
    main()
