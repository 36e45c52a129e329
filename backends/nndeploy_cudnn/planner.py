# SPDX-License-Identifier: Apache-2.0
"""Asks cuDNN for plans for one GPU, through a child process in which a crash costs one question only.

The child sees a stand-in for libcuda.so.1 where there is no driver (it comes with the wheel), by a search path
of its own: this process and its real driver, if any, never meet it. Law: equal graphs are asked about once.
"""

import contextlib
import ctypes
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from nndeploy_kernels.loading import driver_stub_for

from nndeploy.errors import UnavailableError, describe_exit, one_line
from nndeploy.target.target import Gpu
from nndeploy.version import WHEEL_HINT
from nndeploy_cudnn.graph import Graph, graph_to_json

MODES = {False: ("heuristic",), True: ("heuristic", "fallback")}
MAX_CRASHES = 20
END_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan: its text, its workspace, whether it holds code compiled for it; or the reason why there is none."""

    text: str = ""
    workspace_bytes: int = 0
    is_compiled: bool = False
    reason: str = ""


class Plans(Protocol):
    """Whoever can be asked for plans."""

    def plan(self, graph: Graph, with_fallback: bool) -> Planned:
        """Returns the best plan of a graph, or the reason why there is none; see `Planner.plan`."""


class Planner:
    """Makes plans for one GPU; `planner_for` hands it out.

    `is_fixed` says that the same questions in the same order get the same plans, byte for byte, in every process.
    """

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.version = 0
        self.is_fixed = False
        self._known: dict[tuple[str, bool], Planned] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._num_crashes = 0
        self._start()

    def plan(self, graph: Graph, with_fallback: bool) -> Planned:
        """Returns the best plan of a graph, or the reason why there is none.

        `with_fallback`: engines that cuDNN does not recommend count too.

        Raises:
            UnavailableError: cuDNN crashed too often.
        """
        key = (graph_to_json(graph), with_fallback)
        if key not in self._known:
            answer = self._ask({"graph": key[0], "modes": MODES[with_fallback]})
            self._known[key] = _planned(answer)
        return self._known[key]

    def close(self) -> None:
        """Ends the child; a second call does nothing."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-s", "-P", "-m", "nndeploy_cudnn.planner_child"],  # its environment is ours alone
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=child_environment(),
        )
        answer = self._exchange(dict(_jsonable(self.gpu.cudnn)))
        if "error" in answer:
            self.close()
            raise UnavailableError(f"cuDNN cannot make plans for {self.gpu.name}: {answer['error']}")
        self.version, self.is_fixed = int(answer["version"]), bool(answer["is_fixed"])

    def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        if self._process is None:
            self._start()
        answer = self._exchange(question)
        if "crash" in answer:
            self._num_crashes += 1
            if self._num_crashes > MAX_CRASHES:
                raise UnavailableError(f"cuDNN {answer['crash']} {self._num_crashes} times", where=self.gpu.name)
            return {"error": f"cuDNN {answer['crash']} on it"}
        return answer

    def _exchange(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the child's answer to a line; {"crash", "error"} where it ended instead."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
        line = process.stdout.readline()
        if line:
            return dict(json.loads(line))
        self.close()
        said = describe_exit(process.returncode)
        return {"crash": said, "error": f"the child process {said}"}


@contextmanager
def planner_for(gpu: Gpu) -> Iterator[Planner]:
    """Hands out a planner for as long as the block lasts.

    Raises:
        UnavailableError: cuDNN, or what stands in for the driver, is not usable here, or the GPU is not described.
    """
    if not gpu.cudnn:
        raise UnavailableError(
            f"the target does not describe {gpu.name} for cuDNN", hint="`nndeploy probe -o box.toml` on the device does"
        )
    planner = Planner(gpu)
    try:
        yield planner
    finally:
        planner.close()


def child_environment() -> dict[str, str]:
    """Returns the environment of the child: a search path that has a libcuda.so.1, and nothing of the user's.

    Raises:
        UnavailableError: there is no driver, and its stand-in is not installed.
    """
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
    if not has_driver():
        environment["LD_LIBRARY_PATH"] = str(_stub_folder())
    return environment


def _stub_folder() -> Path:
    arch = platform.machine()
    if (found := driver_stub_for(arch)) is not None:
        return found.parent
    what = f"there is no NVIDIA driver here, and no stand-in for it for {arch} is installed"
    raise UnavailableError(what, hint=WHEEL_HINT)


def has_driver() -> bool:
    """Returns whether libcuda.so.1 can be loaded in this process."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def _planned(answer: Mapping[str, Any]) -> Planned:
    if "error" in answer:
        return Planned(reason=one_line(answer["error"]))
    return Planned(answer["plan"], answer["workspace_bytes"], answer["is_compiled"])


def _jsonable(pairs: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in pairs}
