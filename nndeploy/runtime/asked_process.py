# SPDX-License-Identifier: Apache-2.0
"""A process that is asked by lines and answers by lines, while values pass through `SharedValues` beside them.

    a line to it      what `SharedValues` tells of the values that are given
    a line of it      {"bytes": n}, the same of the values that it made, or {"error": ...}

Law: whatever it writes is an answer, an error with a code, or a crash.
"""

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Mapping
from typing import Any

from nndeploy.errors import (
    DataError,
    InputOutputError,
    NndeployError,
    OtherVariantError,
    PolicyError,
    UnavailableError,
    describe_exit,
    error_from_json,
    one_line,
)
from nndeploy.sandbox.child_process import ChildProcess, drained, end_child, kill_group

MAX_ANSWER_BYTES = 1 << 20
LOG_SECONDS = 0.5
"""So long what it wrote on standard error is waited for, once it has ended."""


class CrashError(Exception):
    """The process is gone; `str(error)` says how."""


class AskedProcess:
    """One process: asked by a line, and answering by one."""

    def __init__(self, process: ChildProcess) -> None:
        assert process.stderr is not None
        self._process = process
        self._reader, self._log = drained(process.stderr)
        assert process.stdout is not None
        self._poll = select.poll()
        self._poll.register(process.stdout, select.POLLIN)

    def opened(self, seconds: float) -> None:
        """Waits until it says that it is open; raises what opening raised there."""
        try:
            self._answer(seconds)
        except TimeoutError as err:
            raise CrashError(f"did not respond within {seconds:.0f} s") from err

    def answer(self, told: int, seconds: float | None) -> int:
        """Returns what is told of the outputs, where so much is told of the inputs.

        Raises:
            TimeoutError: it took too long.
            NndeployError: what was raised there.
            CrashError: the process is gone.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            os.write(self._process.stdin.fileno(), b"%d\n" % told)
        return self._answer(seconds)

    def _answer(self, seconds: float | None) -> int:
        line = self._line(seconds)
        if not line.endswith(b"\n"):
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(LOG_SECONDS)
            raise CrashError(self._how_it_ended())
        try:
            said = json.loads(line)
            if "error" not in said:
                return int(said["bytes"])
            error = _error_from(said)
        except (ValueError, TypeError, KeyError, AttributeError) as err:
            raise CrashError("sent an invalid response") from err
        raise error

    def _line(self, seconds: float | None) -> bytes:
        """Returns what it writes up to the end of a line, or of all, or of what an answer may have."""
        assert self._process.stdout is not None
        stream, line = self._process.stdout.fileno(), b""
        deadline = None if seconds is None else time.monotonic() + seconds
        while not line.endswith(b"\n") and len(line) < MAX_ANSWER_BYTES:
            if deadline is not None and not self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise TimeoutError
            if not (piece := os.read(stream, MAX_ANSWER_BYTES)):
                break
            line += piece
        return line

    def _how_it_ended(self) -> str:
        returncode = self._process.poll()
        kill_group(self._process)
        self._reader.join(LOG_SECONDS)
        last = bytes(self._log).decode("utf-8", "replace").strip().splitlines()[-1:]
        ended = "closed its output" if returncode is None else describe_exit(returncode)
        return one_line(f"{ended} {' '.join(last)}")[:300].strip()

    def end(self) -> None:
        """Ends the process with all that it started."""
        end_child(self._process, self._reader, LOG_SECONDS)


def _error_from(said: Mapping[str, Any]) -> NndeployError:
    error = error_from_json({key: str(said["error"][key])[:1000] for key in ("code", "what", "where", "hint")})
    if said.get("is_of_variant"):
        return OtherVariantError(error.what, where=error.where, hint=error.hint)
    return (
        error
        if isinstance(error, DataError | InputOutputError | PolicyError | UnavailableError)
        else DataError(str(error))
    )
