# SPDX-License-Identifier: Apache-2.0
"""nndeploy's own streams as engines of a race: pipelines, their stages alone, and streams whose work is known exactly.

Stages of known work wait or compute for a set time, so the ideal is known too; with none, what is left is the cost of
the stream itself: its records, its queues, its threads.
"""

import hashlib
import json
import multiprocessing
import queue
import resource
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from interleaved import Array, Inputs, Ready
from stream_rivals import QUEUE_ROOM, Fields, Level, arrays_of, pipeline_of, read

from nndeploy.bundle.manifest import Manifest, NamedType
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import Program, load_bundle
from nndeploy.runtime.sample_inputs import sample_inputs
from nndeploy.stream.description import PipelinePlan, RunnerPlan, StagePlan, StreamPlan
from nndeploy.stream.engine.engine import Stream
from nndeploy.stream.items import Item, Outcome
from nndeploy.stream.pipeline.pipeline_file import plan_of_file
from nndeploy.stream.run.loaded import load_alone
from nndeploy.stream.run.options import RunOptions
from nndeploy.values.types import TensorType

HASHED = bytes(1 << 20)
X = np.zeros((1, 4), np.float32)


@dataclass
class Kept:
    """A sink that keeps the fields of outcomes, or only counts them; an error ends the command."""

    keeps: bool = True
    records: list[Fields] = field(default_factory=list)
    num_taken: int = 0

    def write(self, outcome: Outcome) -> None:
        if outcome.error is not None:
            raise outcome.error
        self.num_taken += 1
        if self.keeps:
            self.records.append(dict(outcome.outputs or {}))

    def finish(self) -> None:
        """Does nothing."""

    discard = finish


# Pipelines


def _opened(
    pipeline: str, models: Mapping[str, str], threads: int, runners: int = 1, loaders: int = 1
) -> tuple[StreamPlan, dict[str, list[Program]]]:
    """Returns the plan of a pipeline file with these numbers of workers, and its programs."""
    file = pipeline_of(pipeline)
    levels = tuple(
        tuple(_sized(plan, runners, loaders if number == 0 else 1) for plan in level)
        for number, level in enumerate(file.levels)
    )
    options = LoadOptions(threads=threads, device="cpu", cache_dir="")
    programs = {
        plan.name: [load_bundle(models[plan.name], options) for _ in range(runners)]
        for level in levels
        for plan in level
    }
    manifests = {name: made[0].manifest for name, made in programs.items()}
    return plan_of_file(replace(file, levels=levels), manifests, {"": ("data",)}), programs


def _sized(plan: PipelinePlan, runners: int, loaders: int) -> PipelinePlan:
    stages = tuple(replace(stage, workers=loaders) for stage in plan.loaders)
    return replace(plan, loaders=stages, runner=replace(plan.runner, devices=("cpu",) * runners))


def stream(
    inputs: Inputs, pipeline: str, models: Mapping[str, str], files: list[str], threads: int, runners: int, loaders: int
) -> Ready:
    """nndeploy's engine: each model has `runners` with `threads` each."""
    plan, programs = _opened(pipeline, models, threads, runners, loaders)

    def call() -> list[Fields]:
        sink = Kept()
        items = (Item(index, path, Path(path).stem, partial(read, path)) for index, path in enumerate(files))
        Stream(plan, programs).run(items, sink)
        return sink.records

    return Ready(call, arrays_of)


def stage_alone(
    inputs: Inputs, pipeline: str, models: Mapping[str, str], files: list[str], threads: int, level: int, stage: str
) -> Ready:
    """One stage ("loader", "runner" or "post") of a level in one thread, on what comes to it in the stream.

    The note holds the seconds of CPU of one pass, as JSON.
    """
    plan, programs = _opened(pipeline, models, threads)
    levels = [(Level(one), programs[one.name][0]) for (one,) in plan.levels]
    works = [work for path in files for work in _works(levels, path, level, stage)]

    def call() -> None:
        for work in works:
            work()

    call()
    began = time.process_time()
    for _ in range(3):
        call()
    return _ready(call, json.dumps({"cpu": (time.process_time() - began) / 3}))


def _works(
    levels: Sequence[tuple[Level, Program]], path: str, wanted: int, stage: str
) -> Iterator[Callable[[], Any]]:  # fmt: skip
    """Yields the calls of a stage for one file, with the values that it gets in the stream; reading is a loader's."""
    if wanted == 0 and stage == "loader":
        yield lambda: levels[0][0].before(read(path))
        return
    fields = read(path)
    for level, program in levels[:wanted]:
        parts = level.parts(fields)
        for part in parts:
            level.behind(part, program.run(level.before(part)))
        level.joined(fields, parts)
    level, program = levels[wanted]
    for part in level.parts(fields):
        if stage == "loader":
            yield partial(lambda part: level.before(dict(part)), part)
            continue
        feed = level.before(part)
        if stage == "runner":
            yield partial(program.run, feed)
        else:
            yield partial(lambda part, outputs: level.behind(dict(part), outputs), part, program.run(feed))


# Chains over places


def over_places(inputs: Inputs, bundle: str, device: str, threads: int, is_stream: bool, count: int) -> Ready:
    """So many made-up items through a bundle, over its places where `device` is "auto": as a stream, or call by call.

    Each submodel has so many threads.
    """
    program, stream_into = _made_up(bundle, device, threads)
    samples = [sample_inputs(program.manifest, seed) for seed in range(count)]

    def call() -> list[Fields]:
        if not is_stream:
            return [program.run(sample) for sample in samples]
        sink = Kept()
        items = (Item(index, "made up", "made-up", partial(dict, one)) for index, one in enumerate(samples))
        stream_into(items, sink)
        return sink.records

    return Ready(call, partial(_outputs_of, program))


def by_two_processes(inputs: Inputs, bundle: str, threads: int, count: int) -> Ready:
    """The same items in one pool, call by call, the later half of them in another process, which shares nothing.

    What two pools can come to at most on this machine: its cores may be halves of one, and share a cache and its clock.
    """
    here, there = multiprocessing.Pipe()
    multiprocessing.get_context("fork").Process(
        target=_run_when_asked, args=(there, bundle, threads, range(count // 2, count)), daemon=True
    ).start()
    program, _ = _made_up(bundle, "cpu", threads)
    samples = [sample_inputs(program.manifest, seed) for seed in range(count // 2)]

    def call() -> list[Fields]:
        here.send(False)
        found = [program.run(sample) for sample in samples]
        here.recv()
        return found

    def arrays(found: list[Fields]) -> list[Array]:
        here.send(True)
        return _outputs_of(program, [*found, *here.recv()])

    return Ready(call, arrays)


def _run_when_asked(asked: Connection, bundle: str, threads: int, seeds: Sequence[int]) -> None:
    """Runs the items of these seeds each time False comes, and sends what they gave where True comes."""
    program, _ = _made_up(bundle, "cpu", threads)
    samples = [sample_inputs(program.manifest, seed) for seed in seeds]
    found = list[Fields]()
    while True:
        if asked.recv():
            asked.send(found)
        else:
            found = [program.run(sample) for sample in samples]
            asked.send(None)


def _made_up(bundle: str, device: str, threads: int) -> tuple[Program, Callable[[Iterable[Item], Kept], object]]:
    """Returns the one program of a bundle, and what lets items through it as a stream."""
    options = RunOptions(device=device, threads=threads, cache_dir="")
    loaded = load_alone(ExitStack(), Path(bundle), options, load_bundle)
    (program,) = (one for programs in loaded.programs.values() for one in programs)
    return program, lambda items, sink: Stream(loaded.plan, loaded.runs).run(items, sink)


def _outputs_of(program: Program, found: Sequence[Fields]) -> list[Array]:
    return [one[item.name] for one in found for item in program.outputs]


# Known work


@dataclass(frozen=True)
class Work:
    """A step: waits, or computes outside of Python's lock, or does neither; hands its field on."""

    takes: tuple[str, ...]
    gives: tuple[str, ...]
    seconds: float = 0.0
    rounds: int = 0

    def __call__(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        _work(self.seconds, self.rounds)
        return {self.gives[0]: fields[self.takes[0]]}


@dataclass
class KnownProgram:
    """A program with an input x and an output y that works as long as it is told."""

    rows_at_once = 1 << 31

    seconds: float = 0.0
    rounds: int = 0
    manifest: Manifest = field(init=False)

    def __post_init__(self) -> None:
        named = [NamedType(name, TensorType("float32", (1, 4))) for name in "xy"]
        self.manifest = Manifest("m", "0" * 64, (named[0],), (named[1],), (), {})

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        _work(self.seconds, self.rounds)
        return {"y": inputs["x"]}


def _work(seconds: float, rounds: int) -> None:
    if seconds:
        time.sleep(seconds)
    for _ in range(rounds):
        hashlib.sha256(HASHED)


Made = tuple[StreamPlan, dict[str, list[Any]]]


def _three_stages(works: Sequence[Sequence[Any]], workers: Sequence[int]) -> Made:
    """Returns loader, runner and post-processor with the workers and (seconds, rounds) of each."""
    (load, run, post), (num_load, num_run, num_post) = works, workers
    plan = PipelinePlan(
        "p",
        (StagePlan((Work(("x",), ("x",), *load),), num_load),),
        RunnerPlan({"x": "x"}, {"y": "y"}, devices=("cpu",) * num_run),
        (StagePlan((Work(("y",), ("y",), *post),), num_post),),
    )
    return StreamPlan(((plan,),), ("y",)), {"p": [KnownProgram(*run) for _ in range(num_run)]}


def _plain(workers: int = 1) -> Made:
    return _three_stages([(0.0, 0)] * 3, [workers] * 3)


def _different() -> Made:
    """Two different loaders and two different post-processors: two copy queues and two sync queues."""
    loaders = (StagePlan((Work(("x",), ("a",)),)), StagePlan((Work(("x",), ("b",)),)))
    posts = (StagePlan((Work(("y",), ("c",)),)), StagePlan((Work(("y",), ("d",)),)))
    plan = PipelinePlan("p", loaders, RunnerPlan({"x": "a"}, {"y": "y"}), posts)
    return StreamPlan(((plan,),), ("c", "d")), {"p": [KnownProgram()]}


def _levels() -> Made:
    first = PipelinePlan("p", (StagePlan((Work(("x",), ("x",)),)),), RunnerPlan({"x": "x"}, {"y": "y"}))
    second = PipelinePlan("q", (), RunnerPlan({"x": "y"}, {"y": "z"}), (StagePlan((Work(("z",), ("z",)),)),))
    return StreamPlan(((first,), (second,)), ("z",)), {"p": [KnownProgram()], "q": [KnownProgram()]}


SHAPES: dict[str, Callable[[], Made]] = {
    "loader, runner, post": _plain,
    "two of each": lambda: _plain(2),
    "two different loaders and posts": _different,
    "two levels": _levels,
}


def known_whole(inputs: Inputs, works: list[list[Any]], workers: list[int], count: int) -> Ready:
    return _ready(partial(_run, *_three_stages(works, workers), count))


def known_threads(inputs: Inputs, works: list[list[Any]], workers: list[int], count: int) -> Ready:
    """The same stages by hand: `workers` threads for each, with a queue in front of it."""

    def call() -> None:
        queues: list[Any] = [queue.Queue(), queue.Queue(QUEUE_ROOM), queue.Queue(QUEUE_ROOM), queue.Queue()]
        for stage, (work, number) in enumerate(zip(works, workers, strict=True)):
            one = partial(_handed_on, queues[stage], queues[stage + 1], *work)
            for _ in range(number):
                threading.Thread(target=one, daemon=True).start()
        for index in range(count):
            queues[0].put(index)
        for _ in range(count):
            queues[-1].get()
        for source, number in zip(queues, workers, strict=False):
            for _ in range(number):
                source.put(None)

    return _ready(call)


def _handed_on(source: Any, sink: Any, seconds: float, rounds: int) -> None:
    """Works on what comes and hands it on, until None comes."""
    while (taken := source.get()) is not None:
        _work(seconds, rounds)
        sink.put(taken)


def known_alone(inputs: Inputs, seconds: float, rounds: int, count: int) -> Ready:
    return _ready(lambda: [_work(seconds, rounds) for _ in range(count)])


def empty_stream(inputs: Inputs, shape: str, count: int) -> Ready:
    """Records through stages that do nothing; `shape` says which."""
    return _ready(partial(_run, *SHAPES[shape](), count))


def _run(plan: StreamPlan, programs: Mapping[str, Sequence[Any]], count: int) -> None:
    sink = Kept(keeps=False)
    Stream(plan, programs).run((Item(index, "made up", "made-up", lambda: {"x": X}) for index in range(count)), sink)
    assert sink.num_taken == count


def _ready(call: Callable[[], Any], note: str = "") -> Ready:
    return Ready(call, lambda _: [np.zeros(1)], note)


def memory(inputs: Inputs, count: int) -> Ready:
    """Streams `count` records of 300 KB each, once; the result is the memory after each tenth of them, in MiB."""
    plan, programs = _plain(2)
    sizes: list[float] = []

    def seen(outcome: Outcome) -> None:
        if (outcome.index + 1) % (count // 10) == 0:
            resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
            sizes.append(resident / 2**20)

    def fresh() -> Fields:
        return {"x": X, "weight": np.ones(75_000, np.float32)}

    items = (Item(index, "made up", "made-up", fresh) for index in range(count))
    Stream(plan, programs).run(items, Kept(keeps=False), seen)
    return Ready(lambda: sizes, lambda found: [np.array(found)])
