# SPDX-License-Identifier: Apache-2.0
"""The threads of a session: whoever finds them taken works alone."""

import os
import threading
from collections.abc import Callable

_num_forks = 0


def _count_fork() -> None:
    global _num_forks
    _num_forks += 1


os.register_at_fork(after_in_child=_count_fork)  # to ask for the process at each call costs half a microsecond


class WorkerPool:
    """A pool that is begun by its first use. A child of a fork has none of its threads and starts its own."""

    def __init__(self, start: Callable[[int], int | None], stop: Callable[[int], None], num_threads: int) -> None:
        """`start` returns the address of a pool of so many threads, or None; `stop` ends it."""
        self.num_threads = num_threads
        self._start, self._stop = start, stop
        self._lock = threading.Lock()
        self._address: int | None = None
        self._forks_before = -1

    def taken(self) -> int | None:
        """Returns the address of the pool, None for a caller that works alone."""
        if self.num_threads == 1 or not self._lock.acquire(blocking=False):
            return None
        if self._forks_before != _num_forks:
            self._address, self._forks_before = self._start(self.num_threads), _num_forks
        if self._address is None:
            self._lock.release()
        return self._address

    def give_back(self, pool: int | None) -> None:
        """Lets others have what `taken` returned."""
        if pool is not None:
            self._lock.release()

    def close(self) -> None:
        """Ends the threads, once nobody uses them."""
        with self._lock:
            if self._address is not None and self._forks_before == _num_forks:
                self._stop(self._address)
            self._address = None
            self.num_threads = 1
