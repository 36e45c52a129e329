# SPDX-License-Identifier: Apache-2.0
"""What nndeploy-run answers: goldens are judged as `nndeploy verify` judges them, and --json has the same fields."""

import dataclasses
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from runner_answers import answer, with_reference

import nndeploy
from nndeploy.bundle.manifest import Limits, Tolerance
from nndeploy.bundle.reader import open_bundle

OUTPUTS = """<ir_version: 10, opset_import: ["" : 21]>
g (float[n,4] x, int64[n] k, bool[n] m) =>
  (float[n,4] y, float[n] score, int64[n] i, int8[n] small, bool[n] z, float16[n] half) {
    y = Neg(x) axes = Constant<value_ints=[1]>() score = ReduceSum<keepdims=0>(x, axes) i = Neg(k) z = Not(m)
    small = Cast<to=3>(k) half = Cast<to=10>(k) }"""
"""An output of each kind that is compared in its own way."""

N = 40
WIDE = Limits(max_abs=9.0, rms=9.0, slice_rms=9.0, off=1.0)
"""Limits that admit anything finite."""


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    draw = np.random.default_rng(1)
    numbers = draw.standard_normal((N, 4)).astype(np.float32)
    sample = {"x": numbers, "k": np.arange(N) - 7, "m": np.arange(N) % 3 > 0}
    options = {"backends": ("native",), "objective": "priority", "threads": 1, "samples": [sample]}
    nndeploy.compile_model(onnx.parser.parse_model(OUTPUTS), folder / "m.nnd", **options)
    return folder / "m.nnd"


def shifted(name: str, by: float) -> Callable[[dict[str, Any]], None]:
    def change(wanted: dict[str, Any]) -> None:
        wanted[name] = (wanted[name] + np.asarray(by)).astype(wanted[name].dtype)

    return change


def replaced(name: str, make: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    def change(wanted: dict[str, Any]) -> None:
        wanted[name] = make(wanted[name])

    return change


def rolled(wanted: dict[str, Any]) -> None:
    """Puts the rows of two outputs in another order, and changes three of them."""
    for name in ("y", "score"):
        wanted[name] = np.roll(wanted[name], 3, axis=0)
    wanted["score"][:3] += 5


def first(value: float) -> Callable[[Any], Any]:
    def make(array: Any) -> Any:
        changed = array.copy()
        changed.flat[0] = value
        return changed

    return make


ROWS = dataclasses.replace(WIDE, rows_axis=0, unmatched=0.1)
CASES: dict[str, tuple[Callable[[dict[str, Any]], None], dict[str, Limits], int]] = {
    "as it is": (lambda _: None, {}, 0),
    "float apart": (shifted("y", 0.1), {}, 1),
    "float within limits": (shifted("y", 0.1), {"y": WIDE}, 0),
    "largest over its limit": (replaced("y", first(7.0)), {"y": dataclasses.replace(WIDE, max_abs=1.0)}, 1),
    "one slice over its limit": (replaced("y", lambda y: y + np.float32([0, 0, 3, 0])),
                                 {"y": dataclasses.replace(WIDE, slice_rms=2.0)}, 1),
    "share over its limit": (shifted("y", 0.1), {"y": dataclasses.replace(WIDE, off=0.5)}, 1),
    "turned": (replaced("y", lambda y: -y), {"y": WIDE}, 0),
    "turned without limits": (replaced("y", lambda y: -y), {}, 1),
    "NaN on one side": (replaced("y", first(np.nan)), {"y": WIDE}, 1),
    "infinite on one side": (replaced("half", first(np.inf)), {}, 1),
    "half apart": (shifted("half", 0.5), {}, 1),
    "index apart": (replaced("i", first(3)), {}, 1),
    "indices apart within a share": (replaced("i", first(3)), {"i": WIDE}, 0),
    "byte apart within limits": (shifted("small", 1), {"small": WIDE}, 0),
    "bool apart": (replaced("z", np.logical_not), {}, 1),
    "bool apart within a share": (replaced("z", np.logical_not), {"z": WIDE}, 0),
    "another shape": (replaced("y", lambda y: y[:-1]), {"y": WIDE}, 1),
    "another type": (replaced("small", lambda small: small.astype(np.uint8)), {}, 1),
    "other order": (rolled, {"y": ROWS, "score": ROWS}, 0),
    "too few partners": (rolled, {name: dataclasses.replace(ROWS, unmatched=0.05) for name in ("y", "score")}, 1),
    "lists of other lengths": (
        lambda wanted: wanted.update(y=wanted["y"][:-2], score=wanted["score"][:-2]), {"y": ROWS, "score": ROWS}, 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_goldens_are_judged_as_python_judges_them(nndeploy_command, runner, outputs, tmp_path, case) -> None:
    change, limits, code = CASES[case]
    tolerances = {"float16": Tolerance(1e-3, 1e-3), "int8": Tolerance(0.0, 0.0)}
    bundle = with_reference(outputs, tmp_path / "m.nnd", change, limits, tolerances)
    done = nndeploy_command("verify", bundle, "--threads", "1", "--json")
    wanted = json.loads(done.stdout)
    found = answer([runner, bundle, "--threads", "1", "--verify"], code)
    assert done.returncode == code
    assert found.keys() == wanted.keys()
    assert {**found, "outputs": (), "error": ()} == {**wanted, "outputs": (), "error": ()}
    assert len(found["outputs"]) == len(wanted["outputs"]) == 6
    for mine, one in zip(found["outputs"], wanted["outputs"], strict=True):
        assert {**mine, "note": "", "cosine": 0} == {**one, "note": "", "cosine": 0}
        assert mine["cosine"] == pytest.approx(one["cosine"], abs=1e-12)
        assert bool(mine["note"]) == bool(one["note"])


@pytest.mark.parametrize(("words", "code"), [
    (("--rtol", "0.1"), 1), (("--rtol", "1e9"), 0), (("--atol", "0.05"), 1), (("--rtol", "0", "--atol", "0"), 1),
])  # fmt: skip
def test_given_tolerances_stand_in_place_of_all_others(
    nndeploy_command, runner, outputs, tmp_path, words, code
) -> None:
    bundle = with_reference(outputs, tmp_path / "m.nnd", shifted("y", 0.1), {"y": WIDE}, {})
    done = nndeploy_command("verify", bundle, "--threads", "1", "--json", *words)
    found = answer([runner, bundle, "--threads", "1", "--verify", *words], code)
    assert done.returncode == code
    for mine, one in zip(found["outputs"], json.loads(done.stdout)["outputs"], strict=True):
        same = ("output", "ok", "rtol", "atol", "rule", "max_abs")
        assert [mine[key] for key in same] == [one[key] for key in same]


def test_a_bundle_without_goldens_is_not_verified(nndeploy_command, runner, digits, tmp_path) -> None:
    assert nndeploy_command("export", digits, "-o", tmp_path / "digits").returncode == 0
    assert answer([tmp_path / "digits", "--verify"], 1)["error"]["code"] == "check-failed"


def test_an_exported_program_verifies_itself(nndeploy_command, digits, tmp_path) -> None:
    assert nndeploy_command("export", digits, "-o", tmp_path / "digits", "--verify").returncode == 0
    done = subprocess.run([tmp_path / "digits", "--verify"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("PASSED, 1 of 1")


def test_a_damaged_member_that_no_run_reads_is_found(runner, digits, tmp_path) -> None:
    with open_bundle(digits) as opened:
        report = bytes(opened.member("report.json"))
    data = digits.read_bytes()
    at = data.index(report) + 5
    (tmp_path / "m.nnd").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    assert answer([runner, tmp_path / "m.nnd", "--info"], 0)
    assert answer([runner, tmp_path / "m.nnd", "--verify"], 65)["error"]["code"] == "bad-bundle"


def test_json_has_the_fields_of_python(nndeploy_command, runner, digits, tmp_path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 1, 8, 8), np.float32))
    given = ["--input", tmp_path / "x.npy"]
    python = {
        "run": json.loads(nndeploy_command("run", digits, *given, "--json").stdout),
        "bench": json.loads(nndeploy_command("bench", digits, *given, "--iterations", "3", "--json").stdout),
        "inspect": json.loads(nndeploy_command("inspect", digits, "--here", "--json").stdout),
    }
    mine = {
        "run": answer([runner, digits, *given], 0),
        "bench": answer([runner, digits, *given, "--bench", "0.01"], 0),
        "inspect": answer([runner, digits, "--info"], 0),
    }
    for command, wanted in python.items():
        assert mine[command].keys() <= wanted.keys(), command
        assert mine[command]["schema"] == wanted["schema"]
    assert mine["run"].keys() == python["run"].keys() - {"ideal"}  # of stages that wait for each other
    assert mine["bench"].keys() == python["bench"].keys()
    for same in ("model", "shapes", "cpu", "threads", "chain", "choices"):
        assert mine["bench"][same] == python["bench"][same], same
    for same in ("manifest", "contents", "size_bytes"):
        assert mine["inspect"][same] == python["inspect"][same], same


def test_a_bench_is_held_against_one_of_the_runner(nndeploy_command, runner, digits, tmp_path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 1, 8, 8), np.float32))
    given = ["--input", tmp_path / "x.npy"]
    (tmp_path / "bench.json").write_text(json.dumps(answer([runner, digits, *given, "--bench", "0.01"], 0)))
    gates = ("--against", tmp_path / "bench.json", "--max-slowdown", "100000%", "--iterations", "3")
    done = nndeploy_command("bench", digits, *given, *gates)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("words", "code"), [
    (["--verify", "--info"], 2), (["--verify", "-i", "x.npy"], 2), (["--info", "-o", "out"], 2), (["-i", "no.npy"], 66),
    (["-o", "-"], 2), (["--threads", "-1"], 2), (["--rtol", "1"], 2), (["--verify", "--atol", "nan"], 2),
    (["--verify", "--rtol", "-1"], 2),
    (["-i", "\udcff.npy"], 66),
])  # fmt: skip
def test_an_answer_in_json_says_what_went_wrong(runner, digits, words, code) -> None:
    assert answer([runner, digits, *words], code)["error"]["message"]
