# SPDX-License-Identifier: Apache-2.0
"""What tests of streams share: steps, programs and sinks that need no bundle, and a time limit for deadlocks."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from nndeploy.bundle.manifest import Manifest, NamedType
from nndeploy.stream.description import PipelinePlan, RunnerPlan, StagePlan, StreamPlan
from nndeploy.stream.engine.engine import Stream, StreamOptions
from nndeploy.stream.items import Item, Outcome
from nndeploy.values.types import TensorType, ValueType

SECONDS = 30.0
"""A stream of a test that is not done by then has stuck."""


def wait_until(is_so: Callable[[], bool]) -> None:
    """Looks again and again; a limit is `within_limit`'s."""
    while not is_so():
        time.sleep(0.001)


def within_limit(work: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """Returns what `work` returns or raises; fails where it does not end."""
    result: list[Any] = []
    error: list[BaseException] = []

    def attempt() -> None:
        try:
            result.append(work())
        except BaseException as err:
            error.append(err)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        pytest.fail(f"stuck: not done after {seconds} s")
    if error:
        raise error[0]
    return result[0]


@dataclass(frozen=True)
class Make:
    """A step: `gives[0]` becomes `function(*fields)`, the function's results where it gives several."""

    takes: tuple[str, ...]
    gives: tuple[str, ...]
    function: Callable[..., Any]

    def __call__(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        made = self.function(*[fields[name] for name in self.takes])
        return dict(zip(self.gives, (made,) if len(self.gives) == 1 else made, strict=True))


@dataclass(eq=False)
class Program:
    """A program that computes with a Python function of its inputs, by name."""

    rows_at_once = 1 << 31

    function: Callable[..., Mapping[str, Any]]
    inputs: Mapping[str, ValueType] = field(default_factory=lambda: {"x": TensorType("float32", None)})
    outputs: Mapping[str, ValueType] = field(default_factory=lambda: {"y": TensorType("float32", None)})
    ranges: Mapping[str, Any] = field(default_factory=dict)
    calls: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def manifest(self) -> Manifest:
        inputs = tuple(NamedType(*item) for item in self.inputs.items())
        outputs = tuple(NamedType(*item) for item in self.outputs.items())
        return Manifest("m", "0" * 64, inputs, outputs, (), {}, ranges=self.ranges)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        self.calls.append(inputs)
        return dict(self.function(**inputs))


@dataclass
class Sink:
    """Keeps the outcomes."""

    outcomes: list[Outcome] = field(default_factory=list)
    ending: str = ""

    def write(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def finish(self) -> None:
        self.ending = "finished"

    def discard(self) -> None:
        self.ending = "discarded"


def items_of(values, name="x"):
    """Yields an item for each value; an exception is raised when the item is read."""

    def load(value):
        if isinstance(value, BaseException):
            raise value
        return value if isinstance(value, dict) else {name: value}

    for index, value in enumerate(values):
        yield Item(index, f"item {index}", str(index), lambda value=value: load(value))


def pipeline(name="p", loaders=(), runner=None, posts=(), **options) -> PipelinePlan:
    """Returns a pipeline; a loader or post-processor is (steps, workers)."""
    return PipelinePlan(
        name, tuple(StagePlan(tuple(steps), n) for steps, n in loaders), runner,
        tuple(StagePlan(tuple(steps), n) for steps, n in posts), **options,
    )  # fmt: skip


def plan_of(*levels, fields=("y",), in_flight=0) -> StreamPlan:
    """Returns a plan of levels; a level is a pipeline or several."""
    return StreamPlan(tuple(level if isinstance(level, tuple) else (level,) for level in levels), fields, in_flight)


def x_to_y(**options) -> RunnerPlan:
    """Returns how the field x goes through a model into the field y."""
    return RunnerPlan({"x": "x"}, {"y": "y"}, **options)


def stream(plan, programs, values, sink=None, on_outcome=None, stop=None, tracer=None, limit=SECONDS, **options):
    """Returns the sink after the values went through the plan, and the summary."""
    sink = sink or Sink()
    items = values if hasattr(values, "__next__") else items_of(values)
    lists = {name: made if isinstance(made, list) else [made] for name, made in programs.items()}
    made = Stream(plan, lists, StreamOptions(**options), stop, tracer)
    return sink, within_limit(lambda: made.run(items, sink, on_outcome), limit)
