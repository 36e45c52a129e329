# SPDX-License-Identifier: Apache-2.0
"""Reads several sources at once, each at its own rate in a thread of its own, into bounded buffers.

In come sources as functions that yield items; out comes, whenever the stream asks, the item that came first of those
that are wanted. A source that is ahead waits, or drops its oldest item where its rules say so; a source that is silent
holds up nobody.

Laws: the items of one source keep their order; each is handed out or counted as dropped; a source that fails gives its
error as its last item, and the others go on; anything that is no `NndeployError` ends the stream.
"""

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Condition, Thread

from nndeploy.errors import NndeployError
from nndeploy.files.whole_files import let_go
from nndeploy.stream.items import Item, failing
from nndeploy.stream.sources.source_rules import ReadRules
from nndeploy.stream.stopping import Stop

END_SECONDS = 0.2
"""How long the end of a stream waits for its readers; one that is inside a library ends when it comes back."""


@dataclass(slots=True)
class SourceFigures:
    """What one source did so far.

    `num_unmatched` counts items that found no partner in a join, `num_skipped` pictures of live video before the first
    of a connection that can be decoded.
    """

    name: str
    num_read: int = 0
    num_dropped: int = 0
    num_unmatched: int = 0
    num_reconnects: int = 0
    num_skipped: int = 0


@dataclass(frozen=True, slots=True)
class Feed:
    """A source to be read: `items` yields its items, ends where the stop is asked for, counts its reconnects."""

    name: str
    items: Callable[[Stop, SourceFigures], Iterator[Item]]
    rules: ReadRules = field(default_factory=ReadRules)


@dataclass(frozen=True, slots=True)
class Arrived:
    """An item, which source it is of, and when it was read, on the clock of `time.monotonic_ns`.

    One that `is_last`, the error of a source, is never too old.
    """

    source: int
    item: Item
    at_ns: int
    is_last: bool = False


@dataclass(slots=True)
class _Buffer:
    feed: Feed
    figures: SourceFigures
    arrived: deque[Arrived] = field(default_factory=deque)
    is_ended: bool = False
    is_told: bool = False
    """Whether who takes knows of the end."""


class Readers:
    """The threads that read, and what they have read; one thread takes from them."""

    def __init__(self, feeds: Sequence[Feed], stop: Stop) -> None:
        """Starts nothing yet; `stop` is the wish that the stream ends early."""
        self._stop = stop
        self._own_stop = Stop()
        self._changed = Condition()
        self._signal = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._buffers = [_Buffer(feed, SourceFigures(feed.name)) for feed in feeds]
        self._failure: BaseException | None = None
        self._threads = [
            Thread(target=self._read, args=(number,), name=f"nndeploy source {number + 1}", daemon=True)
            for number in range(len(feeds))
        ]
        self._is_started = self._is_closed = False

    def start(self) -> None:
        """Starts to read, once."""
        if not self._is_started:
            self._is_started = True
            for thread in self._threads:
                thread.start()

    @property
    def is_stopped(self) -> bool:
        """Whether a stop was asked for, or the readers were closed."""
        return self._stop.is_requested or self._is_closed

    def figures(self) -> list[SourceFigures]:
        """Returns what the sources did so far."""
        return [buffer.figures for buffer in self._buffers]

    def next_of(self, wanted: Collection[int], deadline_ns: int | None = None) -> Arrived | int | None:
        """Returns what came first from the wanted sources, or the number of one of them that has ended.

        Each end is told once. None: a stop was asked for, the time is over, all wanted sources' ends are told, or the
        readers were closed.

        Raises:
            BaseException: what a reader raised.
        """
        while True:
            with self._changed:
                if self._failure is not None:
                    raise self._failure
                if self._is_closed:
                    return None
                if (found := self._taken(wanted)) is not None:
                    self._changed.notify_all()
                    return found
                if all(self._buffers[source].is_told for source in wanted):
                    return None
            now_ns = time.monotonic_ns()
            if deadline_ns is not None and deadline_ns <= now_ns:
                return None
            seconds = None if deadline_ns is None else (deadline_ns - now_ns) / 1e9
            if not self._stop.wait_readable(self._signal, seconds):
                return None
            with contextlib.suppress(OSError):  # nothing there any more, or closed meanwhile
                os.eventfd_read(self._signal)

    def _taken(self, wanted: Collection[int]) -> Arrived | int | None:
        heads = []
        for source in wanted:
            buffer = self._buffers[source]
            self._drop_old(buffer)
            if buffer.arrived:
                heads.append(buffer.arrived[0])
            elif buffer.is_ended and not buffer.is_told:
                buffer.is_told = True
                return source
        if not heads:
            return None
        first = min(heads, key=lambda one: one.at_ns)
        return self._buffers[first.source].arrived.popleft()

    def _drop_old(self, buffer: _Buffer) -> None:
        if oldest_ns := buffer.feed.rules.max_age_ns:
            oldest_ns = time.monotonic_ns() - oldest_ns
            while buffer.arrived and buffer.arrived[0].at_ns < oldest_ns and not buffer.arrived[0].is_last:
                buffer.arrived.popleft()
                buffer.figures.num_dropped += 1

    def _read(self, number: int) -> None:
        """Reads one source to its end, in its thread."""
        buffer = self._buffers[number]
        feed = buffer.feed
        try:
            for item in at_rate(feed.items(self._own_stop, buffer.figures), feed.rules.rate_hz, self._own_stop):
                buffer.figures.num_read += 1
                if not self._put(buffer, feed.rules, Arrived(number, item, time.monotonic_ns())):
                    return
        except NndeployError as err:
            if not self._own_stop.is_requested:
                failed = Item(0, feed.name, feed.name, failing(err))
                self._put(buffer, feed.rules, Arrived(number, failed, time.monotonic_ns(), is_last=True))
        except BaseException as err:  # the thread that takes raises it
            with self._changed:
                self._failure = self._failure or err
        finally:
            with self._changed:
                buffer.is_ended = True
                self._wake()

    def _put(self, buffer: _Buffer, rules: ReadRules, one: Arrived) -> bool:
        """Adds what was read, once there is room; returns False where the stream has ended."""
        with self._changed:
            while len(buffer.arrived) >= rules.buffer and not self._is_closed:
                if rules.drop == "oldest":
                    buffer.arrived.popleft()
                    buffer.figures.num_dropped += 1
                else:
                    self._changed.wait()
            buffer.arrived.append(one)
            self._wake()
            return not self._is_closed

    def _wake(self) -> None:
        if not self._is_closed:
            os.eventfd_write(self._signal, 1)

    def close(self) -> None:
        """Ends the readers; what they have read and nobody took is dropped, and counted."""
        with self._changed:
            if self._is_closed:
                return
            os.eventfd_write(self._signal, 1)  # who takes may still wait, where the stream was aborted
            self._is_closed = True
            self._changed.notify_all()
        self._own_stop.request()
        ends = time.monotonic() + END_SECONDS
        for thread in self._threads if self._is_started else ():
            thread.join(max(0.0, ends - time.monotonic()))
        with self._changed:
            for buffer in self._buffers:
                buffer.figures.num_dropped += sum(not one.is_last for one in buffer.arrived)
                buffer.arrived.clear()
        let_go(self._signal)
        if not any(thread.is_alive() for thread in self._threads):
            self._own_stop.close()


def at_rate(items: Iterator[Item], rate_hz: float, stop: Stop) -> Iterator[Item]:
    """Yields at most `rate_hz` items a second, 0: all at once; what came late is not made up for."""
    due = time.monotonic()
    for item in items:
        if rate_hz:
            if not stop.wait(due - time.monotonic()):
                return
            due = max(due, time.monotonic()) + 1 / rate_hz
        yield item
