# SPDX-License-Identifier: Apache-2.0
"""Two branches on two backends, whose join is on one of these: they run at once where cores are free, paced too."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx.numpy_helper
import onnx.parser
import pytest
from compile_with import compile_with
from separable_model import needs_native
from test_places import TWO_CORES, add_nodes

import nndeploy
from nndeploy.bundle.reader import open_bundle
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.plan.policy import PacePolicy
from nndeploy.runtime import core_pool
from nndeploy.runtime.chain import ChainStep
from nndeploy.target.place_limits import places_in

pytestmark = TWO_CORES
TEXT = """<ir_version: 8, opset_import: ["": 17]>
branches (float[1,64,48,48] x) => (float[1,64,48,48] y) {
  [left_a] a = Conv<pads=[1,1,1,1]>(x, u) [left_b] b = Conv<pads=[1,1,1,1]>(a, u)
  [left_c] c = Conv<pads=[1,1,1,1]>(b, u) [left_e] e = Conv<pads=[1,1,1,1]>(c, u)
  [right_d] d = Conv<pads=[1,1,1,1]>(x, v) [right_f] f = Tanh(d)
  [join] y = Add(e, f) }"""
PINS = (("left_*", "native"), ("right_*", "onnxruntime"), ("join", "onnxruntime"))
INPUT = {"x": np.linspace(-1, 1, 64 * 48 * 48, dtype=np.float32).reshape(1, 64, 48, 48)}
MS = 1_000_000


def compiled(path: Path, threads: int | None, **options: Any) -> nndeploy.Report:
    needs_native()
    model = onnx.parser.parse_model(TEXT)
    for name, scale in (("u", 24), ("v", 30)):
        weights = np.random.default_rng(scale).standard_normal((64, 64, 3, 3)).astype(np.float32) / scale
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    asked = {"backends": ("native", "onnxruntime"), "pins": PINS, "keep_fallback": False, **options}
    return compile_with(model, path, threads=threads, **asked)


def submodels_of(path: Path) -> list[tuple[str, tuple[str, ...]]]:
    with open_bundle(path) as bundle:
        return [(one.variants[0].backend, one.inputs) for one in bundle.manifest.submodels]


def test_a_branch_does_not_wait_for_the_other_where_its_threads_leave_cores(tmp_path, monkeypatch) -> None:
    together, apart = tmp_path / "t.nnd", tmp_path / "a.nnd"
    compiled(together, None)
    compiled(apart, 1)
    assert [backend for backend, _ in submodels_of(together)] == ["native", "onnxruntime"]
    left, right, join = submodels_of(apart)
    assert (left, right) == (("native", ("x",)), ("onnxruntime", ("x",)))
    assert join[0] == "onnxruntime"

    with nndeploy.load_bundle(together, threads=1) as program:
        want = program.run(INPUT)["y"]
    both, run = threading.Barrier(2), ChainStep.__call__

    def meets(step: ChainStep, values: Mapping[str, Any]) -> Any:
        if step.inputs == ("x",):
            both.wait(30)  # which breaks where one branch waits for the other
        return run(step, values)

    monkeypatch.setattr(ChainStep, "__call__", meets)
    with nndeploy.load_bundle(apart, threads=1) as program:
        np.testing.assert_array_equal(program.run(INPUT)["y"], want, strict=True)


def test_a_solved_plan_sleeps_in_both_branches_within_the_time(tmp_path) -> None:
    path = tmp_path / "m.nnd"
    compiled(path, 1, pace=True)
    with nndeploy.load_bundle(path, threads=1) as program:
        want = program.run(INPUT)["y"]
    slept = dict[PacePolicy, float]()
    for policy in (PacePolicy.PROPORTIONAL, PacePolicy.SOLVED):
        with nndeploy.load_bundle(path, threads=1, pace=PaceGoal(400 * MS, policy=policy)) as program:
            for _ in range(3):
                np.testing.assert_array_equal(program.run(INPUT)["y"], want, strict=True)
            pacer = program.pacing.pacer
            assert pacer.points.branches is not None
            assert pacer.points.branches.edges == ((0, 2), (1, 2))
            assert pacer.records[-1].budget == 400 * MS
            slept[policy] = sum(point.delay_us for point in pacer.plan())
    assert slept[PacePolicy.SOLVED] > slept[PacePolicy.PROPORTIONAL]
    assert slept[PacePolicy.SOLVED] > 400_000, "both branches sleep at the same time"


@pytest.mark.parametrize("has_nodes", [False, True])
def test_branches_on_two_pools_run_at_once_and_sleep_at_once(tmp_path, monkeypatch, has_nodes) -> None:
    """One on each pool, the join apart; also where pools have threads of their own, bound to their nodes."""
    path, part = tmp_path / "m.nnd", "1900KiB"  # a branch takes 1872 KiB, both take 2016
    compiled(path, 1, backends=("native",), pins=(), pace=True, places=places_in(f"cpu:0={part},cpu:1={part}"))
    if has_nodes:
        add_nodes(tmp_path)
    monkeypatch.setattr(core_pool, "NODES", tmp_path)
    with nndeploy.load_bundle(path, device="cpu", threads=1) as program:
        want = program.run(INPUT)["y"]
    slept = dict[PacePolicy, int]()
    for policy in (PacePolicy.PROPORTIONAL, PacePolicy.SOLVED):
        with nndeploy.load_bundle(path, threads=1, pace=PaceGoal(300 * MS, policy=policy)) as program:
            assert [program.chain.place_of(one).name for one in program.chain.submodels] == ["cpu:0", "cpu:1", "cpu:1"]
            for _ in range(3):
                np.testing.assert_array_equal(program.run(INPUT)["y"], want, strict=True)
            (*_, record) = program.pacing.pacer.records
            assert record.budget == 300 * MS
            slept[policy] = record.slept
    assert slept[PacePolicy.SOLVED] > 300 * MS, "both branches sleep at the same time"
    assert slept[PacePolicy.SOLVED] > slept[PacePolicy.PROPORTIONAL]


@pytest.mark.parametrize(("objective", "count"), [("latency", 3), ("throughput", 2)])
def test_where_the_rate_counts_branches_stay_together(tmp_path, objective, count) -> None:
    """Where many calls are made at once, each uses the time in which others wait."""
    report = compiled(tmp_path / "m.nnd", 1, objective=objective, dry_run=True)
    assert len(report.submodels) == count
