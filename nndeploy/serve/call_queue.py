# SPDX-License-Identifier: Apache-2.0
"""The calls of a model that wait, at most so many, and the threads that run them, several together where that is asked.

`put` -> waiting, first in, first out -> up to `batch` calls, the first of which waited at most `batch_delay_ns` ->
`run` -> each call's future. Laws: a full queue refuses at once; a call whose time is over, or that nobody waits for any
more, is never run; each call ends exactly once.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from nndeploy.errors import BusyError, DeadlineError, UnavailableError
from nndeploy.serve.infer_request import Answer
from nndeploy.stream.records import Record


class Numbers(Protocol):
    """Where a queue writes, whenever they change: `waiting` calls, `running` workers, `calls` so far, and `began_ns`.

    The last is when the slowest of those that run began, on the monotonic clock, 0 where none does.
    """

    def __getitem__(self, name: str, /) -> float: ...
    def __setitem__(self, name: str, value: float, /) -> None: ...


@dataclass(slots=True, eq=False)
class Call:
    """Inputs that wait for their outputs; `until_ns` is when their time is over, 0 where it never is."""

    record: Record
    until_ns: int = 0
    came_ns: int = field(default_factory=time.monotonic_ns)
    done: "Future[Answer]" = field(default_factory=Future)

    def fail(self, error: BaseException) -> None:
        """Makes the error what became of the call."""
        self.done.set_exception(error)


class CallQueue:
    """Calls that wait for the workers of one model."""

    def __init__(
        self,
        run: Callable[[Sequence[Call]], None],
        name: str,
        *,
        most_waiting: int,
        numbers: Numbers,
        batch_delay_ns: int = 0,
    ) -> None:
        """Takes what runs calls, and ends every one that it is given; nothing runs before `start`.

        `batch` says how many calls go together at most; it may be changed at any time.
        """
        self._numbers = numbers
        self._run = run
        self._name = name
        self._most_waiting = most_waiting
        self.batch = 1
        self._batch_delay_ns = batch_delay_ns
        self._waiting: deque[Call] = deque()
        self._change = threading.Condition()
        self._is_closed = False
        self._began_ns: dict[int, int] = {}  # of each worker that runs calls
        self._threads: list[threading.Thread] = []

    def start(self, workers: int) -> None:
        """Starts so many threads that run calls."""
        name = f"nndeploy {self._name}"
        for i in range(workers):
            self._threads.append(threading.Thread(target=self._work, args=(i,), name=f"{name} {i}", daemon=True))
            self._threads[-1].start()

    def put(self, call: Call) -> None:
        """Lets a call wait for a worker.

        Raises:
            BusyError: too many wait.
            UnavailableError: no more calls are taken.
        """
        with self._change:
            if self._is_closed:
                raise ending(self._name)
            if len(self._waiting) >= self._most_waiting:  # some of which nobody may wait for any more
                self._waiting = deque(one for one in self._waiting if not one.done.cancelled())
            if len(self._waiting) >= self._most_waiting:
                raise BusyError(
                    f"{self._most_waiting} requests are already waiting", where=self._name, hint="try again"
                )
            self._waiting.append(call)
            self._numbers["waiting"] = len(self._waiting)
            self._change.notify()

    def close(self, seconds: float) -> bool:
        """Takes no more calls and waits for those that are there; returns whether all ended in time.

        Those that did not are told that the server ends; one that runs goes on until its library comes back.
        """
        until = time.monotonic() + seconds
        with self._change:
            self._is_closed = True
            self._change.notify_all()
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        with self._change:
            left, self._waiting = list(self._waiting), deque()
            self._numbers["waiting"] = 0
            self._change.notify_all()
        for call in left:
            if call.done.set_running_or_notify_cancel():
                call.fail(ending(self._name))
        return not left and not any(thread.is_alive() for thread in self._threads)

    def _work(self, number: int) -> None:
        while calls := self._take(number):
            try:
                self._run(calls)
            except Exception as err:  # a bug of ours or of a library must neither end the worker nor leave a call open
                for call in calls:
                    if not call.done.done():
                        call.fail(err)

    def _is_wanted(self, call: Call) -> bool:
        """Returns whether a call is to be run; it is told where its time is over."""
        if not call.done.set_running_or_notify_cancel():
            return False
        if call.until_ns and time.monotonic_ns() >= call.until_ns:
            waited = (time.monotonic_ns() - call.came_ns) / 1e6
            call.fail(DeadlineError(f"timed out after {waited:.3g} ms in the queue", where=self._name))
            return False
        return True

    def _take(self, number: int) -> list[Call]:
        """Returns the next calls for a worker, which is done with those before; none where no more will come."""
        with self._change:
            if self._began_ns.pop(number, 0):
                self._tell_running()
            while True:
                if not self._waiting:
                    if self._is_closed:
                        return []
                    self._change.wait()
                    continue
                missing_ns = self._waiting[0].came_ns + self._batch_delay_ns - time.monotonic_ns()
                if len(self._waiting) >= self.batch or missing_ns <= 0 or self._is_closed:
                    taken = [self._waiting.popleft() for _ in range(min(self.batch, len(self._waiting)))]
                    self._numbers["waiting"] = len(self._waiting)
                    if calls := [call for call in taken if self._is_wanted(call)]:
                        self._begin(number)
                        return calls
                    continue
                self._change.wait(missing_ns / 1e9)

    def _begin(self, number: int) -> None:
        self._began_ns[number] = time.monotonic_ns()
        self._numbers["calls"] += 1
        self._tell_running()

    def _tell_running(self) -> None:
        self._numbers["running"] = len(self._began_ns)
        self._numbers["began_ns"] = min(self._began_ns.values(), default=0)


def ending(name: str) -> UnavailableError:
    """Returns what a client is told of a model when the service ends."""
    return UnavailableError("the server is shutting down", where=name)
