# SPDX-License-Identifier: Apache-2.0
"""Estimates without a run, times of operators, and plans on file that runs are paced by."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from compile_with import compile_with
from separable_model import needs_native, separable_model

import nndeploy
from nndeploy.bundle.reader import open_bundle
from nndeploy.cli.main import run_command
from nndeploy.errors import DataError, MissingInputError, UnavailableError, UsageError
from nndeploy.pacing.plan.goal import ONLY_TIMES
from nndeploy.pacing.plan.operators import Amount
from nndeploy.pacing.plan.plan_file import plan_file_from_json
from nndeploy.pacing.run.paced_program import counted_operators

INPUT = {"x": np.random.default_rng(0).standard_normal((1, 32, 24, 24)).astype(np.float32)}
PIXELS = 24 * 24
DEPTHWISE, POINTWISE = 2 * 32 * 9 * PIXELS, 2 * 48 * 32 * PIXELS
FLOPS = DEPTHWISE + 32 * PIXELS + POINTWISE
BYTES = 4 * (32 * PIXELS + 32 * 9 + 48 * 32 + 48 * PIXELS)
"""Of the block as one operator: what is between its parts is not moved."""


CHAIN = """<ir_version: 8, opset_import: ["": 17]>
g (float[8,8] x) => (float[8,8] y) { a = Exp(x) b = MatMul(a, x) c = Tanh(b) d = MatMul(c, b) e = Sin(d) y = Neg(e) }"""
SEVERAL = ["Exp a", "MatMul b", "Tanh c", "MatMul d", "Sin e", "Neg y"]


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of several operators in ONNX Runtime, none of which it fuses."""
    needs_native()
    folder = tmp_path_factory.mktemp("several")
    onnx.save(onnx.parser.parse_model(CHAIN), folder / "chain.onnx")
    compile_with(folder / "chain.onnx", folder / "chain.nnd", backends=("onnxruntime",), pace=True)
    return folder / "chain.nnd"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A bundle of each kind: own kernels, ONNX Runtime, without points."""
    needs_native()
    folder = tmp_path_factory.mktemp("plans")
    model = separable_model(folder / "separable.onnx")
    found = {}
    for name, options in {
        "native": {"backends": ("native",), "pace": True},
        "onnxruntime": {"backends": ("onnxruntime",), "pace": True},
        "openvino": {"backends": ("openvino",), "pace": True},
        "without": {"backends": ("onnxruntime",)},
    }.items():
        found[name] = folder / f"{name}.nnd"
        compile_with(model, found[name], **options)
    return found


@pytest.fixture
def plan(models, tmp_path, capsys, monkeypatch) -> Path:
    """A plan that has a point behind every operator, however short."""
    monkeypatch.setattr("nndeploy_onnxruntime.placed_points.PART_NS", -1.0)
    path = tmp_path / "plan.json"
    arguments = ["pace", str(models["onnxruntime"]), "--max-latency", "50ms", "--runs", "1", "-o", str(path)]
    assert run_command(arguments) == 0
    capsys.readouterr()
    return path


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Returns the exit code of a command and the one line that it says."""
    code = run_command(arguments)
    (line,) = capsys.readouterr().err.splitlines()
    return code, line


def run_with(bundle: Path, plan: Path, *more: str) -> list[str]:
    return ["run", str(bundle), "--input", str(plan.with_name("x.npz")), "--pace", "--pace-plan", str(plan), *more]


def test_the_bundle_keeps_amounts_only_where_it_is_to_be_paced(models) -> None:
    with open_bundle(models["onnxruntime"]) as bundle:
        counted = counted_operators(bundle)
    assert counted.shapes == {"x": (1, 32, 24, 24)}
    assert counted.submodels["s0"].whole() == Amount(FLOPS, BYTES)
    with open_bundle(models["without"]) as bundle:
        assert counted_operators(bundle).submodels == {}
        assert not any(name.startswith("pacing/") for name in bundle.manifest.members)


def test_operators_are_timed_without_delays(models, capsys) -> None:
    arguments = ["bench", str(models["onnxruntime"]), "--operators", "--iterations", "5", "--threads", "1"]
    assert run_command([*arguments, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    rows = report["operators"]
    assert report["runs"] == 5
    assert report["shapes"] == [[1, 32, 24, 24]]
    assert len(rows) >= 2
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert report["run_us"] > 0
    assert all(row["us"] > 0 for row in rows)
    us_before = 0.0
    for row in rows:
        assert row["submodel"] == "s0"
        assert row["gflops_per_s"] == pytest.approx(row["flops"] / row["us"] / 1e3)
        assert (row["roof_us"] is not None) == (row["flops"] + row["bytes"] > 0)
        assert row["bound"] in ("float32", "memory", None)
        us_before += row["us"]  # since the last one of which it is known what it computes
        if row["roof_us"] is not None:
            assert row["roof_share"] == pytest.approx(row["roof_us"] / us_before)
            us_before = 0.0
    roof, sizes = report["roof"], [one["bytes"] for one in report["roof"]["memory"]]
    assert (roof["threads"], sizes[-1] >= max(row["bytes"] for row in rows)) == (1, True)
    whole_us = sum(row["roof_us"] or 0 for row in rows)
    assert report["roof_us"] == pytest.approx(whole_us)
    assert report["roof_share"] == pytest.approx(whole_us / sum(row["us"] for row in rows))
    assert [row["apart"] for row in rows] == [None] * len(rows)  # nothing of ONNX Runtime is fused by us
    assert report["estimate_r2"] is None or 0 <= report["estimate_r2"] <= 1
    assert run_command(arguments) == 0
    assert "GFLOP/s" in capsys.readouterr().out


def test_amounts_of_other_shapes_tell_no_roof(models, tmp_path, capsys) -> None:
    model, out = tmp_path / "rows.onnx", tmp_path / "rows.nnd"
    weights = "float[8,8] w = {" + ", ".join(["1"] * 64) + "}"
    text = (
        f'<ir_version: 8, opset_import: ["": 17]> g (float[n,8] x) => (float[n,8] y) <{weights}> {{ y = MatMul(x, w) }}'
    )
    onnx.save(onnx.parser.parse_model(text), model)
    assert run_command(["compile", str(model), "-o", str(out), "--pace", "--backends", "onnxruntime"]) == 0
    with open_bundle(out) as bundle:
        (rows, _) = counted_operators(bundle).shapes["x"]
    for more in (0, 1):
        np.savez(tmp_path / "x.npz", x=np.ones((rows + more, 8), np.float32))
        capsys.readouterr()
        how = ["--operators", "--iterations", "3", "--input", str(tmp_path / "x.npz"), "--json"]
        assert run_command(["bench", str(out), *how]) == 0
        report = json.loads(capsys.readouterr().out)
        assert (report["roof_us"] is None, report["operators"][-1]["flops"] is None) == (bool(more), bool(more))


def test_timing_operators_makes_no_run_sleep(models) -> None:
    with nndeploy.load_bundle(models["onnxruntime"], nndeploy.LoadOptions(threads=1), pace=ONLY_TIMES) as program:
        for _ in range(12):
            program.run(INPUT)
        assert len(program.pacing.pacer.records) == 12
        assert not any(record.budget or record.late for record in program.pacing.pacer.records)
        own_ns, times = program.pacing.pacer.timed()
        mean = np.mean([record.latency for record in program.pacing.pacer.records])
        program.pacing.pacer.forget()
        assert program.pacing.pacer.records == []
        program.run(INPUT)
        (record,) = program.pacing.pacer.records  # of what was not forgotten; waits for a core are no part of its time
        assert 0 < program.pacing.pacer.timed()[0] <= record.latency
    assert own_ns > 0
    assert 0 < times.sum() <= 2 * mean  # no median is more than twice the mean


def test_timing_operators_needs_points(models, capsys) -> None:
    code, line = refused(["bench", str(models["without"]), "--operators"], capsys)
    assert code == UnavailableError.exit_code
    assert "no pace points" in line
    assert "--pace" in line
    code, line = refused(["bench", str(models["native"]), "--operators", "--scenario", "offline"], capsys)
    assert code == UsageError.exit_code


def test_a_run_by_a_plan_is_paced_from_the_first_on(models, plan) -> None:
    with nndeploy.load_bundle(models["onnxruntime"], nndeploy.LoadOptions(threads=1)) as program:
        want = program.run(INPUT)["y"]
    loaded = plan_file_from_json(plan.read_bytes())
    with nndeploy.load_bundle(models["onnxruntime"], nndeploy.LoadOptions(threads=1), pace=loaded) as program:
        assert not program.pacing.pacer.records  # nothing was run to learn
        np.testing.assert_array_equal(program.run(INPUT)["y"], want)
        (record,) = program.pacing.pacer.records
        delays = np.array([point.delay_us for point in program.pacing.pacer.plan()])
        for _ in range(20):
            program.run(INPUT)
        later = np.array([point.delay_us for point in program.pacing.pacer.plan()])
    assert record.budget == 50_000_000
    weights = loaded.learnt.weights[np.argsort(loaded.learnt.order)]
    for shown in (delays, later):
        np.testing.assert_allclose(shown / shown.sum(), weights, rtol=1e-6)


@pytest.mark.parametrize(("part_made_with", "part_run_with"), [(-1.0, 1e18), (1e18, -1.0), (-1.0, -1.0)])
def test_points_are_those_of_the_plan_whatever_operators_take_now(
    several, tmp_path, capsys, monkeypatch, part_made_with, part_run_with
) -> None:
    path = tmp_path / "plan.json"
    monkeypatch.setattr("nndeploy_onnxruntime.placed_points.PART_NS", part_made_with)
    assert run_command(["pace", str(several), "--max-latency", "50ms", "--runs", "1", "-o", str(path)]) == 0
    names = [point["name"] for point in json.loads(path.read_bytes())["points"]]
    assert names == (SEVERAL if part_made_with < 0 else SEVERAL[-1:])
    monkeypatch.setattr("nndeploy_onnxruntime.placed_points.PART_NS", part_run_with)
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
    np.savez(tmp_path / "x.npz", x=x)
    for _ in range(3):
        capsys.readouterr()
        assert run_command(run_with(several, path, "--json")) == 0
        assert json.loads(capsys.readouterr().out)["pacing"]["cap_ms"] == 50
    with nndeploy.load_bundle(several, pace=plan_file_from_json(path.read_bytes())) as program:
        assert [point.name for point in program.pacing.points] == names
        got = program.run({"x": x})["y"]
    with nndeploy.load_bundle(several) as program:
        np.testing.assert_array_equal(got, program.run({"x": x})["y"])


def test_a_plan_has_the_policy_by_which_it_was_made(several, tmp_path, capsys, monkeypatch) -> None:
    path = tmp_path / "plan.json"
    monkeypatch.setattr("nndeploy_onnxruntime.placed_points.PART_NS", -1.0)
    made = ["pace", str(several), "--max-latency", "50ms", "--policy", "equal", "--runs", "1", "-o", str(path)]
    assert run_command(made) == 0
    data = json.loads(path.read_bytes())
    assert data["policy"] == "equal"
    weights = [point["weight"] for point in data["points"]]
    assert weights == pytest.approx([1 / 6, 2 / 6, 1 / 6, 1 / 6, 1 / 6, 0])  # two operators read what the second makes
    capsys.readouterr()
    code, line = refused(run_with(several, path, "--policy", "solved"), capsys)
    assert (code, "--policy" in line) == (UsageError.exit_code, True)


def test_the_goal_of_the_command_goes_before_that_of_the_plan(models, plan, capsys) -> None:
    np.savez(plan.with_name("x.npz"), **INPUT)
    assert run_command(run_with(models["onnxruntime"], plan, "--json")) == 0
    assert json.loads(capsys.readouterr().out)["pacing"]["cap_ms"] == 50
    assert run_command(run_with(models["onnxruntime"], plan, "--max-latency", "70ms", "--json")) == 0
    assert json.loads(capsys.readouterr().out)["pacing"]["cap_ms"] == 70
    code, line = refused(run_with(models["onnxruntime"], plan, "--max-latency", "1us"), capsys)
    assert code == UsageError.exit_code
    assert "is the minimum" in line


def test_inputs_of_another_shape_are_paced_by_the_plan_and_it_is_said(models, plan) -> None:
    loaded = plan_file_from_json(plan.read_bytes().replace(b"[[1, 32, 24, 24]]", b"[[1, 32, 24, 12]]"))
    with nndeploy.load_bundle(models["onnxruntime"], pace=loaded) as program:
        for _ in range(12):
            program.run(INPUT)
        assert [record.budget for record in program.pacing.pacer.records] == [50_000_000] * 12
        assert program.pacing.pacer.records[0].slept > 0
        assert program.pacing.pacer.adapted.startswith(
            "the plan is of inputs of 1x32x24x12: its times were taken 2 times as long for 1x32x24x24"
        )


@pytest.mark.parametrize("command", ["run", "pace"])
def test_what_runs_as_one_piece_says_that_it_cannot_be_paced(models, tmp_path, capsys, command) -> None:
    np.savez(tmp_path / "x.npz", **INPUT)
    more = ["--pace", "--input", str(tmp_path / "x.npz")] if command == "run" else []
    code, line = refused([command, str(models["openvino"]), "--max-latency", "50ms", *more], capsys)
    assert code == UnavailableError.exit_code
    assert "runs as one piece (openvino)" in line
    assert "own kernels and ONNX Runtime have points" in line


@pytest.mark.parametrize("command", ["run", "pace"])
def test_the_policy_solved_is_refused_for_a_bundle_alone(several, tmp_path, capsys, command) -> None:
    np.savez(tmp_path / "x.npz", x=np.ones((8, 8), np.float32))
    more = ["--pace", "--input", str(tmp_path / "x.npz")] if command == "run" else []
    arguments = [command, str(several), "--max-latency", "50ms", "--policy", "solved", *more]
    code, line = refused(arguments, capsys)
    assert code == UsageError.exit_code
    assert "--policy solved needs branches" in line


def test_a_plan_for_another_bundle_is_refused(models, plan, capsys) -> None:
    np.savez(plan.with_name("x.npz"), **INPUT)
    code, line = refused(run_with(models["native"], plan), capsys)
    assert code == DataError.exit_code
    assert "made for another bundle" in line
    assert "nndeploy pace" in line


def changed(plan: Path, change: dict[str, Any]) -> Path:
    data = json.loads(plan.read_bytes())
    data["points"][0] |= change
    data["pairs"] = []
    other = plan.with_name("other.json")
    other.write_text(json.dumps(data))
    return other


def without_last_point(plan: Path) -> Path:
    """Returns a plan without the last point: its weight is 0, and it is there whatever is wanted."""
    data = json.loads(plan.read_bytes())
    del data["points"][-1]
    data["pairs"] = []
    other = plan.with_name("fewer.json")
    other.write_text(json.dumps(data))
    return other


def test_a_plan_of_other_operators_is_refused(models, plan, capsys) -> None:
    bundle = models["onnxruntime"]
    np.savez(plan.with_name("x.npz"), **INPUT)
    code, line = refused(run_with(bundle, changed(plan, {"name": "Sin q"})), capsys)
    assert (code, "'Sin q', which has no pace point here" in line) == (DataError.exit_code, True)
    code, line = refused(run_with(bundle, without_last_point(plan)), capsys)
    assert (code, "but this machine has" in line) == (DataError.exit_code, True)
    code, line = refused(run_with(bundle, changed(plan, {"parts": 3})), capsys)
    assert (code, "which is done in one" in line) == (DataError.exit_code, True)
    code, line = refused(run_with(bundle, plan.with_name("none.json")), capsys)
    assert (code, "no such file" in line) == (MissingInputError.exit_code, True)
    code, line = refused(run_with(bundle, changed(plan, {"amount_us": -1})), capsys)
    assert (code, "other.json" in line) == (DataError.exit_code, True)
    code, line = refused([one for one in run_with(bundle, plan) if one != "--pace"], capsys)
    assert (code, "--pace-plan requires --pace" in line) == (UsageError.exit_code, True)


@pytest.mark.parametrize("backend", ["native", "onnxruntime"])
def test_an_estimate_runs_nothing(models, backend, capsys, monkeypatch) -> None:
    monkeypatch.setattr("nndeploy.runtime.program.load_bundle", None)
    assert run_command(["pace", str(models[backend]), "--estimate", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["unit"] == "share"
    assert sum(point["flops"] for point in report["points"]) == FLOPS
    assert sum(point["share"] for point in report["points"]) == pytest.approx(1)
    assert all(point["amount_us"] is None for point in report["points"])
    assert run_command(["pace", str(models[backend]), "--estimate"]) == 0
    said = capsys.readouterr().out
    assert "estimated, not measured" in said
    assert "%" in said


@pytest.mark.parametrize(("options", "reason"), [
    (["--estimate", "-o", "p.json"], "--estimate"),
    (["--cpu-limit", "50%", "--target", "t4"], "--target is for --estimate"),
    (["--estimate", "--target", "nowhere"], "no target is called"),
])  # fmt: skip
def test_options_of_an_estimate_that_make_no_sense(models, options, reason, capsys) -> None:
    code, line = refused(["pace", str(models["native"]), *options], capsys)
    assert code == UsageError.exit_code
    assert reason in line
