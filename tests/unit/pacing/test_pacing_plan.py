# SPDX-License-Identifier: Apache-2.0
"""Plans: weights are shares, long operators are cut, goals are times."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.errors import UsageError
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.plan.operator_graph import OperatorGraph
from nndeploy.pacing.plan.pace_plan import BETWEEN_NS, serial_plan
from nndeploy.pacing.plan.policy import PacePolicy
from nndeploy.pacing.plan.solving import solve
from nndeploy.plugin.pacing import PART_NS

DURATIONS = st.lists(st.floats(0, 1e9).map(lambda duration: round(duration, 3)), min_size=1, max_size=50)


@given(DURATIONS)
def test_delays_are_proportional_to_the_durations(durations: list[float]) -> None:
    plan = serial_plan(np.array(durations), np.full(len(durations), False), 1e15, 0.0)
    total = sum(durations[:-1]) or 1.0
    np.testing.assert_allclose(plan.weights, np.array([*durations[:-1], 0.0]) / total, rtol=1e-12)
    np.testing.assert_allclose(plan.before + plan.durations, np.cumsum(durations), rtol=1e-9)
    np.testing.assert_allclose(plan.weight_before + plan.weights, np.cumsum(plan.weights), rtol=1e-9)


@given(DURATIONS, st.sampled_from(PacePolicy))
def test_delays_are_those_that_the_policy_gives_a_row(durations: list[float], policy: PacePolicy) -> None:
    last = len(durations) - 1
    graph = OperatorGraph(durations, [(i, i + 1) for i in range(last)])
    slack = max(1e3, graph.baseline_ns)
    delays = solve(graph, graph.baseline_ns + slack, policy)
    plan = serial_plan(np.array(durations), np.full(len(durations), False), 1e15, 0.0, policy)
    np.testing.assert_allclose(plan.weights[:last] * slack, delays, rtol=1e-6, atol=1e-6 * slack)
    assert plan.weights[last] == 0


def test_equal_delays_are_the_same_behind_every_operator() -> None:
    durations = np.array([1.0, 50.0, 0.0, 7.0])
    plan = serial_plan(durations, np.full(4, False), 1e15, 0.0, PacePolicy.EQUAL)
    np.testing.assert_allclose(plan.weights, [1 / 3, 1 / 3, 1 / 3, 0])


@given(DURATIONS)
def test_no_part_is_longer_than_it_may_be(durations: list[float]) -> None:
    plan = serial_plan(np.array(durations), np.full(len(durations), True), 1e15, 0.0)
    assert (plan.parts >= 1).all()
    assert (plan.durations / plan.parts <= PART_NS * (1 + 1e-9)).all()
    assert plan.next_durations[-1] == BETWEEN_NS
    np.testing.assert_allclose(plan.next_durations[:-1], (plan.durations / plan.parts)[1:])


def test_a_share_of_the_processor_is_a_time() -> None:
    assert PaceGoal(cpu_limit=0.25).budget_ns(10e6) == 40_000_000
    assert PaceGoal(max_latency_ns=7).budget_ns(10e6) == 7


def test_a_budget_below_the_baseline_names_the_least_that_works() -> None:
    with pytest.raises(UsageError, match=r"takes 24 ms without delays: 8 ms leave no time") as caught:
        PaceGoal(max_latency_ns=8_000_000).check(24e6)
    least = 24.5
    assert f"--max-latency {least:g}ms is the minimum" in caught.value.hint
    PaceGoal(max_latency_ns=round(least * 1e6)).check(24e6)


@pytest.mark.parametrize(("latency", "limit"), [(0, 0.0), (0, 1.0), (-1, 0.0)])
def test_a_goal_needs_a_time_or_a_share(latency: int, limit: float) -> None:
    with pytest.raises(UsageError, match="needed to pace by"):
        PaceGoal(latency, limit)


def test_what_cannot_be_cut_is_one_part() -> None:
    durations, can_be = np.array([10.0, 10.0]) * PART_NS, np.array([False, True])
    plan = serial_plan(durations, can_be, 40 * PART_NS, 0.0)
    assert plan.parts.tolist() == [1, 10]
    assert plan.next_durations.tolist() == [PART_NS, BETWEEN_NS]
    assert serial_plan(durations, can_be, 20 * PART_NS, 0.0).parts.tolist() == [1, 1]  # nothing to sleep in
    assert serial_plan(durations, can_be, 40 * PART_NS, 20 * PART_NS).parts.tolist() == [1, 1]
