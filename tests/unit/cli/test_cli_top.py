# SPDX-License-Identifier: Apache-2.0
"""`top` tells of a stream by the figures in a file or at a port, and of nothing else."""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from nndeploy.cli.commands.top import tables
from nndeploy.cli.console import print_table, that_fit
from nndeploy.cli.main import run_command
from nndeploy.stream.engine.metrics import MetricsServer

STAGE: dict[str, Any] = {
    "name": "one: runner", "num_workers": 2, "num_done": 100, "busy_ns": 10_000_000_000,
    "worked_ms": {"p50": 3.0, "p90": 3.5, "p99": 4.0},
}  # fmt: skip
QUEUE: dict[str, Any] = {
    "name": "one: runner", "depth": 3, "max_depth": 7, "capacity": 8, "num_passed": 97,
    "waited_ms": {"p50": 0.25, "p90": 5.0, "p99": 6.0},
}  # fmt: skip
FIGURES: dict[str, Any] = {
    "records": 100, "failed": 2, "not_taken": 0, "forgotten_sessions": 0,
    "seconds": 10.0, "records_per_second": 10.0, "time": 50.0,
    "latency_ms": {"p50": 1.5, "p90": 2.0, "p99": 9.0},
    "stages": [STAGE],
    "cores": {"name": "cores", "num_workers": 4, "num_done": 100, "busy_ns": 12_000_000_000, "worked_ms": {}},
    "queues": [QUEUE],
    "sources": [{
        "name": "camera", "num_read": 1200, "num_dropped": 5, "num_unmatched": 0, "num_reconnects": 1, "num_skipped": 7,
    }],
}  # fmt: skip

PIPELINE = (
    '[source]\nkind = "json-lines"\nfields = ["x"]\n[[level]]\n[[level.pipeline]]\nrunners = 0\n'
    '[[level.pipeline.post]]\nsteps = [{ use = "constant", value = 1, out = ["y"] }]\n'
    '[[sink]]\nkind = "json-lines"\n'
)


def later() -> dict[str, Any]:
    """Returns figures of two seconds later: 30 records more, half a worker and two cores busy."""
    stage = {**STAGE, "num_done": 130, "busy_ns": 11_000_000_000}
    cores = {**FIGURES["cores"], "busy_ns": 16_000_000_000}
    return {**FIGURES, "records": 130, "time": 52.0, "seconds": 12.0, "stages": [stage], "cores": cores}


def test_what_was_done_is_told_since_the_begin_or_since_the_last_look() -> None:
    (title, _, (row,)), (_, _, (queue,)), (_, _, (source,)) = tables(FIGURES, None)
    rate = "10.0 a second, p50 1.5 ms, p90 2 ms, p99 9 ms"
    assert title == f"100 records, 2 failed, {rate}; one: runner limits (50% busy)"
    assert row == ["one: runner", "2", "50%", "10.0", "3 ms", "3.5 ms", "4 ms"]
    assert queue == ["one: runner", "3", "7", "0.25 ms", "5 ms", "6 ms"]
    assert source == ["camera", "1,200", "5", "0", "1", "7"]
    (title, _, (row,)), *_ = tables(later(), FIGURES)
    assert title.startswith("130 records, 2 failed, 15.0 a second")
    assert title.endswith("; cores limit (50% busy)")
    assert row[2:4] == ["25%", "15.0"]


def test_tuning_is_told_where_it_is_on() -> None:
    tuning = {"tuning_seconds": 1.26, "tuned_shapes": 3, "faster_shapes": 2}
    (title, _, _), *_ = tables({**FIGURES, "tuning": tuning}, None)
    assert "3 sets of shapes tuned, 2 faster, in 1.3 s of trials" in title


def test_waits_for_a_core_are_told_where_they_are_counted() -> None:
    """Of a stage the part of its busy time, of the cores the time for which threads waited."""
    stage = {**STAGE, "core_wait_ns": 4_000_000_000}
    cores = {**FIGURES["cores"], "core_wait_ns": 3_000_000_000}
    (title, columns, (row,)), *_ = tables({**FIGURES, "stages": [stage], "cores": cores}, None)
    assert title.endswith("; one: runner limits (50% busy, 20% of the time waiting for a core); "
                          "threads waited for a core 30% of the time")  # fmt: skip
    assert dict(zip(columns, row, strict=True))["waits for a core"] == "20%"
    later_stage = {**later()["stages"][0], "core_wait_ns": 5_000_000_000}
    later_cores = {**later()["cores"], "core_wait_ns": 3_000_000_000}
    (_, columns, (row,)), *_ = tables(
        {**later(), "stages": [later_stage], "cores": later_cores}, {**FIGURES, "stages": [stage], "cores": cores}
    )
    assert dict(zip(columns, row, strict=True))["waits for a core"] == "25%"


@pytest.mark.parametrize(("busy_s", "cores_s", "waited_s", "limit"), [
    (1.6, 2, 7.2, "waits for a core limit (72% of the time); busiest is one: runner (8% busy)"),
    (1.6, 4, 7.2, "waits for a core limit (72% of the time); busiest is cores (10% busy)"),
    (1.6, 38, 10.0, "cores limit (95% busy); threads waited for a core 100% of the time"),
    (1.6, 4, 0.1, "cores limit (10% busy)"),
])  # fmt: skip
def test_what_limits_is_the_busiest_stage_or_the_cores_or_that_others_have_these(
    busy_s, cores_s, waited_s, limit
) -> None:
    stage = {**STAGE, "busy_ns": busy_s * 1e9, "core_wait_ns": 0}
    cores = {**FIGURES["cores"], "busy_ns": cores_s * 1e9, "core_wait_ns": waited_s * 1e9}
    (title, *_), *_ = tables({**FIGURES, "stages": [stage], "cores": cores}, None)
    assert title.endswith(f"; {limit}")


def test_what_was_not_taken_and_which_sessions_were_forgotten_is_told() -> None:
    (title, *_), *_ = tables({**FIGURES, "not_taken": 1200, "forgotten_sessions": 3}, None)
    assert title.startswith("100 records, 2 failed, 1,200 not taken, 3 sessions forgotten, 10.0 a second")


def test_a_stream_that_has_done_nothing_yet_has_figures_too() -> None:
    stage = {"name": "a", "num_workers": 1, "num_done": 0, "busy_ns": 0, "worked_ms": {}}
    nothing = {**FIGURES, "records": 0, "failed": 0, "seconds": 0.0, "records_per_second": 0.0, "latency_ms": {}}
    (title, _, (row,)), *_ = tables({**nothing, "stages": [stage], "sources": []}, None)
    assert title == "0 records, 0.0 a second"
    assert row == ["a", "1", "0%", "0.0", "", "", ""]


def test_a_file_and_a_port_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.json").write_text(json.dumps(FIGURES))
    server = MetricsServer(0, lambda: FIGURES)
    with server:
        said = []
        for where in (str(tmp_path / "m.json"), str(server.port)):
            assert run_command(["top", where]) == 0
            said.append(capsys.readouterr().out)
    assert said[0] == said[1]
    assert "one: runner" in said[0]


HOSTILE = "one\n\x1b[2J\u202e"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_name_never_drives_the_terminal(monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> None:
    named = {**FIGURES, "stages": [{**STAGE, "name": HOSTILE}], "queues": [{**QUEUE, "name": HOSTILE}]}
    named["sources"] = [{**FIGURES["sources"][0], "name": HOSTILE}]
    named["latency_ms"] = {HOSTILE: 1.0}
    out = io.StringIO()
    out.isatty = lambda: is_terminal  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("NO_COLOR", "1")
    for table in tables(named, None):
        print_table(*table)
    told = out.getvalue()
    assert not {"\x1b", "\u202e"} & set(told)
    assert all("one" not in line or "one \\x1b[2J\\u202e" in line for line in told.splitlines())


@pytest.mark.parametrize(("width", "last"), [(200, "p99"), (40, "records/s"), (5, "stage")])
def test_what_does_not_fit_is_left_out_from_the_right(width: int, last: str) -> None:
    _, columns, rows = tables(FIGURES, None)[0]
    shown, cells = that_fit(columns, rows, width)
    assert shown[-1] == last
    assert [len(row) for row in cells] == [len(shown)]


def test_a_run_escapes_the_names_of_its_stages(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.toml").write_text(
        PIPELINE.replace("[[level.pipeline]]", f"[[level.pipeline]]\nname = {json.dumps(HOSTILE)}")
    )
    Path("in.jsonl").write_text('{"x": 1}\n')
    assert run_command(["run", "--pipeline", "p.toml", "-i", "in.jsonl", "-o", "out.jsonl", "-v"]) == 0
    told = capsys.readouterr().err
    assert not {"\x1b", "\u202e"} & set(told)
    assert all(line.startswith(("nndeploy: ", "1 item")) for line in told.splitlines())


@pytest.mark.parametrize("change", [{"stages": [1]}, {"records": "x"}, {"cores": {}}, {"latency_ms": 3}, {"time": []}])
def test_figures_that_somebody_else_wrote_are_one_line(tmp_path: Path, capsys: Any, change: dict[str, Any]) -> None:
    (tmp_path / "m.json").write_text(json.dumps({**FIGURES, **change}))
    assert run_command(["top", str(tmp_path / "m.json"), "--once"]) == (0 if "time" in change else 65)
    assert len(capsys.readouterr().err.splitlines()) == ("time" not in change)


@pytest.mark.parametrize(("where", "code", "message"), [
    ("none.json", 66, "no such file"), ("other.json", 65, "no stream metrics"), ("list.json", 65, "no stream metrics"),
    ("1", 69, "listening"), ("99999999999", 69, "listening"),
])  # fmt: skip
def test_what_is_no_stream_is_one_line(where, code, message, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("other.json").write_text('{"records": 1}')
    Path("list.json").write_text("[1]")
    assert run_command(["top", where]) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert message in told.err
    assert len(told.err.splitlines()) == 1


def test_a_run_tells_which_free_port_it_took(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text(PIPELINE)
    (tmp_path / "in.jsonl").write_text('{"x": 1}\n')
    told = []
    for port in ("0", None):
        wanted = [] if port is None else ["--metrics-port", port]
        assert run_command(["run", "--pipeline", "p.toml", "-i", "in.jsonl", "-o", "out.jsonl", *wanted]) == 0
        told.append(re.search(r"nndeploy: metrics at http://127\.0\.0\.1:[1-9]\d*/metrics\n", capsys.readouterr().err))
        (tmp_path / "out.jsonl").unlink()
    assert told[0] is not None
    assert told[1] is None
