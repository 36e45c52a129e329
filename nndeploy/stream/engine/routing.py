# SPDX-License-Identifier: Apache-2.0
"""Hands each record of a level to the pipelines that take it, by its source, a condition, or who has time.

* `CopyRoutes` gives a record to every pipeline that takes it; their results are joined behind the level.
* `SwitchRoutes` gives it to the first pipeline that takes it.
* `SharedQueue` holds records for different pipelines, and gives each to one of those that take it: by shares, or to
  the one of the highest priority that has room.

Laws: a record goes on behind the level exactly once, also where no pipeline takes it, it cannot be asked, or it has an
error already. Nobody waits here, and what the shared queue holds is limited by the records that the schedule lets in.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from nndeploy.errors import NndeployError, NotTakenError
from nndeploy.stream.description import LevelPlan, RoutePlan
from nndeploy.stream.engine.queues import Outlet, QueueFigures, SyncQueue
from nndeploy.stream.records import Record


@dataclass(slots=True, eq=False)
class Way:
    """A pipeline of a level: which records it takes, and its entry; `room` records may be in it at once."""

    route: RoutePlan
    outlet: Outlet
    room: int = 0
    num_inside: int = 0
    num_taken: int = 0

    def takes(self, record: Record) -> bool:
        """Returns whether the pipeline takes a record.

        Raises:
            InputError: the record cannot be asked what the condition asks.
        """
        if self.route.source and record.source != self.route.source:
            return False
        return self.route.when is None or self.route.when.holds(record.fields)


class _Routes:
    """What all kinds share: who takes a record, and what becomes of one that nobody takes."""

    def __init__(self, name: str, ways: Sequence[Way], end: Outlet, how: LevelPlan) -> None:
        """`end` is what stands behind the level."""
        self.name = name
        self._level = name.partition(",")[0]
        self._ways = tuple(ways)
        self._end = end
        self._passes = how.not_taken == "pass"
        self._asks = any(way.route.when is not None for way in ways)
        self._lock = Lock()
        self._num_put = 0

    def _takers(self, record: Record, *, all_of_them: bool) -> list[Way]:
        """Returns who takes a record, the first or all; where there is none, the record has gone on."""
        with self._lock:
            self._num_put += 1
        if self._asks:
            record.load()
        if record.error is None:
            try:
                ways = self._ways_of(record, all_of_them=all_of_them)
            except NndeployError as err:
                record.fail(err.within("when"), self._level)
            else:
                if ways:
                    return ways
                record.load()  # nobody may do it any more, and the sinks want its fields, or the error of reading it
                if record.error is None and not self._passes:
                    record.fail(NotTakenError(f"no pipeline of {self._level} takes it"), self._level)
        self._end.put(record)
        return []

    def _ways_of(self, record: Record, *, all_of_them: bool) -> list[Way]:
        found = []
        for way in self._ways:
            if way.takes(record):
                found.append(way)
                if not all_of_them:
                    break
        return found

    def figures(self) -> QueueFigures:
        """Returns what the queue did so far; it holds nothing itself."""
        return QueueFigures(self.name, 0, 0, len(self._ways), self._num_put)


class CopyRoutes(_Routes):
    """Gives each record to every pipeline that takes it, as a branch of its own where there are several."""

    def put(self, record: Record) -> None:
        """Hands the record on."""
        ways = self._takers(record, all_of_them=True)
        if len(ways) == 1:
            ways[0].outlet.put(record)
        elif ways:
            record.load()
            for place, way in enumerate(ways):
                way.outlet.put(record.branch(place, len(ways)))


class Rejoining:
    """Stands behind the pipelines of `CopyRoutes`: joins branches, and lets records pass that were not branched."""

    def __init__(self, sync: SyncQueue, end: Outlet) -> None:
        self._sync = sync
        self._end = end

    def put(self, record: Record) -> None:
        """Hands the record on, or joins the branch."""
        (self._end if record.parent is None else self._sync).put(record)


class SwitchRoutes(_Routes):
    """Gives each record to the first pipeline that takes it."""

    def put(self, record: Record) -> None:
        """Hands the record on."""
        for way in self._takers(record, all_of_them=False):
            way.outlet.put(record)


class SharedQueue(_Routes):
    """Holds records until a pipeline that takes them has room, and gives each to one.

    With shares each pipeline gets its part of those that it takes, however busy it is.
    """

    def __init__(self, name: str, ways: Sequence[Way], end: Outlet, how: LevelPlan, capacity: int) -> None:
        """The queue never gets more than `capacity` records."""
        super().__init__(name, ways, end, how)
        self._capacity = capacity
        self._waiting: deque[tuple[Record, list[Way]]] = deque()
        self._max_depth = 0
        self._credit = dict.fromkeys(range(len(ways)), 0)
        self._is_handing_out = False

    def put(self, record: Record) -> None:
        """Takes a record, and hands out what can be."""
        ways = self._takers(record, all_of_them=True)
        if not ways:
            return
        with self._lock:
            self._waiting.append((record, [self._next_in_turn(ways)] if ways[0].route.share else ways))
            self._max_depth = max(self._max_depth, len(self._waiting))
            assert self._max_depth <= self._capacity
        self._hand_out()

    def leave(self, way: Way, record: Record) -> None:
        """Takes a record that a pipeline is through with."""
        with self._lock:
            way.num_inside -= 1
        self._end.put(record)
        self._hand_out()

    def _next_in_turn(self, ways: Sequence[Way]) -> Way:
        """Returns whose turn it is: each collects its share, who has most pays for all.

        Source: smooth weighted round robin, as nginx balances load.
        """
        places = [place for place, way in enumerate(self._ways) if way in ways]
        for place in places:
            self._credit[place] += self._ways[place].route.share
        turn = max(places, key=lambda place: (self._credit[place], -place))
        self._credit[turn] -= sum(self._ways[place].route.share for place in places)
        return self._ways[turn]

    def _hand_out(self) -> None:
        """Hands out records as long as there is room; one thread does it for all, so that none hands out within it."""
        with self._lock:
            if self._is_handing_out:
                return
            self._is_handing_out = True
        while True:
            with self._lock:
                found = self._next()
                if found is None:
                    self._is_handing_out = False
                    return
            way, record = found
            way.outlet.put(record)

    def _next(self) -> tuple[Way, Record] | None:
        for place, (record, ways) in enumerate(self._waiting):
            free = [way for way in ways if way.route.share or way.num_inside < way.room]
            if free:
                way = min(free, key=lambda way: (-way.route.priority, way.num_inside / way.room, way.num_taken))
                way.num_inside += 1
                way.num_taken += 1
                del self._waiting[place]
                return way, record
        return None

    def figures(self) -> QueueFigures:
        """Returns what the queue did so far."""
        return QueueFigures(self.name, len(self._waiting), self._max_depth, self._capacity, self._num_put)


@dataclass(frozen=True, slots=True, eq=False)
class Leaving:
    """Stands behind a pipeline that shares its queue; `queue` is set before anything runs."""

    way: Way
    queue: SharedQueue

    def put(self, record: Record) -> None:
        """Hands the record on."""
        self.queue.leave(self.way, record)
