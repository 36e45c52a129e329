# SPDX-License-Identifier: Apache-2.0
"""One stream of photos through a network, in a process that watches itself: for the scene `stream` of bench_pacing.py.

The probe reads the processor clocks of the process and of its threads four times a millisecond. Each part of the work
(reading, every step, the network, writing) notes its thread's clock at begin and end. A thread does one thing at a
time, so of what its clock went on between two readings it is known how much each part did; no other clock is compared.
What a thread of the stream did besides is `engine`, what other threads did is `others`.
"""

import contextlib
import ctypes
import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from report import MODELS

import nndeploy
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.stream.paced_stream import BASELINE_ITEMS, PacedStream
from nndeploy.stream.description import PipelinePlan, StagePlan, step_name
from nndeploy.stream.run.open_run import Ends, open_run, opened_models
from nndeploy.stream.run.options import RunOptions
from nndeploy.stream.stopping import Stop

PIPELINE = """
[source]
kind = "images"
[[level]]
[[level.pipeline]]
name = "find"
model = "{bundle}"
inputs = {{ x = "tensor" }}
outputs = {{ "sigmoid_0.tmp_0" = "likely" }}
[[level.pipeline.loader]]
workers = 2
steps = [
    {{ use = "decode" }},
    {{ use = "scale", longest-at-most = 960, multiple = 32, out = ["small", "transform"] }},
    {{ use = "normalise", in = ["small"], divide-by = 255, mean = [0.406, 0.456, 0.485], std = [0.225, 0.224, 0.229] }},
    {{ use = "layout", channels = "BGR" }},
]
[[level.pipeline.post]]
steps = [
    {{ use = "text-boxes", in = ["likely"], out = ["quads", "quad-scores"], box-threshold = 0.5 }},
    {{ use = "map-back", in = ["quads", "transform"], out = ["quads"] }},
]
[[sink]]
kind = "json-lines"
fields = ["quads", "quad-scores"]
"""
"""What the first level of read-text.toml does."""
PHOTOS = ("text_11.jpg", "text_photo.jpg", "text_sample.jpg")
WINDOW_NS, STEP_NS = 10_000_000, 1_000_000
CROWDED = 0.8
"""The load, as a share of a core, above which it is looked into what a window consists of."""
MOST_THREADS, MOST_READINGS = 15, 1_000_000
SETTLING = BASELINE_ITEMS + 20
"""Items until the plan was made from paced ones."""
Array = npt.NDArray[Any]


@dataclass
class Watch:
    """The clocks of this process and its threads, and which part of the work they went on for."""

    probe: ctypes.CDLL

    def __post_init__(self) -> None:
        self._threads = np.zeros(MOST_THREADS, np.int32)
        self._counts = np.zeros(2, np.int64)  # of the threads so far; whether it is over
        self._at = np.zeros(MOST_READINGS, np.int64)
        self._used = np.zeros((MOST_READINGS, 1 + MOST_THREADS), np.int64)
        self._num_readings = 0
        self._parts: list[tuple[int, str, int, int]] = []
        self._own = threading.local()
        self._lock = threading.Lock()
        self.probe.watch_process.restype = ctypes.c_int64
        self._watcher = threading.Thread(target=self._read)

    def _read(self) -> None:
        arrays = (self._threads, self._counts, self._at, self._used)
        pointers = [ctypes.c_void_p(one.ctypes.data) for one in arrays]
        sizes = ctypes.c_int64(MOST_THREADS), ctypes.c_int64(MOST_READINGS)
        self._num_readings = self.probe.watch_process(*pointers, *sizes)

    def __enter__(self) -> "Watch":
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._counts[1] = 1
        self._watcher.join()

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """What this thread does meanwhile is of that part."""
        if not hasattr(self._own, "number"):
            with self._lock:
                self._own.number = number = int(self._counts[0])
                self._threads[number] = threading.get_native_id()
                self._counts[0] += 1
        began = time.thread_time_ns()
        try:
            yield
        finally:
            self._parts.append((self._own.number, name, began, time.thread_time_ns()))

    def used(self) -> tuple[Array, dict[str, Array]]:
        """Returns when the clocks were read, and what each part had used by then, in nanoseconds."""
        at, used = self._at[: self._num_readings], self._used[: self._num_readings]
        parts = dict[str, Array]()
        of_threads = np.zeros(len(at), np.int64)
        engine = np.zeros(len(at), np.float64)
        for number in range(int(self._counts[0])):
            clock = used[:, 1 + number]
            own = sorted((began, ended, name) for thread, name, began, ended in self._parts if thread == number)
            named = np.zeros(len(at), np.float64)
            for name in {name for *_, name in own}:
                pieces = np.array([(began, ended) for began, ended, one in own if one == name], np.float64)
                total = np.concatenate(([0.0], np.cumsum(pieces[:, 1] - pieces[:, 0])))
                by_now = np.interp(clock, pieces.ravel(), np.repeat(total, 2)[1:-1])
                parts[name] = parts.get(name, np.zeros(len(at))) + by_now
                named += by_now
            engine += clock - named
            of_threads += clock
        return at, {**parts, "engine": engine, "others": (used[:, 0] - of_threads).astype(np.float64)}


@dataclass(frozen=True)
class _Step:
    step: Any
    watch: Watch

    @property
    def takes(self) -> tuple[str, ...]:
        return tuple(self.step.takes)

    @property
    def gives(self) -> tuple[str, ...]:
        return tuple(self.step.gives)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.step, name)

    def __call__(self, fields: Mapping[str, Any]) -> Any:
        with self.watch.part(step_name(self.step)):
            return self.step(fields)


class _Program:
    def __init__(self, program: Any, watch: Watch) -> None:
        self._program, self._watch = program, watch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def run(self, inputs: Any) -> Any:
        with self._watch.part("network"):
            return self._program.run(inputs)


def _watched_stages(stages: tuple[StagePlan, ...], watch: Watch) -> tuple[StagePlan, ...]:
    return tuple(replace(one, steps=tuple(_Step(step, watch) for step in one.steps)) for one in stages)


def _watched_pipeline(plan: PipelinePlan, watch: Watch) -> PipelinePlan:
    return replace(plan, loaders=_watched_stages(plan.loaders, watch), posts=_watched_stages(plan.posts, watch))


def stream(bundle: str, probe: str, photo: str, budget_ms: str, count: str) -> None:
    """Runs a photo `count` times, paced if there is a budget, and prints the figures as JSON."""
    watch, budget, num_items = Watch(ctypes.CDLL(probe)), float(budget_ms), int(count)
    folder = Path(bundle).parent
    (folder / "find.toml").write_text(PIPELINE.format(bundle=Path(bundle).name), encoding="utf-8")
    goal = PaceGoal(max_latency_ns=round(budget * 1e6)) if budget else None
    options = RunOptions(threads=1, device="cpu", cache_dir="", pace=goal)
    began: dict[int, int] = {}
    took: dict[int, int] = {}
    with contextlib.ExitStack() as stack:
        loaded = opened_models(stack, None, folder / "find.toml", options, nndeploy.load_bundle)
        levels = tuple(tuple(_watched_pipeline(one, watch) for one in level) for level in loaded.plan.levels)
        programs: Any = {name: [_Program(one, watch) for one in some] for name, some in loaded.programs.items()}
        loaded = replace(loaded, plan=replace(loaded.plan, levels=levels), programs=programs)
        paths = [str(MODELS / "inputs" / photo) for _ in range(num_items)]
        output = folder / f"{os.getpid()}.jsonl"
        ends = Ends(lambda: sys.stdin.buffer, sys.stdout, Stop())
        run = open_run(loaded, paths, str(output), options, ends)
        write = run.sink.write

        def watched_write(outcome: Any) -> None:
            took[outcome.index] = outcome.item_ns
            with watch.part("write"):
                write(outcome)

        def load(item: Any) -> Any:
            began[item.index] = time.monotonic_ns()
            with watch.part("read"):
                return item.load()

        run.sink.write = watched_write  # type: ignore[method-assign]
        with watch:
            items = (replace(one, load=lambda one=one: load(one)) for one in run.source.items)
            run.stream.run(items, run.sink)
        run.source.close()
        pacing = loaded.pacing
        calm_ms = pacing.baseline_ns / 1e6 if isinstance(pacing, PacedStream) else 0.0
    digest = hashlib.sha256(output.read_bytes()).hexdigest()
    output.unlink()
    at, parts = watch.used()
    if num_items <= SETTLING:  # who asks for the calm time alone
        print(json.dumps({"calm_ms": calm_ms}))
        return
    print(json.dumps({
        **_windows(at, parts, began[SETTLING], began[num_items - 1], num_items - 1 - SETTLING),
        "calm_ms": calm_ms, "digest": digest,
        "took_ms": [took[index] / 1e6 for index in sorted(took)][SETTLING:],
    }))  # fmt: skip


def _windows(at: Array, parts: dict[str, Array], begin: int, end: int, num_items: int) -> dict[str, Any]:
    """Returns the shares of a core in each window, what an item costs, and what crowded windows are made of."""
    begins = np.arange(begin, end - WINDOW_NS, STEP_NS)
    ends = begins + WINDOW_NS
    of = {name: (np.interp(ends, at, used) - np.interp(begins, at, used)) / WINDOW_NS for name, used in parts.items()}
    whole = np.sum(list(of.values()), axis=0)
    crowded = whole > CROWDED
    cost = {name: float(np.interp(end, at, one) - np.interp(begin, at, one)) / 1e6 for name, one in parts.items()}
    return {
        "load": sum(cost.values()) / ((end - begin) / 1e6),
        "p50": float(np.median(whole)), "p98": float(np.quantile(whole, 0.98)), "most": float(whole.max()),
        "crowded": float(crowded.mean()),
        "item_ms": {name: one / num_items for name, one in cost.items()},
        "in_crowded": {name: float(one[crowded].mean()) if crowded.any() else 0.0 for name, one in of.items()},
    }  # fmt: skip
