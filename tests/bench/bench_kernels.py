# SPDX-License-Identifier: Apache-2.0
"""The kernel library: products against ONNX Runtime, what the interpreter takes for a step, fused pairs against apart.

`products`: x W + b with constant W (which ONNX Runtime packs too), x w of two values, and narrow weights, at several
K x N and M. Both run in this process on one thread with bound memory, in interleaved rounds; CPU time, the median over
rounds of the ratio within a round. Ours is one `nnd_run` through ctypes. Outputs are compared before each case is
timed: 1e-5 of the largest value, 5e-2 where ONNX Runtime makes bytes of its activations. GB/s counts the weights alone.

    connected, matmul         constant floats with a bias; two values
    bytes                     constant int8 by uint8, sums in int32 (MatMulInteger)
    float16                   constant halves, which ONNX Runtime is given as float32
    bits4, bits8              MatMulNBits in blocks of 32 with zero points, computed in float32
    bits4-int8, bits8-int8    the same with accuracy_level 4: activations may become bytes

`steps`: plans of few and of many steps that copy floats; the difference of their times over that of their numbers.

`fusion`: random pairs of a depthwise and a pointwise convolution, each at several sizes, as one step and apart, with
the conversions of layout that each needs; one thread, interleaved as above. Outputs are compared bit by bit. A ratio
(apart over fused) below 0.99 is measured again in other memory, twice at most; the median counts: with the same
steps twice, where arrays lie makes up to 0.05 of difference. With --tuned the steps of each case are tuned first, as
`nndeploy tune` does: windows, blocks, stores, a window of the whole image, which is the pair apart.

`errors`: products of float32 beside float64, as the level does them and without tiles of AMX.

`networks`: whole networks with their pairs as one step, and with all pairs apart.
"""

import argparse
import ctypes
import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
import onnx.parser
from engines import ort_session
from figures import ROOT
from fusion_pairs import race_networks, race_pairs
from interleaved import Array
from nndeploy_native.plan import DTYPES
from nndeploy_native.steps.integer_product import IntegerProduct
from nndeploy_native.steps.matmul import BitWeights, OfBlocks, Product
from nndeploy_native.steps.movement import JoinPlain, View
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Tensor
from plan_calls import Call, aligned, plan_call, raced
from product_errors import tell_errors
from report import Report, add_models, bench_parser, geometric_mean, numbers, words

sys.path.append(str(ROOT / "tests"))

from kernel_library import LEVELS_HERE, library, loaded

ROWS, SIZES = (1, 4, 7, 14, 64, 256, 1024), ((768, 768), (768, 3072), (3072, 768), (256, 1000), (512, 512))
NARROW_ROWS, NARROW_SIZES, BLOCK = (1, 128), ((768, 3072), (2048, 2048), (4096, 4096)), 32
MEAN, LEAST = 1.15, 0.97
TOLERANCE, TOLERANCE_OF_BYTES = 1e-5, 5e-2
FEW, GOALS_NS = 8, {1: 30.0, 2: 3000.0}


def main() -> None:
    parser = bench_parser(__doc__)
    parser.add_argument(
        "what", choices=("products", "errors", "steps", "fusion", "networks"), nargs="?", default="products"
    )
    parser.add_argument("--kind", type=words, default="connected,matmul", help="of `products`")
    parser.add_argument("--only", default="", metavar="KxN", help="of `products`: one of the sizes")
    parser.add_argument("--rows", type=numbers, default="", metavar="M,M...", help="of `products`")
    parser.add_argument("--steps", type=int, default=1000, help="of `steps`: in the longer plan")
    parser.add_argument("--pairs", type=numbers, default="", metavar="N,N...", help="of `fusion`: these, by number")
    parser.add_argument("--count", type=int, default=200, help="of `fusion`: how many pairs, where none are named")
    parser.add_argument("--tuned", action="store_true", help="of `fusion`: as the tuner chooses here")
    parser.add_argument("--tuning", type=float, default=1.0, help="of `--tuned`: seconds of processor time for a case")
    add_models(parser)
    parser.add_argument("--seconds", type=float, default=0.01, help="of an engine and round")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--level", default=LEVELS_HERE[-1].removesuffix("-bf16"))
    parser.add_argument("--library", type=Path, help="a library that was built elsewhere")
    options = parser.parse_args()
    lib = loaded(options.library) if options.library else library(options.level)
    with Report(options, "speed.md", f"Kernel library: {options.what}") as report:
        tables = {"products": _products, "errors": tell_errors, "steps": _steps}
        {**tables, "fusion": race_pairs, "networks": race_networks}[options.what](report, lib, options)


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
    elements: tuple[str, str] = ("fp32", "fp32")
    """The elements of x and of the output, as plans name them."""


def _products(report: Report, lib: ctypes.CDLL, options: argparse.Namespace) -> None:
    table = report.table("what", "K x N", "M:", "ours us:", "ONNX Runtime us:", "ratio:", "GFLOP/s:", "GB/s:")
    random, ratios = np.random.default_rng(0), list[float]()
    for kind in options.kind:
        is_narrow = kind.startswith(("bits", "float16"))
        make = {"float16": _half_case, "bytes": _bytes_case}.get(kind, _bits_case if is_narrow else _case)
        for k, n in NARROW_SIZES if is_narrow else SIZES:
            if options.only not in f"{k}x{n}":
                continue
            case = make(kind, k, n, random)
            for m in options.rows or (NARROW_ROWS if is_narrow else ROWS):
                x = random.standard_normal((m, k), dtype=np.float32)
                x = aligned(random.integers(0, 256, (m, k), np.uint8) if kind == "bytes" else x)
                (ours, theirs), ratio = raced(_calls(case, x, lib), options.seconds, options.rounds)
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


def _bytes_case(kind: str, k: int, n: int, random: np.random.Generator) -> Case:
    weights = random.integers(-128, 128, (k, n), np.int8)
    model = _parsed(f"uint8[M,{k}] x", n, "y = MatMulInteger(x, w)", "int32", w=weights)
    return Case(
        kind, k, n, model, lambda y, views: IntegerProduct(y, views[0].base, weights), weights.nbytes,
        tolerance=0.0, elements=("uint8", "int32"),
    )  # fmt: skip


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


def _parsed(inputs: str, n: int, body: str, made: str = "float", **constants: Array) -> onnx.ModelProto:
    opsets = '"": 17, "com.microsoft": 1'
    text = f"<ir_version: 8, opset_import: [{opsets}]> g ({inputs}) => ({made}[M,{n}] y) {{ {body} }}"
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in constants.items())
    return model


def _calls(case: Case, x: Array, lib: ctypes.CDLL) -> list[Call]:
    """Returns our call and ONNX Runtime's, whose outputs agree."""
    given, made = case.elements
    ours, theirs = (aligned(np.zeros((len(x), case.n), DTYPES[made])) for _ in range(2))
    fed = dict(zip("xw", (x, *case.given), strict=False))
    tensors = [Tensor(name, one.shape, element=given) for name, one in fed.items()]
    y = Tensor("y", ours.shape, element=made)
    session = ort_session(case.model.SerializeToString(), 1)
    binding = session.io_binding()
    for name, value in fed.items():
        binding.bind_cpu_input(name, value)
    binding.bind_output("y", "cpu", 0, np.dtype(DTYPES[made]), theirs.shape, theirs.ctypes.data)
    step = case.step_of(y, [View.of(one) for one in tensors])
    kept = (binding, fed, theirs)  # the binding holds addresses alone
    calls = [plan_call(lib, [step], tensors, y, list(fed.values()), ours), lambda: session.run_with_iobinding(kept[0])]
    for call in calls:
        call()
    error = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    if not error <= case.tolerance:
        sys.exit(f"{case.kind} {len(x)} x {case.k} x {case.n}: {error:.1e} of the largest value from ONNX Runtime's")
    return calls


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
    call = plan_call(lib, steps, tensors[:1], tensors[-1], [given], made, threads)
    call()
    assert np.array_equal(made, given)
    return call


if __name__ == "__main__":
    main()
