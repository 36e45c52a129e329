# SPDX-License-Identifier: Apache-2.0
"""Signals that end a batch, noted: an exception that a handler raises is lost where Python runs a callback just then.

Python drops what is raised while it collects an object or calls a finaliser, with a line on standard error; Ctrl-C in
such a moment would be no Ctrl-C.
"""

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class NotedSignals:
    """Inside a `with` block handlers do what they did, and `check` raises again what one of them has raised."""

    def __init__(self) -> None:
        self._raised: BaseException | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "NotedSignals":
        if threading.current_thread() is threading.main_thread():  # only there handlers are set and run
            for number in SIGNALS:
                before = signal.getsignal(number)
                if callable(before):
                    self._before[number] = before
                    signal.signal(number, self._noting(before))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def check(self) -> None:
        """Raises what a handler has raised, if one was called."""
        if self._raised is not None:
            raise self._raised

    def _noting(self, before: Callable[[int, FrameType | None], Any]) -> Callable[[int, FrameType | None], None]:
        def handle(number: int, frame: FrameType | None) -> None:
            try:
                before(number, frame)
            except BaseException as err:
                self._raised = err
                raise

        return handle
