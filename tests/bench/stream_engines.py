# SPDX-License-Identifier: Apache-2.0
"""Engines of whole pipelines: files go in, what people want comes out; each is made inside a child of `interleaved`.

All of them do the steps of the same pipeline file, by the same code of `nndeploy.processors`, and read the same files
in the same order; they differ in who runs the models and in how the work is spread. An iteration is one pass over all
files, started anew: threads and queues are part of it, sessions are not. Results are the fields of `RESULTS` as arrays,
file by file.

* `loop`: one Python thread over ONNX Runtime, which has all threads.
* `elements`: a thread for each step with a queue before it, the model one of them, as in a GStreamer pipeline.
* `staged`: threads and queues as a good engineer writes them by hand: loaders, a thread for each model, one behind it.
* `pooled`: as many threads as cores, each does a file from its first step to its last, ONNX Runtime with one thread.
* `asynchronous`: OpenVINO's AsyncInferQueue, tuned for throughput, loaders before it and post-processors behind.
* `stream`: nndeploy's own engine.
"""

import json
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from interleaved import Array, Ready

from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import Program, load_bundle
from nndeploy.stream.description import PipelinePlan, StreamPlan
from nndeploy.stream.engine.engine import Stream
from nndeploy.stream.items import Item, Outcome
from nndeploy.stream.pipeline.pipeline_file import PipelineFile, pipeline_from_toml, plan_of_file

Fields = dict[str, Any]
Inputs = Mapping[str, Array]
Step = Callable[[Fields], Fields]
RESULTS = ("boxes", "scores", "labels", "quads", "text", "score")
"""Fields that are compared between engines, where a pipeline gives them."""
QUEUE_ROOM = 8


# The pipeline, as a rival sees it


@dataclass(frozen=True)
class Level:
    """One level of a pipeline file: what is done before the model, and behind it, to each part of a record."""

    plan: PipelinePlan

    def parts(self, fields: Fields) -> list[Fields]:
        """Returns what goes through the model one by one: the record itself, or its parts."""
        if not self.plan.each:
            return [fields]
        return [{**fields, self.plan.part: value} for value in fields[self.plan.each]]

    @property
    def loading(self) -> list[Step]:
        """The loaders' steps."""
        return [step for stage in self.plan.loaders for step in stage.steps]

    @property
    def posting(self) -> list[Step]:
        """The post-processors' steps."""
        return [step for stage in self.plan.posts for step in stage.steps]

    def before(self, part: Fields) -> Fields:
        """Does the loaders' steps; returns the inputs of the model."""
        for step in self.loading:
            part.update(step(part))
        return self.feed(part)

    def feed(self, part: Fields) -> Fields:
        """Returns the inputs of the model."""
        return {name: part[source] for name, source in self.plan.runner.inputs.items()}

    def behind(self, part: Fields, outputs: Mapping[str, Array]) -> None:
        """Does the post-processors' steps on the model's outputs."""
        self.take(part, outputs)
        for step in self.posting:
            part.update(step(part))

    def take(self, part: Fields, outputs: Mapping[str, Array]) -> None:
        """Gives a part the model's outputs."""
        part.update({into: outputs[name] for name, into in self.plan.runner.outputs.items()})

    def joined(self, fields: Fields, parts: Sequence[Fields]) -> None:
        """Gives the record what its parts got."""
        if self.plan.each:
            names = [name for stage in self.plan.posts for name in stage.gives]
            fields.update({name: [part[name] for part in parts] for name in names})

    @property
    def outputs(self) -> list[str]:
        """The outputs of the model that are taken."""
        return list(self.plan.runner.outputs)


def pipeline_of(path: str) -> PipelineFile:
    """Returns the pipeline in a file."""
    file = Path(path)
    return pipeline_from_toml(file.read_bytes(), str(file), lambda name: (file.parent / name).read_bytes())


def levels_of(path: str) -> list[Level]:
    """Returns the levels of a pipeline file that has one pipeline in each."""
    return [Level(plan) for (plan,) in pipeline_of(path).levels]


def read(path: str) -> Fields:
    """Returns the fields of a file."""
    return {"data": Path(path).read_bytes()}


def arrays_of(records: Iterable[Fields]) -> list[Array]:
    """Returns the fields of `RESULTS` of all records as arrays."""
    return [_as_array(record[name]) for record in records for name in RESULTS if name in record]


def _as_array(value: Any) -> Array:
    if isinstance(value, list) and value and isinstance(value[0], str):
        value = "\n".join(value)
    if isinstance(value, str):
        return np.array([ord(letter) for letter in value], np.float64)
    return np.asarray(value, np.float64)


# Over ONNX Runtime


def _session(model: str, threads: int) -> Callable[[Fields, list[str]], dict[str, Array]]:
    import onnxruntime as library
    from constant_weights import with_constant_weights

    settings = library.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
    settings.log_severity_level = 3
    # Where work goes on beside the model, threads that spin between calls cost more than they win.
    settings.add_session_config_entry("session.force_spinning_stop", "1")
    data = with_constant_weights(model).SerializeToString()
    session = library.InferenceSession(data, settings, providers=["CPUExecutionProvider"])
    return lambda feed, names: dict(zip(names, session.run(names, feed), strict=True))


def _sessions(levels: Sequence[Level], models: Mapping[str, str], threads: int) -> list[Any]:
    return [_session(models[level.plan.name], threads) for level in levels]


def _done_alone(levels: Sequence[Level], sessions: Sequence[Any], path: str) -> Fields:
    fields = read(path)
    for level, session in zip(levels, sessions, strict=True):
        parts = level.parts(fields)
        for part in parts:
            level.behind(part, session(level.before(part), level.outputs))
        level.joined(fields, parts)
    return fields


def loop(inputs: Inputs, pipeline: str, models: Mapping[str, str], files: list[str], threads: int) -> Ready:
    """File after file, in one thread; ONNX Runtime has `threads`."""
    levels = levels_of(pipeline)
    work = partial(_done_alone, levels, _sessions(levels, models, threads))
    return Ready(lambda: [work(path) for path in files], arrays_of)


def pooled(inputs: Inputs, pipeline: str, models: Mapping[str, str], files: list[str], workers: int) -> Ready:
    """A pool of threads, each does whole files; ONNX Runtime computes in the thread that calls it."""
    levels = levels_of(pipeline)
    work = partial(_done_alone, levels, _sessions(levels, models, 1))

    def call() -> list[Fields]:
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(work, files))

    return Ready(call, arrays_of)


_END = object()


def staged(
    inputs: Inputs, pipeline: str, models: Mapping[str, str], files: list[str], threads: int, loaders: int
) -> Ready:
    """`loaders` threads, then for each model a thread that calls ONNX Runtime with `threads`, and one behind it."""
    levels = levels_of(pipeline)
    sessions = _sessions(levels, models, threads)

    def call() -> list[Fields]:
        results: list[Fields] = [{} for _ in files]
        first: Any = queue.Queue()
        for task in enumerate(files):
            first.put(task)
        source, workers = first, []
        for number, (level, session) in enumerate(zip(levels, sessions, strict=True)):
            loaded, ran, done = (queue.Queue(QUEUE_ROOM) for _ in range(3))
            load = partial(_load_parts, level) if number else lambda path, level=level: _load_parts(level, read(path))
            count = loaders if number == 0 else 1
            workers += _workers(source, loaded, load, count, feeders=0 if number == 0 else 1)
            workers += _workers(loaded, ran, partial(_run_parts, level, session), 1, feeders=count)
            workers += _workers(ran, done, partial(_post_parts, level), 1, feeders=1)
            source = done
        for worker in workers:
            worker.start()
        while (taken := source.get()) is not _END:
            index, results[index] = taken
        return results

    return Ready(call, arrays_of)


def elements(inputs: Inputs, pipeline: str, models: Mapping[str, str], files: list[str], threads: int) -> Ready:
    """Each step is an element with a queue before it and a thread of its own, the model one of them."""
    levels = levels_of(pipeline)
    sessions = _sessions(levels, models, threads)
    works = [read, *(work for pair in zip(levels, sessions, strict=True) for work in _elements_of(*pair))]

    def call() -> list[Fields]:
        queues = [queue.Queue(QUEUE_ROOM) for _ in range(len(works) + 1)]
        feeder = threading.Thread(target=_feed, args=(queues[0], files), daemon=True)
        workers = [
            worker
            for work, source, sink in zip(works, queues, queues[1:], strict=False)
            for worker in _workers(source, sink, work, 1, feeders=1)
        ]
        for worker in (feeder, *workers):
            worker.start()
        return [taken[1] for taken in iter(queues[-1].get, _END)]

    return Ready(call, arrays_of, f"{len(works)} threads")


def _feed(source: Any, files: list[str]) -> None:
    for task in enumerate(files):
        source.put(task)
    source.put(_END)


_Parted = tuple[Fields, list[Fields]]


def _elements_of(level: Level, session: Any) -> list[Callable[[Any], Any]]:
    """Returns what elements do one after another, each to all parts of a record."""

    def split(fields: Fields) -> _Parted:
        return fields, level.parts(fields)

    def stepped(step: Step, record: _Parted) -> _Parted:
        for part in record[1]:
            part.update(step(part))
        return record

    def ran(record: _Parted) -> _Parted:
        for part in record[1]:
            level.take(part, session(level.feed(part), level.outputs))
        return record

    def joined(record: _Parted) -> Fields:
        level.joined(*record)
        return record[0]

    loading, posting = ([partial(stepped, step) for step in steps] for steps in (level.loading, level.posting))
    return [split, *loading, ran, *posting, joined]


def _load_parts(level: Level, fields: Fields) -> Any:
    parts = level.parts(fields)
    return fields, parts, [level.before(part) for part in parts]


def _run_parts(level: Level, session: Any, loaded: Any) -> Any:
    fields, parts, feeds = loaded
    return fields, parts, [session(feed, level.outputs) for feed in feeds]


def _post_parts(level: Level, ran: Any) -> Fields:
    fields, parts, outputs = ran
    for part, output in zip(parts, outputs, strict=True):
        level.behind(part, output)
    level.joined(fields, parts)
    return fields


def _workers(source: Any, sink: Any, work: Callable[[Any], Any], count: int, feeders: int) -> list[threading.Thread]:
    """Returns `count` equal threads; each puts an end marker behind its last result, and waits for its share of them.

    Where several threads feed one, it takes all their markers; where there is none, an empty source is the end.
    """

    def run() -> None:
        ends = 0
        while True:
            try:
                taken = source.get(block=feeders > 0)
            except queue.Empty:
                break
            if taken is _END:
                ends += 1
                if ends == feeders:
                    break
                continue
            sink.put((taken[0], work(taken[1])))
        sink.put(_END)

    return [threading.Thread(target=run, daemon=True) for _ in range(count)]


# Over OpenVINO


@dataclass(eq=False)
class _Flight:
    """A record whose parts are in the models."""

    index: int
    fields: Fields
    parts: list[Fields] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    left: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


def asynchronous(
    inputs: Inputs, pipeline: str, models: Mapping[str, str], files: list[str], threads: int, loaders: int
) -> Ready:
    """OpenVINO's AsyncInferQueue a level; its callback only copies, a thread post-processes and feeds the next."""
    import openvino as library

    levels = levels_of(pipeline)
    settings = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "THROUGHPUT",
    }
    core = library.Core()
    queues = [
        library.AsyncInferQueue(core.compile_model(core.read_model(models[level.plan.name]), "CPU", settings))
        for level in levels
    ]
    ran: list[Any] = [None]  # where the callbacks of this pass put flights, by level

    for number, (level, jobs) in enumerate(zip(levels, queues, strict=True)):
        jobs.set_callback(partial(_landed, level, lambda number=number: ran[0][number]))

    def call() -> list[Fields]:
        results: list[Fields] = [{} for _ in files]
        ran[0] = [queue.SimpleQueue() for _ in levels]
        posts = [
            threading.Thread(target=_post_flights, args=(levels, queues, ran[0], number, results), daemon=True)
            for number in range(len(levels))
        ]
        for post in posts:
            post.start()
        with ThreadPoolExecutor(loaders) as pool:
            for flight in _ahead(pool, partial(_loaded_flight, levels[0]), list(enumerate(files)), QUEUE_ROOM):
                _launch(flight, queues[0], ran[0][0])
        queues[0].wait_all()
        ran[0][0].put(_END)
        for post in posts:
            post.join()
        return results

    notes = ", ".join(f"{len(jobs)} requests" for jobs in queues)
    return Ready(call, arrays_of, f"{library.__version__}; {notes}")


def _ahead(pool: ThreadPoolExecutor, work: Callable[[Any], Any], tasks: Sequence[Any], room: int) -> Iterator[Any]:
    """Yields results in order; at most `room` tasks are begun ahead."""
    begun: list[Future[Any]] = []
    for task in tasks:
        begun.append(pool.submit(work, task))
        if len(begun) == room:
            yield begun.pop(0).result()
    for future in begun:
        yield future.result()


def _loaded_flight(level: Level, task: tuple[int, str]) -> tuple[_Flight, list[Fields]]:
    return _prepared(level, _Flight(task[0], read(task[1])))


def _prepared(level: Level, flight: _Flight) -> tuple[_Flight, list[Fields]]:
    flight.parts = level.parts(flight.fields)
    flight.left = len(flight.parts)
    flight.outputs = [None] * flight.left
    return flight, [level.before(part) for part in flight.parts]


def _launch(prepared: tuple[_Flight, list[Fields]], jobs: Any, ran: Any) -> None:
    flight, feeds = prepared
    if not feeds:
        ran.put(flight)
    for place, feed in enumerate(feeds):
        jobs.start_async(feed, userdata=(flight, place), share_inputs=True)


def _landed(level: Level, ran: Callable[[], Any], request: Any, userdata: tuple[_Flight, int]) -> None:
    flight, place = userdata
    flight.outputs[place] = {name: request.get_tensor(name).data.copy() for name in level.outputs}
    with flight.lock:
        flight.left -= 1
        is_last = flight.left == 0
    if is_last:
        ran().put(flight)


def _post_flights(
    levels: Sequence[Level], queues: Sequence[Any], ran: Sequence[Any], number: int, results: list[Fields]
) -> None:
    level = levels[number]
    while (flight := ran[number].get()) is not _END:
        _post_parts(level, (flight.fields, flight.parts, flight.outputs))
        if number + 1 == len(levels):
            results[flight.index] = flight.fields
        else:
            _launch(_prepared(levels[number + 1], flight), queues[number + 1], ran[number + 1])
    if number + 1 < len(levels):
        queues[number + 1].wait_all()
        ran[number + 1].put(_END)


# nndeploy


@dataclass
class Kept:
    """A sink that keeps the fields of every outcome."""

    records: list[Fields] = field(default_factory=list)

    def write(self, outcome: Outcome) -> None:
        """Keeps one; an error ends the command."""
        if outcome.error is not None:
            raise outcome.error
        self.records.append(dict(outcome.outputs or {}))

    def finish(self) -> None:
        """Does nothing."""

    def discard(self) -> None:
        """Does nothing."""


def items_of(files: Sequence[str]) -> Iterator[Item]:
    """Yields an item for each file."""
    for index, path in enumerate(files):
        yield Item(index, path, Path(path).stem, partial(read, path))


def opened(
    pipeline: str, models: Mapping[str, str], threads: int, runners: int, loaders: int, posts: int
) -> tuple[StreamPlan, dict[str, list[Program]]]:
    """Returns the plan of a pipeline file with these numbers of workers, and its programs."""
    file = pipeline_of(pipeline)
    levels = tuple(
        tuple(_sized(plan, runners, loaders if number == 0 else 1, posts) for plan in level)
        for number, level in enumerate(file.levels)
    )
    programs = {
        plan.name: [
            load_bundle(models[plan.name], LoadOptions(threads=threads, device="cpu", cache_dir=""))
            for _ in range(runners)
        ]
        for level in levels
        for plan in level
    }
    manifests = {name: made[0].manifest for name, made in programs.items()}
    return plan_of_file(replace(file, levels=levels), manifests, {"": ("data",)}), programs


def _sized(plan: PipelinePlan, runners: int, loaders: int, posts: int) -> PipelinePlan:
    return replace(
        plan,
        loaders=tuple(replace(stage, workers=loaders) for stage in plan.loaders),
        runner=replace(plan.runner, devices=("cpu",) * runners),
        posts=tuple(replace(stage, workers=posts) for stage in plan.posts),
    )


def stream(
    inputs: Inputs, pipeline: str, models: Mapping[str, str], files: list[str], threads: int, runners: int,
    loaders: int, posts: int = 1,
) -> Ready:  # fmt: skip
    """nndeploy's engine: each model has `runners` with `threads` each."""
    plan, programs = opened(pipeline, models, threads, runners, loaders, posts)

    def call() -> list[Fields]:
        sink = Kept()
        Stream(plan, programs).run(items_of(files), sink)
        return sink.records

    return Ready(call, arrays_of, json.dumps({"made of": _made_of(programs)}))


def _made_of(programs: Mapping[str, Sequence[Program]]) -> str:
    backends = {choice.backend for made in programs.values() for choice in made[0].choices}
    return ", ".join(sorted(backends))


# A stage alone


def stage_alone(
    inputs: Inputs, pipeline: str, models: Mapping[str, str], files: list[str], threads: int, level: int, stage: str
) -> Ready:
    """One stage ("loader", "runner" or "post") of a level in one thread, on what comes to it in the stream.

    The note holds the seconds of CPU of one pass, as JSON.
    """
    levels = levels_of_bundles(pipeline, models, threads)
    works = _recorded(levels, files, level, stage)

    def call() -> None:
        for work in works:
            work()

    call()
    began = time.process_time()
    for _ in range(3):
        call()
    return Ready(call, lambda _: [np.zeros(1)], json.dumps({"cpu": (time.process_time() - began) / 3}))


def levels_of_bundles(pipeline: str, models: Mapping[str, str], threads: int) -> list[tuple[Level, Program]]:
    """Returns the levels of a pipeline with a program each."""
    plan, programs = opened(pipeline, models, threads, 1, 1, 1)
    return [(Level(one), programs[one.name][0]) for (one,) in plan.levels]


def _recorded(
    levels: Sequence[tuple[Level, Program]], files: Sequence[str], wanted: int, stage: str
) -> list[Callable[[], Any]]:
    """Returns the calls of one stage, with the values that it gets in the stream; reading is the first loader's."""
    works: list[Callable[[], Any]] = []
    for path in files:
        fields: Fields = {} if wanted == 0 and stage == "loader" else read(path)
        if wanted == 0 and stage == "loader":
            works.append(partial(lambda level, path: level.before(read(path)), levels[0][0], path))
            continue
        for number, (level, program) in enumerate(levels[: wanted + 1]):
            parts = level.parts(fields)
            for part in parts:
                if number == wanted and stage == "loader":
                    works.append(partial(lambda level, part: level.before(dict(part)), level, part))
                    continue
                feed = level.before(part)
                if number == wanted and stage == "runner":
                    works.append(partial(program.run, feed))
                    continue
                outputs = program.run(feed)
                if number == wanted:
                    works.append(partial(lambda level, part, out: level.behind(dict(part), out), level, part, outputs))
                else:
                    level.behind(part, outputs)
            if number < wanted:
                level.joined(fields, parts)
    return works
