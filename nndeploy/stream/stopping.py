# SPDX-License-Identifier: Apache-2.0
"""The wish that a stream ends early: reading stops, what is on its way is finished.

Whoever waits for input does it here, so this also knows whether a source works or is not given anything.

A signal handler may ask for it at any moment, so asking takes no lock: it sets a flag and writes one byte, which wakes
a reader that waits for its input (`StoppableInput`).
"""

import io
import math
import os
import select
import time
import weakref
from typing import BinaryIO

SIGNAL_SECONDS = 0.25
"""The longest that the main thread waits at a stretch: a signal that comes just before it waits does not wake it."""


class Stop:
    """Asked for at most once; `is_requested` stays true.

    `is_waiting` says that a reader waits for its input, `waited_ns` when one last ceased to, `sum_waited_ns` for how
    long readers waited so far.
    """

    def __init__(self) -> None:
        self.is_requested = self.is_waiting = False
        self.waited_ns = self.sum_waited_ns = 0
        self._reading_end, self._writing_end = ends = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._closed = weakref.finalize(self, _close, ends)  # also of one that a stream made for itself
        self._closed.atexit = False  # somebody may still wait then

    def request(self) -> None:
        """Asks the stream to end; may be called from a signal handler."""
        if not self.is_requested:
            self.is_requested = True
            os.write(self._writing_end, b"!")

    def wait_readable(self, descriptor: int, seconds: float | None = None) -> bool:
        """Returns True when there is something to read or the time is over, False when a stop was asked for."""
        if self.is_requested:
            return False
        self.is_waiting, began_ns = True, time.perf_counter_ns()
        self._poll(descriptor, seconds)
        self.waited_ns = time.perf_counter_ns()
        self.sum_waited_ns += self.waited_ns - began_ns
        self.is_waiting = False
        return not self.is_requested

    def wait(self, seconds: float | None = None) -> bool:
        """Returns True when the time is over, False when a stop was asked for; signal handlers run meanwhile."""
        self._poll(None, seconds)
        return not self.is_requested

    def _poll(self, descriptor: int | None, seconds: float | None) -> None:
        """Waits until a descriptor is readable, the time is over or a stop was asked for."""
        poll = select.poll()
        poll.register(self._reading_end, select.POLLIN)
        if descriptor is not None:
            poll.register(descriptor, select.POLLIN | select.POLLHUP | select.POLLERR)
        ends = math.inf if seconds is None else time.monotonic() + seconds
        while not self.is_requested and (left := ends - time.monotonic()) > 0:
            if poll.poll(1e3 * min(left, SIGNAL_SECONDS)):
                return

    def close(self) -> None:
        """Lets go of the pipe; nobody may wait any more."""
        self._closed()
        self._reading_end = self._writing_end = -1


def _close(ends: tuple[int, int]) -> None:
    for end in ends:
        os.close(end)


class StoppableInput(io.RawIOBase):
    """Reads a pipe or terminal that may stay silent for ever; ends where a stop is asked for.

    What follows the last whole line is then no line: whoever reads looks at `Stop.is_requested` first.
    """

    def __init__(self, descriptor: int, stop: Stop) -> None:
        self._descriptor = descriptor
        self._stop = stop

    def readable(self) -> bool:
        """Returns True."""
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        """Reads what there is; 0 at the end or after a stop."""
        if not self._stop.wait_readable(self._descriptor):
            return 0
        return os.readv(self._descriptor, [buffer])


def stoppable(file: BinaryIO, stop: Stop) -> BinaryIO:
    """Returns `file` so that waiting for it ends where a stop is asked for, if it has a descriptor at all."""
    try:
        descriptor = file.fileno()
    except (OSError, AttributeError):
        return file
    return io.BufferedReader(StoppableInput(descriptor, stop))
