# SPDX-License-Identifier: Apache-2.0
"""A process is ended, with all that it started, when its time or its memory is used up; a quick one is left alone."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from nndeploy.jobs.watch import Limits, Watch
from nndeploy.sandbox import memory
from nndeploy.sandbox.child_process import kill_group
from nndeploy.sandbox.memory import default_memory_limit, machine_memory_bytes, used_bytes

MIB = 1 << 20
ALLOCATES = "import sys, time; data = b'x' * (int(sys.argv[1]) << 20); print(len(data), flush=True); time.sleep(60)"
STARTS_ONE = (
    "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[2], sys.argv[1]])"  # which takes the memory
)
LIBC_DIES = "import ctypes, signal; ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0);"


def started(*arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", *arguments], stdout=subprocess.PIPE, start_new_session=True)


def test_the_time_of_a_process_ends() -> None:
    process = started(ALLOCATES, "1")
    began = time.monotonic()
    with process, Watch(process, Limits(0.3, 1 << 40)) as watch:
        process.wait()
    assert watch.verdict == "it took more than 0.3 s"
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("by_a_child", [False, True], ids=["itself", "a child"])
def test_the_memory_of_all_processes_together_counts(by_a_child: bool) -> None:
    code = LIBC_DIES + ALLOCATES
    process = started(STARTS_ONE, "300", code) if by_a_child else started(code, "300")
    with process, Watch(process, Limits(60, 200 * MIB)) as watch:
        process.wait()
    assert watch.verdict == "it took more than 0.195 GiB of memory"


def test_a_process_that_keeps_within_its_limits_is_left_alone() -> None:
    process = started("print('done')")
    with process, Watch(process, Limits(60, 1 << 40)) as watch:
        assert process.wait() == 0
    assert watch.verdict == ""


def test_what_a_process_and_its_children_use_is_summed_up() -> None:
    process = started(STARTS_ONE, "100", LIBC_DIES + ALLOCATES)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        assert 100 * MIB <= used_bytes(process.pid) < 300 * MIB
        process.kill()
    assert used_bytes(process.pid) == 0


def test_the_memory_of_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = machine_memory_bytes()
    monkeypatch.setattr(memory, "_CGROUP_LIMIT", tmp_path / "memory.max")
    (tmp_path / "memory.max").write_text("max\n")
    assert machine_memory_bytes() >= everything
    (tmp_path / "memory.max").write_text(f"{1 << 30}\n")
    assert machine_memory_bytes() == 1 << 30
    assert default_memory_limit() == 3 << 28


def test_what_left_the_group_is_ended_too() -> None:
    leaves = "import os, sys, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(60)"
    process = started(STARTS_ONE, "0", leaves)
    with process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        kill_group(process)
        deadline = time.monotonic() + 5
        while is_running(pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not is_running(pid)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False


def test_limits_are_never_raised() -> None:
    code = (
        "import resource as r; from nndeploy.sandbox.memory import *\n"
        "limit_file_size(1 << 20); limit_file_size(1 << 30); limit_processor_time(7); limit_processor_time(9)\n"
        "print(r.getrlimit(r.RLIMIT_FSIZE), r.getrlimit(r.RLIMIT_CPU))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "(1048576, 1048576) (7, 7)\n"
