# SPDX-License-Identifier: Apache-2.0
"""What only people look at, in bundles from an attacker: every command shows it, or refuses it with one line.

The hashes are right, as after an attacker packed the bundle anew; the report, the steps, the operators and the pipeline
are not. No command ends with a bug of ours (70), writes where it was not told to, or lets a name drive the terminal.
"""

import io
import json
import random
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nndeploy.cli.main import run_command

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "flow")]

from hostile_bundles import repacked
from test_bundle_contents import damaged_bytes, damaged_tree
from tests_flow_bundles import write_double

NUM_MUTANTS = 60
ALLOWED = {0, 1, 2, 65, 66, 69, 77}
PLAN, OPERATORS = "submodels/s0/plan", "pacing/operators.json"
TOML, FILES = "pipeline/pipeline.toml", "pipeline/files.json"
STEPS = {"steps": [{"kernel": "k", "what": "conv", "window": "1 x 2 x 3", "buffer_bytes": 4096, "value": "y"}]}
COUNTED = {
    "shapes": {"image": [2, 3]},
    "submodels": {"s0": {"values": [["image", 24], ["y", 24]], "operators": [["Mul", [0], [1], 6, 4]]}},
}
PIPELINE = b"""in-flight = 4
[source]
kind = "arrays"
[[level]]
[[level.pipeline]]
name = "double"
inputs = { image = "image" }
[[level.pipeline.post]]
steps = [{ use = "softmax", in = ["y"], out = ["shares"] }]
[[sink]]
kind = "json-lines"
"""


NAMES = b'{"labels.txt":"pipeline/files/0","others/charset.txt":"submodels/s0/plan"}'


def edit(manifest: dict[str, Any]) -> None:
    manifest["submodels"][0]["variants"][0]["files"]["plan.json"] = PLAN
    manifest["format"]["minor"] = 4
    manifest |= {"target_chains": [], "pace_libraries": {}, "pace_operators": OPERATORS}
    for limits in manifest["ranges"].values():
        limits["step"] = 1


def plain(data: object) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    members = {PLAN: plain(STEPS), OPERATORS: plain(COUNTED)}
    np.savez(folder / "x.npz", image=np.ones((2, 3), np.float32))
    return repacked(write_double(folder / "double.nnd"), folder / "good.nnd", edit, members)


def said_by(call: list[str]) -> tuple[int, str]:
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        code = run_command(call)
    return code, out.getvalue() + errors.getvalue()


def check(folder: Path, calls: list[list[str]]) -> None:
    for call in calls:
        code, text = said_by(call)
        assert code in ALLOWED, (call, text)
        assert "\x1b]" not in text
        assert "Traceback" not in text
        assert text.count("error[") <= (code != 0)
    assert not (folder / "evil").exists()


def mutants(data: object, seed: int) -> list[bytes]:
    rng = random.Random(seed)  # noqa: S311 - to be repeated
    trees = [plain(damaged_tree(data, rng)) for _ in range(NUM_MUTANTS - NUM_MUTANTS // 4)]
    return [*trees, *(damaged_bytes(plain(data), rng) for _ in range(NUM_MUTANTS // 4))]


Calls = Callable[[str], list[list[str]]]


def report_calls(path: str) -> list[list[str]]:
    page = str(Path(path).with_suffix(".html"))
    return [["inspect", path, "-v"], ["inspect", path, "--json"], ["inspect", path, "--html", page]]


def test_the_good_one_is_shown_by_every_command(good: Path) -> None:
    path = str(good)
    for call in (*report_calls(path), ["diff", path, path], ["pace", path, "--estimate"], ["verify", path]):
        code, text = said_by(call)
        assert code == 0, text


@pytest.mark.parametrize("member", ["report.json", PLAN, OPERATORS])
def test_what_people_look_at_is_shown_or_refused(good: Path, member: str) -> None:
    evil = good.with_name("evil.nnd")
    if member == "report.json":
        data = json.loads(good.read_bytes()[_span(good, member)])
    else:
        data = {PLAN: STEPS, OPERATORS: COUNTED}[member]
    for mutant in mutants(data, len(member)):
        repacked(good, evil, edit, {member: mutant})
        calls = report_calls(str(evil)) if member != OPERATORS else [["pace", str(evil), "--estimate"]]
        calls += [["diff", str(good), str(evil)]] if member == "report.json" else []
        calls += [["pace", str(evil), "--estimate", "--json"]] if member == PLAN else []
        check(good.parent, calls)


def _span(path: Path, member: str) -> slice:
    from nndeploy.bundle.reader import open_bundle

    with open_bundle(path) as bundle:
        entry = bundle._entries[member]
        return slice(entry.offset, entry.end)


def test_a_damaged_pipeline_is_refused(good: Path) -> None:
    rng = random.Random(5)  # noqa: S311 - to be repeated
    evil = good.with_name("evil.nnd")
    for number in range(NUM_MUTANTS):
        text = PIPELINE if number == 0 else damaged_bytes(PIPELINE, rng)
        repacked(good, evil, edit, {TOML: text, FILES: plain({}) if number % 7 != 6 else damaged_bytes(NAMES, rng)})
        call = ["run", str(evil), "--input", str(good.parent / "x.npz"), "--output", str(good.parent / "out.jsonl")]
        if number == 0:
            assert said_by(call)[0] == 0
        check(good.parent, [call])


def test_operators_of_other_submodels_are_refused(good: Path) -> None:
    others = {**COUNTED, "submodels": {"other": COUNTED["submodels"]["s0"]}}
    evil = repacked(good, good.with_name("evil.nnd"), edit, {OPERATORS: plain(others)})
    code, text = said_by(["pace", str(evil), "--estimate"])
    assert code == 65, text


def test_names_of_a_bundle_cannot_drive_the_terminal(good: Path) -> None:
    report = json.loads(good.read_bytes()[_span(good, "report.json")])
    name = "\x1b]0;owned\x07\x1b[2J"
    report["model"] = name
    for node in report["nodes"]:
        node |= {"name": name, "op": name, "refusals": {name: name}}

    def with_name(manifest: dict[str, Any]) -> None:
        edit(manifest)
        manifest |= {"model_name": name, "provenance": {name: name}}

    evil = repacked(good, good.with_name("evil.nnd"), with_name, {"report.json": plain(report)})
    for call in (*report_calls(str(evil))[:1], ["diff", str(good), str(evil)], ["verify", str(evil)]):
        code, text = said_by(call)
        assert code in ALLOWED
        assert "\x1b" not in text, call
    code, _ = said_by(report_calls(str(evil))[2])
    assert code == 0
    assert "\x1b]0;owned" not in good.with_name("evil.html").read_text(encoding="utf-8")


def test_a_page_holds_no_script_of_a_bundle(good: Path) -> None:
    report = json.loads(good.read_bytes()[_span(good, "report.json")])
    script = "</script></text><script>alert(1)</script><img src=x onerror=alert(1)>\"'"
    report["model"] = script
    for node in report["nodes"]:
        node |= {"name": script, "op": script, "backend": script, "refusals": {script: script}}
    for submodel in report["submodels"]:
        submodel |= {"backend": script, "refusals": {script: script}}

    def with_name(manifest: dict[str, Any]) -> None:
        edit(manifest)
        manifest["model_name"] = script

    members = {"report.json": plain(report), PLAN: plain({"steps": [dict.fromkeys(STEPS["steps"][0], script)]})}
    evil = repacked(good, good.with_name("evil.nnd"), with_name, members)
    page = good.with_name("page.html")
    code, text = said_by(["inspect", str(evil), "--html", str(page)])
    assert code == 0, text
    assert "<script>alert" not in page.read_text(encoding="utf-8")
    assert "<img" not in page.read_text(encoding="utf-8")
