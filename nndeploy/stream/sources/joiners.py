# SPDX-License-Identifier: Apache-2.0
"""Finds the items of several sources that belong together: equal keys, or times that are close.

In comes one item of one source after the other, with its key or its time; out come groups. A group has one item of
each source, or a single item that finds no partner, with the reason. Nothing here waits, reads or knows of threads.

Laws: each item is in exactly one group; no more than `buffer` items of a source are held; which items are joined
depends on their keys or times and on their order in each source, and not on which source was faster, unless an item
had to go because the buffer was full or its time over.

Times of a source never fall. The heads of all sources are joined once they lie within the tolerance; a head that lies
before what any other source can still give finds no partner. Of two sources this joins as many as can be joined.
"""

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from nndeploy.stream.items import Item
from nndeploy.stream.sources.source_rules import JoinRules


@dataclass(slots=True, eq=False)
class Waiting:
    """An item that waits for its partners since `since_ns`."""

    source: int
    item: Item
    since_ns: int
    key: Hashable = None
    time: float = 0.0


@dataclass(frozen=True, slots=True)
class Group:
    """What belongs together, one of each source in their order; or a single item and why it is alone."""

    members: tuple[Waiting, ...]
    reason: str = ""


class Matches(Protocol):
    """Decides what belongs together."""

    def put(self, one: Waiting) -> Iterator[Group]:
        """Takes the next item of a source; yields what is then complete or can find no partner any more."""

    def end(self, source: int) -> Iterator[Group]:
        """Takes note that a source gives no more; yields what can find no partner any more."""

    def remove(self, one: Waiting) -> None:
        """Forgets an item that waits."""

    def oldest(self, source: int) -> Waiting | None:
        """Returns the item of a source that waits longest."""

    def count(self, source: int) -> int:
        """Returns how many items of a source wait."""


class Joiner:
    """Joins items as the rules say, with bounded memory."""

    def __init__(self, names: Sequence[str], rules: JoinRules) -> None:
        self._names = tuple(names)
        self._rules = rules
        self._matches: Matches = (
            TimeMatches(self._names, rules.tolerance) if rules.by == "time" else KeyMatches(self._names)
        )
        self._is_ended = [False] * len(names)

    def wanted(self) -> list[int]:
        """Returns the sources of which one more item is taken: all, unless the others wait for a slower one."""
        every = range(len(self._names))
        if self._rules.missing != "wait":
            return list(every)
        return [source for source in every if self._matches.count(source) < self._rules.buffer]

    def put(self, one: Waiting) -> Iterator[Group]:
        """Takes the next item of a source; yields the groups that come of it."""
        yield from self._matches.put(one)
        yield from self._given_up()

    def end(self, source: int) -> Iterator[Group]:
        """Takes note that a source gives no more; yields the groups that come of it."""
        self._is_ended[source] = True
        yield from self._matches.end(source)
        yield from self._given_up()

    def expired(self, now_ns: int) -> Iterator[Group]:
        """Yields the items whose time is over."""
        while (deadline_ns := self.deadline_ns()) is not None and deadline_ns <= now_ns:
            yield self._without(self._oldest(), f"nothing joined it within {self._rules.wait_ns / 1e6:g} ms")

    def deadline_ns(self) -> int | None:
        """Returns when the time of the oldest item is over, None where none waits or time has no limit."""
        if not self._rules.wait_ns or not any(map(self._matches.count, range(len(self._names)))):
            return None
        return self._oldest().since_ns + self._rules.wait_ns

    def _given_up(self) -> Iterator[Group]:
        """Yields items for which there is no room any more."""
        every = range(len(self._names))
        if self._rules.missing != "wait":
            for source in every:
                while self._matches.count(source) > self._rules.buffer:
                    oldest = self._matches.oldest(source)
                    assert oldest is not None
                    yield self._without(oldest, f"{self._rules.buffer} items after it nothing had joined it")
            return
        while not all(self._is_ended) and all(
            self._is_ended[source] or self._matches.count(source) >= self._rules.buffer for source in every
        ):  # each source that could still give a partner is held back: nobody could go on
            yield self._without(self._oldest(), f"each source is {self._rules.buffer} items ahead of the others")

    def _oldest(self) -> Waiting:
        found = [self._matches.oldest(source) for source in range(len(self._names))]
        return min((one for one in found if one is not None), key=lambda one: one.since_ns)

    def _without(self, one: Waiting, reason: str) -> Group:
        self._matches.remove(one)
        return Group((one,), reason)


class KeyMatches:
    """Joins items with the same key; of several with one key in a source the first comes first."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._by_key: dict[Hashable, list[deque[Waiting]]] = {}
        self._in_order: list[dict[int, Waiting]] = [{} for _ in names]  # by identity, the oldest first
        self._is_ended = [False] * len(names)

    def put(self, one: Waiting) -> Iterator[Group]:
        """Takes the next item of a source."""
        if reason := self._hopeless(one.source, one.key):
            yield Group((one,), reason)
            return
        queues = self._by_key.setdefault(one.key, [deque() for _ in self._names])
        queues[one.source].append(one)
        self._in_order[one.source][id(one)] = one
        if all(queues):
            members = tuple(queue[0] for queue in queues)
            for member in members:
                self.remove(member)
            yield Group(members)

    def end(self, source: int) -> Iterator[Group]:
        """Yields the items that waited for one of this source."""
        self._is_ended[source] = True
        waiting = sorted((one for own in self._in_order for one in own.values()), key=lambda one: one.since_ns)
        for one in waiting:
            if reason := self._hopeless(one.source, one.key):
                self.remove(one)
                yield Group((one,), reason)

    def _hopeless(self, source: int, key: Hashable) -> str:
        """Returns why an item finds no partner any more, "" where it may."""
        queues = self._by_key.get(key)
        for other, name in enumerate(self._names):
            if other != source and self._is_ended[other] and not (queues and queues[other]):
                return f"{name!r} has ended, and nothing of it joined this"
        return ""

    def remove(self, one: Waiting) -> None:
        """Forgets an item that waits."""
        del self._in_order[one.source][id(one)]
        queues = self._by_key[one.key]
        queues[one.source].remove(one)
        if not any(queues):
            del self._by_key[one.key]

    def oldest(self, source: int) -> Waiting | None:
        """Returns the item of a source that waits longest."""
        return next(iter(self._in_order[source].values()), None)

    def count(self, source: int) -> int:
        """Returns how many items of a source wait."""
        return len(self._in_order[source])


class TimeMatches:
    """Joins items whose times lie within the tolerance."""

    def __init__(self, names: Sequence[str], tolerance: float) -> None:
        self._names = tuple(names)
        self._tolerance = tolerance
        self._queues: list[deque[Waiting]] = [deque() for _ in names]
        self._last = [float("-inf")] * len(names)
        self._is_ended = [False] * len(names)

    def put(self, one: Waiting) -> Iterator[Group]:
        """Takes the next item of a source."""
        if not one.time >= self._last[one.source]:
            yield Group((one,), f"its time {one.time:g} s lies before that of the one before it")
            return
        self._last[one.source] = one.time
        self._queues[one.source].append(one)
        yield from self._decided()

    def end(self, source: int) -> Iterator[Group]:
        """Yields the items that waited for one of this source."""
        self._is_ended[source] = True
        yield from self._decided()

    def _decided(self) -> Iterator[Group]:
        while any(self._queues):
            heads = [queue[0] for queue in self._queues if queue]
            first = min(heads, key=lambda one: one.time)
            if self._earliest_latest() - first.time > self._tolerance:
                self._queues[first.source].popleft()
                yield Group((first,), f"nothing of every other source lies within {self._tolerance * 1e3:g} ms of it")
            elif len(heads) == len(self._queues):
                yield Group(tuple(queue.popleft() for queue in self._queues))
            else:
                return

    def _earliest_latest(self) -> float:
        """Returns the latest of the times that each source can give next at the earliest."""
        return max(
            queue[0].time if queue else float("inf") if is_ended else last
            for queue, is_ended, last in zip(self._queues, self._is_ended, self._last, strict=True)
        )

    def remove(self, one: Waiting) -> None:
        """Forgets an item that waits."""
        self._queues[one.source].remove(one)

    def oldest(self, source: int) -> Waiting | None:
        """Returns the item of a source that waits longest."""
        return next(iter(self._queues[source]), None)

    def count(self, source: int) -> int:
        """Returns how many items of a source wait."""
        return len(self._queues[source])
