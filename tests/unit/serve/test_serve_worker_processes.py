# SPDX-License-Identifier: Apache-2.0
"""Worker processes: who ends is replaced, at once or later; what one meets before it is ready is the service's."""

import errno
import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from nndeploy.errors import CheckError, CrashedError
from nndeploy.serve import worker_processes
from nndeploy.serve.worker_processes import ThisWorker, WorkerProcesses
from nndeploy.stream.stopping import Stop


@pytest.fixture
def stop() -> Iterator[Stop]:
    one = Stop()
    yield one
    one.close()


def works(worker: ThisWorker) -> bool:
    worker.ready()
    return worker.wait(lambda: True)


def test_all_are_ready_and_end_when_they_are_told(stop) -> None:
    with WorkerProcesses(2, works, print, print) as workers:
        assert workers.start(stop)
        assert workers.stop(20)


def test_who_is_not_ready_is_not_waited_for(stop) -> None:
    def loads(worker: ThisWorker) -> bool:
        time.sleep(600 * worker.number)
        return works(worker)

    with WorkerProcesses(2, loads, print, print) as workers:
        stop.request()
        assert not workers.start(stop)
        began = time.monotonic()
        assert workers.stop(60)
        assert time.monotonic() - began < 50


def test_an_error_before_they_are_ready_is_raised(stop) -> None:
    def fails(worker: ThisWorker) -> bool:
        if worker.number == 1:
            raise CheckError("wrong", where="m.nnd", hint="see")
        return works(worker)

    with WorkerProcesses(2, fails, print, print) as workers, pytest.raises(CheckError, match="wrong"):
        workers.start(stop)


def test_so_is_a_crash(stop) -> None:
    def crashes(worker: ThisWorker) -> bool:
        os.kill(os.getpid(), signal.SIGKILL)
        return True

    with WorkerProcesses(1, crashes, print, print) as workers, pytest.raises(CrashedError, match="SIGKILL"):
        workers.start(stop)


def test_what_they_did_not_end_is_told(stop) -> None:
    def hangs(worker: ThisWorker) -> bool:
        worker.ready()
        time.sleep(600)
        return True

    with WorkerProcesses(1, hangs, print, print) as workers:
        assert workers.start(stop)
        assert not workers.stop(0.05)


def test_where_none_can_be_forked_it_is_tried_again(stop, monkeypatch) -> None:
    monkeypatch.setattr(worker_processes, "MOST_DELAY_SECONDS", 0.01)
    lines, fork = list[str](), os.fork

    def refused() -> int:
        monkeypatch.setattr(os, "fork", fork)
        raise OSError(errno.EAGAIN, "no place")

    def ends(worker: ThisWorker) -> bool:
        worker.ready()
        return False

    def say(line: str) -> None:
        lines.append(line)
        if len(lines) == 3:
            stop.request()

    with WorkerProcesses(1, ends, print, say) as workers:
        workers.start(stop)
        monkeypatch.setattr(os, "fork", refused)
        workers.watch(stop, lambda: None)
    assert "no place" in lines[1]
    assert "ended with status 1" in lines[2]


@pytest.mark.parametrize(("how", "said"), [
    (lambda: os.kill(os.getpid(), signal.SIGSEGV), "crashed (SIGSEGV)"),
    (lambda: None, "ended with status 1"),
])  # fmt: skip
def test_who_ends_is_replaced_and_later_each_time(stop, monkeypatch, how: Callable[[], None], said: str) -> None:
    monkeypatch.setattr(worker_processes, "FIRST_DELAY_SECONDS", 0.01)
    monkeypatch.setattr(worker_processes, "MOST_DELAY_SECONDS", 0.02)
    lines, ended = list[str](), list[int]()

    def ends(worker: ThisWorker) -> bool:
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # it is no crash that a person should read of
        worker.ready()
        how()
        return False

    def say(line: str) -> None:
        lines.append(line)
        if len(lines) == 4:
            stop.request()

    with WorkerProcesses(1, ends, ended.append, say) as workers:
        workers.start(stop)
        workers.watch(stop, lambda: None)
    assert ended == [0] * 4
    assert all(line.startswith("worker process 0 (") and said in line for line in lines)
    assert [line.rpartition("replaced ")[2] for line in lines] == ["now", "in 0.01 s", "in 0.02 s", "in 0.02 s"]
