# SPDX-License-Identifier: Apache-2.0
"""Paced runs of a network whose two branches run at once, each on a backend or a pool of cores of its own.

The left branch has four convolutions, the right one two, and a sum joins them. A run is granted a multiple of the
baseline, what the longer way takes without delays. Of each run it is noted when each branch began and ended: what part
of the shorter one's time lies in that of the longer one. Law: outputs are those of runs without delays, to the bit.
"""

import argparse
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import onnx.parser
from interleaved import Array
from model_sets import compiled
from onnx import numpy_helper
from report import Report

import nndeploy
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.plan.policy import PacePolicy
from nndeploy.pacing.run.paced_program import PacedProgram
from nndeploy.runtime.chain import ChainStep
from nndeploy.target.place_limits import places_in

TEXT = """<ir_version: 8, opset_import: ["": 17]>
branches (float[1,64,96,96] x) => (float[1,64,96,96] y) {
  [left_1] a = Conv<pads=[1,1,1,1]>(x, l1) [left_2] b = Conv<pads=[1,1,1,1]>(a, l2)
  [left_3] c = Conv<pads=[1,1,1,1]>(b, l3) [left_4] d = Conv<pads=[1,1,1,1]>(c, l4)
  [right_1] e = Conv<pads=[1,1,1,1]>(x, r1) [right_2] f = Conv<pads=[1,1,1,1]>(e, r2)
  [join] y = Add(d, f) }"""
WEIGHTS = ("l1", "l2", "l3", "l4", "r1", "r2")
WAYS: dict[str, dict[str, Any]] = {
    "two backends": {
        "backends": ("native", "onnxruntime"),
        "pins": (("left_*", "native"), ("right_*", "onnxruntime"), ("join", "onnxruntime")),
    },
    "two pools": {"backends": ("native",), "places": places_in("cpu:0=7500KiB,cpu:1=7500KiB")},
}
"""Two pools of 7500 KiB: a branch fits one of them, all does not."""
POLICIES = (PacePolicy.PROPORTIONAL.value, PacePolicy.SOLVED.value)
SETTLING, WIDE_MS = 60, 2000.0
"""Runs before those that count, in which is learnt by how much runs are late; a budget that no run comes near to."""
AT_ONCE = 0.5
"""Branches overlapped in a run where so much of the shorter one's time lies in that of the longer one."""


@dataclass
class _Did:
    """What runs did: milliseconds, and of each the part of the shorter branch that lay in the longer one."""

    took_ms: list[float] = field(default_factory=list)
    overlaps: list[float] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)


def race_branches(report: Report, folder: Path, options: argparse.Namespace) -> None:
    """Runs the network over backends and over pools, without delays and by the policies, and writes what came of it."""
    model, x = _model(folder / "branches.onnx"), np.random.default_rng(1).standard_normal((1, 64, 96, 96), np.float32)
    report.text(f"Two branches of four and of two convolutions, one thread each; {os.cpu_count()} cores.")
    table = report.table("branches on", "policy", "budget ms:", "run p50 / p99 ms", "over:", "slept / granted:",
                         "overlapped runs:", "overlap:", "outputs")  # fmt: skip
    for way, how in WAYS.items():
        bundle = folder / f"{way.replace(' ', '-')}.nnd"
        compiled(model, bundle, objective="priority", pace=True, threads=1, **how)
        with nndeploy.load_bundle(bundle, threads=1) as program:
            want = program.run({"x": x})["y"]
        baseline_ms = _baseline_ms(bundle, x)
        ways: list[tuple[str, float]] = [("not paced", 0.0)]
        ways += [(policy, baseline_ms * float(times)) for times in options.budgets for policy in POLICIES]
        found = {one: _Did() for one in ways}
        for _ in range(options.rounds):
            for (policy, budget_ms), did in found.items():
                goal = PaceGoal(round(budget_ms * 1e6), policy=PacePolicy(policy)) if budget_ms else None
                _run(bundle, x, want, goal, options.runs, did)
        for (policy, budget_ms), did in found.items():
            took, overlaps = np.array(did.took_ms), np.array(did.overlaps)
            table.row(
                way, policy, f"{budget_ms:.1f}" if budget_ms else "-",
                f"{np.median(took):.1f} / {np.quantile(took, 0.99):.1f}",
                f"{np.mean(took > budget_ms):.1%}" if budget_ms else "-",
                f"{np.median(did.slept) / (budget_ms - baseline_ms):.2f}" if budget_ms else "-",
                f"{np.mean(overlaps >= AT_ONCE):.0%}", f"{np.median(overlaps):.0%}", "equal",
            )  # fmt: skip
            report.sample(scene="branches", way=way, policy=policy, budget_ms=budget_ms, baseline_ms=baseline_ms,
                          took_ms=did.took_ms, overlaps=did.overlaps, slept_ms=did.slept)  # fmt: skip


def _model(path: Path) -> Path:
    model = onnx.parser.parse_model(TEXT)
    for number, name in enumerate(WEIGHTS):
        weights = np.random.default_rng(number).standard_normal((64, 64, 3, 3)).astype(np.float32) / 24
        model.graph.initializer.append(numpy_helper.from_array(weights, name))
    onnx.save(model, path)
    return path


def _baseline_ms(bundle: Path, x: Array) -> float:
    with nndeploy.load_bundle(bundle, threads=1, pace=PaceGoal(round(WIDE_MS * 1e6))) as program:
        assert isinstance(program.pacing, PacedProgram)
        return program.pacing.pacer.known()[0] / 1e6


def _run(bundle: Path, x: Array, want: Array, goal: PaceGoal | None, num_runs: int, did: _Did) -> None:
    """Adds what runs in this way do.

    Raises:
        SystemExit: a run gives other numbers.
    """
    with nndeploy.load_bundle(bundle, threads=1, pace=goal) as program, _noted() as spans:
        pacer = program.pacing.pacer if isinstance(program.pacing, PacedProgram) else None
        for number in range(SETTLING + num_runs):
            spans.clear()
            began = time.perf_counter_ns()
            got = program.run({"x": x})["y"]
            took = time.perf_counter_ns() - began
            if not np.array_equal(got, want):
                raise SystemExit(f"{bundle.stem}: the outputs differ")
            if number >= SETTLING:
                did.took_ms.append(took / 1e6)
                did.overlaps.append(_overlap(*spans))
        did.slept += [] if pacer is None else [record.slept / 1e6 for record in pacer.records[-num_runs:]]


@contextmanager
def _noted() -> Iterator[list[tuple[int, int]]]:
    """Gives when the submodels began and ended that read the input: the branches."""
    spans, call = list[tuple[int, int]](), ChainStep.__call__

    def noted(step: ChainStep, values: Mapping[str, Any]) -> Any:
        began = time.perf_counter_ns()
        made = call(step, values)
        if step.inputs == ("x",):
            spans.append((began, time.perf_counter_ns()))
        return made

    with patch.object(ChainStep, "__call__", noted):
        yield spans


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> float:
    """Returns what part of the shorter span lies in the longer one."""
    both = min(one[1], other[1]) - max(one[0], other[0])
    return max(0, both) / min(one[1] - one[0], other[1] - other[0])
