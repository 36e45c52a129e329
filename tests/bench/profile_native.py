# SPDX-License-Identifier: Apache-2.0
"""Where a model's time goes in our own CPU kernels, step by step, on this machine.

    python tests/bench/profile_native.py MODEL.onnx [--shape input=1,3,224,224] [--threads N] [--precision bf16]
        [--runs N] [--most N]

A session passes a point behind each step, as it does for pacing; here that of the caller reads the clock, in a C
library of ours that ziglang makes. Medians over runs.
"""

import argparse
import ctypes
import json
import statistics
import sys
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
from c_library import library_from_source
from native_engines import with_own_transforms
from nndeploy_native.build import build
from nndeploy_native.plan import DOCUMENT_FILE
from nndeploy_native.session import open_session
from nndeploy_native.support import supports

from nndeploy.frontend.load import load_model
from nndeploy.passes import optimise
from nndeploy.plugin.interface import BuildOptions, OpenOptions
from nndeploy.target.target import host_target

MOST_STEPS = 4096
CLOCK = f"""#define _GNU_SOURCE
#include "base/pace.h"
#include <time.h>
#define EXPORT __attribute__((visibility("default")))
EXPORT int64_t nnd_marks[{MOST_STEPS + 1}], nnd_num_marks;
static void mark(void) {{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (nnd_num_marks <= {MOST_STEPS}) nnd_marks[nnd_num_marks++] = now.tv_sec * 1000000000LL + now.tv_nsec;
}}
static void pass(struct nnd_pace_item *item, int64_t worker, int64_t point, int64_t part, int64_t parts) {{
  if (part == parts && !worker) mark();
}}
static struct nnd_pace_item item = {{.pass = pass, .num_points = {MOST_STEPS}}};
EXPORT void *nnd_clock(void) {{ return &item; }}
EXPORT void nnd_begin(void) {{ nnd_num_marks = 0; mark(); }}
"""


@dataclass(frozen=True)
class Row:
    """One step and the median time that it takes."""

    kernel: str
    what: str
    microseconds: float


def main() -> None:
    """Prints a table of the steps, the slowest first, and the sum."""
    options = _options()
    shapes = dict(_shape(text) for text in options.shape)
    loaded = load_model(options.model, shapes=shapes)
    optimise(loaded.model)
    with_own_transforms(loaded.model, supports(loaded.model, host_target(), BuildOptions(ranges=loaded.ranges)))
    rows = profile(loaded.model, options.precision, options.threads, options.runs)
    total = sum(row.microseconds for row in rows)
    print("| kernel | what | µs | share |\n| --- | --- | ---: | ---: |")
    for row in sorted(rows, key=lambda row: -row.microseconds)[: options.most]:
        print(f"| {row.kernel} | {row.what} | {row.microseconds:.1f} | {row.microseconds / total:.1%} |")
    print(f"\n{len(rows)} steps, {total:.0f} µs")
    for kernel in sorted({row.kernel for row in rows}):
        part = sum(row.microseconds for row in rows if row.kernel == kernel)
        print(f"  {kernel}: {part:.0f} µs, {part / total:.1%}")


def profile(model: ir.Model, precision: str, threads: int, runs: int) -> list[Row]:
    """Returns the steps of an optimised model in the order in which they run."""
    with tempfile.TemporaryDirectory() as folder:
        clock = ctypes.CDLL(str(library_from_source([CLOCK], Path(folder))))
    clock.nnd_clock.restype = ctypes.c_void_p
    marks, num_marks = (
        (ctypes.c_int64 * (MOST_STEPS + 1)).in_dll(clock, "nnd_marks"),
        ctypes.c_int64.in_dll(clock, "nnd_num_marks"),
    )
    artifact = build(model, {}, precision=precision)
    files = {name: memoryview(data) for name, data in artifact.files.items()}
    session = open_session(files, artifact.metadata, OpenOptions(threads=threads))
    item = clock.nnd_clock()
    if not session.pace(lambda: item, None):
        sys.exit(session.pace_note or "no points")
    steps, inputs, times = json.loads(bytes(artifact.files[DOCUMENT_FILE]))["steps"], inputs_of(model), []
    for _ in range(runs):
        clock.nnd_begin()
        session.run(inputs)
        assert num_marks.value == len(steps) + 1
        times.append([after - before for before, after in pairwise(marks[: num_marks.value])])
    medians = [statistics.median(of) / 1000 for of in zip(*times, strict=True)]
    return [Row(step["kernel"], step["what"], us) for step, us in zip(steps, medians, strict=True)]


def inputs_of(model: ir.Model) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[Any]]]:
    """Returns random inputs: floats from 0 to 1, or whole numbers below 8."""
    rng, found = np.random.default_rng(0), {}
    for value in model.graph.inputs:
        assert value.name is not None
        assert value.shape is not None
        assert value.dtype is not None
        numbers = rng.random(value.shape.numpy()) * (8 if value.dtype.is_integer() else 1)
        found[value.name] = numbers.astype(value.dtype.numpy())
    return found


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, sizes = text.rsplit("=", 1)
    return name, tuple(int(size) for size in sizes.split(","))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="the time of each step of a model in our own CPU kernels",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--shape", action="append", default=[], help="input=sizes, for inputs that are not fixed")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--most", type=int, default=30, help="rows of the table")
    return parser.parse_args()


if __name__ == "__main__":
    main()
