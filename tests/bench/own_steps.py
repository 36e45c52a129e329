# SPDX-License-Identifier: Apache-2.0
"""A step of one's own in pure Python, which holds Python's lock all the while, as an engine of a race.

The step is a plugin in a folder of its own, as a user's is, so that processes make it too.
"""

import functools
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from figures import ROOT
from interleaved import Array, Inputs, Ready

from nndeploy.processors import registry
from nndeploy.stream.engine.engine import Stream
from nndeploy.stream.items import Item, Outcome
from nndeploy.stream.pipeline.checked_plan import checked_plan
from nndeploy.stream.pipeline.pipeline_file import pipeline_from_toml

sys.path.append(str(ROOT / "tests"))

from plugin_distribution import write_distribution

STEP = '''
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class Counted:
    """Counts in pure Python."""
    name: ClassVar[str] = "counted"
    takes: ClassVar[tuple[str, ...]] = ("x",)
    gives: ClassVar[tuple[str, ...]] = ("y",)
    rounds: int = 1

    def __call__(self, x):
        total = x
        for i in range(self.rounds):
            total = (total * 31 + i) % 1000003
        return total
'''
PIPELINE = """
[source]
kind = "json-lines"
fields = ["x"]
[[level]]
[[level.pipeline]]
runners = 0
[[level.pipeline.loader]]
{how}
steps = [{{ use = "counted", rounds = {rounds} }}]
"""


def counted(inputs: Inputs, how: str, rounds: int, count: int) -> Ready:
    """So many records through the step; `how` is "workers = N" or "processes = N", "" a loop without a stream."""
    folder = Path(tempfile.mkdtemp(prefix="own-step-"))
    write_distribution(folder, "counted_step", STEP, registry.GROUP, "counted:Counted")
    sys.path.insert(0, str(folder))
    if not how:
        step = registry.processor_class("counted")(rounds=rounds)
        return Ready(lambda: [step(x) for x in range(count)], _arrays)  # type: ignore[operator] # a plugin's
    file = pipeline_from_toml(PIPELINE.format(how=how, rounds=rounds).encode(), "p.toml", _no_file)
    plan, _ = checked_plan(file, {})

    def call() -> list[int]:
        sink = _Sink()
        items = (Item(x, str(x), str(x), functools.partial(dict, x=x)) for x in range(count))
        Stream(plan, {}).run(items, sink)
        return sink.found

    return Ready(call, _arrays)


class _Sink:
    def __init__(self) -> None:
        self.found: list[int] = []

    def write(self, outcome: Outcome) -> None:
        if outcome.error is not None:
            raise outcome.error
        self.found.append((outcome.outputs or {})["y"])

    def finish(self) -> None:
        """Does nothing."""

    discard = finish


def _no_file(name: str) -> bytes:
    raise AssertionError(f"no step names the file {name}")


def _arrays(found: Any) -> list[Array]:
    return [np.array(found)]
