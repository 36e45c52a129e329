# SPDX-License-Identifier: Apache-2.0
"""A loop: a record goes round until it is done, alone or with others, and an error ends its own record alone."""

import threading
import time
from functools import partial

import numpy as np
import pytest
from streaming import Make, Program, within_limit

from nndeploy.errors import InputError, UsageError
from nndeploy.stream.description import LevelPlan, LoopPlan, PipelinePlan, RunnerPlan, StagePlan, StreamPlan
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


def mean_of_all(x, mask, past, *, leaves_out=True):
    """Returns a cache with `x` behind it, and the mean of what is in it, of all rows; 13 in it is an error."""
    cache = np.concatenate([past, x], 1)
    if (cache == 13).any():
        raise InputError("holds 13")
    count = mask.sum(1) if leaves_out else np.full(len(cache), cache.shape[1])
    return {"mean": (cache * (mask if leaves_out else 1)).sum(1, keepdims=True) / count[:, None], "present": cache}


def together(given, function=mean_of_all, waits_at=1):
    """Returns the outcomes and the rows of each call of records whose cache gets x, x + 1 and so on for some rounds.

    The first is there from the beginning, as many of the others as one call takes from the call `waits_at`.
    """
    begun, come = threading.Event(), threading.Event()

    def call(**inputs):
        if len(program.calls) == waits_at:
            begun.set()
            assert come.wait(10)
        return function(**inputs)

    sizes = {"x": ("rows", "new"), "mask": ("rows", "past + new"), "past": ("rows", "past")}
    types = {name: TensorType("float32", shape) for name, shape in sizes.items()}
    outputs = {"mean": TensorType("float32", ("rows", 1)), "present": TensorType("float32", ("rows", "past + new"))}
    program = Program(call, types, outputs)

    def step(x, mask, rounds):
        more = np.concatenate([mask, np.ones((1, 1), np.float32)], 1)
        return x[:, -1:] + 1, more, rounds - 1, rounds == 1

    loop = LoopPlan((Make(("x", "mask", "rounds"), ("x", "mask", "rounds", "end"), step),), "end")
    runner = RunnerPlan({"x": "x", "mask": "mask"}, {"mean": "mean"}, batch=4, carry={"present": "past"})
    plan = StreamPlan(((PipelinePlan("p", runner=runner, loop=loop),),), ("mean",))
    outcomes = []

    def fields(x, rounds):
        return {"x": np.array([x], np.float32), "mask": np.ones((1, len(x)), np.float32), "rounds": rounds}

    def items():
        for i, one in enumerate(given):
            assert i == 0 or begun.wait(10)
            yield Item(i, str(i), str(i), partial(fields, *one))
            if i + 1 == min(4, len(given)):
                come.set()

    within_limit(lambda: Stream(plan, {"p": [program]}).run(items(), NoSink(), outcomes.append))
    return outcomes, [len(call["x"]) for call in program.calls]


def mean_alone(x, rounds):
    return np.mean([*x, *(x[-1] + 1 + i for i in range(rounds - 1))])


RECORDS = [([1, 2, 3], 5), ([40], 9), ([7, 7], 1), ([5, 4, 3, 2], 3), ([60], 9), ([9], 2), ([8, 1], 7)] * 3


@pytest.mark.parametrize("leaves_out", [True, False])
def test_records_that_go_together_get_what_they_get_alone(leaves_out) -> None:
    """Also where the model counts places that were filled up: such records have a call each."""
    outcomes, calls = together(RECORDS, partial(mean_of_all, leaves_out=leaves_out))
    assert [one.index for one in outcomes] == list(range(len(RECORDS)))
    means = [float(one.outputs["mean"].item()) for one in outcomes]
    np.testing.assert_allclose(means, [mean_alone(*record) for record in RECORDS], rtol=1e-6)
    assert calls.count(4) > 5 if leaves_out else calls.count(4) <= 1


def test_a_record_joins_those_that_are_going_round() -> None:
    _, calls = together([([1], 50), ([2], 3)], waits_at=10)
    assert calls[:10] == [1] * 10
    assert calls.count(2) == 3


def test_of_records_that_go_together_one_that_fails_ends_alone() -> None:
    outcomes, calls = together([([1, 2], 6), ([10], 6), ([3], 6)])
    assert [None if one.error is None else one.error.code for one in outcomes] == [None, "bad-input", None]
    assert [float(outcomes[i].outputs["mean"].item()) for i in (0, 2)] == pytest.approx(
        [mean_alone([1, 2], 6), mean_alone([3], 6)]
    )
    assert max(calls) == 3


def test_a_model_whose_rows_touch_each_other_ends_the_stream() -> None:
    def mixed(x, mask, past):
        return {"mean": np.full((len(x), 1), x.sum()), "present": np.concatenate([past, x], 1)}

    with pytest.raises(UsageError):
        together([([1], 5), ([2], 5), ([3], 5)], mixed)


def test_records_go_back_to_an_earlier_level_until_they_are_done() -> None:
    """Each halves its number until that is 1; of some two levels fail, which ends them; all come out in their order."""

    def halved(x, steps):
        if x == 13:
            raise InputError("is no number")
        return x // 2, steps + 1

    def step_of(takes, gives, function):
        return (PipelinePlan(gives[0], (StagePlan((Make(takes, gives, function),), 2),)),)

    levels = (
        step_of(("n",), ("x", "steps"), lambda n: (n, 0)),
        step_of(("x", "steps"), ("x", "steps"), halved),
        step_of(("x",), ("done",), lambda x: x <= 1),
    )
    hows = (LevelPlan(), LevelPlan(), LevelPlan(back_to=2, until="done"))
    outcomes, numbers = [], [1, 1000, 26, 7, 2, 13] * 9
    stream = Stream(StreamPlan(levels, ("x", "steps"), hows=hows), {})
    items = [Item(i, str(i), str(i), lambda n=n: {"n": n}) for i, n in enumerate(numbers)]
    within_limit(lambda: stream.run(items, NoSink(), outcomes.append))
    steps = [None if one.error else one.outputs["steps"] for one in outcomes]
    assert steps == [max(n.bit_length() - 1, 1) if n not in (26, 13) else None for n in numbers]
