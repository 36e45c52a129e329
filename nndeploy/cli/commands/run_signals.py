# SPDX-License-Identifier: Apache-2.0
"""SIGINT, SIGTERM and SIGHUP of a stream.

The first one stops reading and lets what is on its way end, the second one ends at once. Either way nothing half
written stays.
"""

import os
import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

from nndeploy.cli.signals import handle
from nndeploy.files.whole_files import discard_unfinished
from nndeploy.stream.stopping import Stop

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class SecondSignalError(BaseException):
    """Raised where the main thread happens to be when a second signal comes."""


class StopSignals:
    """Handles the signals inside a `with` block; only of use in the main thread. The first one calls `on_first`."""

    def __init__(self, on_first: Callable[[], None]) -> None:
        self.stop = Stop()
        self._on_first = on_first
        self.number = 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                self._before[number] = handle(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if isinstance(error, SecondSignalError):
            discard_unfinished()
            os._exit(128 + self.number)  # a library may still be computing, and nobody wants to wait for it
        self.stop.close()

    def raise_if_stopped(self) -> None:
        """Ends the command as the signal would have, if there was one.

        Raises:
            KeyboardInterrupt, SystemExit: there was.
        """
        if self.number == signal.SIGINT:
            raise KeyboardInterrupt
        if self.number:
            raise SystemExit(128 + self.number)

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a handler's form
        if self.stop.is_requested:
            raise SecondSignalError
        self.number = number
        self.stop.request()
        self._on_first()
