# SPDX-License-Identifier: Apache-2.0
"""A child of a fork server is as one that was started anew, only sooner."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nndeploy.sandbox.allowed import Sandbox
from nndeploy.sandbox.child_process import ChildProcess, kill_group
from nndeploy.sandbox.enter import missing
from nndeploy.sandbox.forked import ForkServer, fork_server

CHILD = """
import json, os, sys
import counted
counted.uses += 1
said = {
    "arguments": sys.argv[1:], "input": sys.stdin.read(), "environment": dict(os.environ), "uses": counted.uses,
    "files": sorted(map(int, os.listdir("/proc/self/fd")))[:-1], "leads": os.getpid() == os.getsid(0),
    "name": __name__, "imported": counted.by,
}
if "open" in sys.argv:
    try:
        open(sys.argv[2]).close()
    except PermissionError:
        said["refused"] = True
print(json.dumps(said), flush=True)
print("to the log", file=sys.stderr)
if "crash" in sys.argv:
    os.kill(os.getpid(), 11)
if "leave" in sys.argv:
    left = os.fork()
    if not left:
        os.setsid()
        __import__("time").sleep(600)
    while os.getsid(left) != left:
        pass
    print(left, flush=True)
if "sleep" in sys.argv:
    __import__("time").sleep(600)
sys.exit(3 if "three" in sys.argv else None)
"""
COUNTED = "import os; uses, by = 0, os.getpid()"
HOLDS = """
import sys, time
from pathlib import Path
from nndeploy.sandbox.forked import fork_server
folder = Path(sys.argv[1])
child = fork_server(["counted"], [sys.argv[1]]).start_child("child", ["sleep"], folder, import_paths=[sys.argv[1]])
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(600)
"""
OFF_THIS = """
import sys, subprocess
from pathlib import Path
sys.path.append(sys.argv[1])
import counted
from nndeploy.sandbox.forked import fork_server_off_this
server = fork_server_off_this()
child = server.start_child("child", ["three"], Path(sys.argv[1]))
print(child.stdout.read().decode().strip(), child.wait(), counted.by, counted.uses, sep="\\n", flush=True)
server.close()
try:
    __import__("os").wait()
except ChildProcessError:
    print("none left")
"""


@pytest.fixture
def modules(tmp_path: Path) -> str:
    (tmp_path / "child.py").write_text(CHILD)
    (tmp_path / "counted.py").write_text(COUNTED)
    return str(tmp_path)


@pytest.fixture
def server(modules: str) -> Iterator[ForkServer]:
    found = fork_server(["counted"], [modules])
    yield found
    found.close()


def started(server: ForkServer, modules: str, *arguments: str, sandbox: Sandbox | None = None) -> ChildProcess:
    return server.start_child("child", arguments, Path(modules), import_paths=[modules], sandbox=sandbox)


def said_by(process: ChildProcess) -> dict[str, object]:
    assert process.stdout is not None
    return dict(json.loads(process.stdout.readline()))


def closed(process: ChildProcess) -> None:
    kill_group(process)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def test_a_child_has_its_arguments_environment_pipes_and_nothing_else(server: ForkServer, modules: str) -> None:
    process = server.start_child("child", ["a", "b c"], Path(modules), subprocess.PIPE, [modules])
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write(b"given")
    process.stdin.close()
    said = said_by(process)
    assert (said["arguments"], said["input"], said["name"]) == (["a", "b c"], "given", "__main__")
    environment = said["environment"]
    assert isinstance(environment, dict)
    assert environment["HOME"] == environment["TMPDIR"] == modules
    assert set(environment) <= {
        "PATH", "LANG", "HOME", "TMPDIR", "NNDEPLOY_PARENT", "ORT_DISABLE_TELEMETRY", "OPENBLAS_THREAD_TIMEOUT",
    }  # fmt: skip
    assert said["files"] == [0, 1, 2]
    assert said["leads"]
    assert process.stderr.read() == b"to the log\n"
    assert (process.wait(60), process.poll()) == (0, 0)
    closed(process)


def test_children_share_what_was_imported_and_nothing_that_they_change(server: ForkServer, modules: str) -> None:
    first, second = started(server, modules), started(server, modules)
    one, other = said_by(first), said_by(second)
    assert one["imported"] == other["imported"] not in (first.pid, second.pid, os.getpid())
    assert (one["uses"], other["uses"]) == (1, 1)
    closed(first)
    closed(second)


def test_how_a_child_ends_is_told(server: ForkServer, modules: str) -> None:
    ends = [started(server, modules, how) for how in ("three", "crash", "sleep")]
    assert [process.wait(60) for process in ends[:2]] == [3, -signal.SIGSEGV]
    with pytest.raises(subprocess.TimeoutExpired):
        ends[2].wait(0.01)
    assert ends[2].poll() is None
    ends[2].send_signal(signal.SIGTERM)
    assert ends[2].wait(60) == -signal.SIGTERM
    ends[2].send_signal(signal.SIGTERM)  # to nobody
    for process in ends:
        closed(process)


@pytest.mark.skipif(bool(missing()), reason=f"this kernel has no {missing()}")
def test_a_child_lives_in_its_own_sandbox(server, modules, tmp_path_factory) -> None:
    secret = tmp_path_factory.mktemp("other") / "file"
    secret.write_text("secret")
    inside = started(server, modules, "open", str(secret), sandbox=Sandbox((modules,)))
    outside = started(server, modules, "open", str(secret))
    assert said_by(inside).get("refused")
    assert not said_by(outside).get("refused")
    closed(inside)
    closed(outside)


def test_what_a_child_left_in_another_session_ends_with_it_and_nobody_elses(server, modules, is_gone) -> None:
    one, other = (started(server, modules, "leave", "sleep") for _ in range(2))
    left = []
    for process in (one, other):
        said_by(process)
        assert process.stdout is not None
        left.append(os.pidfd_open(int(process.stdout.readline())))
    one.send_signal(signal.SIGTERM)
    assert one.wait(60) == -signal.SIGTERM
    assert is_gone(left[0], 0)
    assert not is_gone(left[1], 0)
    closed(other)
    assert is_gone(left[1], 60)
    closed(one)
    for descriptor in left:
        os.close(descriptor)


def test_a_server_that_is_killed_costs_its_children_and_no_later_one(server: ForkServer, modules: str) -> None:
    process = started(server, modules, "sleep")
    os.kill(int(str(said_by(process)["imported"])), signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    later = started(server, modules, "three")
    assert said_by(later)["imported"] == later.pid
    assert later.wait(60) == 3
    closed(process)
    closed(later)


def test_a_server_that_cannot_import_is_none(modules: str) -> None:
    server = fork_server(["no_such_module"], [modules])
    for _ in range(2):
        process = started(server, modules)
        assert said_by(process)["imported"] == process.pid
        closed(process)
    server.close()


def test_children_end_with_the_server_and_it_is_closed_once(server: ForkServer, modules: str) -> None:
    process = started(server, modules, "sleep")
    said_by(process)
    server.close()
    server.close()
    assert process.wait(60) == -signal.SIGKILL
    closed(process)


def test_all_ends_with_who_started_the_server(modules: str, is_gone: Callable[[int, float], bool]) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, modules], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    child = os.pidfd_open(int(holder.stdout.readline()))
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert is_gone(child, 60)
    os.close(child)


def test_a_process_is_its_own_server_before_it_does_anything(modules: str) -> None:
    done = subprocess.run([sys.executable, "-c", OFF_THIS, modules], capture_output=True, text=True, timeout=60)
    line, status, imported, uses, left = done.stdout.split("\n")[:5]
    said = json.loads(line)
    assert (said["imported"], said["uses"], said["arguments"]) == (int(imported), 1, ["three"])
    assert (status, uses, left) == ("3", "0", "none left")
