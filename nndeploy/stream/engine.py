# SPDX-License-Identifier: Apache-2.0
"""Streams the items of a source through a plan into sinks: exactly one outcome for each item, in order.

A reader thread takes the items; the assembly's threads work on them; the thread that calls `stream` puts outcomes into
order and writes them. Only so many records are on their way at once, however slow one of them or the sink is, so memory
stays constant and a slow sink slows the source.

An item that cannot be read or does not fit becomes an error record and the stream goes on; what would hit every item
alike (a damaged bundle, a full disk, a bug) aborts the stream and is raised here with its own traceback.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from nndeploy.runtime.latency import Latencies
from nndeploy.stream.assembly import Assembly, Programs
from nndeploy.stream.description import StreamPlan
from nndeploy.stream.items import Item, Outcome
from nndeploy.stream.non_finite import NanPolicy
from nndeploy.stream.queues import AbortedError
from nndeploy.stream.records import Record
from nndeploy.stream.sinks import Sink
from nndeploy.stream.stopping import Stop
from nndeploy.stream.workers import Stage, StageFigures, Tracer

END_SECONDS = 0.5
"""How long an aborted stream waits for its threads; one that is inside a library ends when it comes back."""


MAX_LATENCIES = 1 << 17
"""Of which percentiles are taken; a longer stream is sampled evenly."""


@dataclass(slots=True)
class Summary:
    """What a stream did. `seconds` is from the first item to the last outcome; `is_stopped`: before its end."""

    num_items: int = 0
    num_failed: int = 0
    num_non_finite: int = 0
    seconds: float = 0.0
    latencies: Latencies = field(default_factory=lambda: Latencies(most=MAX_LATENCIES))
    is_stopped: bool = False
    stages: list[StageFigures] = field(default_factory=list)

    @property
    def rate_hz(self) -> float:
        """Items a second, reading and writing included."""
        return self.num_items / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a stream goes: what becomes of NaN, whether an error ends it, whether outcomes keep the items' order.

    `first_index` is the index of the first item; those that follow count on from it.
    """

    nan: NanPolicy = "flag"
    stop_on_error: bool = False
    is_ordered: bool = True
    first_index: int = 0


class Stream:
    """One run of a plan; `run` does it, the rest may be looked at from other threads meanwhile."""

    def __init__(
        self,
        plan: StreamPlan,
        programs: Programs,
        options: StreamOptions = StreamOptions(),
        stop: Stop | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        """Builds queues and threads; nothing runs yet.

        Raises:
            UsageError: a runner does not fit its model.
        """
        self.summary = Summary()
        self._plan = plan
        self._options = options
        self._stop = stop or Stop()
        self._tracer = tracer
        self._assembly = Assembly(plan, programs, options.nan, tracer)
        self._reading = Stage("source", 1, tracer)
        self._writing = Stage("sink", 1, tracer)
        self.queues = self._assembly.queues

    def stages(self) -> list[StageFigures]:
        """Returns what the workers did so far, from the source to the sink."""
        return [self._reading.figures(), *self._assembly.stages(), self._writing.figures()]

    def run(self, items: Iterable[Item], sink: Sink, on_outcome: Callable[[Outcome], None] | None = None) -> Summary:
        """Returns what was done; `on_outcome` sees each outcome after the sink took it.

        The sink is finished, or discarded where the stream was stopped or failed.

        Raises:
            BundleError: a submodel is not what the manifest says.
            InputOutputError: an outcome could not be written.
        """
        assembly, crew = self._assembly, self._assembly.crew
        crew.add("source", lambda: self._read(items))
        began_ns = time.perf_counter_ns()
        try:
            crew.start()
            for outcome in self._outcomes():
                self._write(outcome, sink)
                self.summary.seconds = (time.perf_counter_ns() - began_ns) / 1e9
                if on_outcome is not None:
                    on_outcome(outcome)
                if outcome.error is not None and self._options.stop_on_error:
                    assembly.abort()
                    break
            self._end(sink)
        except BaseException as err:
            assembly.abort()
            sink.discard()
            crew.join(END_SECONDS)
            if isinstance(err, AbortedError) and crew.failure is not None:
                raise crew.failure from None
            raise
        return self.summary

    def _end(self, sink: Sink) -> None:
        self.summary.is_stopped = self._stop.is_requested
        self.summary.stages = self.stages()
        if self._stop.is_requested:
            sink.discard()
        else:
            sink.finish()
        self._assembly.crew.join(END_SECONDS)
        if self._tracer is not None:
            self._tracer.finish()

    def _read(self, items: Iterable[Item]) -> None:
        """Puts records in at the front until the source ends or a stop is asked for."""
        assembly, clock, stop = self._assembly, self._reading.clocks()[0], self._stop
        source = iter(items)
        while not stop.is_requested:
            assembly.tokens.take()
            began_ns = time.perf_counter_ns()
            item = next(source, None)
            if item is None or stop.is_requested:
                break
            record = Record(item.index, item.origin, item.stem, item)
            clock.add(began_ns, (item.index,))
            assembly.entry.put(record)
        assembly.entry.close()

    def _outcomes(self) -> Iterator[Outcome]:
        """Yields outcomes, in order if that is wanted; a new record may come in once one was written."""
        done, tokens, fields = self._assembly.done, self._assembly.tokens, self._plan.fields
        waiting: dict[int, Record] = {}  # never more than have tokens
        next_index = self._options.first_index
        while taken := done.get(self._assembly.in_flight):
            for record in taken:
                if not self._options.is_ordered:
                    next_index = record.index
                waiting[record.index] = record
                while (ready := waiting.pop(next_index, None)) is not None:
                    yield ready.outcome(fields, with_stage=self._plan.is_named)
                    tokens.give_back()
                    next_index += 1
        assert not waiting, "records are missing"

    def _write(self, outcome: Outcome, sink: Sink) -> None:
        began_ns = time.perf_counter_ns()
        sink.write(outcome)
        summary = self.summary
        summary.num_items += 1
        summary.num_non_finite += bool(outcome.non_finite)
        if outcome.error is not None:
            summary.num_failed += 1
        else:
            summary.latencies.add(outcome.run_ns)
        self._writing.clocks()[0].add(began_ns, (outcome.index,))


def after(items: Iterable[Item], count: int) -> Iterable[Item]:
    """Returns the items behind the first `count`, none of which is loaded."""
    return (item for item in items if item.index >= count) if count else items
