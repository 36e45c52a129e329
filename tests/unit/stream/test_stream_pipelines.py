# SPDX-License-Identifier: Apache-2.0
"""Every way to put pipelines together: each record has its one right outcome, in order, whatever the timing.

Plans are drawn with a seed: equal and different loaders and post-processors, levels, counts, lists worked on part by
part, errors, and delays that no two runs have alike. What comes out is compared with the same plan done by one thread.
"""

import random
import time
from dataclasses import dataclass

import pytest
from streaming import Make, Program, pipeline, plan_of, stream

from nndeploy.errors import InputError
from nndeploy.stream.description import RunnerPlan

pytestmark = pytest.mark.usefixtures("short_turns")
Random = random.Random
timing = Random()
"""Draws the delays, which differ from run to run."""

NUM_SCHEDULES = 12


@dataclass
class Drawn:
    """What one seed gives: sizes, delays and which steps fail on which record."""

    random: random.Random
    error_share: float = 0.0

    def count(self, most=3) -> int:
        return self.random.randint(1, most)

    def step(self, takes, name) -> Make:
        """Returns a step that writes down where a record went, and fails on some, always the same ones."""
        salt, share, slow = self.random.random(), self.error_share, self.random.choice((0, 0, 1e-4, 4e-4))

        def work(*values):
            origin = Random(f"{salt} {values}")
            if slow:
                time.sleep(slow * timing.random())
            if origin.random() < share:
                raise InputError(f"{name} refuses")
            return (name, *values)

        return Make(takes, (name,), work)

    def program(self, name) -> Program:
        step = self.step(("x",), name)
        return Program(lambda x: {"y": step({"x": x})[name]})


def drawn_pipeline(draw, name, takes):
    """Returns a pipeline, its program, and the field that it gives for the next level."""
    num_loaders, num_posts = draw.random.choice((0, 1, 1, 2, 3)), draw.random.choice((0, 1, 1, 2, 3))
    loads = [f"{name}.load{i}" for i in range(num_loaders)]
    loaders = [([draw.step((takes,), load)], draw.count()) for load in loads]
    made = f"{name}.y"
    runner = RunnerPlan({"x": loads[-1] if loads else takes}, {"y": made}, devices=("cpu",) * draw.count(2))
    posts = [f"{name}.post{i}" for i in range(num_posts)]
    post_stages = [([draw.step((made, *loads), post)], draw.count()) for post in posts]
    plan = pipeline(name, loaders, runner, post_stages)
    return plan, [draw.program(name)] * len(runner.devices), posts or [made]


def drawn_plan(seed, error_share):
    draw = Drawn(Random(seed), error_share)
    takes, levels, programs = "x", [], {}
    for level in range(draw.count(3)):
        pipelines, gives = [], []
        for number in range(draw.count(3)):
            plan, made, fields = drawn_pipeline(draw, f"l{level}p{number}", takes)
            pipelines.append(plan)
            programs[plan.name] = made
            gives += fields
        levels.append(tuple(pipelines))
        takes = draw.random.choice(gives)
    return plan_of(*levels, fields=tuple(gives), in_flight=draw.random.choice((0, 1, 2, 5))), programs


def by_one_thread(plan, programs, value):
    """Returns the fields of the outcome, or the errors of which one must come out."""
    fields, errors = {"x": value}, []
    for level in plan.levels:
        before, failed = dict(fields), []
        for one in level:
            own, problems = done_alone(one, programs, dict(before))
            fields.update(own)
            failed += problems
        if failed:
            return None, failed
    return {name: fields[name] for name in plan.fields}, errors


def done_alone(plan, programs, fields):
    made = {}

    def stage(kinds):
        problems, base = [], dict(fields)
        for kind in kinds:
            own = dict(base)
            try:
                for step in kind.steps:
                    new = step(own)
                    own.update(new)
                    made.update(new)
                    fields.update(new)
            except InputError as err:
                problems.append(err.what)
        return problems

    if problems := stage(plan.loaders):
        return made, problems
    try:
        outputs = programs[plan.name][0].function(x=fields[plan.runner.inputs["x"]])
    except InputError as err:
        return made, [err.what]
    new = {field: outputs[name] for name, field in plan.runner.outputs.items()}
    fields.update(new)
    made.update(new)
    return made, stage(plan.posts)


@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("error_share", [0.0, 0.08])
def test_every_plan_gives_what_one_thread_gives(block, error_share) -> None:
    for seed in range(block * NUM_SCHEDULES, (block + 1) * NUM_SCHEDULES):
        plan, programs = drawn_plan(seed, error_share)
        values = list(range(Random(seed).choice((0, 1, 7, 15))))
        is_ordered = seed % 4 != 3
        sink, summary = stream(plan, programs, values, is_ordered=is_ordered)
        assert sink.ending == "finished"
        outcomes = sink.outcomes if is_ordered else sorted(sink.outcomes, key=lambda one: one.index)
        assert [outcome.index for outcome in outcomes] == values, f"seed {seed}"
        for outcome in outcomes:
            want, errors = by_one_thread(plan, programs, outcome.index)
            assert outcome.outputs == want, f"seed {seed}"
            assert want is not None or (outcome.error is not None and outcome.error.what in errors), f"seed {seed}"
        assert summary.num_failed == sum(outcome.error is not None for outcome in outcomes)
