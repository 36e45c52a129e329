# SPDX-License-Identifier: Apache-2.0
"""What threads waited for cores, as the kernel counts it; absent where it does not."""

import contextlib
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nndeploy.target import run_delay
from nndeploy.target.run_delay import RunDelay, process_run_delay_ns, thread_run_delay_ns


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns an empty folder in the place of /proc/self/task, where a file `own` is that of any thread."""
    monkeypatch.setattr(run_delay, "_TASKS", tmp_path)
    monkeypatch.setattr(run_delay, "_OWN", tmp_path / "own")
    monkeypatch.setattr(run_delay, "_OWN_COUNTERS", run_delay._Own())
    return tmp_path


def written(folder: Path, **threads: str) -> None:
    for name, text in threads.items():
        path = folder / name / "schedstat"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def test_waits_of_all_threads_are_added_up(tasks: Path) -> None:
    written(tasks, a="900 70 3\n", b="1 5 1\n", just_begun="0 0 0\n")
    assert process_run_delay_ns() == 75
    with contextlib.ExitStack() as files:
        delay = RunDelay(files)
        assert delay.ns() == 75
        written(tasks, a="950 170 4\n")
        assert delay.share(75, 200, 1.0) == 0.5


@pytest.mark.parametrize("texts", [{}, {"a": "0 0 0\n"}, {"a": ""}, {"a": "900\n"}])
def test_where_the_kernel_does_not_count_them_nothing_is_told(tasks: Path, texts) -> None:
    written(tasks, **texts)
    assert process_run_delay_ns() is None
    assert thread_run_delay_ns() is None
    with contextlib.ExitStack() as files:
        assert RunDelay(files).ns() == 0


def test_a_thread_asks_for_itself(tasks: Path) -> None:
    (tasks / "own").write_text("900 70 3\n")
    assert thread_run_delay_ns() == 70
    (tasks / "own").write_text("950 90 4\n")
    assert thread_run_delay_ns() == 90


counted = pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="this kernel does not count waits for cores"
)


@counted
def test_the_kernel_is_asked_for_each_thread() -> None:
    def beside_itself() -> int | None:
        time.sleep(0.001)
        return thread_run_delay_ns()

    with ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as files:
        other = pool.submit(beside_itself).result()
        assert other is not None
        own = thread_run_delay_ns()
        assert own is not None
        assert process_run_delay_ns() >= own + other
        assert len([*Path("/proc/self/task").iterdir()]) > 1
        before = RunDelay(files).ns()
        assert 0 < before <= RunDelay(files).ns()


FORKED = """
import os
from nndeploy.target.run_delay import thread_run_delay_ns
thread_run_delay_ns()
if not (child := os.fork()):
    thread_run_delay_ns()
    links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    opened = [os.readlink(link) for link in links if os.path.lexists(link)]
    print(any(path.startswith(f"/proc/{os.getpid()}/task/") and path.endswith("schedstat") for path in opened))
    os._exit(0)
os.waitpid(child, 0)
"""


@counted
def test_the_child_of_a_fork_asks_for_its_own_thread() -> None:
    done = subprocess.run([sys.executable, "-u", "-c", FORKED], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "True\n"
