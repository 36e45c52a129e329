# SPDX-License-Identifier: Apache-2.0
"""A stage in children: whatever a child does, each item has a row, and those after it run."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from gpucheck.children import run_stage
from gpucheck.options import Options
from gpucheck.rows import CRASHED, FAILED, NOT_RUN, OK, TIMED_OUT, Row
from gpucheck.stages import Stage

MODULE = """
import os, signal, sys, time
from gpucheck.rows import Row
STAGE = "pretended"
class CudaError(Exception): pass
def items(options):
    return {items!r}
def run(item, options):
    kind = item.split()[0]
    if kind == "lost":
        raise CudaError("an illegal memory access")
    if kind == "after":
        yield Row(STAGE, item, "cuda", facts={{"pid": os.getpid()}})
        return
    yield Row(STAGE, item, "cuda", facts={{"pid": os.getpid()}})
    if kind == "abort":
        print("the library says good-bye", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGABRT)
    if kind == "exit":
        os._exit(3)
    if kind == "quiet":
        os._exit(0)
    if kind == "hang":
        open(os.environ.get("PID_FILE", os.devnull), "w").write(str(os.getpid()))
        time.sleep(1000)
    if kind == "raise":
        raise ValueError("no\\nsuch thing")
"""
GPU = Path(__file__).resolve().parents[2] / "gpu"
Run = Callable[..., list[Row]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Returns a function: names of items -> the rows of a stage with them."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def run_items(
        *items: str, seconds: float = 30, item_seconds: float = 20, jobs: int = 1, options: Options | None = None
    ) -> list[Row]:
        (tmp_path / "pretended_stage.py").write_text(MODULE.format(items=list(items)))
        stage = Stage("pretended", "pretended_stage", seconds, item_seconds, is_parallel=jobs > 1)
        return run_stage(stage, options or Options(jobs=jobs), time.monotonic() + seconds, lambda _line: None)

    return run_items


def told(rows: list[Row]) -> list[tuple[str, str]]:
    return [(row.item, row.status) for row in rows]


def test_items_run_in_order_in_one_process(run: Run) -> None:
    rows = run("fine 1", "fine 2", "fine 3")
    assert told(rows) == [("fine 1", OK), ("fine 2", OK), ("fine 3", OK)]
    assert len({row.facts["pid"] for row in rows}) == 1


def test_a_crash_keeps_what_was_said_and_goes_on_behind(run: Run) -> None:
    rows = run("fine 1", "abort", "fine 2")
    assert told(rows) == [("fine 1", OK), ("abort", OK), ("abort", CRASHED), ("fine 2", OK)]
    assert rows[2].reason.startswith("SIGABRT: the library says good-bye; File ")
    assert rows[3].facts["pid"] != rows[0].facts["pid"]


def test_a_status_is_named(run: Run) -> None:
    rows = run("exit", "fine")
    assert told(rows) == [("exit", OK), ("exit", CRASHED), ("fine", OK)]
    assert rows[1].reason.startswith("ended with status 3")


def test_a_process_that_ends_early_without_a_word_is_no_success(run: Run) -> None:
    assert told(run("quiet", "fine")) == [("quiet", OK), ("quiet", FAILED), ("fine", OK)]


def test_a_hang_ends_at_the_item_s_limit(run: Run) -> None:
    rows = run("hang", "fine", item_seconds=3)
    assert told(rows) == [("hang", OK), ("hang", TIMED_OUT), ("fine", OK)]


def test_an_exception_is_a_row_in_a_line(run: Run) -> None:
    rows = run("raise", "fine")
    assert told(rows) == [("raise", OK), ("raise", FAILED), ("fine", OK)]
    assert rows[1].reason == "ValueError: no such thing"
    assert rows[0].facts["pid"] == rows[2].facts["pid"]


def test_a_lost_gpu_starts_a_new_process(run: Run) -> None:
    rows = run("fine", "lost", "after")
    assert told(rows) == [("fine", OK), ("lost", FAILED), ("after", OK)]
    assert rows[0].facts["pid"] != rows[2].facts["pid"]


def test_the_deadline_ends_the_stage_and_names_what_was_left(run: Run) -> None:
    start = time.monotonic()
    rows = run("fine", "hang", "never", seconds=4)
    assert time.monotonic() - start < 10
    assert told(rows) == [("fine", OK), ("hang", OK), ("hang", NOT_RUN), ("never", NOT_RUN)]


def test_after_many_crashes_no_more_are_tried(run: Run) -> None:
    rows = run(*(f"exit {number}" for number in range(9)))
    assert [row.status for row in rows].count(CRASHED) == 7
    assert told(rows)[-2:] == [("exit 7", NOT_RUN), ("exit 8", NOT_RUN)]


def test_several_processes_keep_the_order_of_the_items(run: Run) -> None:
    rows = run("fine 1", "abort", "fine 2", "fine 3", jobs=2)
    assert told(rows) == [("fine 1", OK), ("abort", OK), ("abort", CRASHED), ("fine 2", OK), ("fine 3", OK)]


def test_a_stage_that_cannot_be_imported_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    stage = Stage("pretended", "no_such_module", 20, 20)
    (row,) = run_stage(stage, Options(), time.monotonic() + 20, lambda _line: None)
    assert row.status == CRASHED
    assert "no_such_module" in row.reason


def test_a_stage_without_items_has_no_rows(run: Run) -> None:
    assert run() == []


def test_logs_are_kept_where_asked(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log"
    run("raise", "abort", options=Options(log_file=str(log)))
    assert "Traceback (most recent call last)" in log.read_text()
    assert "the library says good-bye" in log.read_text()


def test_a_check_that_is_killed_takes_its_children_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid_file = tmp_path / "pid"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(GPU)]))
    monkeypatch.setenv("PID_FILE", str(pid_file))
    (tmp_path / "pretended_stage.py").write_text(MODULE.format(items=["hang"]))
    code = (
        "import time; from gpucheck.children import run_stage; from gpucheck.options import Options\n"
        "from gpucheck.stages import Stage\n"
        "run_stage(Stage('pretended', 'pretended_stage', 60, 60), Options(), time.monotonic() + 60, print)"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as check:
        child = int(eventually(lambda: pid_file.read_text() if pid_file.exists() else ""))
        check.kill()
    assert eventually(lambda: "gone" if not is_running(child) else "") == "gone"


def eventually(found: Callable[[], str]) -> str:
    end = time.monotonic() + 20
    while not (value := found()) and time.monotonic() < end:
        time.sleep(0.05)
    return value


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
