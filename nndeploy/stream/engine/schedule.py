# SPDX-License-Identifier: Apache-2.0
"""Who works on what next: threads that take work wherever it is, and stay with a record as long as they can.

A thread that has done one piece of work takes the one that is nearest to the sink, so it goes on with its own record
into the next stage where that has a free worker: the record stays in its core's caches, and no thread must be woken. A
stage's workers say how many may be in it at once, not which threads. Work far from the sink, at last the source, is
taken by whoever finds nothing else.

No more threads compute than there are cores: more would only take the cores and Python's lock from each other. What a
thread does counts by the share of time for which its stage kept a core busy so far, so stages that wait for a device,
a disk or a clock overlap as often as their workers allow. And nobody is woken while work is short: who does it is
back sooner than another thread has come.

Where a single stage limits, and not the cores, its work comes before all other: it must never wait.

Where other programs have the cores, a thread keeps to its stage instead: who is woken for work must first get a core,
and the system gives these by thread. So each stage has one in the queue for a core all the time.

Laws: only so many records may be on their way, and no queue is ever full, so nobody waits for anybody downstream and
nothing can deadlock. The first failure of any thread aborts all.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Condition, Lock, Thread, get_ident, get_native_id
from typing import Protocol, TypeAlias

from nndeploy.stream.engine.habits import Habits
from nndeploy.stream.records import Record
from nndeploy.stream.stopping import SIGNAL_SECONDS
from nndeploy.target.run_delay import new_run_delay_ns, run_delay_ns, thread_run_delay_ns

ROOM = 0.5
"""Part of a core by which what runs may exceed the cores: shares are estimates."""

HOLD_NS = 5_000_000
"""If one that should have been short is not over by then, another thread takes what waits."""

LIMITING = 0.9
"""Share of the cores' time for all work of a record: a stage that takes longer, over its workers, limits."""

CROWDED = 0.5
"""So many threads wait for a core on average where others have these."""
FULL = 0.9
"""Share of the cores' time: where this process has it, its threads wait for each other."""
LOOK_NS = 100_000_000
"""How often it is looked for that at most; it takes 0.2 ms."""

LOOK_EVERY = 32
"""Tasks, after which it is decided anew which stage limits."""

Worker: TypeAlias = Callable[[list[Record]], None]
"""Works on records that were waiting and hands on what becomes of them; is called by one thread at a time."""


class AbortedError(Exception):
    """The stream was aborted; the thread that gets this ends."""


class Station(Protocol):
    """A place where work waits for workers. Everything here is used under the schedule's lock."""

    idle: list[Worker]
    """The workers that have nothing to do."""

    @property
    def habits(self) -> Habits:
        """What its tasks usually take."""

    def is_ready(self) -> bool:
        """Returns whether there is work that should be done now."""

    def deadline_ns(self) -> int | None:
        """Returns until when work waits for more of its kind, None where there is none."""

    def take(self) -> list[Record]:
        """Returns the records of the next piece of work."""


@dataclass(slots=True)
class _Task:
    """A worker of a station with its work, which a thread does; once done, how long that took.

    `moved_ns` is when it began, or was last seen to go on.
    """

    station: Station
    worker: Worker
    records: list[Record]
    share: float
    began_ns: int
    moved_ns: int
    thread: int
    busy_ns: int = 0
    wall_ns: int = 0
    began_cpu_ns: int = 0
    counted_cpu_ns: int = 0

    def do(self) -> None:
        self.began_ns, self.began_cpu_ns = time.perf_counter_ns(), time.thread_time_ns()
        self.moved_ns, self.counted_cpu_ns = self.began_ns, self.began_cpu_ns
        self.worker(self.records)
        self.busy_ns = time.thread_time_ns() - self.began_cpu_ns
        self.wall_ns = time.perf_counter_ns() - self.began_ns

    def counted_until(self, cpu_ns: int) -> int:
        """Returns the processor time of its thread that was not counted yet, until `cpu_ns` on the thread's clock."""
        before, self.counted_cpu_ns = self.counted_cpu_ns, cpu_ns
        return cpu_ns - before


@dataclass(slots=True)
class _Habitat:
    """What a thread used last, which is in its core's caches: the worker of each station, by its identity.

    `home` is the station at which it last worked, but for the two ends, where there is little to do.
    """

    workers: dict[int, Worker] = field(default_factory=dict)
    home: Station | None = None

    def worker_of(self, station: Station, *, is_end: bool) -> Worker:
        """Returns the worker that the thread takes of those that are idle."""
        if not is_end:
            self.home = station
        if self.workers.get(id(station)) not in station.idle:
            self.workers[id(station)] = station.idle[-1]
        return self.workers[id(station)]


@dataclass(frozen=True, slots=True)
class Situation:
    """What a schedule is at: the stations that work, each with when that began or last went on.

    `num_on_way` records are on their way; `moved_ns` is when the last work was over; `has_deadline` says that what
    waits is going to be taken at a set time.
    """

    at_work: tuple[tuple[Station, int], ...]
    num_on_way: int
    moved_ns: int
    has_deadline: bool


class Schedule:
    """Hands out the work of stations to threads, and counts the records that are on their way.

    `lock` guards what the stations hold.
    """

    def __init__(self, num_cores: int, in_flight: int) -> None:
        """Makes a schedule for records of which `in_flight` may be on their way at once."""
        assert num_cores > 0
        assert in_flight > 0
        self.lock = Lock()
        self.in_flight = in_flight
        self.is_aborted = False
        self.busy_ns = 0
        self.num_cores = num_cores
        self._failure: BaseException | None = None
        self._stations: list[Station] = []  # in the order in which work is looked for
        self._place: dict[int, int] = {}  # of each station before the sink
        self._num_tasks = 0
        self._threads: list[Thread] = []
        self._core_wait_ns: dict[int, int] = {}  # of threads that have ended, by native id
        self._most_threads = self._num_asleep = 0
        self._working: dict[int, _Task] = {}  # by identity
        self._moved_ns = time.perf_counter_ns()
        self._load = 0.0
        self._wakes_ns: int | None = None  # when a thread that sleeps wakes by itself
        self._held_until_ns = 0  # who sleeps leaves work alone
        self._work = Condition(self.lock)
        self._over = Condition(self.lock)
        self._is_crowded = False
        self._looked_ns, self._waited_ns, self._used_ns = self._moved_ns, 0, time.process_time_ns()
        self._num_in = self._num_out = 0
        self._is_ended = self.is_over = False

    def add(self, station: Station) -> None:
        """Adds a station that stands before all those that were added so far."""
        self._place[id(station)] = len(self._stations)
        self._stations.append(station)
        self._most_threads += len(station.idle)

    # Records come in and go out

    def has_room(self) -> bool:
        """Returns whether one more record may be let in; under the lock."""
        return not self._is_ended and self._num_in - self._num_out < self.in_flight

    def let_in(self) -> None:
        """Counts one record in; under the lock."""
        self._num_in += 1

    def end(self) -> None:
        """Says that there is no record for the place that was let in last, and that no more will come."""
        with self.lock:
            self._num_in -= 1
            self._is_ended = True
            if self._num_in == self._num_out:
                self._stop()

    def let_out(self, *, is_held: bool) -> None:
        """Says that a record was written, so that another one may be let in.

        Who sleeps is called once there is room for several, later if that `is_held`.
        """
        with self.lock:
            self._num_out += 1
            if self._is_ended and self._num_in == self._num_out:
                self._stop()
            elif 2 * (self._num_in - self._num_out) <= self.in_flight:
                self._call_another(is_held=is_held)

    def stop(self) -> None:
        """Ends the stream as if the source had; what is still on its way is dropped."""
        with self.lock:
            self._stop()

    def _stop(self) -> None:
        self.is_over = True
        self._work.notify_all()
        self._over.notify_all()

    def situation(self) -> "Situation":
        """Returns who works and what waits; may be asked by any thread."""
        with self.lock:
            at_work = tuple((task.station, task.moved_ns) for task in self._working.values())
            return Situation(at_work, self._num_in - self._num_out, self._moved_ns, self._wakes_ns is not None)

    def moves(self) -> None:
        """Says that the work of this thread goes on, which takes long because it has many rounds."""
        now, cpu_ns, thread = time.perf_counter_ns(), time.thread_time_ns(), get_ident()
        with self.lock:
            for task in self._working.values():
                if task.thread == thread:
                    self.busy_ns += task.counted_until(cpu_ns)
                    task.moved_ns = now

    # Threads

    def run(self) -> None:
        """Starts the first thread, which starts others where there is work for them; waits for the end.

        Raises:
            BaseException: what a worker raised first.
        """
        with self.lock:
            self._add_thread()
            while not self.is_over and not self.is_aborted:
                self._over.wait(SIGNAL_SECONDS)
            if self._failure is not None:
                raise self._failure

    def abort(self) -> None:
        """Wakes everybody; each thread ends as soon as it is back from what it does."""
        with self.lock:
            self.is_aborted = True
            self._stop()

    def join(self, seconds: float) -> bool:
        """Waits at most `seconds` for all threads; returns whether all have ended."""
        deadline = time.monotonic() + seconds
        threads = tuple(self._threads)
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in threads)

    def core_wait_ns(self) -> int | None:
        """Returns for how long the threads have waited for cores so far, None where the system does not count that."""
        if thread_run_delay_ns() is None:
            return None
        alive = (thread.native_id for thread in tuple(self._threads) if thread.native_id not in self._core_wait_ns)
        still_there = [run_delay_ns(number) or 0 for number in alive if number is not None]
        return sum(still_there) + sum(tuple(self._core_wait_ns.values()))

    def _add_thread(self) -> None:
        name = f"nndeploy stream {len(self._threads) + 1}"
        thread = Thread(target=self._guarded, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system gives no more: those that there are do the work
            if not self._threads:
                raise
            self._most_threads = len(self._threads)
        else:
            self._threads.append(thread)

    def _guarded(self) -> None:
        try:
            self._work_until_over()
        finally:
            self._core_wait_ns[get_native_id()] = thread_run_delay_ns() or 0

    def _work_until_over(self) -> None:
        try:
            own = _Habitat()
            task = self._next(None, own)
            while task is not None:
                task.do()
                task = self._next(task, own)
        except AbortedError:
            return
        except BaseException as err:  # the thread that runs the schedule raises it
            with self.lock:
                self._failure = self._failure or err
            self.abort()

    def _next(self, done: _Task | None, own: _Habitat) -> _Task | None:
        """Returns the next task for the thread that has `done` one; waits for it. None at the end."""
        is_called = done is None
        with self.lock:
            if done is not None:
                self._put_back(done)
            while not self.is_over and not self.is_aborted:
                station, deadline_ns = self._find(own.home if self._is_crowded else None)
                if is_called and station is not None and self._held_until_ns > time.perf_counter_ns():
                    station, deadline_ns = None, self._held_until_ns
                if station is None:
                    self._sleep(deadline_ns)
                    is_called = True
                    continue
                self._load += station.habits.share
                worker = own.worker_of(station, is_end=self._place[id(station)] in (0, len(self._stations) - 1))
                station.idle.remove(worker)
                now = time.perf_counter_ns()
                task = _Task(station, worker, station.take(), station.habits.share, now, now, get_ident())
                self._working[id(task)] = task
                self._call_another(is_held=station.habits.is_short)
                return task
        return None

    def _put_back(self, done: _Task) -> None:
        done.station.idle.append(done.worker)
        done.station.habits.learn(done.busy_ns, done.wall_ns)
        self.busy_ns += done.counted_until(done.began_cpu_ns + done.busy_ns)
        self._moved_ns = done.began_ns + done.wall_ns
        del self._working[id(done)]
        self._load = self._load - done.share if self._working else 0.0
        self._num_tasks += 1
        if self._num_tasks % LOOK_EVERY == 0:
            self._put_limit_first()
        if self._moved_ns > self._looked_ns + LOOK_NS:
            self._look_around()

    def _look_around(self) -> None:
        """Finds out whether other programs have the cores, since the last time."""
        passed_ns, waited_ns = self._moved_ns - self._looked_ns, self.core_wait_ns() or 0
        used_ns = time.process_time_ns()
        waits = waited_ns - self._waited_ns > CROWDED * passed_ns
        self._is_crowded = waits and used_ns - self._used_ns < FULL * self.num_cores * passed_ns
        self._looked_ns, self._waited_ns, self._used_ns = self._moved_ns, waited_ns, used_ns

    def _put_limit_first(self) -> None:
        """Sorts the stations from the sink to the source; one that limits, and not the cores, comes first."""
        stations = self._stations
        stations.sort(key=lambda station: self._place[id(station)])
        limit = max(range(len(stations)), key=lambda i: stations[i].habits.stage_ns())
        cores_ns = sum(station.habits.sum_busy_ns for station in stations) / self.num_cores
        if stations[limit].habits.stage_ns() > LIMITING * cores_ns:
            stations.insert(0, stations.pop(limit))
        for station in stations:
            station.habits.fade()

    def _find(self, home: Station | None = None) -> tuple[Station | None, int | None]:
        """Returns the ready station that comes first, `home` before all others, else when one will be ready by itself.

        Work that waits for more of its kind, for no set time, is done where there is nothing else to do.
        """
        free = self.num_cores + ROOM - self._load if self._working else float("inf")
        if home is not None and home.idle and home.habits.share <= free and home.is_ready():
            return home, None
        waiting = []
        for station in self._stations:
            if station.idle and station.habits.share <= free:
                if station.is_ready():
                    return station, None
                waiting.append(station)
        first_ns = None
        for station in waiting:
            deadline_ns = station.deadline_ns()
            if deadline_ns is None:
                continue
            if deadline_ns <= time.perf_counter_ns() or (self._is_ended and not self._working):
                return station, None
            first_ns = deadline_ns if first_ns is None else min(first_ns, deadline_ns)
        return None, first_ns

    def _call_another(self, *, is_held: bool = False) -> None:
        """Wakes or starts one more thread where there is work for it, now or later; later too if that `is_held`."""
        if self.is_aborted or (not self._num_asleep and len(self._threads) >= self._most_threads):
            return
        self._held_until_ns = time.perf_counter_ns() + HOLD_NS if is_held else 0
        if is_held and self._wakes_ns is not None:
            return
        station, first_ns = self._find()
        if station is None and (first_ns is None or (self._wakes_ns is not None and self._wakes_ns <= first_ns)):
            return
        if self._num_asleep:
            self._work.notify()
        else:
            self._add_thread()

    def _sleep(self, deadline_ns: int | None) -> None:
        """Waits until there may be work."""
        is_stuck = self._is_ended and not self._working and deadline_ns is None
        assert not is_stuck, "records are missing"
        self._num_asleep += 1
        if deadline_ns is None:
            self._work.wait()
        else:
            self._wakes_ns = deadline_ns if self._wakes_ns is None else min(self._wakes_ns, deadline_ns)
            self._work.wait(max(0.0, (deadline_ns - time.perf_counter_ns()) / 1e9))
            self._wakes_ns = None
        self._num_asleep -= 1
        new_run_delay_ns()  # what it waited to be woken is of no stage
