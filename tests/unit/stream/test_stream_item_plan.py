# SPDX-License-Identifier: Apache-2.0
"""Planned ends of runners: levels add up, the longest of what stands beside each other counts, the total is kept."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streaming import Make, pipeline, plan_of, x_to_y

from nndeploy.pacing.plan.policy import PacePolicy
from nndeploy.pacing.stream.item_plan import ItemPlan, PacedItem, Window, baseline_ns, durations_of, planned

STEP = Make(("x",), ("y",), lambda x: x)
DURATION = st.floats(0, 1e9)


def stages(name, loaders=1, posts=1, **options):
    """Returns a pipeline with a runner between different loaders and post-processors."""
    return pipeline(name, [([STEP], 1)] * loaders, x_to_y(), [([STEP], 1)] * posts, **options)


def test_levels_follow_each_other_and_the_total_is_shared_by_their_runners() -> None:
    plan = plan_of(stages("a"), stages("b"))
    durations = {"a: loader": 5, "a: runner": 30, "a: post": 1, "b: loader": 2, "b: runner": 10, "b: post": 2}
    made = planned(plan, durations, 90)  # 50 without delays: the runners get as much again as they take
    assert baseline_ns(plan, durations) == 50
    assert made.windows == {"a: runner": Window(5, 65), "b: runner": Window(68, 88)}


def test_the_policy_says_how_runners_share_it() -> None:
    plan = plan_of(stages("a", 0, 0), stages("b", 0, 0))
    durations = {"a: runner": 30, "b: runner": 10}
    ends = {policy: planned(plan, durations, 80, policy).windows["a: runner"].end for policy in PacePolicy}
    assert ends == {PacePolicy.EQUAL: 50, PacePolicy.PROPORTIONAL: 60, PacePolicy.SOLVED: 60}


def test_of_different_processors_beside_each_other_the_longest_counts() -> None:
    plan = plan_of(stages("a", 2, 2))
    durations = {"a: loader 1": 5, "a: loader 2": 7, "a: runner": 10, "a: post 1": 3, "a: post 2": 1}
    assert planned(plan, durations, 30).windows == {"a: runner": Window(7, 27)}


def test_a_total_below_what_the_stages_take_leaves_no_delays() -> None:
    made = planned(plan_of(stages("a")), {"a: loader": 5, "a: runner": 10, "a: post": 5}, 10)
    assert made == ItemPlan({"a: runner": Window(5, 15)}, 20)


@given(st.lists(st.lists(st.tuples(
    DURATION, DURATION, DURATION
), min_size=1, max_size=3), max_size=4, min_size=1), DURATION)  # fmt: skip
def test_whatever_the_stages_take_windows_hold_them_and_end_in_time(levels, slack) -> None:
    plan = plan_of(*(tuple(stages(f"{i}.{j}") for j in range(len(level))) for i, level in enumerate(levels)))
    durations = {
        f"{i}.{j}: {stage}": duration
        for i, level in enumerate(levels)
        for j, three in enumerate(level)
        for stage, duration in zip(("loader", "runner", "post"), three, strict=True)
    }
    total = baseline_ns(plan, durations) + slack
    made, near, before = planned(plan, durations, total), 1e-6 * total + 1e-6, 0.0
    for i, level in enumerate(levels):
        ends = []
        for j, (loader, runner, post) in enumerate(level):
            window = made.windows[f"{i}.{j}: runner"]
            assert window.begin == pytest.approx(before + loader, abs=near)
            assert window.end - window.begin >= runner - near
            ends.append(window.end + post)
        assert ends == pytest.approx([max(ends)] * len(ends), abs=near)
        before = max(ends)
    assert before <= total + near


def test_parts_follow_each_other_through_the_runners_and_count_once_elsewhere() -> None:
    runner = x_to_y(devices=("cpu", "cpu"))
    plan = plan_of(pipeline("a", [([STEP], 1)], runner, [([STEP], 1)], each="list", part="x"))
    work = [("a: loader", 2), ("a: loader", 4), ("a: loader", 6), *[("a: runner", 10)] * 3, ("a: post", 1)]
    assert durations_of(plan, work) == {"a: loader": 4, "a: runner": 15, "a: post": 1}
    assert durations_of(plan, work[:4]) == {"a: loader": 4, "a: runner": 10, "a: post": 0}
    assert set(durations_of(plan, []).values()) == {0}  # a list without parts


def test_an_item_is_late_once_a_runner_has_it_for_longer_than_planned() -> None:
    item = PacedItem(1000, ItemPlan({"a": Window(10, 50), "b": Window(60, 90)}, 100))
    assert not item.is_late(1050)
    assert item.is_late(1051)
    item.done.append("a")
    assert not item.is_late(1090)
    assert item.is_late(1091)
    item.done.append("b")
    assert not item.is_late(1100)
    assert item.is_late(1101)
    assert not PacedItem(1000, None).is_late(10**9)


def test_a_share_of_the_work_is_due_after_that_share_of_the_window() -> None:
    assert [Window(10, 50).due(share) for share in (0.25, 1.0)] == [20, 50]
