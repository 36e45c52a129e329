# SPDX-License-Identifier: Apache-2.0
"""For how long threads of this process were able to run and waited for a core that others had, as Linux counts it.

The second number of `schedstat` (Documentation/scheduler/sched-stats.rst), added up since a thread began. Law: where
the kernel does not say, the answer is None and not 0.
"""

import contextlib
import os
import threading
from pathlib import Path

_TASKS = Path("/proc/self/task")
_OWN = Path("/proc/thread-self/schedstat")


class _Counter:
    """The open file of one thread, which is closed with it."""

    def __init__(self, path: Path) -> None:
        """Opens it.

        Raises:
            OSError: there is none, or its thread has ended.
        """
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def ns(self) -> int | None:
        """Returns what the thread waited; None where it has ended, or its time on cores is not counted either."""
        try:
            worked, waited, *_ = os.pread(self._file, 64, 0).split()
        except (OSError, ValueError):
            return None
        return int(waited) if int(worked) else None

    def close(self) -> None:
        """Closes the file; nothing can be asked later."""
        with contextlib.suppress(AttributeError):  # it was not opened, or is closed
            os.close(self._file)
            del self._file

    __del__ = close


class _Own(threading.local):
    """The counter of each thread that has asked for itself, None where there is none; and what it last said."""

    counter: _Counter | None
    seen_ns = 0


_OWN_COUNTERS = _Own()


def _own_counter() -> _Counter | None:
    """Returns the counter of this thread, which is opened when it is first asked."""
    try:
        return _OWN_COUNTERS.counter
    except AttributeError:
        _OWN_COUNTERS.counter = None
        with contextlib.suppress(OSError):
            _OWN_COUNTERS.counter = _Counter(_OWN)
        return _OWN_COUNTERS.counter


# In the child of a fork the open file is still that of the parent's thread.
os.register_at_fork(after_in_child=lambda: vars(_OWN_COUNTERS).clear())


class RunDelay:
    """What the threads that are there when it is made wait for cores; cheap to ask again and again."""

    def __init__(self, files: contextlib.ExitStack) -> None:
        """Makes it; the files that it reads are closed with `files`."""
        self._threads = _all_counters()
        for counter in self._threads:
            files.callback(counter.close)

    def ns(self) -> int:
        """Returns the nanoseconds that they have waited so far, added up; 0 where the kernel does not say."""
        return sum(counter.ns() or 0 for counter in self._threads)

    def share(self, before_ns: int, taken_ns: int, most: float) -> float:
        """Returns what they waited since `before_ns` as a share of the time that was taken, `most` at most."""
        return min(max(self.ns() - before_ns, 0) / taken_ns, most)  # less than before where a thread has ended


def process_run_delay_ns() -> int | None:
    """Returns the nanoseconds that the threads which are there now have waited so far, added up."""
    found = [waited for counter in _all_counters() if (waited := counter.ns()) is not None]
    return sum(found) if found else None


def run_delay_ns(thread: int) -> int | None:
    """Returns the nanoseconds that a thread of this process has waited so far, by its native id; None: it has ended."""
    try:
        return _Counter(_TASKS / str(thread) / "schedstat").ns()
    except OSError:
        return None


def thread_run_delay_ns() -> int | None:
    """Returns the nanoseconds that this thread has waited so far; takes about a microsecond."""
    counter = _own_counter()
    return None if counter is None else counter.ns()


def new_run_delay_ns() -> int:
    """Returns the nanoseconds that this thread has waited since it asked by this function; 0 where nobody counts."""
    waited_ns = thread_run_delay_ns() or 0
    new_ns, _OWN_COUNTERS.seen_ns = waited_ns - _OWN_COUNTERS.seen_ns, waited_ns
    return new_ns


def _all_counters() -> list[_Counter]:
    counters = []
    for path in _TASKS.glob("*/schedstat"):
        with contextlib.suppress(OSError):
            counters.append(_Counter(path))
    return counters
