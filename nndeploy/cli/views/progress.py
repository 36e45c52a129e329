# SPDX-License-Identifier: Apache-2.0
"""What a command is at, told every few seconds while nothing else is: no silence that looks like a hang."""

import threading
import time
from types import TracebackType
from typing import ClassVar, Self

from nndeploy.cli.console import note
from nndeploy.errors import one_line

TOLD_SECONDS = 4.0
"""No longer than so long nothing is said."""


class Heartbeat:
    """Tells on standard error what is being done and for how long, whenever `TOLD_SECONDS` went by without a word.

    Of several that are open the last one tells.
    """

    _open: ClassVar[list["Heartbeat"]] = []

    def __init__(self, doing: str = "") -> None:
        """Begins with `doing`; while that is "" nothing is told."""
        self._doing = doing
        self._began = self._spoke = time.monotonic()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._tell, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._open.append(self)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self._open.remove(self)
        for outer in self._open:
            outer._spoke = max(outer._spoke, self._spoke)

    def now(self, doing: str) -> None:
        """Says what is done from now on."""
        self._doing, self._began = doing, time.monotonic()

    def more(self, doing: str) -> None:
        """Says more closely what is being done; its time goes on."""
        self._doing = doing

    def spoke(self) -> None:
        """Says that a line was printed just now, so that none is due."""
        self._spoke = time.monotonic()

    def _tell(self) -> None:
        while not self._is_over.wait(self._due_seconds()):
            if self._open[-1] is not self:
                self.spoke()
            if self._due_seconds() > 0 or not self._doing:
                continue
            seconds = time.monotonic() - self._began
            note(f"{one_line(self._doing)} ({seconds:.0f} s)")
            self.spoke()

    def _due_seconds(self) -> float:
        if not self._doing:
            return TOLD_SECONDS
        return max(0.0, self._spoke + TOLD_SECONDS - time.monotonic())
