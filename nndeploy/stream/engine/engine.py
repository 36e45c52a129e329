# SPDX-License-Identifier: Apache-2.0
"""Streams the items of a source through a plan into sinks: exactly one outcome for each item, in order.

The schedule's threads read the items, work on them and write the outcomes in order. Only so many records are on their
way at once, however slow one of them or the sink is, so memory stays constant and a slow sink slows the source.

An item that cannot be read or does not fit becomes an error record and the stream goes on; what would hit every item
alike (a damaged bundle, a full disk, a bug) aborts the stream and is raised here with its own traceback.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from nndeploy.pacing.stream.protocol import STREAM_NOT_PACED, StreamPacing
from nndeploy.runtime.freed_memory import keep_freed_memory
from nndeploy.runtime.latency import Latencies
from nndeploy.runtime.tuned_meanwhile import TuningFigures
from nndeploy.stream.description import StreamPlan, default_in_flight
from nndeploy.stream.engine.assembly import Assembly, Programs
from nndeploy.stream.engine.ends import Entrance, Exit
from nndeploy.stream.engine.loop import OnRound, no_round
from nndeploy.stream.engine.non_finite import NanPolicy
from nndeploy.stream.engine.queues import QueueFigures
from nndeploy.stream.engine.schedule import Schedule
from nndeploy.stream.engine.workers import Stage, StageFigures, Tracer
from nndeploy.stream.items import Item, Outcome
from nndeploy.stream.records import Record
from nndeploy.stream.sinks.sinks import Sink
from nndeploy.stream.sources.readers import SourceFigures
from nndeploy.stream.stopping import Stop
from nndeploy.target.target import num_cores

END_SECONDS = 0.3
"""How long an aborted stream waits for its threads; one that is inside a library ends when it comes back."""


CORES = "cores"
"""Stands among the stages for the cores that all of them share."""
MAX_LATENCIES = 1 << 17
"""Largest number of latencies that percentiles are taken of; a longer stream is sampled evenly."""


@dataclass(slots=True)
class Summary:
    """What a stream did. `seconds` is from the first item to the last outcome; `is_stopped`: before its end.

    `latencies` are those of calls where a bundle runs alone, of items where there is a pipeline; that of the first one,
    for which libraries still make memory and pages, stands apart: `first_ns`, None where nothing was computed.
    """

    num_items: int = 0
    num_failed: int = 0
    num_not_taken: int = 0
    num_non_finite: int = 0
    num_forgotten: int = 0
    """Sessions whose state was forgotten to keep to a limit."""
    seconds: float = 0.0
    first_ns: int | None = None
    latencies: Latencies = field(default_factory=lambda: Latencies(most=MAX_LATENCIES))
    is_stopped: bool = False
    stages: list[StageFigures] = field(default_factory=list)
    queues: list[QueueFigures] = field(default_factory=list)
    sources: list[SourceFigures] = field(default_factory=list)
    """What the sources did that are read by threads of their own."""

    @property
    def rate_hz(self) -> float:
        """Items a second, reading and writing included."""
        return self.num_items / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a stream goes: what becomes of NaN, whether an error ends it, whether outcomes keep the items' order.

    `first_index` is the index of the first item; those that follow count on from it. With `is_whole_when_stopped` a
    stop is how the stream ends, as of a camera: what was written until then is finished and not discarded.
    """

    nan: NanPolicy = "flag"
    stop_on_error: bool = False
    is_ordered: bool = True
    first_index: int = 0
    is_whole_when_stopped: bool = False


class Stream:
    """One run of a plan; `run` does it, the rest may be looked at from other threads meanwhile."""

    def __init__(
        self,
        plan: StreamPlan,
        programs: Programs,
        options: StreamOptions = StreamOptions(),
        stop: Stop | None = None,
        tracer: Tracer | None = None,
        pacing: StreamPacing = STREAM_NOT_PACED,
    ) -> None:
        """Builds queues and workers; nothing runs yet.

        Raises:
            UsageError: a runner does not fit its model.
        """
        self.summary = Summary()
        self._plan = plan
        self._options = options
        self._stop = stop or Stop()
        self._tracer = tracer
        self.pacing = pacing
        self.sources: Callable[[], list[SourceFigures]] = list  # what each did so far that a thread of its own reads
        self.on_round: OnRound = no_round  # sees each round of a loop, called by the thread that did it
        self.tuning: TuningFigures | None = None  # of its programs, where these are tuned meanwhile
        self._reading = Stage("source", 1, tracer)
        self._writing = Stage("sink", 1, tracer)
        self._schedule = Schedule(num_cores(), plan.in_flight or default_in_flight(plan))
        self._entrance: Entrance | None = None
        self._exit = Exit(self._schedule, options.first_index if options.is_ordered else None, pacing)
        self._schedule.add(self._exit)
        self._assembly = Assembly(
            plan, programs, self._schedule, self._exit, options.nan, tracer, pacing, self._seen_round
        )

    def _seen_round(self, record: Record, is_last: bool) -> None:
        self._schedule.moves()
        self.on_round(record, is_last)

    def queues(self) -> list[QueueFigures]:
        """Returns what the queues did so far, from the source to the sink."""
        return [*self._assembly.queues(), self._exit.figures()]

    def stages(self) -> list[StageFigures]:
        """Returns what the workers did so far, from the source to the sink."""
        return [self._reading.figures(), *self._assembly.stages(), self._writing.figures()]

    @property
    def num_forgotten(self) -> int:
        """How many sessions were forgotten so far to keep to a limit."""
        return self._assembly.num_forgotten

    def cores(self) -> StageFigures:
        """Returns for how long the stream's threads kept cores busy, and waited for one; no threads of libraries."""
        schedule = self._schedule
        return StageFigures(
            CORES, schedule.num_cores, self.summary.num_items, schedule.busy_ns, core_wait_ns=schedule.core_wait_ns()
        )

    def standstill_ns(self) -> int:
        """Returns for how long the stream has been waiting for the slowest of what it is at: a call, a read, a write.

        0 where it waits for nothing of its own: the source is not given anything, or a batch or a pace is not due.
        """
        now, now_at = time.perf_counter_ns(), self._schedule.situation()
        is_fed = not self._stop.is_waiting
        begins = [
            max(moved_ns, self._stop.waited_ns) if station is self._entrance else moved_ns
            for station, moved_ns in now_at.at_work
            if is_fed or station is not self._entrance
        ]
        if not begins and not now_at.has_deadline and (is_fed or now_at.num_on_way > 1):
            begins = [now_at.moved_ns]  # one of these is what the source waits to read
        return max(0, now - min(begins, default=now))

    def run(self, items: Iterable[Item], sink: Sink, on_outcome: Callable[[Outcome], None] | None = None) -> Summary:
        """Returns what was done; `on_outcome` sees each outcome after the sink took it.

        Both are called from the stream's threads, by one at a time. The sink is finished, or discarded where the
        stream failed, or was stopped and is not whole then.

        Raises:
            BundleError: a submodel is not what the manifest says.
            InputOutputError: an outcome could not be written.
        """
        keep_freed_memory()
        schedule, began_ns = self._schedule, time.perf_counter_ns()

        def write(record: Record) -> None:
            outcome = record.outcome(self._plan.fields, self._plan.may_lack, with_stage=self._plan.is_named)
            self._write(outcome, sink)
            self.summary.seconds = (time.perf_counter_ns() - began_ns) / 1e9
            if on_outcome is not None:
                on_outcome(outcome)
            if outcome.is_failed and self._options.stop_on_error:
                schedule.stop()

        self._exit.write = write
        reading = self._reading.clocks()[0]
        self._entrance = Entrance(items, schedule, self._assembly.entry, self._stop, reading, self.pacing)
        schedule.add(self._entrance)
        try:
            schedule.run()
            self._end(sink)
        except BaseException:
            schedule.abort()
            if not schedule.join(END_SECONDS):
                self._exit.close(END_SECONDS / 2)
            sink.discard()
            raise
        finally:
            self._assembly.close()
        return self.summary

    def _end(self, sink: Sink) -> None:
        self.summary.is_stopped = self._stop.is_requested
        self.summary.stages = [*self.stages(), self.cores()]
        self.summary.queues = self.queues()
        self.summary.sources = self.sources()
        self.summary.num_forgotten = self.num_forgotten
        if self._stop.is_requested and not self._options.is_whole_when_stopped:
            sink.discard()
        else:
            sink.finish()
        self._schedule.join(END_SECONDS)
        if self._tracer is not None:
            self._tracer.finish()

    def _write(self, outcome: Outcome, sink: Sink) -> None:
        began_ns = time.perf_counter_ns()
        sink.write(outcome)
        summary = self.summary
        summary.num_items += 1
        summary.num_non_finite += bool(outcome.non_finite)
        if outcome.error is not None:
            summary.num_failed += outcome.is_failed
            summary.num_not_taken += not outcome.is_taken
        elif summary.first_ns is None:
            summary.first_ns = self._took_ns(outcome)
        else:
            summary.latencies.add(self._took_ns(outcome))
        self._writing.clocks()[0].add(began_ns, (outcome.index,))

    def _took_ns(self, outcome: Outcome) -> int:
        return outcome.item_ns if self._plan.is_named else outcome.run_ns


def after(items: Iterable[Item], count: int) -> Iterable[Item]:
    """Returns the items behind the first `count`, none of which is loaded."""
    return (item for item in items if item.index >= count) if count else items
