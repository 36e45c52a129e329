# SPDX-License-Identifier: Apache-2.0
"""Where a model's time goes in our own CPU kernels, step by step, on this machine.

    python tests/bench/profile_native.py MODEL.onnx [--shape input=1,3,224,224] [--threads N] [--precision bf16]
        [--isa x86-64-v3] [--runs N] [--most N]

The source that a build compiles is compiled once more with a clock around each of its steps (step_clock.py). Medians
over runs.
"""

import argparse
import json
import statistics
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import step_clock
from nndeploy_native.build import build, machine_of
from nndeploy_native.isa import ISAS
from nndeploy_native.library import library_from_source
from nndeploy_native.plan import LIBRARY_FILE, PLAN_FILE
from nndeploy_native.session import NativeSession, open_session
from nndeploy_native.steps.step import Machine

from nndeploy.files.shared_object import library_from_bytes
from nndeploy.frontend.load import load_model
from nndeploy.passes import optimise
from nndeploy.plugin.interface import BuildOptions, OpenOptions
from nndeploy.target.target import host_target


@dataclass(frozen=True)
class Row:
    """One step and the median time that it takes."""

    kernel: str
    what: str
    microseconds: float
    multiply_adds: int


def main() -> None:
    """Prints a table of the steps, the slowest first, and the sum."""
    options = _options()
    shapes = dict(_shape(text) for text in options.shape)
    loaded = load_model(options.model, shapes=shapes)
    optimise(loaded.model)
    machine = machine_of(host_target(), BuildOptions(precision=options.precision, threads=options.threads))
    if options.isa:
        machine = replace(machine, isa=next(isa for isa in ISAS if isa.name == options.isa))
    rows = profile(loaded.model, machine, options.threads, options.runs)
    total = sum(row.microseconds for row in rows)
    print("| kernel | what | µs | share | GFLOP/s |\n| --- | --- | ---: | ---: | ---: |")
    for row in sorted(rows, key=lambda row: -row.microseconds)[: options.most]:
        speed = f"{row.multiply_adds / row.microseconds / 500:.0f}" if row.multiply_adds else ""
        print(f"| {row.kernel} | {row.what} | {row.microseconds:.1f} | {row.microseconds / total:.1%} | {speed} |")
    print(f"\n{len(rows)} steps, {total:.0f} µs")
    for kernel in sorted({row.kernel for row in rows}):
        part = sum(row.microseconds for row in rows if row.kernel == kernel)
        print(f"  {kernel}: {part:.0f} µs, {part / total:.1%}")


def profile(model: ir.Model, machine: Machine, threads: int, runs: int) -> list[Row]:
    """Returns the steps of an optimised model in the order in which they run."""
    with tempfile.TemporaryDirectory() as folder:
        artifact = build(model, machine, {}, Path(folder))
        source = (Path(folder) / "kernels.c").read_text()
        library = library_from_source(step_clock.HEAD + source, machine.isa, Path(folder))
    files = {name: memoryview(data) for name, data in {**artifact.files, LIBRARY_FILE: library}.items()}
    session = open_session(files, artifact.metadata, OpenOptions(threads=threads))
    assert isinstance(session, NativeSession)
    inputs = inputs_of(model)
    steps = json.loads(artifact.files[PLAN_FILE])["steps"]
    taken = step_clock.nanoseconds(library_from_bytes(library))
    times = []
    for _ in range(runs):
        session.run(inputs)
        times.append(taken[: len(steps)])
    medians = [statistics.median(of) / 1000 for of in zip(*times, strict=True)]
    return [
        Row(step["kernel"], " ".join((step["what"], step.get("then", ""))).strip(), us, step.get("multiply_adds", 0))
        for step, us in zip(steps, medians, strict=True)
    ]


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
    parser.add_argument("--isa", help="another instruction set than this machine's widest")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--most", type=int, default=30, help="rows of the table")
    return parser.parse_args()


if __name__ == "__main__":
    main()
