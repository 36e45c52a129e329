# SPDX-License-Identifier: Apache-2.0
"""The wish that a stream ends early: reading stops, what is on its way is finished.

Whoever waits for input does it here, so this also knows whether a source works or is not given anything.

A signal handler may ask for it at any moment, so asking takes no lock: it sets a flag and writes one byte, which wakes
a reader that waits for its input (`StoppableInput`).
"""

import io
import os
import select
import time
from typing import BinaryIO


class Stop:
    """Asked for at most once; `is_requested` stays true.

    `is_waiting` says that a reader waits for its input, `waited_ns` when one last ceased to.
    """

    def __init__(self) -> None:
        self.is_requested = self.is_waiting = False
        self.waited_ns = 0
        self._reading_end, self._writing_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def request(self) -> None:
        """Asks the stream to end; may be called from a signal handler."""
        if not self.is_requested:
            self.is_requested = True
            os.write(self._writing_end, b"!")

    def wait_readable(self, descriptor: int) -> bool:
        """Returns True when there is something to read, False when a stop was asked for."""
        poll = select.poll()
        poll.register(descriptor, select.POLLIN | select.POLLHUP | select.POLLERR)
        poll.register(self._reading_end, select.POLLIN)
        self.is_waiting = True
        poll.poll()
        self.waited_ns = time.perf_counter_ns()
        self.is_waiting = False
        return not self.is_requested

    def wait(self) -> None:
        """Returns when a stop was asked for; signal handlers run meanwhile."""
        poll = select.poll()
        poll.register(self._reading_end, select.POLLIN)
        poll.poll()

    def close(self) -> None:
        """Lets go of the pipe; nobody may wait any more."""
        for end in (self._reading_end, self._writing_end):
            os.close(end)
        self._reading_end = self._writing_end = -1


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
