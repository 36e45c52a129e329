# SPDX-License-Identifier: Apache-2.0
"""Planned ends of stages: levels add up, the longest of what stands beside each other counts, the total is kept."""

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


def ends_of(made: ItemPlan) -> dict[str, tuple[float, float]]:
    return {stage: (pytest.approx(window.begin), pytest.approx(window.end)) for stage, window in made.windows.items()}


def test_levels_follow_each_other_and_the_total_is_shared_by_all_stages() -> None:
    plan = plan_of(stages("a"), stages("b"))
    durations = {"a: loader": 5, "a: runner": 30, "a: post": 1, "b: loader": 2, "b: runner": 10, "b: post": 2}
    made = planned(plan, durations, 100)  # 50 without delays: each stage gets as much again as it takes
    assert baseline_ns(plan, durations) == 50
    assert ends_of(made) == {
        "a: loader": (0, 10), "a: runner": (10, 70), "a: post": (70, 72),
        "b: loader": (72, 76), "b: runner": (76, 96), "b: post": (96, 100),
    }  # fmt: skip


def test_the_policy_says_how_levels_share_it() -> None:
    plan = plan_of(stages("a", 0, 0), stages("b", 0, 0))
    durations = {"a: runner": 30, "b: runner": 10}
    ends = {policy: planned(plan, durations, 80, policy).windows["a: runner"].end for policy in PacePolicy}
    assert ends == {PacePolicy.EQUAL: 50, PacePolicy.PROPORTIONAL: 60, PacePolicy.SOLVED: 60}


def test_of_different_processors_beside_each_other_the_longest_counts() -> None:
    plan = plan_of(stages("a", 2, 2))
    durations = {"a: loader 1": 5, "a: loader 2": 7, "a: runner": 10, "a: post 1": 3, "a: post 2": 1}
    assert ends_of(planned(plan, durations, 40)) == {
        "a: loader 1": (0, 14), "a: loader 2": (0, 14), "a: runner": (14, 34),
        "a: post 1": (34, 40), "a: post 2": (34, 40),
    }  # fmt: skip


def test_a_pipeline_beside_a_longer_one_has_until_that_is_done() -> None:
    plan = plan_of((stages("a"), stages("b")))
    durations = {"a: loader": 5, "a: runner": 30, "a: post": 5, "b: loader": 5, "b: runner": 0, "b: post": 5}
    ends = ends_of(planned(plan, durations, 80))
    assert ends["a: runner"] == (10, 70)
    assert ends["b: loader"] == (0, 40)
    assert ends["b: post"] == (40, 80)


def test_a_total_below_what_the_stages_take_leaves_no_delays() -> None:
    durations = {"a: loader": 5, "a: runner": 10, "a: post": 5}
    windows = {"a: loader": Window(0, 5), "a: runner": Window(5, 15), "a: post": Window(15, 20)}
    assert planned(plan_of(stages("a")), durations, 10) == ItemPlan(windows, 20, durations)


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
            end = before
            for stage, duration in zip(("loader", "runner", "post"), (loader, runner, post), strict=True):
                window = made.windows[f"{i}.{j}: {stage}"]
                if loader + runner + post:
                    assert window.begin == pytest.approx(end, abs=near)
                assert window.end - window.begin >= duration - near
                end = window.end
            ends.append(end)
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


def test_an_item_is_late_once_a_stage_has_it_for_longer_than_planned() -> None:
    windows = {"a": Window(10, 50), "b": Window(60, 90), "parts": Window(0, 1)}
    item = PacedItem(1000, ItemPlan(windows, 100, {}, frozenset({"parts"})), no_stretch)
    assert not item.is_late(1050)
    assert item.is_late(1051)
    item.done.append("a")
    assert not item.is_late(1090)
    assert item.is_late(1091)
    item.done.append("b")
    assert not item.is_late(1100)
    assert item.is_late(1101)
    assert not PacedItem(1000, None, no_stretch).is_late(10**9)


def no_stretch(due_ns: int, work_ns: int, *, is_followed: bool = True):
    raise AssertionError("nothing works here")


def test_a_share_of_the_work_is_due_after_that_share_of_the_window() -> None:
    assert [Window(10, 50).due(share) for share in (0.25, 1.0)] == [20, 50]
