# SPDX-License-Identifier: Apache-2.0
"""A bundle that was not made here and that nobody signed: what its model does to a library costs a line and a code."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from faulty_backends import good_backend
from plugin_distribution import write_distribution

import nndeploy
from nndeploy.bundle.reader import open_bundle
from nndeploy.errors import UnavailableError
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.runtime import isolation
from nndeploy.runtime.load_options import CautiousLoadOptions
from nndeploy.serve.options import ServeOptions
from nndeploy.trust.made_here import is_made_here, note_made_here

PLUGIN = r"""
import ctypes, os, signal, sys
from pathlib import Path
from nndeploy_onnxruntime.plugin import Plugin as Good

MODE = Path(__file__).with_name("mode")


def act(where):
    if MODE.read_text() == f"crash in {where}":
        os.kill(os.getpid(), signal.SIGSEGV)
    if MODE.read_text() == f"hang in {where}":
        print("hangs", os.getpid(), file=sys.stderr, flush=True)
        libc, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)  # holds the interpreter: no handler runs
        libc.pthread_mutex_lock(mutex)
        libc.pthread_mutex_lock(mutex)
    if MODE.read_text() == f"hoard in {where}":
        hoard = bytearray(1 << 38)


class Trap:
    def __init__(self, session):
        self._session = session

    def run(self, inputs):
        act("run")
        return self._session.run(inputs)

    def close(self):
        self._session.close()


class Plugin(Good):
    tier = 1

    def probe(self, target):
        act("probe")
        return super().probe(target)

    def open(self, files, metadata, options):
        act("open")
        return Trap(super().open(files, metadata, options))


Plugin.name = "trap"
"""
TEXT = '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) { y = Neg(x) }'


class Box:
    """A machine with a backend that does what a file says, and a bundle for it; `is_known`: that it compiled itself."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._mode = folder, folder / "site/mode"
        write_distribution(folder / "site", "trap_plugin", PLUGIN, "nndeploy.backends", "trap:Plugin")
        self._mode.write_text("")
        (folder / "m.onnx").write_bytes(onnx.parser.parse_model(TEXT).SerializeToString())
        np.savez(folder / "x.npz", x=np.ones(2, np.float32))
        options = ("--backends", "trap", "--objective", "priority", "--no-fallback")
        assert self.ended("", "compile", "m.onnx", "-o", "m.nnd", *options, is_known=True)[0] == 0

    def begun(self, mode: str, *command: str, is_known: bool) -> "subprocess.Popen[str]":
        self._mode.write_text(mode)
        environment = {**os.environ, "PYTHONPATH": str(self.folder / "site")}
        environment["XDG_CACHE_HOME"] = str(self.folder / ("cache" if is_known else "other"))
        return subprocess.Popen(
            [sys.executable, "-m", "nndeploy", *command], cwd=self.folder, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def ended(self, mode: str, *command: str, is_known: bool = False) -> tuple[int, list[str]]:
        """Returns the exit code, and the lines on standard error that tell of an error."""
        process = self.begun(mode, *command, is_known=is_known)
        _, told = process.communicate(timeout=120)
        assert "Traceback" not in told
        return process.returncode, [line for line in told.splitlines() if line.startswith("nndeploy: error")]


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Box:
    return Box(tmp_path_factory.mktemp("box"))


RUN = ("run", "m.nnd", "--input", "x.npz", "--output", "y.npz")
AUTO = (*RUN, "--isolate", "auto")
VERIFY = ("verify", "m.nnd")
INSTALL = ("install", "m", "m.nnd", "--store", "store")


@pytest.mark.parametrize(("mode", "command", "code"), [
    ("crash in open", AUTO, 69), ("hoard in open", AUTO, 69), ("crash in open", INSTALL, 69),
    ("crash in run", AUTO, 65), ("crash in probe", VERIFY, 65), ("crash in probe", ("inspect", "m.nnd", "--here"), 65),
    ("crash in probe", ("doctor",), 65), ("", AUTO, 0),
], ids=lambda value: value[0] if isinstance(value, tuple) else str(value))  # fmt: skip
def test_what_its_model_does_is_a_line_and_a_code(box, mode, command, code) -> None:
    found, lines = box.ended(mode, *command)
    assert found == code
    assert len(lines) == (code != 0)


def test_a_bundle_of_this_machine_s_is_opened_here(box) -> None:
    assert box.ended("crash in open", *AUTO, is_known=True)[0] == -signal.SIGSEGV
    assert box.ended("crash in open", *RUN, "--isolate", "all", is_known=True)[0] == 69
    assert box.ended("crash in open", *VERIFY, is_known=True)[0] == 65  # whose it is: it is asked for once


@pytest.mark.parametrize(("command", "code"), [(RUN, -signal.SIGTERM), (VERIFY, 143)], ids=["run", "verify"])
def test_a_second_signal_ends_it_while_a_library_holds_the_interpreter(box, command, code) -> None:
    process = box.begun("hang in open", *command, is_known=True)
    while not (line := process.stderr.readline()).startswith("hangs"):
        pass
    waits_in, began = Path("/proc", line.split()[1], "wchan"), time.monotonic()
    while "futex" not in waits_in.read_text() and time.monotonic() - began < 5:  # before, Python would see a signal
        pass
    process.terminate()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)
    process.terminate()
    assert process.wait(20) == code
    process.communicate()


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundle for ONNX Runtime that this machine compiled."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    options = nndeploy.CompileOptions(backends=("onnxruntime",), objective="priority", pace=True)
    nndeploy.compile_model(onnx.parser.parse_model(TEXT), tmp_path / "m.nnd", options)
    return tmp_path / "m.nnd"


X: dict[str, Any] = {"x": np.ones(2, np.float32)}


def test_auto_isolates_what_nobody_answers_for(ours, tmp_path, monkeypatch) -> None:
    def isolated(**options: Any) -> list[bool]:
        with nndeploy.load_bundle(ours, nndeploy.LoadOptions(**{"isolate": "auto", **options})) as program:
            np.testing.assert_array_equal(program.run(X)["y"], -X["x"])
            return [choice.is_isolated for choice in program.choices]

    assert isolated() == [False]
    assert isolated(item_timeout=9.0) == [True]  # where it is a condition, it holds for all
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert isolated() == [True]
    assert ServeOptions().isolate == CautiousLoadOptions().isolate == "auto"
    assert isolated(isolate=nndeploy.LoadOptions().isolate) == [False]
    assert isolated(isolate="code") == [False]
    (tmp_path / "other/nndeploy/made-here").write_bytes(b"0123 a line that was cut")
    with open_bundle(ours) as bundle:
        note_made_here(bundle)
        note_made_here(bundle)
        assert is_made_here(bundle)
    assert len((tmp_path / "other/nndeploy/made-here").read_bytes().splitlines()) == 2
    assert isolated() == [False]


def test_paced_it_is_opened_elsewhere_first(ours, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    opened: list[Callable[[], None]] = []
    real = isolation.IsolatedSession

    def session(*arguments: Any) -> Any:
        opened.append(made := real(*arguments))
        return made

    monkeypatch.setattr(isolation, "IsolatedSession", session)
    how = nndeploy.LoadOptions(isolate="auto")
    with nndeploy.load_bundle(ours, how, pace=PaceGoal(cpu_limit=0.5)) as program:
        assert [choice.is_isolated for choice in program.choices] == [False]
        program.run(X)
    assert len(opened) == 1


def test_opening_it_has_an_end(box, install, monkeypatch) -> None:
    install(type("Trap", (good_backend(),), {"name": "trap"}))
    monkeypatch.setattr(isolation, "OPENING_SECONDS", 2.0)
    monkeypatch.syspath_prepend(str(box.folder / "site"))  # where a worker finds the one that hangs
    (box.folder / "site/mode").write_text("hang in open")
    began = time.monotonic()
    with pytest.raises(UnavailableError):
        nndeploy.load_bundle(box.folder / "m.nnd", nndeploy.LoadOptions(isolate="auto"))
    assert 2 <= time.monotonic() - began < 50
