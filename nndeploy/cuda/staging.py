# SPDX-License-Identifier: Apache-2.0
"""Page-locked host buffers through which values go to and from a GPU.

A copy from such a buffer runs beside the GPU's work; one from ordinary memory would wait. Buffers are kept and used
again; a large array goes through them in pieces of `PIECE_BYTES`. Law: a buffer is handed out only when the copy that
last used it is done.
"""

import threading
from collections import deque
from dataclasses import dataclass

from nndeploy.cuda.driver import Driver

SMALLEST_BYTES = 64 * 1024
KEPT_BYTES = 256 * 1024 * 1024
PIECE_BYTES = 32 * 1024 * 1024


@dataclass(slots=True)
class PinnedBuffer:
    """`num_bytes` of page-locked memory at `ptr`; `event` marks the copy that last used it."""

    ptr: int
    num_bytes: int
    event: int


class PinnedPool:
    """The page-locked buffers of one device. Calls need the device's context to be current."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._lock = threading.Lock()
        self._idle: list[PinnedBuffer] = []
        self._busy: deque[PinnedBuffer] = deque()

    def take(self, num_bytes: int) -> PinnedBuffer:
        """Returns a buffer of at least `num_bytes` that nothing uses; `give_back` it after the copy is queued.

        While the pool is full it waits for the oldest copy, so a fast producer cannot pin all memory.
        """
        with self._lock:
            self._collect()
            buffer = self._best_idle(num_bytes)
            while buffer is None and self._busy and self._would_be_too_large(num_bytes):
                self._driver.wait_event(self._busy[0].event)
                self._idle.append(self._busy.popleft())
                buffer = self._best_idle(num_bytes)
            if buffer is not None:
                self._idle.remove(buffer)
                return buffer
            while self._idle and self._would_be_too_large(num_bytes):
                self._release(self._idle.pop(0))
            return self._new(num_bytes)

    def give_back(self, buffer: PinnedBuffer, stream: int) -> None:
        """Takes a buffer back; it is used again once the work that `stream` holds now is done."""
        self._driver.record_event(buffer.event, stream)
        with self._lock:
            self._busy.append(buffer)

    def _collect(self) -> None:
        """Moves buffers whose copies are done to the idle ones; the oldest are done first."""
        while self._busy and self._driver.is_event_done(self._busy[0].event):
            self._idle.append(self._busy.popleft())

    def _best_idle(self, num_bytes: int) -> PinnedBuffer | None:
        fitting = (buffer for buffer in self._idle if buffer.num_bytes >= num_bytes)
        return min(fitting, key=lambda buffer: buffer.num_bytes, default=None)

    def _would_be_too_large(self, num_bytes: int) -> bool:
        return num_bytes + sum(buffer.num_bytes for buffer in (*self._idle, *self._busy)) > KEPT_BYTES

    def _new(self, num_bytes: int) -> PinnedBuffer:
        rounded = max(SMALLEST_BYTES, 1 << (num_bytes - 1).bit_length())
        return PinnedBuffer(self._driver.allocate_pinned(rounded), rounded, self._driver.create_event())

    def _release(self, buffer: PinnedBuffer) -> None:
        self._driver.free_pinned(buffer.ptr)
        self._driver.destroy_event(buffer.event)
