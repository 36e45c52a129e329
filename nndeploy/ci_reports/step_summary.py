# SPDX-License-Identifier: Apache-2.0
"""The summary that GitHub shows of a CI job's step: the file that `GITHUB_STEP_SUMMARY` names, which steps append to.

Law: what others wrote into it stays, and what is appended is there whole or not at all, unless the disk fails twice.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from nndeploy.ci_reports.markdown import MAX_BYTES
from nndeploy.errors import CannotCreateError
from nndeploy.files.whole_files import let_go, wrapped_io

VARIABLE = "GITHUB_STEP_SUMMARY"


def append_summary(path: Path, text_within: Callable[[int], bytes]) -> None:
    """Appends a text to a summary; `text_within` gives one of at most so many bytes as GitHub still takes.

    Raises:
        CannotCreateError: there is no such file and none can be made, or it is not a regular file.
        InputOutputError: writing failed; what was there is still there.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    try:
        descriptor = os.open(path, flags, 0o666)
    except (OSError, ValueError) as err:
        reason = err.strerror if isinstance(err, OSError) else err
        raise CannotCreateError(f"the summary of the step cannot be opened: {reason}", where=str(path)) from err
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CannotCreateError("the summary of the step is not a regular file", where=str(path))
        with wrapped_io(path):
            _append(descriptor, status.st_size, text_within)
    finally:
        let_go(descriptor)


def _append(descriptor: int, size: int, text_within: Callable[[int], bytes]) -> None:
    gap = b"\n" if size else b""  # whoever wrote before may have left a line open
    rest = memoryview(gap + text_within(MAX_BYTES - size - len(gap)))
    try:
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    except OSError:
        os.ftruncate(descriptor, size)
        raise
