# SPDX-License-Identifier: Apache-2.0
"""Streams whose work is known exactly: stages that wait or compute for a set time, and stages that do nothing.

Each function is an engine of `interleaved`. With known work the ideal is known too; with none, what is left is the cost
of the stream itself: its records, its queues, its threads. `queue_alone` measures a queue with nothing around it.
"""

import hashlib
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from interleaved import Array, Ready

from nndeploy.bundle.manifest import Manifest, NamedType
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import load_bundle
from nndeploy.stream.description import PipelinePlan, RunnerPlan, StagePlan, StreamPlan
from nndeploy.stream.engine.engine import Stream
from nndeploy.stream.engine.queues import BasicQueue, CopyQueue, SyncQueue
from nndeploy.stream.engine.schedule import Schedule
from nndeploy.stream.items import Item, Outcome
from nndeploy.stream.records import Record
from nndeploy.values.types import TensorType

Inputs = Mapping[str, Array]
HASHED = bytes(1 << 20)
X = np.zeros((1, 4), np.float32)


@dataclass(frozen=True)
class Work:
    """A step: waits, or computes outside of Python's lock, or does neither; hands its field on."""

    takes: tuple[str, ...]
    gives: tuple[str, ...]
    seconds: float = 0.0
    rounds: int = 0

    def __call__(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the one field under its new name."""
        _work(self.seconds, self.rounds)
        return {self.gives[0]: fields[self.takes[0]]}


@dataclass
class Program:
    """A program with an input x and an output y that works as long as it is told."""

    seconds: float = 0.0
    rounds: int = 0
    manifest: Manifest = field(init=False)

    def __post_init__(self) -> None:
        named = [NamedType(name, TensorType("float32", (1, 4))) for name in "xy"]
        self.manifest = Manifest("m", "0" * 64, (named[0],), (named[1],), (), {})

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the input as the output."""
        _work(self.seconds, self.rounds)
        return {"y": inputs["x"]}


def _work(seconds: float, rounds: int) -> None:
    if seconds:
        time.sleep(seconds)
    for _ in range(rounds):
        hashlib.sha256(HASHED)


class Counts:
    """A sink that counts."""

    num_taken = 0

    def write(self, outcome: Outcome) -> None:
        """Counts one; an error ends the command."""
        if outcome.error is not None:
            raise outcome.error
        self.num_taken += 1

    def finish(self) -> None:
        """Does nothing."""

    def discard(self) -> None:
        """Does nothing."""


def _items(count: int) -> Iterator[Item]:
    for index in range(count):
        yield Item(index, "made up", "made-up", _x)


def _x() -> dict[str, Any]:
    return {"x": X}


def run_plan(plan: StreamPlan, programs: Mapping[str, Sequence[Any]], count: int) -> None:
    """Streams `count` records."""
    sink = Counts()
    Stream(plan, programs).run(_items(count), sink)
    assert sink.num_taken == count


def _three_stages(works: Sequence[tuple[float, int]], workers: int) -> tuple[StreamPlan, dict[str, list[Any]]]:
    """Returns loader, runner and post-processor, `workers` of each, with (seconds, rounds) of each."""
    load, run, post = works
    plan = PipelinePlan(
        "p",
        (StagePlan((Work(("x",), ("x",), *load),), workers),),
        RunnerPlan({"x": "x"}, {"y": "y"}, devices=("cpu",) * workers),
        (StagePlan((Work(("y",), ("y",), *post),), workers),),
    )
    return StreamPlan(((plan,),), ("y",)), {"p": [Program(*run) for _ in range(workers)]}


def known_whole(inputs: Inputs, works: list[list[Any]], workers: int, count: int) -> Ready:
    """Three stages of known work, streamed."""
    plan, programs = _three_stages([tuple(work) for work in works], workers)
    return _ready(lambda: run_plan(plan, programs, count))


def known_alone(inputs: Inputs, seconds: float, rounds: int, count: int) -> Ready:
    """One of those stages alone, in one thread."""

    def call() -> None:
        for _ in range(count):
            _work(seconds, rounds)

    return _ready(call)


def _ready(call: Callable[[], None]) -> Ready:
    return Ready(call, lambda _: [np.zeros(1)])


# Nothing to do


def empty_stream(inputs: Inputs, shape: str, count: int, bundle: str = "") -> Ready:
    """Records through stages that do nothing; `shape` says which."""
    plan, programs = _SHAPES[shape]()
    if bundle:
        programs = {"p": [load_bundle(bundle, LoadOptions(threads=1, device="cpu", cache_dir=""))]}
    return _ready(lambda: run_plan(plan, programs, count))


def _plain(workers: int = 1) -> tuple[StreamPlan, dict[str, list[Any]]]:
    return _three_stages([(0.0, 0)] * 3, workers)


def _different() -> tuple[StreamPlan, dict[str, list[Any]]]:
    """Two different loaders and two different post-processors: two copy queues and two sync queues."""
    loaders = (StagePlan((Work(("x",), ("a",)),)), StagePlan((Work(("x",), ("b",)),)))
    posts = (StagePlan((Work(("y",), ("c",)),)), StagePlan((Work(("y",), ("d",)),)))
    plan = PipelinePlan("p", loaders, RunnerPlan({"x": "a"}, {"y": "y"}), posts)
    return StreamPlan(((plan,),), ("c", "d")), {"p": [Program()]}


def _levels() -> tuple[StreamPlan, dict[str, list[Any]]]:
    first = PipelinePlan("p", (StagePlan((Work(("x",), ("x",)),)),), RunnerPlan({"x": "x"}, {"y": "y"}))
    second = PipelinePlan("q", (), RunnerPlan({"x": "y"}, {"y": "z"}), (StagePlan((Work(("z",), ("z",)),)),))
    return StreamPlan(((first,), (second,)), ("z",)), {"p": [Program()], "q": [Program()]}


_SHAPES: dict[str, Callable[[], tuple[StreamPlan, dict[str, list[Any]]]]] = {
    "loader, runner, post": _plain,
    "two of each": lambda: _plain(2),
    "two different loaders and posts": _different,
    "two levels": _levels,
}
SHAPES = tuple(_SHAPES)


def same_calls(inputs: Inputs, count: int) -> Ready:
    """What every record costs without queues and threads: the same calls in one thread."""
    from nndeploy.runtime.batching import Proof
    from nndeploy.stream.engine.runner import Runner
    from nndeploy.stream.engine.workers import Stage, do_steps

    plan, programs = _plain()
    ((pipeline,),) = plan.levels
    assert pipeline.runner is not None
    runner = Runner(programs["p"][0], pipeline.runner, "flag", "p", Proof())
    clock = Stage("p", 1).clocks()[0]

    def load(record: Record) -> None:
        do_steps(record, pipeline.loaders[0].steps, "p")
        runner.prepare(record)

    def run(record: Record) -> None:
        runner.run([record])

    def post(record: Record) -> None:
        do_steps(record, pipeline.posts[0].steps, "p")

    def call() -> None:
        for item in _items(count):
            record = Record(item.index, item.origin, item.stem, item)
            for work in (load, run, post):
                began = time.perf_counter_ns()
                record.load()
                work(record)
                clock.add(began, (record.index,))
            record.outcome(plan.fields, with_stage=True)

    return _ready(call)


# Queues with nothing around them


def queue_alone(inputs: Inputs, kind: str, count: int) -> Ready:
    """One queue: `count` records through it."""
    return _ready(lambda: _QUEUES[kind](count))


def _record(index: int) -> Record:
    return Record(index, "", "", None, {"x": X})


class _Nowhere:
    def put(self, record: Record) -> None:
        pass


def _basic(count: int) -> None:
    queue = BasicQueue("q", Schedule(1, 8), [lambda records: None], 8)
    record = _record(0)
    for _ in range(count):
        queue.put(record)
        queue.take()


def _copied(count: int) -> None:
    queue = CopyQueue("c", [_Nowhere(), _Nowhere()])
    for index in range(count):
        queue.put(_record(index))


def _copied_and_joined(count: int) -> None:
    joined = SyncQueue("s", _Nowhere(), 8)
    queue = CopyQueue("c", [joined, joined])
    for index in range(count):
        queue.put(_record(index))


_QUEUES: dict[str, Callable[[int], None]] = {
    "basic": _basic,
    "copy to two": _copied,
    "copy to two, sync": _copied_and_joined,
}
QUEUES = tuple(_QUEUES)


# Memory


def resident_bytes() -> int:
    """Returns the memory of this process that is in RAM."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def memory(inputs: Inputs, count: int) -> Ready:
    """Streams `count` records of 300 KB each, once; the result is the memory after each tenth of them."""
    plan, programs = _plain(2)
    sizes: list[float] = []

    def fresh() -> dict[str, Any]:
        return {"x": X, "weight": np.ones(75_000, np.float32)}

    def seen(outcome: Outcome) -> None:
        if (outcome.index + 1) % (count // 10) == 0:
            sizes.append(float(resident_bytes()))

    items = (Item(index, "made up", "made-up", fresh) for index in range(count))
    Stream(plan, programs).run(items, Counts(), seen)
    return Ready(lambda: sizes, lambda found: [np.array(found)])
