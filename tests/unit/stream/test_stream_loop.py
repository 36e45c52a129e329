# SPDX-License-Identifier: Apache-2.0
"""A loop: a record goes round until it is done, each record by itself, and an error ends its own record alone."""

import time

import numpy as np
from streaming import Make, Program, within_limit

from nndeploy.errors import InputError
from nndeploy.stream.description import LoopPlan, PipelinePlan, RunnerPlan, StreamPlan
from nndeploy.stream.engine.engine import Stream
from nndeploy.stream.items import Item
from nndeploy.stream.sinks.sinks import NoSink
from nndeploy.values.types import TensorType

NUMBER = TensorType("float32", (1,))


def step(total, most):
    if total > 100:
        raise InputError("is too much")
    return total, total >= most


def streamed(items, outcomes=None):
    """Returns a stream of records that each add x to a state until it is at least `most`, and what runs it."""
    program = Program(lambda x, before: {"after": before + x}, {"x": NUMBER, "before": NUMBER}, {"after": NUMBER})
    loop = LoopPlan((Make(("after", "most"), ("total", "end"), step),), "end")
    runner = RunnerPlan({"x": "x"}, {"after": "after"}, devices=("", ""), carry={"after": "before"})
    stream = Stream(
        StreamPlan(((PipelinePlan("p", runner=runner, loop=loop),),), ("total",)), {"p": [program, program]}
    )
    given = [
        Item(i, str(i), str(i), lambda x=x, most=most: {"x": np.array([x], np.float32), "most": most})
        for i, (x, most) in enumerate(items)
    ]
    return stream, lambda: within_limit(
        lambda: stream.run(given, NoSink(), None if outcomes is None else outcomes.append)
    )


def ran(items, seen=None):
    """Returns the outcomes of such records; `seen` gets (index, whether it is the last one) of each round."""
    outcomes = []
    stream, run = streamed(items, outcomes)
    if seen is not None:
        stream.on_round = lambda record, is_last: seen.append((record.index, is_last))
    run()
    return outcomes


def test_each_record_goes_round_until_it_is_done() -> None:
    seen = []
    outcomes = ran([(1, 3), (5, 5), (2, 9), (-1, -7)] * 5, seen)
    assert [one.outputs["total"].tolist() for one in outcomes] == [[3], [5], [10], [-1]] * 5
    rounds = [sum(index == i for index, _ in seen) for i in range(20)]
    assert rounds == [3, 1, 5, 1] * 5
    assert sorted(index for index, is_last in seen if is_last) == list(range(20))


def test_a_record_that_fails_in_a_round_ends_there() -> None:
    outcomes = ran([(40, 1000), (1, 2)])
    assert [None if one.error is None else one.error.code for one in outcomes] == ["bad-input", None]
    assert outcomes[0].stage == "p: loop"
    assert outcomes[1].outputs["total"].tolist() == [2]


def test_a_record_of_many_rounds_does_not_stand_still() -> None:
    stood = []

    def seen(record, is_last):
        time.sleep(0.02)
        stood.append(stream.standstill_ns())

    stream, run = streamed([(1, 20)])
    stream.on_round = seen
    run()
    assert len(stood) == 20
    assert max(stood) < 200e6  # of the 400 ms that the record takes
