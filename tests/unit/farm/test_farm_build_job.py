# SPDX-License-Identifier: Apache-2.0
"""A try of a job has an outcome whatever happens to it, and that says who is to blame."""

import dataclasses
import errno
import hashlib
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_engine import job

from nndeploy import errors
from nndeploy.bundle.report import Report
from nndeploy.compiler.cached_compile import CacheNews, CacheOptions, Compiled
from nndeploy.errors import CrashedError, ModelError, NndeployError
from nndeploy.farm import build_job
from nndeploy.farm.build_job import Build, status_of
from nndeploy.farm.job import Job
from nndeploy.farm.outcome import MAX_LOG_LINES, Outcome

REPORT = Report(
    backends=("native",), nodes=(), submodels=(), model="m", objective="latency", shapes=(), warnings=("of the report",)
)
OFF = CacheOptions(cache=False)
Compile = Callable[..., Compiled]


@pytest.fixture
def one(tmp_path: Path) -> Job:
    return job("m", output=str(tmp_path / "dist" / "m.nnd"))


@pytest.fixture
def run(one: Job, monkeypatch: pytest.MonkeyPatch) -> Callable[[Compile], Outcome]:
    """Returns a function that runs the job with something in the place of the compile."""

    def made(compiled: Compile) -> Outcome:
        monkeypatch.setattr(build_job, "compile_cached", compiled)
        return Build(one).run(OFF)

    return made


def failing(err: BaseException) -> Compile:
    def compiled(*_: Any) -> Compiled:
        raise err

    return compiled


def crashed(number: int) -> CrashedError:
    err = CrashedError("a library crashed")
    err.signal = number
    return err


STATUS_OF: dict[type[NndeployError], str] = {
    errors.CheckError: "unsupported", errors.DeadlineError: "timeout", errors.MemoryLimitError: "memory",
    errors.BusyError: "infra", errors.InputOutputError: "infra", errors.NndeployError: "crash",
    errors.CrashedError: "crash",
}  # fmt: skip


@pytest.mark.parametrize("kind", errors.ERRORS_BY_CODE.values(), ids=lambda kind: kind.__name__)
def test_every_error_has_a_status(kind: type[NndeployError]) -> None:
    assert status_of(kind("it failed")) == STATUS_OF.get(kind, "failed")


@pytest.mark.parametrize(("number", "status"), [(11, "crash"), (6, "crash"), (4, "crash"), (9, "infra"), (15, "infra")])
def test_a_signal_that_a_system_sends_is_the_machines_fault(run: Any, number: int, status: str) -> None:
    found = run(failing(crashed(number)))
    assert (found.status, found.exit_code) == (status, -number)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_the_machines_fault_whatever_it_kept_from_being_made(run: Any, number: int) -> None:
    def compiled(*_: Any) -> Compiled:
        try:
            raise OSError(number, "full")
        except OSError as err:
            raise errors.CannotCreateError("cannot be created") from err

    assert run(compiled).status == "infra"


def test_a_good_build_tells_where_its_bundle_is_and_what_it_is(run: Any, one: Job) -> None:
    def compiled(source: str, out: str, *_: Any) -> Compiled:
        Path(out).write_bytes(b"bundle")
        return Compiled(dataclasses.replace(REPORT, bundle_bytes=6), CacheNews("off"))

    found = run(compiled)
    assert (found.status, found.output, found.size, found.job) == ("ok", one.output, 6, one.id)
    assert found.sha256 == hashlib.sha256(b"bundle").hexdigest()
    assert found.warnings == ("of the report",)
    assert found.seconds > 0


def test_a_hit_is_told_with_its_key(run: Any) -> None:
    found = run(lambda *_: Compiled(REPORT, CacheNews("hit", "ab" * 32), "cd" * 32))
    assert (found.status, found.key, found.sha256) == ("hit", "ab" * 32, "cd" * 32)


def test_a_miss_tells_why(run: Any) -> None:
    found = run(lambda *_: Compiled(REPORT, CacheNews("miss", "ab" * 32, ("option:threads",)), "cd" * 32))
    assert (found.status, found.miss) == ("ok", ("option:threads",))


def test_a_bundle_that_is_gone_at_once_is_an_outcome_too(run: Any) -> None:
    """Nobody would ever hear of the job otherwise, and the batch wait for ever."""
    found = run(lambda *_: Compiled(REPORT, CacheNews("off")))
    assert (found.status, found.error["code"]) == ("failed", "no-input")


@pytest.mark.parametrize("err", [ValueError("odd"), KeyError("k"), RecursionError(), MemoryError(), OSError(5, "bad")])
def test_a_bug_of_ours_costs_one_job(run: Any, err: Exception) -> None:
    found = run(failing(err))
    assert (found.status, found.exit_code) == ("crash", 70)
    assert type(err).__name__ in found.reason


def test_an_output_folder_that_cannot_be_made_is_told_and_not_tried_again(run: Any, one: Job) -> None:
    Path(one.output).parent.write_bytes(b"")
    found = run(failing(AssertionError("never begun")))
    assert (found.status, found.error["where"]) == ("failed", one.output)


def test_a_failure_has_the_end_of_the_log_and_what_it_took(one: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(*rest: Any) -> Compiled:
        onlooker, warn = rest[5], rest[6]
        onlooker.ended(b"\n".join(b"line %d \xff" % number for number in range(50)) + b"x" * 1000, 5_000_000)
        warn("the cache is slow")
        raise ModelError("no", where="m.onnx")

    monkeypatch.setattr(build_job, "compile_cached", compiled)
    found = Build(one).run(OFF)
    assert len(found.log_tail) == MAX_LOG_LINES
    assert found.log_tail[0] == "line 30 \ufffd"
    assert max(map(len, found.log_tail)) == 500
    assert (found.peak_mb, found.warnings, found.reason) == (5.0, ("the cache is slow",), "m.onnx: no")


def sleeper() -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)


@pytest.mark.parametrize("is_before", [False, True])
def test_a_try_that_is_cancelled_ends_its_process_and_says_so(one, monkeypatch, is_before) -> None:
    began, codes = threading.Event(), list[int]()

    def compiled(*rest: Any) -> Compiled:
        if is_before:
            began.set()
            assert going.wait(60)
        process = sleeper()
        rest[5].started(process)
        began.set()
        codes.append(process.wait(60))
        raise crashed(-codes[0])

    going, found = threading.Event(), list[Outcome]()
    monkeypatch.setattr(build_job, "compile_cached", compiled)
    build = Build(one)
    thread = threading.Thread(target=lambda: found.append(build.run(OFF)))
    thread.start()
    assert began.wait(60)
    assert build.cancel() != is_before
    going.set()
    thread.join(60)
    assert codes == [-9]
    assert [each.status for each in found] == ["cancelled"]
