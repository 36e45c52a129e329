# SPDX-License-Identifier: Apache-2.0
"""`nndeploy compile MODEL -o BUNDLE`, as a user types it: no samples, no options, in a child with a time limit."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Compiled:
    """How the command ended: `exit_code` None where it was killed at the limit; `said` is its last line of errors."""

    exit_code: int | None
    seconds: float
    said: str
    made_of: str
    comparisons: int


def compiled(model: Path, bundle: Path, seconds_limit: float) -> Compiled:
    """Returns how a default compile of `model` to `bundle` ended."""
    command = [str(Path(sys.executable).with_name("nndeploy")), "compile", str(model), "-o", str(bundle), "--json"]
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "ORT_DISABLE_TELEMETRY": "1"},
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=seconds_limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return Compiled(None, seconds_limit, f"no end within {seconds_limit:g} s", "", 0)
    seconds = time.monotonic() - began
    report = _report(out) if process.returncode == 0 else {}
    said = "" if report else _without_folders(_last_line(err), model)
    return Compiled(process.returncode, seconds, said, _made_of(report), _comparisons(report))


def _report(out: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(out)
    except json.JSONDecodeError:
        return {}
    return found


def _made_of(report: dict[str, Any]) -> str:
    """Returns who took which share: "native 88% (1), onnxruntime 12% (2)", with the number of submodels."""
    shares: dict[str, tuple[float, int]] = {}
    for one in report.get("submodels", ()):
        share, count = shares.get(one["backend"], (0.0, 0))
        shares[one["backend"]] = (share + one["share"], count + 1)
    ordered = sorted(shares.items(), key=lambda item: -item[1][0])
    return ", ".join(f"{name} {share:.0%} ({count})" for name, (share, count) in ordered)


def _comparisons(report: dict[str, Any]) -> int:
    """Returns how many outputs of the whole bundle were really compared while it was made."""
    return sum(
        1 for one in report.get("checks", ()) if one["scope"] == "whole" and not one["note"].startswith("not compared")
    )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error")]
    return (errors or lines or [""])[-1 if not errors else 0][:300]


def _without_folders(text: str, model: Path) -> str:
    return text.replace(str(model.parent) + "/", "")
