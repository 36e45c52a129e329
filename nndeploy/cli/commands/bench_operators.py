# SPDX-License-Identifier: Apache-2.0
"""`nndeploy bench --operators`: how long each operator takes between its pace points, and what rate that is.

Beside it what the processor would take at least, the roof, and what fused operators take apart.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nndeploy.cli.commands.bench_inputs import bench_inputs
from nndeploy.cli.commands.bench_roof import add_apart, add_roof, limit_text, reached, roof_to_json
from nndeploy.cli.commands.loading import load
from nndeploy.cli.console import note, print_json, print_line, print_table
from nndeploy.errors import NndeployError
from nndeploy.loadgen.samples import NamedSample
from nndeploy.pacing.plan.estimate import estimated_ns, explained
from nndeploy.pacing.plan.goal import ONLY_TIMES
from nndeploy.pacing.plan.operators_file import counted_operators
from nndeploy.pacing.run.paced_program import PacedProgram, ProgramPoint, shapes_of
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import Program
from nndeploy.values.amounts import counted, size_text

FIGURES = ("us", "share", "MFLOP", "GFLOP/s", "GB/s", "roof", "limit", "apart")
UNCOUNTED = 2
"""Runs of fused operators apart, and as they are, that a session may leave out at the beginning."""


def bench_operators(
    bundle: Path,
    inputs: Sequence[str],
    options: LoadOptions,
    *,
    iterations: int | None,
    seconds: float | None,
    warmup: int,
    as_json: bool,
) -> None:
    """Runs inputs of one shape, without delays, and prints the median of each operator.

    Raises:
        UnavailableError: the bundle has no pace points for this machine.
    """
    with load(bundle, options, pace=ONLY_TIMES) as program:
        samples, origin = bench_inputs(program, inputs, most=1)
        assert isinstance(program.pacing, PacedProgram)
        pacer, points = program.pacing.pacer, _counted(program, program.pacing.points, samples[0])
        for _ in range(1 + warmup):
            _run(program, samples[0])
        pacer.forget()
        runs = _runs(program, samples[0], iterations, seconds)
        latency_ns, times_ns = pacer.timed()
        rows = _rows(points, times_ns)
        roof = add_roof(rows, points, program, options.threads)
        both = None if iterations is None else 2 * (UNCOUNTED + iterations)
        add_apart(rows, program, lambda: _runs(program, samples[0], both, seconds))
        report = {
            "bundle": str(bundle),
            "inputs": origin,
            "shapes": [list(shape) for shape in shapes_of(samples[0].values)],
            "runs": runs,
            "run_us": latency_ns / 1e3,
            "roof": None if roof is None else roof_to_json(roof),
            **reached(rows, points),
            "operators": rows,
            "estimate_r2": _explained(points, times_ns),
        }
    if as_json:
        print_json(report)
    else:
        _print(report)


def _counted(program: Program, points: Sequence[ProgramPoint], sample: NamedSample) -> Sequence[ProgramPoint]:
    """Returns the points, without amounts where these were counted for inputs of other shapes than the sample's."""
    counted_for = counted_operators(program.bundle).shapes
    here = {name: value.shape for name, value in sample.values.items() if isinstance(value, np.ndarray)}
    if not counted_for or all(counted_for[name] == shape for name, shape in here.items() if name in counted_for):
        return points
    note("what operators compute was counted for inputs of other shapes: compile with --shape, or leave --input out")
    return [point._replace(amount=None) for point in points]


def _runs(program: Program, sample: NamedSample, iterations: int | None, seconds: float | None) -> int:
    """Runs a sample at least once, as often and as long as is said; returns how often."""
    began, runs = time.perf_counter(), 0
    while not runs or (
        (iterations is None or runs < iterations) and (seconds is None or time.perf_counter() - began < seconds)
    ):
        _run(program, sample)
        runs += 1
    return runs


def _run(program: Program, sample: NamedSample) -> None:
    try:
        program.run(sample.values)
    except NndeployError as err:
        raise err.about(sample.origin) from err


def _rows(points: Sequence[ProgramPoint], times_ns: "np.ndarray[Any, Any]") -> list[dict[str, Any]]:
    """Returns the figures of each point, None for those of which the bundle does not say what they compute."""
    total = float(times_ns.sum()) or 1.0
    rows = []
    for point, ns in zip(points, times_ns.tolist(), strict=True):
        flops, moved = point.amount if point.amount is not None else (None, None)
        rows.append({
            "submodel": point.submodel,
            "operator": point.name,
            "us": ns / 1e3,
            "share": ns / total,
            "flops": flops,
            "bytes": moved,
            "gflops_per_s": None if flops is None or not ns else flops / ns,
            "gbytes_per_s": None if moved is None or not ns else moved / ns,
        })  # fmt: skip
    return rows


def _explained(points: Sequence[ProgramPoint], times_ns: "np.ndarray[Any, Any]") -> float | None:
    amounts = [point.amount for point in points if point.amount is not None]
    return explained(estimated_ns(amounts), times_ns) if len(amounts) == len(points) else None


def _print(report: dict[str, Any]) -> None:
    rows = report["operators"]
    print_table(
        f"operators, median of {report['runs']:,} runs on {report['inputs']}",
        ("submodel", "operator", *FIGURES),
        (
            (
                row["submodel"],
                row["operator"],
                f"{row['us']:.1f}",
                f"{row['share']:.1%}",
                "" if row["flops"] is None else f"{row['flops'] / 1e6:.3g}",
                "" if row["gflops_per_s"] is None else f"{row['gflops_per_s']:.3g}",
                "" if row["gbytes_per_s"] is None else f"{row['gbytes_per_s']:.3g}",
                f"{row['roof_share']:.0%}" if row["roof_share"] else "",
                limit_text(row),
                "" if row["apart"] is None else f"{row['apart']:.2f}",
            )
            for row in rows
        ),
        right=FIGURES,
    )
    us = sum(row["us"] for row in rows)
    print_line(f"a run     {report['run_us'] / 1e3:.3f} ms, {counted(len(rows), 'operator')} of it {us / 1e3:.3f} ms")
    best = {key: max((row[key] or 0.0 for row in rows), default=0.0) for key in ("gflops_per_s", "gbytes_per_s")}
    print_line(f"at best   {best['gflops_per_s']:.3g} GFLOP/s, {best['gbytes_per_s']:.3g} GB/s")
    if (roof := report["roof"]) is not None:
        print_line(_roof_text(roof, report["roof_share"]))
    if (r2 := report["estimate_r2"]) is not None:
        print_line(f"estimate  max(flops, bytes) explains {r2:.0%} of the differences between operators (R2 {r2:.2f})")


def _roof_text(roof: Mapping[str, Any], share: float | None) -> str:
    """Returns what the processor does at most, and which share of that a run reaches."""
    memory = [f"{one['gbytes_per_s']:.3g} GB/s of {size_text(one['bytes'])}" for one in roof["memory"]]
    peaks = f"{roof['float32_gflops_per_s']:.3g} GFLOP/s, int8 {roof['int8_gops_per_s']:.3g} Gop/s, {memory[0]}"
    reached = "" if share is None else f"; operators reach {share:.0%}"
    return f"roof      {peaks} to {memory[-1]}, {counted(roof['threads'], 'thread')}{reached}"
