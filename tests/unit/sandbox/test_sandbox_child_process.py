# SPDX-License-Identifier: Apache-2.0
"""A child that ends takes along what it has started, wherever that went."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nndeploy.jobs.watch import Limits, Watch
from nndeploy.sandbox.child_process import kill_group, start_child

LEAVING = """
import os, signal, time
if os.fork():
    time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGSEGV)
os.setsid()
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
print(os.getpid(), flush=True)
time.sleep(600)
"""


@pytest.fixture
def leave(tmp_path: Path) -> Iterator[Callable[[str], "subprocess.Popen[bytes]"]]:
    """Returns a function that starts a child which leaves a process in a session of its own, and crashes."""
    (tmp_path / "leaving.py").write_text(LEAVING)
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str) -> "subprocess.Popen[bytes]":
        home = tmp_path / name
        home.mkdir()
        started.append(start_child("leaving", (), home, import_paths=[str(tmp_path)]))
        return started[-1]

    yield start
    for process in started:
        kill_group(process)
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()


def left_by(process: "subprocess.Popen[bytes]") -> int:
    """Returns a descriptor of the process that a child has left."""
    assert process.stdout is not None
    return os.pidfd_open(int(process.stdout.readline()))


def test_what_a_crashed_child_left_in_another_session_is_killed_and_nobody_elses(leave, is_gone) -> None:
    one, other = leave("home"), leave("home2")
    left, others = left_by(one), left_by(other)
    one.wait()
    kill_group(one)
    assert is_gone(left, 60)
    assert not is_gone(others, 0)
    kill_group(other)
    assert is_gone(others, 60)
    os.close(left)
    os.close(others)


def test_who_reads_the_pipes_of_a_crashed_child_does_not_wait_for_what_it_left(leave) -> None:
    process = leave("home")
    assert process.stdout is not None
    with Watch(process, Limits(600.0, 1 << 40)) as watch:
        assert len(process.stdout.read().split()) == 1
    assert (watch.verdict, process.wait()) == ("", -11)
