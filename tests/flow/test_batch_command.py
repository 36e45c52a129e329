# SPDX-License-Identifier: Apache-2.0
"""`nndeploy batch` as a user meets it: interrupted, called again, called once more, and with what it cannot read.

Compiles are few: a batch of three models is interrupted while the last of them is compiled, and a second call goes on.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx.parser
import pytest

from nndeploy.cli.main import run_command

RELU = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[3] y) { y = Relu(x) }'
NEG = '<ir_version: 8, opset_import: ["": 18]> g (float[3] x) => (float[3] y) { y = Neg(x) }'
ENDLESS = """<ir_version: 8, opset_import: ["": 18]>
g (float[1] x) => (float[1] y) <int64 many = {9000000000000000000}, bool yes = {1}>
{ y = Loop (many, yes, x) <body = b (int64 i, bool c, float[1] v) => (bool c2, float[1] w)
  { c2 = Identity(c) w = Identity(v) }> }"""
FLEET = """
[[models]]
files = ["models/*.onnx"]
[options]
objective = "priority"
[report]
junit = "report/junit.xml"
markdown = "report/summary.md"
json = "report/batch.json"
metrics = "report/metrics.txt"
page = "report/batch.html"
"""
SECONDS = 120
"""More than anything here takes on a machine that has much else to do."""


@dataclass(frozen=True)
class Called:
    """A batch after two calls; `left` are the processes of the first that lived on after it."""

    folder: Path
    cache: Path
    first: "subprocess.CompletedProcess[str]"
    second: "subprocess.CompletedProcess[str]"
    journal_of_first: list[dict[str, Any]]
    reports: dict[str, str]
    num_children: int
    left: list[int]


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> Called:
    folder, cache = tmp_path_factory.mktemp("fleet"), tmp_path_factory.mktemp("cache")
    (folder / "models").mkdir()
    for name, text in (("alpha", RELU), ("late", ENDLESS)):
        onnx.save(onnx.parser.parse_model(text), folder / "models" / f"{name}.onnx")
    (folder / "models/bad.onnx").write_bytes(b"no model")
    (folder / "fleet.toml").write_text(FLEET)
    line = [sys.executable, "-m", "nndeploy", "batch", str(folder / "fleet.toml"), "--json", "-j", "2"]
    environment = {**os.environ, "NNDEPLOY_CACHE_DIR": str(cache)}

    events = folder / "events.jsonl"
    process = subprocess.Popen(
        [*line, "--events", str(events)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while_late_is_compiled(process, events)
    children = descendants(process.pid)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=SECONDS)
    left = [pid for pid in children if is_running(pid)]
    first = subprocess.CompletedProcess(line, process.returncode, out, errors)
    journal = [json.loads(row) for row in journal_of(folder).read_text().splitlines()]

    onnx.save(onnx.parser.parse_model(NEG), folder / "models/late.onnx")
    second = subprocess.run(line, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS)
    reports = {path.name: path.read_text() for path in (folder / "report").iterdir()}
    return Called(folder, cache, first, second, journal, reports, len(children), left)


def while_late_is_compiled(process: "subprocess.Popen[str]", events: Path) -> None:
    """Waits until the jobs that end have ended and the one that does not is at it."""
    deadline = time.monotonic() + SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        rows = [json.loads(row) for row in events.read_text().splitlines()] if events.exists() else []
        ended = {row["outcome"]["job"] for row in rows if row["event"] == "finished"}
        at_it = {row["job"] for row in rows if row["event"] == "stage"}
        if ended == {"alpha/host", "bad/host"} and "late/host" in at_it:
            return
        time.sleep(0.02)


def descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it ended meanwhile
            continue
        children.setdefault(parent, []).append(int(path.parent.name))
    found = list(children.get(pid, []))
    for child in found:  # grows while it is walked
        found += children.get(child, [])
    return found


def is_running(pid: int) -> bool:
    """Returns whether a process lives, after a while in which the system may end it."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X"):
                return False
        except OSError:
            return False
        time.sleep(0.02)
    return True


def journal_of(folder: Path) -> Path:
    (journal,) = folder.glob(".nndeploy/batch/*/journal.jsonl")
    return journal


@pytest.fixture
def batch(called: Called, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Returns a function: arguments behind the fleet file -> (exit code, standard output, standard error)."""
    monkeypatch.setenv("NNDEPLOY_CACHE_DIR", str(called.cache))
    monkeypatch.chdir(called.folder)

    def call(*arguments: str, fleet: str = "fleet.toml") -> tuple[int, str, str]:
        code = run_command(["batch", fleet, *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_ctrl_c_ends_a_batch_with_all_its_processes(called) -> None:
    assert called.first.returncode == 130, called.first.stderr
    assert "Traceback" not in called.first.stderr
    assert called.num_children > 0
    assert called.left == []
    ends = {row["outcome"]["job"]: row["outcome"] for row in called.journal_of_first if row["row"] == "finished"}
    assert {job: (one["status"], one["final"]) for job, one in ends.items()} == {
        "alpha/host": ("ok", True), "bad/host": ("failed", True), "late/host": ("cancelled", False),
    }  # fmt: skip


def test_the_next_call_goes_on_where_it_ended(called) -> None:
    assert called.second.returncode == 1, called.second.stderr
    document = json.loads(called.second.stdout)
    assert {one["job"]: one["status"] for one in document["jobs"]} == {
        "alpha/host": "hit", "bad/host": "failed", "late/host": "ok",
    }  # fmt: skip
    assert document["error"]["message"] == "1 job failed"
    assert [path.name for path in sorted((called.folder / "dist").glob("*/*"))] == ["host.nnd", "host.nnd"]


def test_the_reports_tell_of_every_job(called) -> None:
    reports = called.reports
    assert sorted(reports) == ["batch.html", "batch.json", "junit.xml", "metrics.txt", "summary.md"]
    for name in set(reports) - {"metrics.txt"}:
        assert all(model in reports[name] for model in ("alpha", "bad", "late")), name
    assert "--only=bad/host --retry-failed" in reports["summary.md"]
    assert 'nndeploy_batch_jobs{status="failed"} 1' in reports["metrics.txt"]


def test_a_call_that_finds_everything_starts_nothing(batch, called) -> None:
    before = journal_of(called.folder).read_text().count('"started"')
    code, out, err = batch("--json")
    assert code == 1
    assert json.loads(out)["summary"] | {"hit": 2, "failed": 1, "total": 3} == json.loads(out)["summary"]
    assert journal_of(called.folder).read_text().count('"started"') == before
    assert "3 jobs: 2 built, 1 failed" in err


def test_a_plan_writes_nothing(batch, called) -> None:
    before = files(called.folder)
    for arguments in (["--plan"], ["--plan", "--fresh"], ["--explain", "alpha/host"], ["--emit", "make"]):
        code, out, _ = batch(*arguments)
        assert code == 0
        assert out
    assert files(called.folder) == before
    assert re.search(r"^bad/host +[0-9a-f]{12} +failed .*bad.onnx", batch("--plan")[1], re.MULTILINE)


@pytest.mark.parametrize(("arguments", "said"), [
    (("--plan", "--collect"), "--plan and --collect exclude each other"),
    (("--emit", "slrum"), "'slrum' is not one of"),
    (("--emit", "make", "--json"), "--emit and --json exclude each other"),
    (("-o", "jobs.sh"), "--emit"),
    (("--max-slowdown", "5%"), "--max-slowdown: there is nothing to compare with"),
    (("--max-error-growth", "2x", "--plan"), "--max-error-growth: "),
    (("--max-size-growth", "5%", "--max-share-drop", "native=5%"), "--max-size-growth, --max-share-drop: "),
    (("--only", "alfa/host"), "there is no job 'alfa/host' (hint: did you mean 'alpha/host'?)"),
    (("--explain", "ad/host"), "there is no job 'ad/host' (hint: did you mean 'bad/host'?)"),
])  # fmt: skip
def test_what_does_not_go_together_is_refused(batch, arguments, said) -> None:
    code, _, err = batch(*arguments)
    assert code == 2
    assert said in err
