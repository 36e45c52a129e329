# SPDX-License-Identifier: Apache-2.0
"""Who takes a record: by condition, by source, by shares and priorities; and a record that nobody takes."""

import threading
from collections import Counter
from dataclasses import replace

import pytest
from streaming import Make, items_of, plan_of, stream

from nndeploy.errors import InputError
from nndeploy.stream.conditions.parsing import condition_from_text
from nndeploy.stream.description import LevelPlan, PipelinePlan, RoutePlan, StagePlan


def took(name, *, workers=1, work=lambda x: x, take=1, **route) -> PipelinePlan:
    """Returns a pipeline that gives `by`: its name and what it took; `work` is done on x."""
    if "when" in route:
        route["when"] = condition_from_text(route["when"])
    stage = StagePlan((Make(("x",), (f"by_{name}",), lambda x: (name, work(x))),), workers, take)
    return PipelinePlan(name, (stage,), route=RoutePlan(**route))


def plan_with(queue, *level, not_taken="end", more=(), in_flight=0):
    fields = tuple(f"by_{one.name}" for one in level) + tuple(name for one in more for name in one.gives)
    plan = plan_of(tuple(level), *more, fields=fields)
    hows = (LevelPlan(queue, not_taken), *[LevelPlan()] * len(more))
    return replace(plan, in_flight=in_flight, may_lack=frozenset(fields), hows=hows)


def takers_of(outcomes):
    return [sorted(name for name, _ in (outcome.outputs or {}).values()) for outcome in outcomes]


EVEN = "x in [0, 2, 4, 6, 8]"


@pytest.mark.parametrize("queue", ["copy", "basic", "switch"])
def test_a_record_that_nobody_takes_is_an_outcome_of_its_own(queue) -> None:
    plan = plan_with(queue, took("even", when=EVEN), took("other", when="x == 1"), more=(took("after"),))
    sink, summary = stream(plan, {}, range(10), stop_on_error=True)
    nobody = [outcome.index for outcome in sink.outcomes if not outcome.is_taken]
    assert nobody == [3, 5, 7, 9]
    assert {outcome.stage for outcome in sink.outcomes if not outcome.is_taken} == {"level 1"}
    assert str(sink.outcomes[3].error) == "item 3: no pipeline of level 1 takes it"
    assert not any(outcome.is_failed for outcome in sink.outcomes)
    assert (summary.num_items, summary.num_failed, summary.num_not_taken) == (10, 0, 4)


@pytest.mark.parametrize("queue", ["copy", "basic", "switch"])
def test_a_record_that_passes_every_level_has_the_fields_of_its_source_or_the_error_of_reading_it(queue) -> None:
    plan = plan_with(queue, took("a", source="a"), not_taken="pass")
    sink, summary = stream(replace(plan, fields=("x",), may_lack=frozenset()), {}, [1, InputError("unreadable"), 3])
    assert [outcome.outputs for outcome in sink.outcomes] == [{"x": 1}, None, {"x": 3}]
    assert str(sink.outcomes[1].error) == "item 1: unreadable"
    assert (summary.num_failed, summary.num_not_taken) == (1, 0)


def test_a_record_that_cannot_be_asked_is_an_error_of_its_level() -> None:
    plan = plan_with("switch", took("even", when="x > 0"), took("other"))
    sink, summary = stream(plan, {}, [1, "text", InputError("unreadable"), 2])
    assert [outcome.error is None for outcome in sink.outcomes] == [True, False, False, True]
    assert str(sink.outcomes[1].error) == "item 1: when: 'x' is a text, and a number a number"
    assert (sink.outcomes[1].stage, summary.num_failed) == ("level 1", 2)


def test_shares_are_kept_to_one_record() -> None:
    plan = plan_with("basic", took("a", share=3), took("b", share=1), took("c", share=2))
    for count in (1, 5, 6, 61, 600):
        sink, _ = stream(plan, {}, range(count))
        found = Counter(name for (name,) in takers_of(sink.outcomes))
        for name, share in (("a", 3), ("b", 1), ("c", 2)):
            assert abs(found[name] - count * share / 6) <= 1, f"{name} of {count}"


def test_shares_are_of_the_records_that_a_pipeline_takes() -> None:
    plan = plan_with("basic", took("a", share=1), took("b", share=1, when=EVEN))
    sink, _ = stream(plan, {}, range(10))
    found = takers_of(sink.outcomes)
    assert all(found[x] == ["a"] for x in range(1, 10, 2))
    assert Counter(name for (name,) in found[::2]) in (Counter(a=3, b=2), Counter(a=2, b=3))


class Gate:
    """Lets the records in a pipeline wait until it is opened."""

    def __init__(self):
        self.open, self.inside = threading.Event(), []

    def __call__(self, x):
        self.inside.append(x)
        assert self.open.wait(20)
        return x


def test_one_that_is_busy_leaves_records_to_others() -> None:
    gate = Gate()

    def last(x):
        if x == 9:
            gate.open.set()
        return x

    plan = plan_with("basic", took("slow", work=gate, priority=1), took("quick", work=last), in_flight=20)
    sink, _ = stream(plan, {}, range(10))
    assert takers_of(sink.outcomes) == [["slow"]] + [["quick"]] * 9
    assert gate.inside == [0]


def test_the_higher_priority_takes_all_that_it_has_room_for() -> None:
    plan = plan_with("basic", took("low"), took("high", priority=5, workers=3), in_flight=3)
    sink, _ = stream(plan, {}, range(50))
    assert takers_of(sink.outcomes) == [["high"]] * 50


def test_thousands_that_wait_are_handed_out_one_after_the_other_and_not_within_each_other() -> None:
    gate, count = Gate(), 1500
    stage = StagePlan((Make(("part",), ("y",), gate),))
    plan = replace(
        plan_of(PipelinePlan("a", (stage,), each="x", part="part", keep=("y",)), fields=("y",), in_flight=count + 5),
        hows=(LevelPlan("basic"),), may_lack=frozenset({"y"}),
    )  # fmt: skip
    routed = replace(plan.levels[0][0], route=RoutePlan(when=condition_from_text("has(x)")))
    plan = replace(plan, levels=((routed,),))

    def values():
        yield [1]
        for _ in range(count):
            yield []
        gate.open.set()

    sink, _ = stream(plan, {}, iter(items_of(values())))
    assert [outcome.outputs["y"] for outcome in sink.outcomes] == [[1]] + [[]] * count


@pytest.mark.parametrize("take", [1, 4, 1000])
def test_a_worker_may_take_several_records_at_once(take) -> None:
    seen, gate = [], threading.Event()

    def work(x):
        seen.append(x)
        if x == 0:
            assert gate.wait(20)
        return x

    plan = plan_with("copy", took("one", work=work, take=take), in_flight=20)

    def values():
        for x in range(12):
            if x == 11:
                gate.set()
            yield x

    sink, _ = stream(plan, {}, iter(items_of(values())))
    assert takers_of(sink.outcomes) == [["one"]] * 12
    assert seen == list(range(12)), "each once and in order"
