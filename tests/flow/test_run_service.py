# SPDX-License-Identifier: Apache-2.0
"""What a run tells the service manager that started it, a socket of the test's own; a run that hangs falls silent."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests_flow_bundles import write_double

from nndeploy.cli.commands.service_manager import LOOKS, ServiceManager
from nndeploy.cli.main import run_command

LIMIT_SECONDS = 0.4
COMMAND = [sys.executable, "-m", "nndeploy"]
HANGING = [
    sys.executable, "-c",
    "import sys, threading\n"
    "from nndeploy.cli.main import main\n"
    "from nndeploy.runtime.program import Program\n"
    "run = Program.run\n"
    "def hang(self, inputs):\n"
    "    return threading.Event().wait() if inputs['image'].min() < 0 else run(self, inputs)\n"
    "Program.run = hang\n"
    "main()",
]  # fmt: skip
LINE, HANGS = '{"image": [[1, 2, 3]]}\n', '{"image": [[-1, -1, -1]]}\n'


class Manager:
    """The socket that a service manager listens at, and what was said there."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{name[1:]}" if name.startswith("@") else name)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "NOTIFY_SOCKET": self.name, "WATCHDOG_USEC": f"{LIMIT_SECONDS * 1e6:.0f}"}

    def hears(self, seconds: float = 30.0) -> str:
        """Returns the next message; "" after so many seconds of silence."""
        self._socket.settimeout(seconds)
        try:
            return self._socket.recv(4096).decode()
        except TimeoutError:
            return ""

    def hears_no_more(self) -> bool:
        """Returns whether it becomes silent for twice the limit, after a few more words at most."""
        return any(self.hears(2 * LIMIT_SECONDS) == "" for _ in range(2 * LOOKS))

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager() -> Iterator[Manager]:
    made = Manager(f"@nndeploy-test-{secrets.token_hex(8)}")
    yield made
    made.close()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_double(tmp_path / "m.nnd")
    np.savez("x.npz", image=np.ones((1, 3), np.float32))
    return tmp_path


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(manager: Manager, here: Path) -> Iterator[Start]:
    """Returns what starts a run of lines under the manager; none of them outlives the test."""
    processes = []

    def start(command: list[str], **options: str) -> "subprocess.Popen[str]":
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        line = [*command, "run", "m.nnd", "-i", "-", "-o", "-"]
        processes.append(subprocess.Popen(line, env=manager.environment | options, text=True, **pipes))
        return processes[-1]

    yield start
    for process in processes:
        with process:
            process.kill()


def give(process: "subprocess.Popen[str]", line: str) -> None:
    process.stdin.write(line)
    process.stdin.flush()


def test_a_run_that_is_not_given_anything_is_alive_and_one_that_is_stopped_ends(start, manager) -> None:
    process = start(COMMAND)
    assert [manager.hears() for _ in range(2 * LOOKS)] == ["READY=1"] + ["WATCHDOG=1"] * (2 * LOOKS - 1)
    give(process, LINE)
    assert json.loads(process.stdout.readline())["index"] == 0
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    last = [manager.hears()]
    while last[-1] == "WATCHDOG=1":
        last.append(manager.hears())
    assert (last[-1], manager.hears(0.1)) == ("STOPPING=1", "")


def test_a_run_that_hangs_falls_silent_and_tells_where_it_hung_when_it_is_ended(start, manager) -> None:
    process = start(HANGING)
    give(process, LINE)
    assert [manager.hears() for _ in range(3)] == ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]
    give(process, HANGS)
    assert json.loads(process.stdout.readline())["index"] == 0
    assert manager.hears_no_more()
    end = threading.Timer(30, process.kill)
    end.start()
    assert any("in hang" in line for line in process.stderr)
    end.cancel()
    process.send_signal(signal.SIGABRT)  # as systemd does: WatchdogSignal=
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGABRT


def test_a_watchdog_that_is_meant_for_another_process_is_not_fed(start, manager) -> None:
    process = start(COMMAND, WATCHDOG_PID="1")
    assert manager.hears() == "READY=1"
    assert manager.hears(2 * LIMIT_SECONDS) == ""
    process.communicate(timeout=30)
    assert (process.returncode, manager.hears()) == (0, "STOPPING=1")


def run_at(monkeypatch: pytest.MonkeyPatch, name: str) -> int:
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    return run_command(["run", "m.nnd", "-i", "x.npz", "-o", "y.npz"])


@pytest.mark.parametrize("name", ["", "nowhere", "x" * 300, "m.nnd"])
def test_a_manager_that_is_not_there_costs_nothing(name, here, monkeypatch) -> None:
    assert run_at(monkeypatch, name) == 0


@pytest.fixture
def watched(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Returns what lets a manager watch a run that has stood still for so many nanoseconds."""
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC"):
        monkeypatch.setenv(name, manager.environment[name])

    def watch(standstill_ns: int) -> None:
        looked, num_looks = threading.Event(), 0

        def standstill() -> int:
            nonlocal num_looks
            num_looks += 1
            if num_looks == LOOKS:
                looked.set()
            return standstill_ns

        with ServiceManager().watching(standstill):
            assert looked.wait(30)

    return watch


@pytest.mark.parametrize(("part", "is_alive"), [(0.0, True), (0.4, True), (0.6, False), (5.0, False)])
def test_what_stands_still_for_half_the_limit_is_no_sign_of_life(part, is_alive, watched, manager) -> None:
    watched(round(part * LIMIT_SECONDS * 1e9))
    assert manager.hears() == "READY=1"
    assert manager.hears() == ("WATCHDOG=1" if is_alive else "STOPPING=1")
