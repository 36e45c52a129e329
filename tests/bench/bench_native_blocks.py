# SPDX-License-Identifier: Apache-2.0
"""Depthwise-separable blocks and inverted residuals of our own kernels against ONNX Runtime, on one thread.

    python tests/bench/bench_native_blocks.py [--family v1,v2,inverted,large] [--batch 1,8] [--capacity KiB]
        [--seconds S] [--only C->O@H/s] [--samples out.json]

For each block a .c file that instantiates the templates is built by ziglang, its output compared with ONNX Runtime's
(1e-5 of the largest value) and both timed in turn in this process, one thread each; medians. ONNX Runtime takes and
gives NCHW, ours the inner layout (conversion is the business of a submodel's edge). Share is that of the machine's
multiply-add peak: the fastest of nine loops of nothing but multiply-adds, beside every block.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime
from nndeploy_native.kernels.instance import SIGNATURE, Instance, aligned, cpu_features
from nndeploy_native.kernels.inverted_residual import (
    INVERTED_BUFFER_BYTES,
    InvertedResidual,
    choose_inverted_window,
    inverted_buffer_bytes,
    inverted_text,
    num_inverted_windows,
)
from nndeploy_native.kernels.isa import AVX2, AVX512, Isa
from nndeploy_native.kernels.packing import (
    Floats,
    blocked_from_planar,
    pack_channels,
    pack_depthwise,
    pack_pointwise,
    planar_from_blocked,
)
from nndeploy_native.kernels.separable import (
    RELU6,
    Activation,
    Axis,
    Separable,
    buffer_capacity,
    choose_window,
    num_windows,
    separable_text,
)
from onnx import TensorProto, helper, numpy_helper

TOLERANCE = 1e-5
ROUNDS_AT_LEAST = 5
# In channels (of the depthwise part), out channels, rows and columns of the input, stride.
V1 = (
    (32, 64, 112, 1), (64, 128, 112, 2), (128, 128, 56, 1), (128, 256, 56, 2), (256, 256, 28, 1), (256, 512, 28, 2),
    (512, 512, 14, 1), (512, 1024, 14, 2), (1024, 1024, 7, 1),
)  # fmt: skip
V2 = (
    (32, 16, 112, 1), (96, 24, 112, 2), (144, 24, 56, 1), (144, 32, 56, 2), (192, 32, 28, 1), (192, 64, 28, 2),
    (384, 64, 14, 1), (384, 96, 14, 1), (576, 96, 14, 1), (576, 160, 14, 2), (960, 160, 7, 1), (960, 320, 7, 1),
)  # fmt: skip
LARGE = ((64, 64, 320, 1), (64, 128, 320, 2), (32, 32, 640, 1), (32, 64, 640, 1), (32, 64, 640, 2))
# In, hidden, out channels, rows and columns, stride.
INVERTED = (
    (16, 96, 24, 112, 2), (24, 144, 24, 56, 1), (24, 144, 32, 56, 2), (32, 192, 32, 28, 1), (32, 192, 64, 28, 2),
    (64, 384, 64, 14, 1), (64, 384, 96, 14, 1), (96, 576, 96, 14, 1), (96, 576, 160, 14, 2), (160, 960, 160, 7, 1),
    (160, 960, 320, 7, 1),
)  # fmt: skip
FAMILIES = {"v1": V1, "v2": V2, "large": LARGE}
PEAK_TEXT = f"""#include "vector.h"
{SIGNATURE} {{
  vf sums[24], x = nnd_load(data[0]), y = nnd_load(data[0] + NND_LANES);
  (void)buffer, (void)first;
  NND_UNROLL for (int i = 0; i < 24; i++) sums[i] = x;
  for (ptrdiff_t round = 0; round < last; round++) {{
    NND_UNROLL for (int i = 0; i < 24; i++) {{
      sums[i] = sums[i] * x + y;
      __asm__ volatile("" : "+v"(sums[i]));
    }}
  }}
  NND_UNROLL for (int i = 0; i < 24; i++) nnd_store(out + i * NND_LANES, sums[i]);
}}
"""
PEAK_ROUNDS = 100_000


@dataclass(frozen=True)
class Row:
    """One block, measured."""

    name: str
    batch: int
    ours_us: float
    peer_us: float
    gflops: float
    peak_gflops: float
    error: float
    window: str


def main() -> None:
    """Prints a table a family and batch, and the geometric means."""
    parser = argparse.ArgumentParser(description="own separable blocks against ONNX Runtime, one thread")
    parser.add_argument("--family", default="v1,v2,inverted,large")
    parser.add_argument("--batch", default="1,8")
    parser.add_argument("--capacity", type=int, default=0, help="KiB of the buffer; 0: by the size of the input")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each block")
    parser.add_argument("--only", default="", help="a block, as its row names it")
    parser.add_argument("--samples", type=Path, help="medians as JSON")
    options = parser.parse_args()
    isa = AVX512 if "avx512f" in cpu_features() else AVX2
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        peak = _peak(isa, Path(folder))
        for family in options.family.split(","):
            for batch in map(int, options.batch.split(",")):
                blocks = [s for s in _blocks(family, batch) if options.only in ("", _name(s))]
                rows += _table(family, batch, blocks, isa, options.capacity << 10, options.seconds, peak)
    if options.samples:
        options.samples.write_text(json.dumps([row.__dict__ for row in rows], indent=1))


Block = Separable | InvertedResidual


def _blocks(family: str, batch: int) -> list[Block]:
    if family == "inverted":
        return [
            InvertedResidual(
                c,
                Separable(batch, h, o, Axis(n, 3, st), Axis(n, 3, st), RELU6, Activation(), st == 1 and c == o),
                RELU6,
            )
            for c, h, o, n, st in INVERTED
        ]
    second = Activation() if family == "v2" else RELU6
    return [
        Separable(batch, channels, outputs, Axis(size, 3, stride), Axis(size, 3, stride), RELU6, second)
        for channels, outputs, size, stride in FAMILIES[family]
    ]


def _name(block: Block) -> str:
    s = block.rest if isinstance(block, InvertedResidual) else block
    expanded = f"{block.in_channels}->" if isinstance(block, InvertedResidual) else ""
    return f"{expanded}{s.channels}->{s.out_channels}@{s.y.size}/{s.y.stride}"


@dataclass(frozen=True)
class Step:
    """What runs a block: its text, its data, the floats of its buffer, its units, its window in words."""

    text: str
    data: list[Floats | None]
    buffer_floats: int
    units: int
    window: str


def _step(block: Block, values: dict[str, Floats], isa: Isa, capacity: int) -> Step:
    x, second = blocked_from_planar(values["x"], isa), [
        pack_pointwise(values["pw"][:, :, 0, 0], isa), pack_channels(values["pb"], isa), None
    ]  # fmt: skip
    first = [pack_depthwise(values["dw"], isa), pack_channels(values["db"], isa), None]
    if isinstance(block, Separable):
        window = choose_window(block, isa, capacity or buffer_capacity(block, isa))
        words = f"{window.rows}x{window.columns}x{window.channels}"
        return Step(separable_text(block, window, isa), [x, *first, *second, None], window.buffer_bytes(isa) // 4,
                    num_windows(block, window), words)  # fmt: skip
    expand = [pack_pointwise(values["ew"][:, :, 0, 0], isa), pack_channels(values["eb"], isa), None]
    rows = choose_inverted_window(block, isa, capacity or INVERTED_BUFFER_BYTES)
    residual = x if block.rest.residual else None
    return Step(inverted_text(block, rows), [x, *expand, *first, *second, residual],
                inverted_buffer_bytes(block, rows, isa) // 4, num_inverted_windows(block, rows),
                f"{rows.rows} rows, {rows.group_panels} panels")  # fmt: skip


def _table(
    family: str, batch: int, blocks: list[Block], isa: Isa, capacity: int, seconds: float,
    peak: Callable[[], float]
) -> list[Row]:  # fmt: skip
    print(f"\n{family}, batch {batch}, {isa.name}, buffer {f'{capacity >> 10} KiB' if capacity else 'by rule'}")
    print("| block | window | ours us | ONNX Runtime us | ratio | GFLOP/s | share of peak | error |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    rows = []
    for s in blocks:
        row = _measure(s, isa, capacity, seconds, peak)
        rows.append(row)
        print(
            f"| {row.name} | {row.window} | {row.ours_us:.0f} | {row.peer_us:.0f} | {row.peer_us / row.ours_us:.2f} "
            f"| {row.gflops:.0f} | {row.gflops / row.peak_gflops:.0%} | {row.error:.1e} |", flush=True
        )  # fmt: skip
    print(f"geometric mean of the ratios {statistics.geometric_mean(r.peer_us / r.ours_us for r in rows):.2f}")
    return rows


def _measure(block: Block, isa: Isa, capacity: int, seconds: float, peak: Callable[[], float]) -> Row:
    s = block.rest if isinstance(block, InvertedResidual) else block
    values = _values(block)
    made = _step(block, values, isa, capacity)
    with tempfile.TemporaryDirectory() as folder:
        step = Instance(made.text, isa, Path(folder))
    data = [None if x is None else aligned(x) for x in made.data]
    shape = (s.images, isa.blocks(s.out_channels), s.y.out_size, s.x.out_size, isa.lanes)
    out, buffer = aligned(np.zeros(shape, np.float32)), aligned(np.zeros(made.buffer_floats, np.float32))
    session = _session(block, values)
    feed = {"x": values["x"]}
    step.run(data, out, buffer, 0, made.units)
    want = session.run(None, feed)[0]
    error = float(np.abs(planar_from_blocked(out, s.out_channels) - want).max() / np.abs(want).max())
    if not error <= TOLERANCE:
        sys.exit(f"{_name(block)}: error {error:.1e} of the largest value")
    ours, peer = _in_turn(
        lambda: step.run(data, out, buffer, 0, made.units), lambda: session.run(None, feed), seconds
    )  # fmt: skip
    return Row(_name(block), s.images, ours * 1e6, peer * 1e6, block.flops / ours / 1e9, peak(), error, made.window)


def _in_turn(ours: Callable[[], object], peer: Callable[[], object], seconds: float) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < ROUNDS_AT_LEAST:
        for call, taken in zip((ours, peer), times, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def _values(block: Block) -> dict[str, Floats]:
    s = block.rest if isinstance(block, InvertedResidual) else block
    shapes: dict[str, tuple[int, ...]] = {
        "x": (s.images, s.channels, s.y.size, s.x.size), "dw": (s.channels, 1, s.y.kernel, s.x.kernel),
        "db": (s.channels,), "pw": (s.out_channels, s.channels, 1, 1), "pb": (s.out_channels,),
    }  # fmt: skip
    if isinstance(block, InvertedResidual):
        shapes |= {"x": (s.images, block.in_channels, s.y.size, s.x.size), "eb": (s.channels,),
                   "ew": (s.channels, block.in_channels, 1, 1)}  # fmt: skip
    r = np.random.default_rng(0)
    values = {name: r.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}
    for name in {"ew", "pw"} & values.keys():
        values[name] /= np.float32(np.sqrt(values[name].shape[1]))
    return values


def _session(block: Block, values: dict[str, Floats]) -> onnxruntime.InferenceSession:
    s = block.rest if isinstance(block, InvertedResidual) else block
    constants = {k: v for k, v in values.items() if k != "x"}
    constants |= {"low": np.array(0, np.float32), "high": np.array(6, np.float32)}
    pads = [s.y.begin, s.x.begin, s.y.end, s.x.end]
    nodes = [
        helper.make_node("Conv", ["h", "dw", "db"], ["a"], group=s.channels, strides=[s.y.stride] * 2, pads=pads),
        helper.make_node("Clip", ["a", "low", "high"], ["b"]),
        helper.make_node("Conv", ["b", "pw", "pb"], ["c"]),
    ]
    if isinstance(block, InvertedResidual):
        nodes[:0] = [
            helper.make_node("Conv", ["x", "ew", "eb"], ["e"]), helper.make_node("Clip", ["e", "low", "high"], ["h"])
        ]  # fmt: skip
    else:
        nodes[0].input[0] = "x"
    if s.residual:
        nodes.append(helper.make_node("Add", ["c", "x"], ["y"]))
    elif s.second.kind == "CLIP":
        nodes.append(helper.make_node("Clip", ["c", "low", "high"], ["y"]))
    else:
        nodes[-1].output[0] = "y"
    shape = (s.images, s.out_channels, s.y.out_size, s.x.out_size)
    graph = helper.make_graph(
        nodes, "block", [helper.make_tensor_value_info("x", TensorProto.FLOAT, values["x"].shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(v, k) for k, v in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _peak(isa: Isa, folder: Path) -> Callable[[], float]:
    step = Instance(PEAK_TEXT, isa, folder)
    data = [aligned(np.full(2 * isa.lanes, 0.5, np.float32))]
    out = aligned(np.zeros(24 * isa.lanes, np.float32))

    def gflops() -> float:
        times = []
        for _ in range(9):
            start = time.perf_counter()
            step.run(data, out, out, 0, PEAK_ROUNDS)
            times.append(time.perf_counter() - start)
        return 2 * 24 * isa.lanes * PEAK_ROUNDS / min(times) / 1e9

    return gflops


if __name__ == "__main__":
    main()
