# SPDX-License-Identifier: Apache-2.0
"""Other ways to run a pipeline: files go in, what people want comes out; each made inside a child of `interleaved`.

All do the steps of the same pipeline file, by the same code of `nndeploy.processors`, and read the same files in the
same order; they differ in who runs the models and in how the work is spread. An iteration is one pass over all files,
started anew: threads and queues are part of it, sessions are not. Results are the fields of `RESULTS` as arrays.

* `loop`: one Python thread over ONNX Runtime, which has all threads.
* `staged`: loaders, a thread for each model, one behind it, with queues between them.
* `pooled`: as many threads as cores, each does whole files, ONNX Runtime computes in the thread that calls it.
* `asynchronous`: OpenVINO's AsyncInferQueue, tuned for throughput, loaders before it and post-processors behind.
"""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from engines import openvino_compiled, ort_session
from interleaved import Array, Inputs, Ready
from model_sets import with_constant_weights

from nndeploy.stream.description import PipelinePlan
from nndeploy.stream.pipeline.pipeline_file import PipelineFile, pipeline_from_toml

Fields = dict[str, Any]
RESULTS = ("boxes", "scores", "labels", "quads", "text", "score")
"""Fields that are compared between engines, where a pipeline gives them."""
QUEUE_ROOM = 8
_END = object()


@dataclass(frozen=True)
class Level:
    """One level of a pipeline file: what is done before the model, and behind it, to each part of a record."""

    plan: PipelinePlan

    def parts(self, fields: Fields) -> list[Fields]:
        """Returns what goes through the model one by one: the record itself, or its parts."""
        if not self.plan.each:
            return [fields]
        return [{**fields, self.plan.part: value} for value in fields[self.plan.each]]

    def before(self, part: Fields) -> Fields:
        """Does the loaders' steps; returns the inputs of the model."""
        for stage in self.plan.loaders:
            for step in stage.steps:
                part.update(step(part))
        return {name: part[source] for name, source in self.plan.runner.inputs.items()}

    def behind(self, part: Fields, outputs: Mapping[str, Array]) -> None:
        part.update({into: outputs[name] for name, into in self.plan.runner.outputs.items()})
        for stage in self.plan.posts:
            for step in stage.steps:
                part.update(step(part))

    def joined(self, fields: Fields, parts: Sequence[Fields]) -> Fields:
        if self.plan.each:
            names = [name for stage in self.plan.posts for name in stage.gives]
            fields.update({name: [part[name] for part in parts] for name in names})
        return fields

    @property
    def outputs(self) -> list[str]:
        return list(self.plan.runner.outputs)


def pipeline_of(path: str) -> PipelineFile:
    file = Path(path)
    return pipeline_from_toml(file.read_bytes(), str(file), lambda name: (file.parent / name).read_bytes())


def levels_of(path: str) -> list[Level]:
    """Returns the levels of a pipeline file that has one pipeline in each."""
    return [Level(plan) for (plan,) in pipeline_of(path).levels]


def read(path: str) -> Fields:
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

Session = Callable[[Fields, list[str]], dict[str, Array]]


def _sessions(levels: Sequence[Level], models: Mapping[str, str], threads: int) -> list[Session]:
    """Opens the models; where work goes on beside them, threads that spin between calls cost more than they win."""

    def opened(level: Level) -> Session:
        data = with_constant_weights(models[level.plan.name]).SerializeToString()
        session = ort_session(data, threads, {"session.force_spinning_stop": "1"})
        return lambda feed, names: dict(zip(names, session.run(names, feed), strict=True))

    return [opened(level) for level in levels]


def _done_alone(levels: Sequence[Level], sessions: Sequence[Session], path: str) -> Fields:
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


def pooled(inputs: Inputs, pipeline: str, models: Mapping[str, str], files: list[str], threads: int) -> Ready:
    """A pool of `threads`, each does whole files."""
    levels = levels_of(pipeline)
    work = partial(_done_alone, levels, _sessions(levels, models, 1))

    def call() -> list[Fields]:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(work, files))

    return Ready(call, arrays_of)


def staged(
    inputs: Inputs, pipeline: str, models: Mapping[str, str], files: list[str], threads: int, loaders: int
) -> Ready:
    """`loaders` threads, then for each model a thread that calls ONNX Runtime with `threads`, and one behind it."""
    levels = levels_of(pipeline)
    stages: list[tuple[Callable[[Any], Any], int]] = []
    for number, (level, session) in enumerate(zip(levels, _sessions(levels, models, threads), strict=True)):
        load = partial(_load_parts, level)
        stages += [
            (load if number else lambda path, load=load: load(read(path)), 1 if number else loaders),
            (partial(_run_parts, level, session), 1),
            (partial(_post_parts, level), 1),
        ]

    def call() -> list[Fields]:
        source, feeders = queue.Queue[Any](), 0
        for task in enumerate(files):
            source.put(task)
        for work, count in stages:
            sink = queue.Queue[Any](QUEUE_ROOM)
            for _ in range(count):
                threading.Thread(target=_serve, args=(source, sink, work, feeders), daemon=True).start()
            source, feeders = sink, count
        results: list[Fields] = [{} for _ in files]
        for index, fields in iter(source.get, _END):
            results[index] = fields
        return results

    return Ready(call, arrays_of)


def _serve(source: Any, sink: Any, work: Callable[[Any], Any], feeders: int) -> None:
    """Does what comes, until every feeder has put its end marker; without feeders an empty source is the end."""
    ends = 0
    while ends < max(1, feeders):
        try:
            taken = source.get(block=feeders > 0)
        except queue.Empty:
            break
        if taken is _END:
            ends += 1
        else:
            sink.put((taken[0], work(taken[1])))
    sink.put(_END)


def _load_parts(level: Level, fields: Fields) -> Any:
    parts = level.parts(fields)
    return fields, parts, [level.before(part) for part in parts]


def _run_parts(level: Level, session: Session, loaded: Any) -> Any:
    fields, parts, feeds = loaded
    return fields, parts, [session(feed, level.outputs) for feed in feeds]


def _post_parts(level: Level, ran: Any) -> Fields:
    fields, parts, outputs = ran
    for part, output in zip(parts, outputs, strict=True):
        level.behind(part, output)
    return level.joined(fields, parts)


# Over OpenVINO


@dataclass(eq=False)
class _Flight:
    index: int
    fields: Fields
    parts: list[Fields] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    left: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class _Jobs:
    """One level: its AsyncInferQueue, whose callback only copies, and the queue of flights that have landed."""

    def __init__(self, level: Level, model: str, threads: int) -> None:
        import openvino

        self.level = level
        self.requests = openvino.AsyncInferQueue(openvino_compiled(model, threads, PERFORMANCE_HINT="THROUGHPUT"))
        self.requests.set_callback(self._landed)
        self.landed: Any = queue.SimpleQueue()

    def prepared(self, flight: _Flight) -> tuple[_Flight, list[Fields]]:
        flight.parts = self.level.parts(flight.fields)
        flight.left, flight.outputs = len(flight.parts), [None] * len(flight.parts)
        return flight, [self.level.before(part) for part in flight.parts]

    def launch(self, flight: _Flight, feeds: Sequence[Fields]) -> None:
        if not feeds:
            self.landed.put(flight)
        for place, feed in enumerate(feeds):
            self.requests.start_async(feed, userdata=(flight, place), share_inputs=True)

    def _landed(self, request: Any, userdata: tuple[_Flight, int]) -> None:
        flight, place = userdata
        flight.outputs[place] = {name: request.get_tensor(name).data.copy() for name in self.level.outputs}
        with flight.lock:
            flight.left -= 1
            is_last = flight.left == 0
        if is_last:
            self.landed.put(flight)

    def post(self, behind: "_Jobs | None", results: list[Fields]) -> None:
        while (flight := self.landed.get()) is not _END:
            _post_parts(self.level, (flight.fields, flight.parts, flight.outputs))
            if behind is None:
                results[flight.index] = flight.fields
            else:
                behind.launch(*behind.prepared(flight))
        if behind is not None:
            behind.end()

    def end(self) -> None:
        """Waits for what was started; then there is no more."""
        self.requests.wait_all()
        self.landed.put(_END)


def asynchronous(
    inputs: Inputs, pipeline: str, models: Mapping[str, str], files: list[str], threads: int, loaders: int
) -> Ready:
    """OpenVINO's AsyncInferQueue a level, a thread that post-processes and feeds the next one."""
    jobs = [_Jobs(level, models[level.plan.name], threads) for level in levels_of(pipeline)]

    def call() -> list[Fields]:
        results: list[Fields] = [{} for _ in files]
        pairs = zip(jobs, [*jobs[1:], None], strict=True)
        posts = [threading.Thread(target=one.post, args=(behind, results), daemon=True) for one, behind in pairs]
        for post in posts:
            post.start()
        with ThreadPoolExecutor(loaders) as pool:
            for prepared in _ahead(pool, lambda task: jobs[0].prepared(_Flight(task[0], read(task[1]))), files):
                jobs[0].launch(*prepared)
        jobs[0].end()
        for post in posts:
            post.join()
        return results

    return Ready(call, arrays_of, ", ".join(f"{len(one.requests)} requests" for one in jobs))


def _ahead(pool: ThreadPoolExecutor, work: Callable[[Any], Any], files: Sequence[str]) -> Iterator[Any]:
    """Yields results in order; at most `QUEUE_ROOM` tasks are begun ahead."""
    begun: list[Future[Any]] = []
    for task in enumerate(files):
        begun.append(pool.submit(work, task))
        if len(begun) == QUEUE_ROOM:
            yield begun.pop(0).result()
    for future in begun:
        yield future.result()
