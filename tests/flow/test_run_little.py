# SPDX-License-Identifier: Apache-2.0
"""Runs with few open files, little memory and one processor: they work, or end in one line that says what is short."""

import errno
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import nndeploy
from nndeploy.cli import main
from nndeploy.errors import InputOutputError, UnavailableError, shortage

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
FEW_FILES = 64
TOO_FEW_FILES = range(6, 11)
"""Python itself wants four; each of these falls at another place."""
LITTLE_BYTES = 512 << 20
"""Of addresses, which is more than what is ever in RAM. OpenVINO, which takes a gigabyte of them, is not run here."""
MAY_END = {0, UnavailableError.exit_code, InputOutputError.exit_code}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("little")
    for backend in ("native", "onnxruntime"):
        options = nndeploy.CompileOptions(backends=(backend,), objective="priority", keep_fallback=False)
        nndeploy.compile_model(DIGITS / "digits.onnx", made / f"{backend}.nnd", options)
    return made


def run(folder: Path, backend: str, limit: Callable[[], object]) -> "subprocess.CompletedProcess[str]":
    line = ["run", f"{backend}.nnd", "-i", str(DIGITS / "lines.jsonl"), "-o", f"{backend}.jsonl", "--threads", "1"]
    command = [sys.executable, "-m", "nndeploy", *line]
    return subprocess.run(command, cwd=folder, preexec_fn=limit, capture_output=True, text=True, timeout=60)


def no_more_than(what: int, most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(what, (most, most))


@pytest.mark.parametrize("backend", ["onnxruntime"])
def test_a_few_open_files_are_enough(folder, backend) -> None:
    done = run(folder, backend, no_more_than(resource.RLIMIT_NOFILE, FEW_FILES))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("backend", ["native", "onnxruntime"])
def test_little_memory_is_enough_or_one_line(folder, backend) -> None:
    done = run(folder, backend, no_more_than(resource.RLIMIT_AS, LITTLE_BYTES))
    assert done.returncode in MAY_END, done.stderr
    assert backend == "onnxruntime" or done.returncode == 0
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize("number", TOO_FEW_FILES)
def test_too_few_open_files_are_one_line(folder, number) -> None:
    done = run(folder, "native", no_more_than(resource.RLIMIT_NOFILE, number))
    assert (done.returncode, len(done.stderr.splitlines())) == (InputOutputError.exit_code, 1), done.stderr
    assert "too many files are open" in done.stderr.lower() or "too many open files" in done.stderr.lower()


MEMORY, FILES = "out of memory", "too many files are open"


def caused_by(error: BaseException) -> BaseException:
    made = ValueError("something else")
    made.__cause__ = error
    return made


@pytest.mark.parametrize(("error", "said"), [
    (MemoryError(), MEMORY), (caused_by(MemoryError("x")), MEMORY), (OSError(errno.ENOMEM, "no"), MEMORY),
    (RuntimeError("can't start new thread"), MEMORY), (RuntimeError("can't allocate read lock"), MEMORY),
    (ImportError("x.so: failed to map segment from shared object"), MEMORY),
    (OSError("x.so: cannot allocate memory in static TLS block"), MEMORY), (OSError(errno.EMFILE, "no"), FILES),
    (OSError(errno.ENFILE, "no"), FILES),
])  # fmt: skip
def test_what_the_system_refuses_is_no_bug(error, said, monkeypatch, capsys) -> None:
    def fail(_: object) -> int:
        raise error

    monkeypatch.setattr(main, "_invoke", fail)
    assert main.run_command(["run"]) == InputOutputError.exit_code
    assert capsys.readouterr().err.startswith(f"nndeploy: error[io]: {said} (hint: ")


@pytest.mark.parametrize("error", [ValueError("x"), OSError(errno.EIO, "x"), RuntimeError("x"), ImportError("x"), None])
def test_what_is_a_bug_stays_one(error) -> None:
    assert shortage(error) is None
