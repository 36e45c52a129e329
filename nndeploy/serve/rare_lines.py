# SPDX-License-Identifier: Apache-2.0
"""Lines for the operator that clients can cause: at most one in so many seconds, however often it happens."""

import time

from nndeploy.serve.infer_request import Say


class RareLines:
    """Tells a line of one kind, and how many were left out since the last one."""

    def __init__(self, say: Say, seconds: float) -> None:
        self._say, self._seconds = say, seconds
        self._next, self._left_out = 0.0, 0

    def __call__(self, line: str) -> None:
        """Tells the line, unless one was told a moment ago."""
        now = time.monotonic()
        if now < self._next:
            self._left_out += 1
            return
        more = f"; {self._left_out:,} more since the last such line" if self._left_out else ""
        self._next, self._left_out = now + self._seconds, 0
        self._say(f"{line}{more}")
