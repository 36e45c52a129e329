# SPDX-License-Identifier: Apache-2.0
"""Pipelines that are paced: the same bytes, a latency of the item, what is told at the end, what is refused."""

import json
from pathlib import Path

import onnx.parser
import pytest
from compile_with import compile_with
from separable_model import needs_native

from nndeploy.cli.main import run_command
from nndeploy.errors import UsageError
from nndeploy.pacing.stream.paced_stream import BASELINE_ITEMS

TWICE = """<ir_version: 8, opset_import: ["": 17]>
g (float[2,3] x) => (float[2,3] y) { two = Constant<value = float {2}>() a = Mul(x, two) y = Neg(a) }"""
PIPELINE = """
[source]
kind = "json-lines"
[[level]]
[[level.pipeline]]
name = "one"
model = "m.nnd"
outputs = { y = "twice" }
[[level]]
[[level.pipeline]]
name = "two"
model = "m.nnd"
inputs = { x = "twice" }
outputs = { y = "four" }
[[level.pipeline]]
name = "three"
model = "m.nnd"
runners = 2
inputs = { x = "twice" }
outputs = { y = "other" }
"""
COUNT, BROKEN = 10, 7


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a small bundle with pace points."""
    needs_native()
    folder = tmp_path_factory.mktemp("paced")
    onnx.save(onnx.parser.parse_model(TWICE), folder / "m.onnx")
    compile_with(folder / "m.onnx", folder / "m.nnd", backends=("onnxruntime",), pace=True)
    return folder / "m.nnd"


@pytest.fixture
def here(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.nnd").write_bytes(bundle.read_bytes())
    (tmp_path / "p.toml").write_text(PIPELINE)
    lines = [f'{{"x": [[{i}, 2, 3], [4, 5, 6]]}}\n' for i in range(COUNT)]
    (tmp_path / "x.jsonl").write_text("".join(lines))
    lines[BROKEN] = '{"x": 3}\n'
    (tmp_path / "broken.jsonl").write_text("".join(lines))
    return tmp_path


def run(*arguments: str, source: str = "x.jsonl", output: str = "y.jsonl") -> int:
    return run_command(["run", "--pipeline", "p.toml", "--input", source, "--output", output, *arguments])


@pytest.mark.parametrize("goal", [("--max-latency", "100ms"), ("--cpu-limit", "50%")])
@pytest.mark.parametrize("order", [(), ("--resume",)])
def test_a_paced_pipeline_gives_the_same_bytes_and_says_what_was_achieved(here, goal, order, capsys) -> None:
    assert run(source="broken.jsonl", output="want.jsonl") == 1
    capsys.readouterr()
    assert run("--pace", *goal, *order, "--json", source="broken.jsonl") == 1
    assert (here / "y.jsonl").read_bytes() == (here / "want.jsonl").read_bytes()
    said = capsys.readouterr()
    pacing = json.loads(said.out)["pacing"]
    items = pacing["items"]
    assert sorted(pacing["runners"]) == ["one", "three", "two"]
    assert 0 < items["p50_ms"] <= items["p99_ms"]
    assert items["process_load"] > 0
    if "--max-latency" in goal:
        assert items["items"] == COUNT - 1 - BASELINE_ITEMS
        assert items["cap_ms"] == 100
        assert 0 < items["calm_ms"] < 100
        assert items["interval_ms"] > 0
        assert all(runner["runs"] == COUNT - 1 - BASELINE_ITEMS for runner in pacing["runners"].values())
    else:
        assert (items["items"], items["cap_ms"]) == (COUNT - 1, 0)
    lines = [line for line in said.err.splitlines() if line.startswith("nndeploy: paced: ")]
    told = [line.split(": ")[2].split(" ")[0] for line in lines if "busy machine" not in line]
    assert told == ["runner", "runner", "runner", "items"]


def test_a_budget_below_the_baseline_is_refused_and_nothing_is_left(here, capsys) -> None:
    assert run("--pace", "--max-latency", "1us") == UsageError.exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert "an item takes" in line
    assert "is the minimum" in line
    assert not (here / "y.jsonl").exists()


def test_batches_have_no_latency_but_a_share_of_the_processor(here, capsys) -> None:
    (here / "p.toml").write_text(PIPELINE.replace('name = "two"', 'name = "two"\nbatch = 2', 1))
    assert run("--pace", "--max-latency", "100ms") == UsageError.exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert "'two' runs batches" in line
    assert "--cpu-limit" in line
    assert run("--pace", "--cpu-limit", "50%") == 0


@pytest.mark.parametrize("option", [("--pace-total", "60ms"), ("--pace-pair", "a->b=2ms")])
def test_delays_are_for_a_bundle_alone(here, option, capsys) -> None:
    assert run("--pace", *option) == UsageError.exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert "--pace-pair and --pace-total are for a bundle alone" in line


def test_all_runners_of_a_pipeline_are_one_member_of_a_group(here, capsys, monkeypatch) -> None:
    monkeypatch.setattr("nndeploy.pacing.run.group.FOLDER", here)
    assert run("--pace", "--pace-group", "box", "--cpu-limit", "50%") == 0
    (told,) = (line for line in capsys.readouterr().err.splitlines() if "group 'box'" in line)
    assert "limit 50%" in told
    assert "; 1 member at the end" in told


ROUTED = """
[[source]]
name = "left"
kind = "json-lines"
[[source]]
name = "right"
kind = "json-lines"
[[level]]
[[level.pipeline]]
name = "one"
source = "left"
model = "m.nnd"
outputs = { y = "twice" }
[[level.pipeline]]
name = "two"
source = "right"
model = "m.nnd"
outputs = { y = "twice" }
[[level]]
queue = "basic"
[[level.pipeline]]
name = "three"
model = "m.nnd"
when = "max(twice) < -3"
inputs = { x = "twice" }
outputs = { y = "four" }
[[level.pipeline]]
name = "four"
model = "m.nnd"
when = "max(twice) < -3"
inputs = { x = "twice" }
outputs = { y = "four" }
"""


def test_a_stream_of_several_sources_with_routes_shares_a_limit_but_has_no_latency(here, capsys, monkeypatch) -> None:
    monkeypatch.setattr("nndeploy.pacing.run.group.FOLDER", here)
    (here / "p.toml").write_text(ROUTED)
    arguments = ["run", "--pipeline", "p.toml", "--input", "left=x.jsonl", "--input", "right=x.jsonl"]

    def records(output: str) -> list[str]:
        """Returns the lines without their indices: sources are merged as they arrive."""
        return sorted(line.partition(", ")[2] for line in (here / output).read_text().splitlines())

    assert run_command([*arguments, "--output", "want.jsonl"]) == 0
    capsys.readouterr()
    limited = ["--pace", "--pace-group", "box", "--cpu-limit", "50%", "--json"]
    assert run_command([*arguments, "--output", "y.jsonl", *limited]) == 0
    assert records("y.jsonl") == records("want.jsonl")
    report = json.loads(capsys.readouterr().out)
    assert (report["items"], report["not_taken"]) == (2 * COUNT, 4)
    group, runners = report["pacing"]["group"], report["pacing"]["runners"]
    assert (group["name"], group["limit"], group["members"]) == ("box", 0.5, 1)
    assert min(runners["one"]["runs"], runners["two"]["runs"]) >= COUNT
    assert run_command([*arguments, "--output", "y.jsonl", "--pace", "--max-latency", "100ms"]) == UsageError.exit_code
    (line,) = capsys.readouterr().err.splitlines()
    assert "latency budget" in line
