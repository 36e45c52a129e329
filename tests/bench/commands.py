# SPDX-License-Identifier: Apache-2.0
"""Commands that benches run: how each ended, what it printed, its last words."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

NNDEPLOY = (sys.executable, "-m", "nndeploy")


@dataclass(frozen=True)
class Ended:
    """A command that ended; `code` is None where it came to no end within its time."""

    name: str
    code: int | None
    out: str
    err: str

    @property
    def last_words(self) -> str:
        lines = (self.err.strip() or self.out.strip() or "it said nothing").splitlines()
        return lines[-1].strip()

    @property
    def answer(self) -> str:
        """What it printed on standard output; whoever asks this of a command that failed ends with its last words."""
        if self.code != 0:
            raise SystemExit(f"{self.name} ended with {self.code}: {self.last_words}")
        return self.out


def ran(
    command: Sequence[object], seconds: float | None = None, *, cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Ended:  # fmt: skip
    """Returns how a command ended; after so many seconds it is killed with its children. `env` comes on top of ours."""
    words = list(map(str, command))
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd, start_new_session=True,
        env={**os.environ, "ORT_DISABLE_TELEMETRY": "1", **(env or {})},
    )  # fmt: skip
    name = Path(words[0]).name
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return Ended(name, None, "", f"no end within {seconds:g} s")
    return Ended(name, process.returncode, out, err)
