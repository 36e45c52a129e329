# SPDX-License-Identifier: Apache-2.0
"""Submodels that run at once: along a way delays add up, where branches join the latest counts, and slack is used."""

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.pacing.plan.load_curve import expected_timeline
from nndeploy.pacing.plan.pace_plan import PacePlan, PairShares, serial_plan
from nndeploy.pacing.plan.policy import PacePolicy
from nndeploy.pacing.run.branches import Branches, BranchPlans, branch_plans

_Array: TypeAlias = "np.ndarray[Any, Any]"
MS = 1e6
FORK = Branches((0, 4, 6), ((0, 2), (1, 2)), 8)
"""Two submodels, of four points and of two, before one of two."""
DURATIONS = np.array([4.0, 4, 4, 4, 3, 1, 1, 1]) * MS


def whole(durations: _Array, presets: "_Array | None" = None, sharing: "_Array | None" = None) -> PacePlan:
    shares = PairShares(
        np.ones(len(durations)) if sharing is None else sharing,
        np.zeros(len(durations)) if presets is None else presets,
        is_chosen=sharing is not None,
    )
    return serial_plan(durations, np.full(len(durations), False), 1e15, 0.0, pairs=shares)


def plans(total: float, policy: PacePolicy, branches: Branches = FORK, durations: _Array = DURATIONS) -> BranchPlans:
    return branch_plans(branches, np.arange(len(durations)), whole(durations), total, policy)


def mean_square_load(found: BranchPlans) -> float:
    """Returns how uneven the load is: work^2 over the time that it has, of all submodels."""
    work = np.array([plan.total for plan in found.plans])
    return float((work**2 / (work + found.room)).sum())


def test_the_total_is_the_latest_where_branches_join() -> None:
    found = plans(36 * MS, PacePolicy.PROPORTIONAL)
    assert found.dues == (32 * MS, 8 * MS, 36 * MS)  # twice its work each: the way of the first is all of the time
    assert found.room.tolist() == [16 * MS, 4 * MS, 2 * MS]
    serial = 22 * MS
    assert FORK.baseline_ns(DURATIONS) == 18 * MS < serial == DURATIONS.sum()


def test_what_a_short_branch_has_left_is_slept_by_the_solved_plan() -> None:
    proportional, solved = (plans(36 * MS, policy) for policy in (PacePolicy.PROPORTIONAL, PacePolicy.SOLVED))
    assert solved.dues == (32 * MS, 32 * MS, 36 * MS)
    assert solved.room.tolist() == [16 * MS, 28 * MS, 2 * MS]
    assert solved.dues[-1] == proportional.dues[-1]  # within the same time
    assert mean_square_load(solved) < 0.9 * mean_square_load(proportional)


def test_the_solved_plan_is_flatter_where_branches_cross() -> None:
    crossed = Branches((0, 1, 2, 3, 4), ((0, 2), (0, 3), (1, 3), (2, 4), (3, 4)), 5)
    durations = np.array([2.0, 9, 1, 4, 3]) * MS
    proportional, solved = (
        plans(40 * MS, policy, crossed, durations) for policy in (PacePolicy.PROPORTIONAL, PacePolicy.SOLVED)
    )
    assert max(solved.dues) == max(proportional.dues) == 40 * MS
    assert (solved.room >= proportional.room - 1).all()
    assert mean_square_load(solved) < mean_square_load(proportional)


def test_processors_have_less_load_at_once_by_the_graph_than_one_after_another() -> None:
    granted = 24 * MS  # of which 22 are work: one after another there are 2 to sleep in, at once there are 6
    serial = expected_timeline(whole(DURATIONS), granted)
    found = plans(granted, PacePolicy.SOLVED)
    lanes = [
        expected_timeline(plan, plan.total + room) for plan, room in zip(found.plans, found.room.tolist(), strict=True)
    ]
    assert max(lane.mean for lane in lanes) < 0.8 < serial.mean
    assert max(lane.peak for lane in lanes[:2]) < serial.peak


def test_delays_that_are_set_count_along_their_way() -> None:
    presets = np.zeros(8)
    presets[1], presets[4] = 5 * MS, 2 * MS
    plan = whole(DURATIONS, presets, np.zeros(8))
    found = branch_plans(FORK, np.arange(8), plan, 30 * MS, PacePolicy.PROPORTIONAL)
    assert [delays.sum() for delays in found.delays] == [5 * MS, 2 * MS, 0]
    assert found.dues[0] >= 21 * MS


def test_a_submodel_that_others_wait_for_may_sleep_at_its_end_and_the_last_one_not() -> None:
    found = plans(36 * MS, PacePolicy.PROPORTIONAL)
    assert [plan.following > 0 for plan in found.plans] == [True, True, False]
    assert found.plans[0].weights.tolist() == [0.25] * 4
    assert found.plans[2].weights.tolist() == [1.0, 0.0]


def test_points_may_be_passed_in_another_order_than_their_numbers() -> None:
    order = np.array([3, 1, 0, 2, 5, 4, 6, 7])
    durations = np.empty(8)
    durations[order] = DURATIONS + np.arange(8)  # by place
    found = branch_plans(FORK, order, whole(durations), 36 * MS, PacePolicy.PROPORTIONAL)
    assert found.points[0].tolist() == [2, 1, 3, 0]
    for points, plan in zip(found.points, found.plans, strict=True):
        np.testing.assert_array_equal(plan.durations, (DURATIONS + np.arange(8))[points])


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Branches, _Array, float]:
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))
    edges = [(a, b) for b in range(len(sizes)) for a in range(b) if draw(st.booleans())]
    firsts = np.concatenate(([0], np.cumsum(sizes)[:-1])).tolist()
    durations = np.array(draw(st.lists(st.integers(0, 9), min_size=sum(sizes), max_size=sum(sizes))), float) * MS
    return Branches(tuple(firsts), tuple(edges), sum(sizes)), durations, draw(st.floats(1.0, 4.0))


@given(graphs(), st.sampled_from(PacePolicy))
def test_nobody_is_due_before_it_can_be_and_all_are_done_in_time(made, policy) -> None:
    branches, durations, factor = made
    total = branches.baseline_ns(durations) * factor
    found = branch_plans(branches, np.arange(len(durations)), whole(durations), total, policy)
    work = np.array([plan.total for plan in found.plans])
    assert max(found.dues) <= total * (1 + 1e-6) + 1
    assert (found.room >= 0).all()
    for a, b in branches.edges:
        assert (
            found.dues[b] >= found.dues[a] + work[b] + found.room[b] - 1e-6 * total - 2 or policy is PacePolicy.SOLVED
        )
        assert found.dues[b] >= found.dues[a] + work[b] - 1e-6 * total - 2
    late = replace(found.plans[0], burst=0.0)
    assert expected_timeline(late, late.total).sleeps.size == 0


def test_without_time_nobody_sleeps() -> None:
    found = plans(1.0, PacePolicy.PROPORTIONAL)
    assert not found.room.any()
    assert found.dues == pytest.approx((16 * MS, 4 * MS, 18 * MS))
