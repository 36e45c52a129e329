# SPDX-License-Identifier: Apache-2.0
"""What `nndeploy compile` takes of a machine: time of all its processes, the most memory of them together, stages."""

import contextlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

SAMPLED_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Compile:
    """Seconds of a compile, the bytes that all its processes had at most together, and its stages' seconds."""

    processor: float
    wall: float
    peak: int
    stages: dict[str, float]


def whole_compile(model: Path, bundle: Path, python: str = sys.executable) -> Compile | None:
    """Returns what a compile took by the version that a Python has; None where a rule forbids the model."""
    before, start = children_seconds(), time.perf_counter()
    command = [python, "-m", "nndeploy", "compile", str(model), "-o", str(bundle), "--no-cache", "--json", "-q"]
    with tempfile.TemporaryFile() as answer:
        with subprocess.Popen(command, stdout=answer, stderr=subprocess.DEVNULL) as process:
            peak = _peak_bytes(psutil.Process(process.pid))
        answer.seek(0)
        told = json.load(answer)
    wall = time.perf_counter() - start
    if not told["ok"] and told["error"]["code"] == "policy":
        return None
    assert told["ok"], (model.name, told.get("error"))
    assert not any("stage" in warning and "failed" in warning for warning in told["warnings"]), told["warnings"]
    return Compile(children_seconds() - before, wall, peak, told["seconds"])


def _peak_bytes(process: Any) -> int:
    """Returns the most memory that a process and those below it had together until it ended; shared pages by halves."""
    peak = 0
    while process.status() != psutil.STATUS_ZOMBIE:
        here = 0
        for one in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.Error):
                here += one.memory_full_info().pss
        peak = max(peak, here)
        time.sleep(SAMPLED_SECONDS)
    return peak


def children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
