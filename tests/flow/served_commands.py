# SPDX-License-Identifier: Apache-2.0
"""`nndeploy serve` as a process of its own, and what asks it."""

import contextlib
import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

COMMAND = [sys.executable, "-m", "nndeploy", "serve"]
SLOW = [
    sys.executable, "-c",
    "import sys, time\n"
    "from nndeploy.cli.main import main\n"
    "from nndeploy.runtime.program import Program\n"
    "run = Program.run\n"
    "def slow(self, inputs):\n"
    "    time.sleep(max(0.0, float(inputs['image'].max()) - 100))\n"
    "    return run(self, inputs)\n"
    "Program.run = slow\n"
    "main()", "serve",
]  # fmt: skip


class Served:
    """A service in a process of its own."""

    def __init__(self, command: list[str], arguments: tuple[str, ...]) -> None:
        ports = () if "--http" in arguments else ("--http", "127.0.0.1:0")
        more = () if "--grpc" in arguments else ("--grpc", "127.0.0.1:0")
        self.process = subprocess.Popen(
            [*command, *arguments, *ports, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []

    def until(self, start: str) -> str:
        """Returns the rest of the first line that begins so."""
        for line in self.process.stdout:
            self.lines.append(line)
            if line.startswith(start):
                return line.removeprefix(start).strip()
        raise AssertionError((self.lines, self.process.stderr and self.process.stderr.read()))

    def ends(self) -> tuple[int, str]:
        """Returns the exit code and what it said on standard error."""
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Served]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NNDEPLOY_STORE", str(tmp_path / "store"))
    made: list[Served] = []

    def serve(*arguments: str, command: list[str] = COMMAND) -> Served:
        made.append(Served(command, arguments))
        return made[-1]

    yield serve
    for one in made:
        one.process.kill()
        one.process.communicate()


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """What a service manager listens at, which wants to hear of a service several times a second."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.settimeout(30)
        listening.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "400000")
        yield listening


def ask(address: str, path: str, body: Any = None, headers: Mapping[str, str] = {}) -> tuple[int, Any]:
    host, port = address.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    with contextlib.closing(connection):
        data = body if body is None or isinstance(body, bytes) else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, data, dict(headers))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


def doubled(value: float) -> dict[str, Any]:
    return {"inputs": [{"name": "image", "shape": [1, 3], "datatype": "FP32", "data": [value] * 3}]}


def page(at: str) -> str:
    host, port = at.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()


def until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)
