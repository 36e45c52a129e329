# SPDX-License-Identifier: Apache-2.0
"""Every way to route records through levels of models: each has one outcome that its routes allow, whatever the timing.

Sources, levels, their queues, conditions, shares, priorities, batches, workers that take several records at once and
errors are drawn with a seed, the delays differ from run to run. A value keeps count of who worked on it, so the outcome
of each record is compared with all that one thread could have made of it.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from streaming import Make, Program, Sink, pipeline, plan_of, within_limit

from nndeploy.errors import InputError
from nndeploy.stream.conditions.parsing import condition_from_text
from nndeploy.stream.description import LevelPlan, PipelinePlan, RoutePlan, RunnerPlan, StagePlan, StreamPlan
from nndeploy.stream.engine.engine import Stream, StreamOptions
from nndeploy.stream.items import Item, Outcome
from nndeploy.stream.sources.merging import merged_items
from nndeploy.stream.sources.readers import Feed, Readers, SourceFigures
from nndeploy.stream.sources.source_rules import ReadRules
from nndeploy.stream.stopping import Stop
from nndeploy.values.types import TensorType

pytestmark = pytest.mark.usefixtures("short_turns")
Random = random.Random
timing = Random()
"""Draws the delays."""
NUM_SCHEDULES = 12
SOURCES = ("a", "b", "c")
ROWS = TensorType("int64", ("N",))
CONDITIONS: Mapping[str, Callable[[int, int], bool]] = {
    "n < 4": lambda n, _: n < 4, "n in [1, 2, 3, 5, 7]": lambda n, _: n in (1, 2, 3, 5, 7),
    "x > 3000 or n == 0": lambda n, x: x > 3000 or n == 0, "not has(x)": lambda _, __: False,
}  # fmt: skip

Step = tuple[str, int, float]
"""A name, the digit that it appends, and the share of records that it refuses."""
Result = tuple[str, object]
"""How a record ends: its value, an error, or the level of which nobody took it."""


def refuses(step: Step, n: int, x: int) -> bool:
    name, _, share = step
    return Random(f"{name} {n} {x}").random() < share


@dataclass(frozen=True)
class Drawn:
    """A pipeline with what one thread needs to do the same: the steps before, in and behind its model."""

    plan: PipelinePlan
    loader: Step | None
    model: Step | None
    posts: tuple[Step, ...]
    when: Callable[[int, int], bool]

    def takes(self, source: str, n: int, x: int) -> bool:
        return self.plan.route.source in ("", source) and self.when(n, x)

    def alone(self, n: int, x: int) -> tuple[int, set[str]]:
        """Returns what becomes of a value, and the errors of which one comes out."""
        for step in filter(None, (self.loader, self.model)):
            if step is self.loader and refuses(step, n, x):
                return x, {step[0]}
            x = 10 * x + step[1]
        failed = {step[0] for step in self.posts if refuses(step, n, x)}
        return (10 * x + self.posts[0][1] if self.posts else x), failed


@dataclass(frozen=True)
class Draw:
    dice: Random
    error_share: float

    def step(self, name: str) -> Step:
        return name, self.dice.randrange(10), self.error_share

    def stage(self, step: Step, gives: str) -> StagePlan:
        slow = self.dice.choice((0.0, 0.0, 1e-4, 4e-4))

        def work(n: int, x: np.ndarray) -> np.ndarray:
            if slow:
                time.sleep(slow * timing.random())
            if refuses(step, n, int(x[0])):
                raise InputError(step[0])
            return 10 * x + step[1]

        return StagePlan((Make(("n", "x"), (gives,), work),), self.dice.randint(1, 3), self.dice.randint(1, 4))

    def route(self, queue: str, *, has_share: bool) -> tuple[RoutePlan, Callable[[int, int], bool]]:
        text = self.dice.choice(("", "", *CONDITIONS))
        made = RoutePlan(
            self.dice.choice(("", "", *SOURCES)),
            condition_from_text(text) if text else None,
            share=self.dice.randint(1, 3) if has_share else 0,
            priority=self.dice.choice((0, 0, 1)) if queue == "basic" and not has_share else 0,
        )
        return made, CONDITIONS.get(text, lambda _, __: True)

    def pipeline(self, name: str, queue: str, *, has_share: bool) -> tuple[Drawn, Program | None]:
        route, when = self.route(queue, has_share=has_share)
        loader = self.step(f"{name} loader") if self.dice.random() < 0.6 else None
        has_model = loader is None or self.dice.random() < 0.7
        model: Step | None = (f"{name} model", self.dice.randrange(10), 0.0) if has_model else None
        posts = tuple(self.step(f"{name} post {i}") for i in range(self.dice.choice((0, 1, 2))))
        runner = program = None
        if model is not None:
            runner = RunnerPlan(
                {"x": "x"}, {"y": "x"}, devices=("cpu",) * self.dice.randint(1, 2), batch=self.dice.choice((1, 1, 3))
            )
            program = Program(partial(_appended, model[1]), {"x": ROWS}, {"y": ROWS})
        plan = replace(
            pipeline(name, runner=runner, route=route),
            loaders=() if loader is None else (self.stage(loader, "x"),),
            posts=tuple(self.stage(post, "beside" if i else "x") for i, post in enumerate(posts)),
        )
        return Drawn(plan, loader, model, posts, when), program

    def level(self, number: int) -> tuple[LevelPlan, list[tuple[Drawn, Program | None]]]:
        queue = self.dice.choice(("copy", "basic", "switch"))
        has_share = queue == "basic" and self.dice.random() < 0.4
        how = LevelPlan(queue, self.dice.choice(("end", "pass")))
        count = self.dice.randint(1, 3)
        return how, [self.pipeline(f"l{number}p{i}", queue, has_share=has_share) for i in range(count)]


def _appended(digit: int, x: np.ndarray) -> dict[str, np.ndarray]:
    return {"y": 10 * x + digit}


def drawn_plan(draw: Draw) -> tuple[StreamPlan, list[list[Drawn]], dict[str, list[Program]]]:
    made = [draw.level(number) for number in range(1, draw.dice.randint(1, 3) + 1)]
    levels = [[one for one, _ in pipelines] for _, pipelines in made]
    programs = {
        one.plan.name: [program] * len(one.plan.runner.devices)
        for _, pipelines in made
        for one, program in pipelines
        if program is not None and one.plan.runner is not None
    }
    plan = plan_of(*(tuple(one.plan for one in level) for level in levels), fields=("x",))
    in_flight = draw.dice.choice((0, 3, 5))
    return replace(plan, hows=tuple(how for how, _ in made), in_flight=in_flight), levels, programs


def possible(plan: StreamPlan, levels: list[list[Drawn]], source: str, n: int, x: int) -> Iterator[Result]:
    """Yields every end that one thread could bring a record to, which has come to the first of these levels."""
    if not levels:
        yield "value", x
        return
    number = len(plan.levels) - len(levels) + 1
    how, (level, *others) = plan.how(number), levels
    takers = [one for one in level if one.takes(source, n, x)]
    if not takers:
        if how.not_taken == "pass":
            yield from possible(plan, others, source, n, x)
        else:
            yield "not taken", f"level {number}"
        return
    if how.queue == "copy":  # all of them work, and what the last one makes hides the others'
        ends = [one.alone(n, x) for one in takers]
        choices = [(ends[-1][0], set().union(*(failed for _, failed in ends)))]
    else:
        choices = [one.alone(n, x) for one in (takers[:1] if how.queue == "switch" else takers)]
    for made, failed in choices:
        if failed:
            yield from (("error", what) for what in failed)
        else:
            yield from possible(plan, others, source, n, made)


def end_of(outcome: Outcome) -> Result:
    if outcome.outputs is not None:
        return "value", int(outcome.outputs["x"][0])
    assert outcome.error is not None
    if not outcome.is_taken:
        return "not taken", outcome.stage
    return "error", outcome.error.what


def feed_of(source: str, count: int, rules: ReadRules, slow: float) -> Feed:
    def items(stop: Stop, _: SourceFigures) -> Iterator[Item]:
        for n in range(count):
            if stop.is_requested:
                return
            if slow:
                time.sleep(slow * timing.random())
            yield Item(n, f"{source}{n}", source, lambda n=n: {"n": n, "x": np.array([n + 1], np.int64)})

    return Feed(source, items, rules)


@pytest.mark.parametrize("block", range(6))
@pytest.mark.parametrize("error_share", [0.0, 0.1])
def test_every_record_comes_to_one_end_that_its_routes_allow(block, error_share) -> None:
    for seed in range(block * NUM_SCHEDULES, (block + 1) * NUM_SCHEDULES):
        draw = Draw(Random(seed), error_share)
        plan, levels, programs = drawn_plan(draw)
        counts = {source: draw.dice.choice((0, 1, 9)) for source in SOURCES[: draw.dice.randint(1, 3)]}
        stop, sink, is_ordered = Stop(), Sink(), seed % 3 != 2
        feeds = [
            feed_of(source, count, ReadRules(buffer=draw.dice.choice((1, 4))), draw.dice.choice((0.0, 3e-4)))
            for source, count in counts.items()
        ]
        readers = Readers(feeds, stop)
        made = Stream(plan, programs, StreamOptions(is_ordered=is_ordered), stop)
        try:
            summary = within_limit(partial(made.run, merged_items(readers, list(counts)), sink))
        finally:
            readers.close()
            stop.close()
        want = sorted(f"{source}{n}" for source, count in counts.items() for n in range(count))
        assert sorted(one.origin for one in sink.outcomes) == want, f"seed {seed}: lost or doubled"
        indices = [one.index for one in sink.outcomes]
        assert (indices if is_ordered else sorted(indices)) == list(range(len(want))), f"seed {seed}"
        for one in sink.outcomes:
            n = int(one.origin[1:])
            allowed = set(possible(plan, levels, one.source, n, n + 1))
            assert end_of(one) in allowed, f"seed {seed}: {one.origin}"
        ends = [end_of(one)[0] for one in sink.outcomes]
        told = (summary.num_items, summary.num_failed, summary.num_not_taken)
        assert told == (len(want), ends.count("error"), ends.count("not taken")), f"seed {seed}"
