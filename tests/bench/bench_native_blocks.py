# SPDX-License-Identifier: Apache-2.0
"""Depthwise-separable blocks and inverted residuals of our own kernels against ONNX Runtime, on one thread.

    python tests/bench/bench_native_blocks.py [--family v1,v2,inverted,large] [--batch 1,8] [--layout blocked,plain]
        [--precision fp32|bf16] [--capacity KiB] [--seconds S] [--only C->O@H/s] [--json out.json]

Each block is built as the product builds it, its output compared with ONNX Runtime's and both timed in turn in this
process, one thread each, a hundredth of a second at a time; medians of the thread's CPU time, so that other work on
the machine counts less. ONNX Runtime and we are given the same input, at a cache line. Layout "blocked" takes and
gives the inner layout (what a block costs inside a network), "plain" takes and gives NCHW, conversion inside.
GFLOP/s and share are those of the kernels alone, by a clock around each step; the share is that of the machine's fp32
multiply-add peak: the fastest of nine loops of nothing but multiply-adds, beside every block.
"""

import argparse
import ctypes
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
from unittest import mock

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import ml_dtypes
import numpy as np
import onnxruntime
import step_clock
from nndeploy_native.build import artifact_of
from nndeploy_native.isa import Isa, isa_for
from nndeploy_native.library import library_from_source
from nndeploy_native.lowering.context import Lowered
from nndeploy_native.plan import ALIGNMENT
from nndeploy_native.session import open_session
from nndeploy_native.steps.convolution import Convolution, Window
from nndeploy_native.steps.movement import Convert
from nndeploy_native.steps.step import Epilogue, Machine, NativeStep
from nndeploy_native.tensors import Layout, Tensor, blocked_array
from onnx import TensorProto, helper, numpy_helper

from nndeploy.files.shared_object import library_from_bytes
from nndeploy.plugin.interface import Artifact, OpenOptions, Session
from nndeploy.target.target import host_target

Array = np.ndarray[Any, Any]
TOLERANCE = {"fp32": 1e-5, "bf16": 2e-2}
"""Of the largest value."""
ROUNDS_AT_LEAST = 5
CALLS_AT_LEAST = 3
TURN_SECONDS = 0.01
KERNEL_CALLS = 30
RELU6 = ("min", ("max", ("operand", 0), ("const", 0.0)), ("const", 6.0))
ADD = ("add", ("operand", 0), ("operand", 1))
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
PEAK_TEXT = """#include "program.h"
NND_EXPORT float nnd_peak(long rounds) {
  vf sums[24], x = nnd_splat(0.5f), y = nnd_splat(0.25f);
  NND_UNROLL for (int i = 0; i < 24; i++) sums[i] = x;
  for (long round = 0; round < rounds; round++) {
    NND_UNROLL for (int i = 0; i < 24; i++) {
      sums[i] = sums[i] * x + y;
      __asm__ volatile("" : "+v"(sums[i]));
    }
  }
  NND_UNROLL for (int i = 1; i < 24; i++) sums[0] += sums[i];
  return sums[0][0];
}
"""
PEAK_ROUNDS = 100_000


@dataclass(frozen=True)
class Block:
    """`channels` are the depthwise part's; `expands_from` are the input's where a pointwise part stands before it."""

    channels: int
    outputs: int
    size: int
    stride: int
    images: int
    expands_from: int = 0
    ends_in_relu6: bool = True

    @property
    def name(self) -> str:
        """The block as its row names it."""
        expanded = f"{self.expands_from}->" if self.expands_from else ""
        return f"{expanded}{self.channels}->{self.outputs}@{self.size}/{self.stride}"

    @property
    def has_residual(self) -> bool:
        """Whether the input is added to the output."""
        return self.expands_from == self.outputs and self.stride == 1

    @property
    def in_shape(self) -> tuple[int, int, int, int]:
        """(N, C, H, W) of the input."""
        return (self.images, self.expands_from or self.channels, self.size, self.size)

    @property
    def out_shape(self) -> tuple[int, int, int, int]:
        """(N, C, H, W) of the output."""
        out = (self.size - 1) // self.stride + 1
        return (self.images, self.outputs, out, out)

    @property
    def flops(self) -> int:
        """Twice the multiply-adds."""
        out = self.out_shape[2] ** 2
        return 2 * self.images * self.channels * (out * (9 + self.outputs) + self.size**2 * self.expands_from)


@dataclass(frozen=True)
class Row:
    """One block, measured."""

    family: str
    layout: str
    name: str
    batch: int
    ours_us: float
    peer_us: float
    gflops: float
    peak_gflops: float
    error: float
    window: str


def main() -> None:
    """Prints a table a family, batch and layout, and the geometric means."""
    parser = argparse.ArgumentParser(description="own separable blocks against ONNX Runtime, one thread")
    parser.add_argument("--family", default="v1,v2,inverted,large")
    parser.add_argument("--batch", default="1,8")
    parser.add_argument("--layout", default="blocked,plain")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16"))
    parser.add_argument("--capacity", type=int, default=0, help="KiB of the buffer; 0: by the size of the input")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each block")
    parser.add_argument("--only", default="", help="a block, as its row names it")
    parser.add_argument("--json", type=Path, help="the rows as JSON")
    options = parser.parse_args()
    host = host_target()
    isa = isa_for(host, options.precision)
    if isa is None:
        sys.exit(f"no {options.precision} kernels for this machine")
    machine = Machine(isa, dict(host.caches).get("l2", 0), options.capacity << 10, threads=1)
    peak = _peak(isa_for(host) or isa)
    rows: list[Row] = []
    for family in options.family.split(","):
        for batch in map(int, options.batch.split(",")):
            blocks = [block for block in _blocks(family, batch) if options.only in ("", block.name)]
            for layout in options.layout.split(","):
                rows += _table(family, layout, blocks, machine, options.seconds, peak)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


def _blocks(family: str, batch: int) -> list[Block]:
    if family == "inverted":
        return [Block(hidden, o, size, stride, batch, c, False) for c, hidden, o, size, stride in INVERTED]
    return [Block(*numbers, batch, ends_in_relu6=family != "v2") for numbers in FAMILIES[family]]


def _table(
    family: str, layout: str, blocks: list[Block], machine: Machine, seconds: float, peak: Callable[[], float]
) -> list[Row]:
    capacity = f"{machine.buffer_bytes >> 10} KiB" if machine.buffer_bytes else "by rule"
    print(f"\n{family}, batch {blocks[0].images if blocks else 0}, {layout}, {machine.isa.name}, buffer {capacity}\n")
    print("| block | window | ours us | ONNX Runtime us | ratio | GFLOP/s | share of peak | error |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    rows = []
    for block in blocks:
        row = _measure(family, layout, block, machine, seconds, peak)
        rows.append(row)
        print(
            f"| {row.name} | {row.window} | {row.ours_us:.0f} | {row.peer_us:.0f} | {row.peer_us / row.ours_us:.2f} "
            f"| {row.gflops:.0f} | {row.gflops / row.peak_gflops:.0%} | {row.error:.1e} |",
            flush=True,
        )
    if rows:
        print(f"\ngeometric mean of the ratios {statistics.geometric_mean(r.peer_us / r.ours_us for r in rows):.2f}")
    return rows


def _measure(
    family: str, layout: str, block: Block, machine: Machine, seconds: float, peak: Callable[[], float]
) -> Row:
    values, isa = _values(block), machine.isa
    timed = mock.patch(
        "nndeploy_native.build.library_from_source",
        lambda source, *rest: library_from_source(step_clock.HEAD + source, *rest),
    )
    with tempfile.TemporaryDirectory() as folder, timed:
        artifact = artifact_of(_lowered(block, values, layout), machine, Path(folder))
    ours = _opened(artifact)
    given = values["x"] if layout == "plain" else _to_blocked(values["x"], isa)
    peer, feed = _peer(block, values), {"x": values["x"]}
    got = ours.run({"x": given})["y"]
    want = peer.run(None, feed)[0]
    plain = np.asarray(got) if layout == "plain" else _to_plain(np.asarray(got), block.outputs)
    error = float(np.abs(plain - want).max() / np.abs(want).max())
    if not error <= TOLERANCE[isa.precision]:
        sys.exit(f"{block.name}: error {error:.1e} of the largest value")
    ours_s, peer_s = _in_turn(lambda: ours.run({"x": given}), lambda: peer.run(None, feed), seconds)
    steps = json.loads(bytes(artifact.files["plan.json"]))["steps"]
    library = library_from_bytes(artifact.files["kernels.so"])  # equal bytes are the session's own library
    kernel_s = _kernel_seconds(lambda: ours.run({"x": given}), library, len(steps))
    window = next((step["window"] for step in steps if "window" in step), "")
    return Row(
        family, layout, block.name, block.images, ours_s * 1e6, peer_s * 1e6, block.flops / kernel_s / 1e9, peak(),
        error, window,
    )  # fmt: skip


def _opened(artifact: Artifact) -> Session:
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    return open_session(files, artifact.metadata, OpenOptions(threads=1))


def _lowered(block: Block, values: dict[str, Array], layout: str) -> Lowered:
    """Returns the block's steps, not fused yet."""
    inner = Layout.BLOCKED
    x, y = (Tensor(name, shape, inner) for name, shape in (("x", block.in_shape), ("y", block.out_shape)))
    steps: list[NativeStep] = []
    at = x
    if layout == "plain":
        at = Tensor("in", block.in_shape, inner)
        steps.append(Convert(at, Tensor("x", block.in_shape)))
    first = at
    if block.expands_from:
        wide = Tensor("e", (block.images, block.channels, block.size, block.size), inner)
        steps.append(Convolution(wide, at, values["ew"], values["eb"], Window((1, 1)), 1, Epilogue(RELU6)))
        at = wide
    narrow = Tensor("d", (block.images, block.channels, *block.out_shape[2:]), inner)
    window = Window((3, 3), (block.stride, block.stride), (1, 1))
    steps.append(Convolution(narrow, at, values["dw"], values["db"], window, block.channels, Epilogue(RELU6)))
    end = Epilogue(ADD, first) if block.has_residual else Epilogue(RELU6) if block.ends_in_relu6 else Epilogue()
    last = y if layout == "blocked" else Tensor("out", block.out_shape, inner)
    steps.append(Convolution(last, narrow, values["pw"], values["pb"], Window((1, 1)), 1, end))
    if layout == "plain":
        steps.append(Convert(Tensor("y", block.out_shape), last))
        x, y = Tensor("x", block.in_shape), Tensor("y", block.out_shape)
    return Lowered(steps, {"x": x}, {"y": y})


def _to_blocked(x: Array, isa: Isa) -> Array:
    blocked = blocked_array(x, isa.lanes)
    values = blocked.astype(ml_dtypes.bfloat16).view(np.uint16) if isa.precision == "bf16" else blocked
    return _aligned(values)


def _aligned(values: Array) -> Array:
    """Returns a copy that begins at a cache line; a session copies blocks that begin elsewhere."""
    memory = np.empty(values.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    aligned: Array = memory[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    aligned[...] = values
    return aligned


def _to_plain(x: Array, channels: int) -> Array:
    n, blocks, height, width, lanes = x.shape
    values = x.view(ml_dtypes.bfloat16).astype(np.float32) if x.dtype == np.uint16 else x
    return values.transpose(0, 1, 4, 2, 3).reshape(n, blocks * lanes, height, width)[:, :channels]


def _in_turn(ours: Callable[[], object], peer: Callable[[], object], seconds: float) -> tuple[float, float]:
    """Returns the median seconds of a call of each, in rounds: a turn is a call that is not counted, then some."""
    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < ROUNDS_AT_LEAST * CALLS_AT_LEAST:
        for call, taken in zip((ours, peer), times, strict=True):
            call()
            taken += _turn(call)
    return statistics.median(times[0]), statistics.median(times[1])


def _turn(call: Callable[[], object]) -> list[float]:
    taken: list[float] = []
    while len(taken) < CALLS_AT_LEAST or sum(taken) < TURN_SECONDS:
        start = time.thread_time()
        call()
        taken.append(time.thread_time() - start)
    return taken


def _kernel_seconds(call: Callable[[], object], library: ctypes.CDLL, num_steps: int) -> float:
    """Returns the median of what the kernels of a call take, by the clock around each step."""
    taken = step_clock.nanoseconds(library)
    times = []
    for _ in range(KERNEL_CALLS):
        call()
        times.append(sum(taken[:num_steps]) / 1e9)
    return statistics.median(times)


def _values(block: Block) -> dict[str, Array]:
    shapes: dict[str, tuple[int, ...]] = {
        "x": block.in_shape, "dw": (block.channels, 1, 3, 3), "db": (block.channels,),
        "pw": (block.outputs, block.channels, 1, 1), "pb": (block.outputs,),
    }  # fmt: skip
    if block.expands_from:
        shapes |= {"ew": (block.channels, block.expands_from, 1, 1), "eb": (block.channels,)}
    r = np.random.default_rng(0)
    values = {name: r.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}
    for name in {"ew", "pw"} & values.keys():
        values[name] /= np.float32(np.sqrt(values[name].shape[1]))
    values["x"] = _aligned(values["x"])
    return values


def _peer(block: Block, values: dict[str, Array]) -> onnxruntime.InferenceSession:
    constants = {k: v for k, v in values.items() if k != "x"}
    constants |= {"low": np.array(0, np.float32), "high": np.array(6, np.float32)}
    convolution = {"group": block.channels, "strides": [block.stride] * 2, "pads": [1] * 4}
    nodes = [
        helper.make_node("Conv", ["h" if block.expands_from else "x", "dw", "db"], ["a"], **convolution),
        helper.make_node("Clip", ["a", "low", "high"], ["b"]),
        helper.make_node("Conv", ["b", "pw", "pb"], ["c"]),
    ]
    if block.expands_from:
        nodes[:0] = [
            helper.make_node("Conv", ["x", "ew", "eb"], ["e"]),
            helper.make_node("Clip", ["e", "low", "high"], ["h"]),
        ]
    if block.has_residual:
        nodes.append(helper.make_node("Add", ["c", "x"], ["y"]))
    elif block.ends_in_relu6:
        nodes.append(helper.make_node("Clip", ["c", "low", "high"], ["y"]))
    else:
        nodes[-1].output[0] = "y"
    graph = helper.make_graph(
        nodes,
        "block",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, block.in_shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, block.out_shape)],
        [numpy_helper.from_array(v, k) for k, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _peak(isa: Isa) -> Callable[[], float]:
    with tempfile.TemporaryDirectory() as folder:
        peak = library_from_bytes(library_from_source(PEAK_TEXT, isa, Path(folder))).nnd_peak
    peak.argtypes, peak.restype = (ctypes.c_long,), ctypes.c_float

    def gflops() -> float:
        times = []
        for _ in range(9):
            start = time.thread_time()
            peak(PEAK_ROUNDS)
            times.append(time.thread_time() - start)
        return 2 * 24 * isa.lanes * PEAK_ROUNDS / min(times) / 1e9

    return gflops


if __name__ == "__main__":
    main()
