# SPDX-License-Identifier: Apache-2.0
"""The three standard streams of a command, made safe before anything else is imported.

Native libraries print on descriptor 1, so our own output moves to a descriptor of its own and 1 becomes standard
error: every line on standard output is ours. A stream that is closed is filled, so that no file we open gets its
number. Writing to a standard output that is closed, full or broken is an error and never silent; once a command has
changed what it was to change, it is a warning: the exit code then tells of the change alone, and who runs the command
again because of its code never makes a change twice. What cannot be written to standard error is dropped, whoever
writes it: messages change no result and no exit code.
"""

import contextlib
import fcntl
import io
import os
import sys
from typing import Any, BinaryIO

from nndeploy.errors import InputOutputError, MissingInputError

FIRST_OWN_DESCRIPTOR = 3


class _Output(io.FileIO):
    """Standard output; a failure to write is an `InputOutputError`, a reader that has gone a `BrokenPipeError`."""

    is_effect_made = is_lost = False

    def write(self, data: Any, /) -> int:
        try:
            return len(data) if self.is_lost else super().write(data)
        except OSError as err:
            what = f"standard output cannot be written: {err.strerror}"
            if self.is_effect_made:
                self.is_lost = True
                if not isinstance(err, BrokenPipeError):  # who stops reading wants no more lines
                    print(f"nndeploy: warning: {what}; the command has done its work", file=sys.stderr)
                return len(data)
            if isinstance(err, BrokenPipeError):
                raise
            raise InputOutputError(what) from err


class _Messages(io.FileIO):
    """Standard error; what cannot be written is dropped."""

    def write(self, data: Any, /) -> int:
        with contextlib.suppress(OSError):
            if (count := super().write(data)) is not None:  # None where it would have to wait
                return count
        return memoryview(data).nbytes


def take_over() -> None:
    """Fills closed streams, moves standard output away from descriptor 1, and wraps standard error."""
    was_closed = [descriptor for descriptor in (0, 1, 2) if not _is_open(descriptor)]
    for _ in was_closed:
        os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free: the closed stream's
    own = _read_only() if 1 in was_closed else fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, FIRST_OWN_DESCRIPTOR)
    os.dup2(2, 1)
    if 0 in was_closed:
        sys.stdin = None  # as Python does itself
    encoding = sys.stderr.encoding if sys.stderr is not None else "utf-8"
    messages = io.BufferedWriter(_Messages(2, "wb", closefd=False))
    sys.stderr = io.TextIOWrapper(messages, encoding=encoding, errors="backslashreplace", line_buffering=True)
    sys.stdout = output_to(own)


def output_to(descriptor: int) -> io.TextIOWrapper:
    """Returns a standard output over a descriptor."""
    output = io.BufferedWriter(_Output(descriptor, "wb"))
    is_terminal = os.isatty(descriptor)
    return io.TextIOWrapper(output, encoding="utf-8", errors="backslashreplace", line_buffering=is_terminal)


def effect_is_made() -> None:
    """Says that the command has changed what it was to change: what it prints from here on may be lost."""
    output = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(output, _Output):
        output.is_effect_made = True


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _read_only() -> int:
    """Returns a descriptor that every write fails on, as it would on the stream that is closed."""
    descriptor = os.open(os.devnull, os.O_RDONLY)
    own = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_OWN_DESCRIPTOR)
    os.close(descriptor)
    return own


def give_up_output() -> None:
    """Sends what is still buffered nowhere, so that nothing fails again when the process ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno(), inheritable=False)
    finally:
        os.close(nowhere)


def binary_stdin() -> BinaryIO:
    """Returns standard input.

    Raises:
        MissingInputError: it is closed.
    """
    if sys.stdin is None:
        raise MissingInputError("standard input is closed")
    return sys.stdin.buffer
