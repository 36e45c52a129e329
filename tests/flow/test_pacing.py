# SPDX-License-Identifier: Apache-2.0
"""Bundles that are paced: the same numbers, figures of what was achieved, and what is refused."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from compile_with import compiled_once
from separable_model import needs_native, separable_model

import nndeploy
from nndeploy.bundle.reader import open_bundle
from nndeploy.cli.main import run_command
from nndeploy.errors import CannotCreateError, InputError, UnavailableError, UsageError
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.plan.node_names import node_names
from nndeploy.pacing.plan.plan_file import plan_file_from_json
from nndeploy.pacing.plan.policy import PacePolicy
from nndeploy.pacing.run.achieved import PaceRecord, achieved
from nndeploy.pacing.run.paced_program import PacedProgram
from nndeploy.pacing.run.pacer import BASELINE_RUNS
from nndeploy.trust.signatures import holds_code

INPUT = {"x": np.random.default_rng(0).standard_normal((1, 32, 24, 24)).astype(np.float32)}
NANOSECONDS = 1_000_000
HEADER = '<ir_version: 8, opset_import: ["": 17]>'


@pytest.fixture
def model(tmp_path: Path) -> Path:
    needs_native()
    return separable_model(tmp_path / "separable.onnx")


@pytest.fixture
def every_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points behind operators of ONNX Runtime however short these are."""
    monkeypatch.setattr("nndeploy_onnxruntime.placed_points.PART_NS", -1.0)


def compiled(model: Path, **options: Any) -> Path:
    asked = {"backends": ("native", "onnxruntime"), "pace": True, "objective": "priority", **options}
    return compiled_once(model, model.with_suffix(".nnd"), **asked)


@pytest.mark.usefixtures("every_point")
@pytest.mark.parametrize("backend", ["native", "onnxruntime", "openvino"])
@pytest.mark.parametrize("threads", [1, 2])
def test_paced_runs_give_the_same_numbers(model: Path, backend: str, threads: int) -> None:
    bundle = compiled(model, backends=(backend,))
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=threads)) as program:
        want = program.run(INPUT)["y"]
    with nndeploy.load_bundle(
        bundle, nndeploy.LoadOptions(threads=threads), pace=PaceGoal(20 * NANOSECONDS)
    ) as program:
        for _ in range(5):
            np.testing.assert_array_equal(program.run(INPUT)["y"], want)
        assert isinstance(program.pacing, PacedProgram)
        assert (len(program.pacing.pacer.points) == 1) == (backend != "onnxruntime")  # the pair is one own kernel
        _, durations = program.pacing.pacer.known()
        learnt = [record.latency for record in program.pacing.pacer.records][:BASELINE_RUNS]
    assert 0 < durations.sum() <= 2 * np.mean(learnt)  # no median is more than twice the mean


def test_a_paced_run_sleeps_and_its_figures_say_so(model: Path) -> None:
    bundle = compiled(model, backends=("onnxruntime",))
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=1), pace=PaceGoal(50 * NANOSECONDS)) as program:
        for _ in range(4):
            program.run(INPUT)
        assert isinstance(program.pacing, PacedProgram)
        records = program.pacing.pacer.records
    assert [record.budget > 0 for record in records[:BASELINE_RUNS]] == [False] * BASELINE_RUNS
    assert all(record.budget == 50 * NANOSECONDS for record in records[BASELINE_RUNS:])
    found = achieved(records)
    assert found is not None
    assert found.runs == len(records) - BASELINE_RUNS
    assert 0 <= found.load <= 1
    assert 0 < found.p50_peak_load <= found.peak_load <= 1


@pytest.mark.parametrize(("size", "filters", "attributes"), [
    ((1, 64, 112, 112), (64, 64, 3, 3), "pads=[1,1,1,1]"),
    ((1, 16, 1, 60_000), (16, 1, 1, 255), "group=16,pads=[0,127,0,127]"),  # one row, each channel by itself
    ((1, 1, 1, 150_000), (1, 1, 1, 255), "pads=[0,127,0,127]"),
], ids=["image", "channels of a sound", "sound"])  # fmt: skip
def test_a_long_own_kernel_is_slept_in(size, filters, attributes, tmp_path) -> None:
    needs_native()
    shape = ",".join(map(str, size))
    text = f"""{HEADER} g (float[{shape}] x) => (float[{shape}] y) {{ y = Conv<{attributes}>(x, w) }}"""
    model = onnx.parser.parse_model(text)
    weights = np.random.default_rng(0).standard_normal(filters).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "m.onnx")
    bundle = compiled(tmp_path / "m.onnx", backends=("native",))
    inputs = {"x": np.random.default_rng(1).standard_normal(size).astype(np.float32)}
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=1)) as program:
        want = program.run(inputs)["y"]
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=2)) as program:
        np.testing.assert_array_equal(program.run(inputs)["y"], want)
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=1), pace=PaceGoal(200 * NANOSECONDS)) as program:
        for _ in range(5):
            np.testing.assert_array_equal(program.run(inputs)["y"], want)
        assert isinstance(program.pacing, PacedProgram)
        plan, records = program.pacing.pacer.plan(), list(program.pacing.pacer.records)[-5:]
    longest = max(plan, key=lambda point: point.amount_us)
    assert longest.parts > 3
    # A run that a neighbour made late sleeps less often; what is slept more often than there are points, is within one.
    assert max(len(record.late) for record in records) > len(plan)


def test_a_new_shape_is_learnt_before_it_is_paced(tmp_path: Path) -> None:
    needs_native()
    text = HEADER + " g (float[n,4] x) => (float[n,4] y) { a = Exp(x) y = Neg(a) }"
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    bundle = compiled(path, backends=("onnxruntime",), shapes={"x": "1..64,4"})
    with nndeploy.load_bundle(bundle, pace=PaceGoal(cpu_limit=0.5)) as program:
        assert isinstance(program.pacing, PacedProgram)
        before = len(program.pacing.pacer.records)
        for _ in range(BASELINE_RUNS + 1):
            program.run({"x": np.ones((33, 4), np.float32)})
        budgets = [record.budget for record in program.pacing.pacer.records[before:]]
    assert budgets[:BASELINE_RUNS] == [0] * BASELINE_RUNS
    assert budgets[BASELINE_RUNS] > 0


def test_a_budget_below_the_baseline_is_refused_before_anything_runs(model, capsys) -> None:
    bundle = compiled(model)
    with pytest.raises(UsageError, match="without delays"):
        nndeploy.load_bundle(bundle, pace=PaceGoal(1))
    np.savez(model.with_suffix(".npz"), **INPUT)
    arguments = ["run", str(bundle), "--input", str(model.with_suffix(".npz")), "--pace", "--max-latency", "1us"]
    assert run_command(arguments) == UsageError.exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert "is the minimum" in line


def test_a_bundle_without_points_says_how_to_get_them(model: Path) -> None:
    bundle = compiled(model, pace=False)
    with pytest.raises(UnavailableError, match="no pace points") as caught:
        nndeploy.load_bundle(bundle, pace=PaceGoal(cpu_limit=0.5))
    assert "--pace" in caught.value.hint


def test_a_paced_bundle_holds_no_code_and_needs_the_installed_library(model, tmp_path, monkeypatch) -> None:
    bundle = compiled(model)
    with open_bundle(bundle) as opened:
        assert not opened.signature
        assert not holds_code(opened.manifest)
        assert opened.manifest.pace_operators
    monkeypatch.setattr("nndeploy_kernels.loading.LIBRARIES", tmp_path)
    with pytest.raises(UnavailableError) as caught:
        nndeploy.load_bundle(bundle, pace=PaceGoal(cpu_limit=0.5))
    assert "nndeploy-toolchain" in caught.value.hint


def test_the_command_tells_what_was_achieved(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle, folder = compiled(model), model.parent / "in"
    folder.mkdir()
    for number in range(3):
        np.savez(folder / f"{number}.npz", **INPUT)
    arguments = ["run", str(bundle), "--input", str(folder), "--output", str(model.parent / "out")]
    assert run_command([*arguments, "--pace", "--max-latency", "30ms", "--json"]) == 0
    said = capsys.readouterr()
    pacing = json.loads(said.out)["pacing"]
    assert pacing["runs"] >= 3
    assert pacing["cap_ms"] == 30
    assert 0 < pacing["calm_ms"] < 30
    granted, load, kept = (line for line in said.err.splitlines() if line.startswith("nndeploy: paced: "))
    assert f"budget 30 ms; {pacing['over_cap']:.1%} of {pacing['runs']} " in granted
    assert f"load of the run's thread {pacing['load']:.0%} on average" in load
    assert f"in a run's busiest 10 ms (p50; at most {pacing['peak_load']:.0%})" in load
    assert f"{pacing['kept_back']['share']:.0%} of the time granted" in kept
    assert 0 < pacing["kept_back"]["ms"] < 30
    assert len(list((model.parent / "out").iterdir())) == 3


@pytest.mark.parametrize(("options", "reason"), [
    (["--pace"], "needs one of"),
    (["--pace", "--max-latency", "5ms", "--cpu-limit", "50%"], "exclude each other"),
    (["--max-latency", "5ms"], "--pace"),
    (["--cpu-limit", "50%"], "--pace"),
    (["--policy", "equal"], "--policy "),
    (["--pace", "--max-latency", "5"], "is not a time"),
    (["--pace", "--max-latency", "0ms"], "is not a time"),
    (["--pace", "--cpu-limit", "100%"], "between 0% and 100%"),
    (["--pace", "--cpu-limit", "half"], "between 0% and 100%"),
    (["--pace", "--pace-total", "6"], "is not a time"),
    (["--pace", "--pace-total", "6ms", "--max-latency", "9ms"], "exclude each other"),
    (["--pace-total", "6ms"], "--pace-total "),
    (["--pace-pair", "a->b=2ms"], "--pace-pair "),
    (["--pace", "--pace-pair", "a->b"], "needed to pace by"),
    (["--pace", "--pace-group", "box", "--max-latency", "5ms"], "can only share a CPU limit"),
    (["--pace", "--pace-group", "../box", "--cpu-limit", "50%"], "is no name"),
    (["--pace-group", "box"], "--pace-group "),
    (["--pace", "--pace-pair", "a=2ms"], "is not A->B"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(model, options, reason, capsys) -> None:
    bundle = compiled(model, backends=("onnxruntime",))
    assert run_command(["run", str(bundle), "--input", "x.npz", *options]) == UsageError.exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line


@pytest.mark.parametrize(("grant", "budget_ns", "used_ns", "code"), [
    (("--max-latency", "30ms"), 30 * NANOSECONDS, NANOSECONDS, 0),
    (("--max-latency", "30ms"), 20 * NANOSECONDS, NANOSECONDS, 1),
    (("--cpu-limit", "50%"), 20 * NANOSECONDS, NANOSECONDS, 0),
    (("--cpu-limit", "50%"), 40 * NANOSECONDS, 20 * NANOSECONDS, 1),
])  # fmt: skip
@pytest.mark.parametrize("command", ["run", "pace"])
def test_strict_fails_where_pacing_exceeds_what_was_granted(
    model, capsys, monkeypatch, command, grant, budget_ns, used_ns, code
) -> None:
    bundle = compiled(model, backends=("onnxruntime",))
    np.savez(model.with_name("x.npz"), **INPUT)
    made = PaceRecord(budget_ns, 25 * NANOSECONDS, 1, used_ns, 0, used_ns, used_ns, (0,))
    monkeypatch.setattr("nndeploy.pacing.run.pacer.Pacer.records", [made])
    how = {
        "run": ("--input", str(model.with_name("x.npz")), "--output", str(model.with_name("y.npz")), "--pace"),
        "pace": ("--runs", "1"),
    }[command]
    assert run_command([command, str(bundle), *how, *grant, "--json"]) == 0
    capsys.readouterr()
    assert run_command([command, str(bundle), *how, *grant, "--json", "--strict"]) == code
    said = capsys.readouterr()
    told, errors = json.loads(said.out), [line for line in said.err.splitlines() if "error[" in line]
    assert ("error" in told, len(errors)) == (code == 1, code)
    assert (told["pacing"] if command == "run" else told)["runs"] == 1
    if code:
        assert str(bundle) in errors[0]
        assert ("25 ms" if grant[0] == "--max-latency" else "80.0%") in errors[0]


@pytest.mark.usefixtures("every_point")
def test_the_plan_is_shown(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = compiled(model, backends=("onnxruntime",))
    assert run_command(["pace", str(bundle), "--max-latency", "20ms", "--runs", "3", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["cap_ms"] == 20
    assert len(plan["points"]) >= 2
    delays, durations = (np.array([point[key] for point in plan["points"]]) for key in ("delay_us", "amount_us"))
    assert delays[-1] == 0  # nothing follows there
    np.testing.assert_allclose(delays / delays.sum(), [*(durations[:-1] / durations[:-1].sum()), 0], rtol=1e-9)
    assert run_command(["pace", str(bundle), "--cpu-limit", "50%", "--runs", "2"]) == 0
    said = capsys.readouterr().out
    assert "ms of sleep in" in said
    assert "load of the run's thread, in windows of 10 ms" in said
    assert "paced: load of the run's thread" in said


def test_the_load_before_and_after_is_shown(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle, page = compiled(model, backends=("onnxruntime",)), model.with_name("new") / "pace.html"
    page.parent.mkdir()
    arguments = ["pace", str(bundle), "--max-latency", "40ms", "--runs", "3"]
    assert run_command([*arguments, "--html", str(page), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    curves, plan = shown["load_curves"], shown["points"]
    assert curves["window_ms"] == 10
    assert curves["before"]["ms"] == shown["calm_ms"]
    assert curves["before"]["mean"] == curves["before"]["peak"] == 1
    slept = sum(until - since for since, until in curves["expected"]["sleeps_ms"])
    assert slept <= sum(point["delay_us"] for point in plan) / 1e3 + 1e-3
    assert curves["measured"]["ms"] > curves["expected"]["ms"] * 0.2
    text = page.read_text(encoding="utf-8")
    assert "<h1>separable, paced</h1>" in text
    assert text.count("<tr><td") == len(plan)
    assert list(page.parent.iterdir()) == [page]


def test_a_page_that_cannot_be_written_is_an_error(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = compiled(model, backends=("onnxruntime",))
    arguments = ["pace", str(bundle), "--max-latency", "40ms", "--runs", "1", "--html", str(model.parent)]
    assert run_command(arguments) == CannotCreateError.exit_code
    said = capsys.readouterr()
    assert "is a folder" in said.err
    assert said.out == ""


BRANCHES = f"""{HEADER} branches (float[8,8] x) => (float[8,8] y) {{
  a = Exp(x) b = MatMul(a, x) c = Sin(a) d = MatMul(c, x) y = Mul(b, d) }}"""


@pytest.fixture
def branches(tmp_path: Path) -> Path:
    """A bundle of two branches in ONNX Runtime, which fuses none of it."""
    needs_native()
    onnx.save(onnx.parser.parse_model(BRANCHES), tmp_path / "branches.onnx")
    return compiled(tmp_path / "branches.onnx", backends=("onnxruntime",))


def paced_as(bundle: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert run_command(["pace", str(bundle), "--runs", "3", "--json", *options]) == 0
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    return shown


@pytest.mark.usefixtures("every_point")
def test_pairs_are_the_edges_of_the_graph(branches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = paced_as(branches, capsys, "--pace-total", "30ms")
    assert sorted(pair["pair"] for pair in shown["pairs"]) == [
        "Exp a -> MatMul b", "Exp a -> Sin c", "MatMul b -> Mul y", "MatMul d -> Mul y", "Mul y -> end",
        "Sin c -> MatMul d",
    ]  # fmt: skip
    delays = {pair["pair"]: pair["delay_us"] for pair in shown["pairs"]}
    assert sum(delays.values()) == pytest.approx(sum(point["delay_us"] for point in shown["points"]))
    assert delays["Exp a -> MatMul b"] == delays["Exp a -> Sin c"] > 0
    assert shown["cap_ms"] == pytest.approx(30 + shown["calm_ms"], abs=1e-3)


def test_only_chosen_pairs_sleep_and_set_delays_are_what_they_say(branches, capsys) -> None:
    page, plan = branches.with_name("pace.html"), branches.with_name("plan.json")
    chosen = ["--pace-pair", "a->c=3ms", "--pace-pair", "MatMul d -> Mul y"]
    shown = paced_as(branches, capsys, *chosen, "--pace-total", "9ms", "--html", str(page), "-o", str(plan))
    first, second = shown["pairs"]
    assert first == {"pair": "Exp a -> Sin c", "delay_us": 3000, "is_preset": True}
    assert second["pair"] == "MatMul d -> Mul y"
    assert not second["is_preset"]
    assert 0 < second["delay_us"] <= 6000
    slept = {point["name"]: point["delay_us"] for point in shown["points"]}
    assert [name for name, delay in slept.items() if delay] == ["Exp a", "MatMul d"]
    assert "Exp a -&gt; Sin c</td>" in page.read_text(encoding="utf-8")
    np.savez(branches.with_name("x.npz"), x=np.ones((8, 8), np.float32))
    arguments = ["run", str(branches), "--input", str(branches.with_name("x.npz")), "--pace", "--pace-plan", str(plan)]
    assert run_command([*arguments, "--json"]) == 0
    pacing = json.loads(capsys.readouterr().out)["pacing"]
    assert 1 <= pacing["sleeps_a_run"] <= 2  # who is late leaves out what was not set
    assert run_command([*arguments, "--pace-pair", "a->b"]) == UsageError.exit_code
    assert "--pace-pair" in capsys.readouterr().err


def test_pairs_are_chosen_by_the_names_of_the_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs_native()
    model = onnx.parser.parse_model(BRANCHES)
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type.lower()}.{number}"
    onnx.save(model, tmp_path / "named.onnx")
    bundle = compiled(tmp_path / "named.onnx", backends=("onnxruntime",))
    with open_bundle(bundle) as opened:
        exp, sin = (name for name in node_names(opened) if name.startswith(("exp", "sin")))
    shown = paced_as(bundle, capsys, "--pace-pair", f"{exp} -> {sin}=2ms")
    assert [(pair["pair"], pair["delay_us"]) for pair in shown["pairs"]] == [("Exp a -> Sin c", 2000)]
    assert run_command(["pace", str(bundle), "--estimate", "--pace-pair", f"{exp}->{sin}=2ms"]) == 0


def test_delays_that_are_set_need_nothing_else(branches: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = branches.with_name("plan.json")
    shown = paced_as(branches, capsys, "--pace-pair", "b->y=2ms", "-o", str(plan))
    assert shown["sleeps_a_run"] == 1
    assert shown["p50_ms"] >= 1.9  # a sleep is asked to end earlier by what sleeps are usually late
    with nndeploy.load_bundle(branches) as program:
        want = program.run({"x": np.ones((8, 8), np.float32)})["y"]
    with nndeploy.load_bundle(branches, pace=plan_file_from_json(plan.read_bytes())) as program:
        np.testing.assert_array_equal(program.run({"x": np.ones((8, 8), np.float32)})["y"], want)
        assert isinstance(program.pacing, PacedProgram)
        (record,) = program.pacing.pacer.records
    assert record.slept >= 1.9 * NANOSECONDS


@pytest.mark.parametrize(("options", "reason"), [
    (["--pace-pair", "a->zz=2ms"], "no operator is named 'zz' (hint: known: 'Exp a', 'Sin c', "),
    (["--pace-pair", "Exp q->y=2ms"], "no operator is named 'Exp q' (hint: nearest: 'Exp a'"),
    (["--pace-pair", "a->y=2ms"], "'y' does not read what 'a' makes (hint: its pairs: 'Exp a -> "),
    (["--pace-pair", "a->b=9ms", "--pace-total", "8ms"], "the preset delays take 9 ms, more than"),
])  # fmt: skip
def test_pairs_that_are_not_there_are_one_line(branches, options, reason, capsys) -> None:
    assert run_command(["pace", str(branches), *options]) == UsageError.exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line


TOWERS = f"""{HEADER}
towers (float[1,16,48,48] x, float[64,64] u) => (float[1,16,48,48] y) {{
  a = Conv<pads=[1,1,1,1]>(x, w) b = Relu(a) c = Conv<pads=[1,1,1,1]>(b, w) e = Conv<pads=[1,1,1,1]>(c, w)
  d = MatMul(u, u) f = Tanh(d) s = ReduceMean<keepdims=0>(f)
  y = Mul(e, s) }}"""


@pytest.fixture
def towers(tmp_path: Path) -> Path:
    """A bundle of three submodels, of which the last waits for both others."""
    needs_native()
    model = onnx.parser.parse_model(TOWERS)
    weights = np.random.default_rng(0).standard_normal((16, 16, 3, 3)).astype(np.float32) / 12
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    for node in model.graph.node:
        side = "right" if node.output[0] in "dfs" else "left"
        node.name = {"y": "join"}.get(node.output[0], f"{side}_{node.output[0]}")
    onnx.save(model, tmp_path / "towers.onnx")
    backends = ("native", "onnxruntime", "reference")
    return compiled(
        tmp_path / "towers.onnx", backends=backends, pins=(("right_*", "onnxruntime"), ("join", "reference"))
    )


TOWER_INPUTS = {"x": np.ones((1, 16, 48, 48), np.float32), "u": np.full((64, 64), 0.01, np.float32)}


@pytest.mark.usefixtures("every_point")
def test_branches_run_at_once_and_give_the_same_numbers(towers: Path) -> None:
    goal = PaceGoal(600 * NANOSECONDS, policy=PacePolicy.SOLVED)
    with nndeploy.load_bundle(towers, nndeploy.LoadOptions(threads=1)) as program:
        want = program.run(TOWER_INPUTS)["y"]
    with nndeploy.load_bundle(towers, nndeploy.LoadOptions(threads=1), pace=goal) as program:
        assert isinstance(program.pacing, PacedProgram)
        assert program.pacing.pacer.points.branches is not None
        assert program.pacing.pacer.points.branches.edges == ((0, 2), (1, 2))
        for _ in range(3):
            np.testing.assert_array_equal(program.run(TOWER_INPUTS)["y"], want)
        records, plan = program.pacing.pacer.records, program.pacing.pacer.plan()
        pairs = {pair.pair for pair in program.pacing.pacer.planned_pairs()}
    assert records[-1].threads == 3
    assert records[-1].budget == 600 * NANOSECONDS
    assert any(record.slept > record.latency for record in records)  # two threads slept at the same time
    assert sum(point.delay_us for point in plan) > 600_000 > max(point.delay_us for point in plan)
    assert {"MatMul d -> Tanh f", "ReduceMean s -> submodel s2 (reference)"} <= pairs


def test_many_threads_may_run_branches_at_once(towers: Path) -> None:
    with nndeploy.load_bundle(towers, nndeploy.LoadOptions(threads=1), pace=PaceGoal(30 * NANOSECONDS)) as program:
        want = program.run(TOWER_INPUTS)["y"]
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(lambda _: program.run(TOWER_INPUTS)["y"], range(24)))
        assert isinstance(program.pacing, PacedProgram)
        assert len(program.pacing.pacer.records) >= 25
    for got in found:
        np.testing.assert_array_equal(got, want)


def test_a_run_that_fails_in_a_branch_leaves_no_thread_paced(towers: Path) -> None:
    with nndeploy.load_bundle(towers, pace=PaceGoal(30 * NANOSECONDS)) as program:
        with pytest.raises(InputError):
            program.run({**TOWER_INPUTS, "u": np.ones((64, 63), np.float32)})
        assert isinstance(program.pacing, PacedProgram)
        assert program.pacing.pacer._library.item() == 0
        program.run(TOWER_INPUTS)


def slept_in_submodels(towers: Path, goal: PaceGoal) -> list[float]:
    """Returns how many milliseconds each submodel would sleep if they worked for 5, 1 and 3, and 1 were kept back."""
    with nndeploy.load_bundle(towers, nndeploy.LoadOptions(threads=1), pace=goal) as program:
        assert isinstance(program.pacing, PacedProgram)
        pacer = program.pacing.pacer
        for _ in range(BASELINE_RUNS + 1):
            program.run(TOWER_INPUTS)
        learnt, branches = pacer.learnt(), pacer.points.branches
        assert learnt is not None
        assert branches is not None
        durations = np.zeros(branches.num_points)
        parts = [branches.points(submodel) for submodel in range(len(branches.firsts))]
        for points, work in zip(parts, (5, 1, 3), strict=True):
            durations[points] = work * NANOSECONDS / (points.stop - points.start)
        ones = np.ones(branches.num_points, np.int64)
        pacer.start(replace(learnt, durations=durations, weights=ones / len(ones), parts=ones,
                            baseline=8 * NANOSECONDS, reserve=NANOSECONDS))  # fmt: skip
        delays = {point.name: point.delay_us / 1e3 for point in pacer.plan()}
        return [sum(delays[name] for name in pacer.points.names[points]) for points in parts]


def test_the_solved_policy_is_for_branches(towers: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slept = {}
    for policy in (PacePolicy.PROPORTIONAL, PacePolicy.SOLVED):
        shown = paced_as(towers, capsys, "--pace-total", "40ms", "--policy", policy.value, "--threads", "1")
        assert any("run at once" in note for note in shown["notes"])
        slept[policy] = slept_in_submodels(towers, PaceGoal(total_ns=40 * NANOSECONDS, policy=policy))
    proportional, solved = slept[PacePolicy.PROPORTIONAL], slept[PacePolicy.SOLVED]
    assert proportional == pytest.approx([5 * proportional[1], proportional[1], 0])
    assert 20 < proportional[0] < 5 / 8 * 39
    assert solved == pytest.approx([proportional[0], proportional[0] + 4, 0])  # both end when the join begins
    bundle = compiled(model)
    assert run_command(["pace", str(bundle), "--max-latency", "50ms", "--policy", "solved"]) == UsageError.exit_code
    assert "--policy solved needs branches" in capsys.readouterr().err


@pytest.mark.parametrize("backend", ["native", "onnxruntime"])
def test_runs_of_a_group_keep_the_limit_and_say_so(model, backend, capsys, monkeypatch) -> None:
    monkeypatch.setattr("nndeploy.pacing.run.group.FOLDER", model.parent)
    bundle, folder = compiled(model, backends=(backend,)), model.parent / "in"
    folder.mkdir()
    for number in range(3):
        np.savez(folder / f"{number}.npz", **INPUT)
    grouped = ["--pace", "--pace-group", "box", "--cpu-limit", "40%"]
    arguments = ["run", str(bundle), "--input", str(folder), "--output", str(model.parent / "out"), *grouped]
    assert run_command([*arguments, "--json"]) == 0
    said = capsys.readouterr()
    group = json.loads(said.out)["pacing"]["group"]
    assert (group["name"], group["members"], group["limit"]) == ("box", 1, 0.4)
    assert 0 < group["own"] == group["all"]
    assert "group 'box'" in said.err
    with nndeploy.load_bundle(bundle) as program:
        want = program.run(INPUT)["y"]
    with nndeploy.load_bundle(bundle, pace=PaceGoal(cpu_limit=0.4, group="box")) as program:
        np.testing.assert_array_equal(program.run(INPUT)["y"], want)
        for _ in range(60):  # milliseconds of work, which is more than what may be in flight
            program.run(INPUT)
        assert isinstance(program.pacing, PacedProgram)
        assert program.pacing.pacer.group is not None
        assert any(record.late for record in program.pacing.pacer.records)
        found = program.pacing.pacer.group.shares()
    assert found.all <= 0.4 * 1.02 + 0.05
    page = next(model.parent.glob("nndeploy-pace-*-box"))
    page.chmod(0o640)
    assert run_command(arguments) == UnavailableError.exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert "the shared memory of the group is not usable: its mode is 640, not 600" in line


@pytest.mark.usefixtures("every_point")
def test_the_policy_is_what_delays_are_shared_by(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = compiled(model, backends=("onnxruntime",))
    arguments = ["pace", str(bundle), "--max-latency", "20ms", "--runs", "3", "--policy", "equal", "--json"]
    assert run_command(arguments) == 0
    *delays, last = (point["delay_us"] for point in json.loads(capsys.readouterr().out)["points"])
    np.testing.assert_allclose(delays, delays[0], rtol=1e-9)
    assert delays[0] > 0 == last


def test_a_plan_needs_a_goal_and_a_sample(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = compiled(model, backends=("onnxruntime",), num_goldens=0)
    assert run_command(["pace", str(bundle)]) == UsageError.exit_code
    assert "one of --max-latency, --cpu-limit, --pace-total, --pace-pair" in capsys.readouterr().err
    assert run_command(["pace", str(bundle), "--cpu-limit", "50%"]) == UsageError.exit_code
    assert "no sample" in capsys.readouterr().err


def test_a_paced_run_starts_beside_busy_processes(model: Path) -> None:
    """What others take of the cores is no reason to refuse a time that is enough for the work."""
    bundle = compiled(model)
    with nndeploy.load_bundle(bundle, pace=PaceGoal(cpu_limit=0.5)) as program:
        assert isinstance(program.pacing, PacedProgram)
        baseline_ns = program.pacing.pacer.known()[0]
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(6)]
    try:
        for _ in range(5):
            with nndeploy.load_bundle(bundle, pace=PaceGoal(round(4 * baseline_ns))) as program:
                assert isinstance(program.pacing, PacedProgram)
                program.run(INPUT)
                assert program.pacing.pacer.records[-1].budget == round(4 * baseline_ns)
    finally:
        for one in busy:
            one.kill()
            one.wait()
