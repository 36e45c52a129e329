# SPDX-License-Identifier: Apache-2.0
"""Delays in graphs: totals and bounds are kept, levels are as high as can be, and HiGHS finds none that is higher."""

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.errors import UnavailableError, UsageError
from nndeploy.pacing.plan import slack
from nndeploy.pacing.plan.operator_graph import OperatorGraph
from nndeploy.pacing.plan.policy import PacePolicy
from nndeploy.pacing.plan.solving import solve

highspy = pytest.importorskip("highspy")

NDArray = np.ndarray[Any, Any]
DURATION = st.one_of(st.just(0.0), st.floats(1.0, 1e6))
BOUND = st.one_of(st.just(math.inf), st.just(0.0), st.floats(0.1, 20.0))


def serial_graph(durations: Sequence[float]) -> OperatorGraph:
    return OperatorGraph(durations, [(i, i + 1) for i in range(len(durations) - 1)])


@st.composite
def graphs(draw: st.DrawFn, bounds: st.SearchStrategy[float] = BOUND) -> OperatorGraph:
    size = draw(st.integers(2, 12))
    durations = draw(st.lists(DURATION, min_size=size, max_size=size).filter(lambda durations: max(durations) > 0))
    edges = draw(st.sets(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(lambda p: p[0] < p[1])))
    names = draw(st.permutations(range(size)))  # numbers of operators say nothing about their order
    return OperatorGraph(
        [durations[names.index(i)] for i in range(size)],
        [(names[a], names[b]) for a, b in sorted(edges)],
        draw(st.lists(bounds, min_size=size, max_size=size)),
    )


def way_lengths(graph: OperatorGraph, delays: NDArray) -> list[float]:
    """Returns the length of every way through the graph, each walked by itself."""
    into = {b for _, b in graph.edges}
    after: dict[int, list[int]] = {}
    for edge, (a, _) in enumerate(graph.edges):
        after.setdefault(a, []).append(edge)

    def walk(operator: int, length: float) -> list[float]:
        length += float(graph.durations[operator])
        ways = [walk(graph.edges[edge][1], length + float(delays[edge])) for edge in after.get(operator, [])]
        return [one for way in ways for one in way] or [length]

    return [one for operator in range(len(graph.durations)) if operator not in into for one in walk(operator, 0.0)]


def limits(graph: OperatorGraph) -> NDArray:
    """Returns the longest delay of each edge."""
    return np.array([graph.bounds[a] if graph.bounds[a] in (0, math.inf) else graph.bounds[a] * graph.durations[a]
                     for a, _ in graph.edges])  # fmt: skip


def highest_level(graph: OperatorGraph, units: NDArray, total: float) -> float:
    """Returns the highest t for which delays of t x units fit, by HiGHS; of graphs without bounds but 0.

    max t such that start(b) >= start(a) + duration(a) + t units(a, b), and all ends <= total.
    """
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    level = solver.addVariable(lb=0.0)
    starts = [solver.addVariable(lb=0.0, ub=(total - duration) / total) for duration in graph.durations.tolist()]
    for (a, b), unit in zip(graph.edges, units.tolist(), strict=True):
        solver.addConstr(starts[b] - starts[a] - (unit / total) * level >= float(graph.durations[a]) / total)
    solver.maximize(level)
    return float(solver.val(level))


@given(graphs(), st.floats(1.0, 20.0), st.sampled_from(PacePolicy))
def test_no_way_is_longer_than_the_total_and_no_delay_beyond_its_bound(graph, stretch, policy) -> None:
    total = graph.baseline_ns * stretch
    delays = solve(graph, total, policy)
    assert max(way_lengths(graph, delays)) <= total * (1 + 1e-12)
    assert (delays >= 0).all()
    assert (delays <= limits(graph) * (1 + 1e-12)).all()  # 0 behind what is rigid
    assert graph.length_ns(delays) == pytest.approx(max(way_lengths(graph, delays)))


@given(graphs(), st.floats(1.0, 20.0), st.sampled_from([PacePolicy.EQUAL, PacePolicy.PROPORTIONAL]))
def test_all_delays_are_one_level_that_cannot_be_higher(graph, stretch, policy) -> None:
    total = graph.baseline_ns * stretch
    delays, units, most = solve(graph, total, policy), policy.units(graph.durations)[graph.sources], limits(graph)
    most[units == 0] = 0.0
    is_free = delays < most * (1 - 1e-9)
    if not is_free.any():
        return
    level = float((delays[is_free] / units[is_free]).max())
    np.testing.assert_allclose(delays, np.minimum(level * units, most), rtol=1e-9, atol=1e-9 * total)
    higher = np.minimum((level + 1e-3) * units * (1 + 1e-3), most)
    assert max(way_lengths(graph, higher)) > total


@given(graphs(st.sampled_from([0.0, math.inf])), st.floats(1.01, 20.0), st.sampled_from(PacePolicy))
def test_highs_finds_no_higher_level(graph: OperatorGraph, stretch: float, policy: PacePolicy) -> None:
    total = graph.baseline_ns * stretch
    units = policy.units(graph.durations)[graph.sources] * (limits(graph) > 0)
    if not units.any():
        return
    level = highest_level(graph, units, total)
    delays = solve(graph, total, policy)
    np.testing.assert_allclose((delays[units > 0] / units[units > 0]).min(), level, rtol=1e-4, atol=1e-6)


@given(graphs(), st.floats(1.0, 20.0))
def test_solved_is_proportional_and_more(graph: OperatorGraph, stretch: float) -> None:
    total = graph.baseline_ns * stretch
    proportional, solved = solve(graph, total), solve(graph, total, PacePolicy.SOLVED)
    assert (solved >= proportional).all()
    assert (solved[graph.durations[graph.sources] == 0] == 0).all()


@given(graphs(), st.floats(1.0, 20.0))
def test_solved_leaves_no_way_that_could_still_sleep(graph: OperatorGraph, stretch: float) -> None:
    total = graph.baseline_ns * stretch
    delays = solve(graph, total, PacePolicy.SOLVED)
    could = (limits(graph) - delays > 0.01 * total) & (graph.durations[graph.sources] > 0)
    for edge in np.flatnonzero(could):
        longer = delays.copy()
        longer[edge] += 0.001 * total
        assert max(way_lengths(graph, longer)) > total


@given(graphs(), st.floats(1.1, 20.0), st.sampled_from(PacePolicy), st.sampled_from([2.0**-10, 2.0**7, 2.0**20]))
def test_another_unit_of_time_changes_nothing(graph, stretch, policy, scale) -> None:
    total = graph.baseline_ns * stretch
    scaled = OperatorGraph(graph.durations * scale, graph.edges, graph.bounds)
    want = solve(graph, total, policy) * scale
    np.testing.assert_allclose(solve(scaled, total * scale, policy), want, rtol=1e-9, atol=1e-9 * total * scale)


@given(st.lists(st.floats(1.0, 1e6), min_size=2, max_size=50), st.floats(1.0, 20.0))
def test_in_a_row_the_total_is_used_up(durations: list[float], stretch: float) -> None:
    graph = serial_graph(durations)
    total = sum(durations) * stretch
    slack, work = total - sum(durations), sum(durations[:-1])
    close = {"rtol": 1e-9, "atol": 1e-9 * total}
    want = np.array(durations[:-1]) / work * slack
    np.testing.assert_allclose(solve(graph, total, PacePolicy.PROPORTIONAL), want, **close)
    np.testing.assert_allclose(solve(graph, total, PacePolicy.SOLVED), want, **close)
    equal = np.full(len(durations) - 1, slack / (len(durations) - 1))
    np.testing.assert_allclose(solve(graph, total, PacePolicy.EQUAL), equal, **close)


def test_where_branches_join_the_longest_counts() -> None:
    graph = OperatorGraph([10, 30, 20, 10], [(0, 1), (0, 2), (1, 3), (2, 3)])
    np.testing.assert_allclose(solve(graph, 90), [10, 10, 30, 20])
    np.testing.assert_allclose(solve(graph, 90, PacePolicy.EQUAL), [20, 20, 20, 20])
    solved = solve(graph, 90, PacePolicy.SOLVED)
    np.testing.assert_allclose(solved, [10, 50 / 3, 30, 100 / 3])  # the shorter branch has one load, a lower one


def test_what_is_rigid_does_not_wait_and_the_others_take_its_share() -> None:
    graph = OperatorGraph([10, 10, 10, 0], [(0, 1), (1, 2), (2, 3)], [math.inf, 0, 0.5, 0])
    for policy in PacePolicy:
        np.testing.assert_allclose(solve(graph, 60, policy), [25, 0, 5])


CROSSED = OperatorGraph(
    [10, 100, 5, 5, 5, 5, 0], [(0, 1), (1, 6), (0, 2), (0, 3), (2, 4), (2, 5), (3, 5), (4, 6), (5, 6)]
)


def test_slack_is_shared_such_that_the_load_is_the_flattest() -> None:
    # beside 0 -> 1 -> 5, on which every load is 1/2: 0 -> 2, then two branches of 20 ns of work
    graph = OperatorGraph([10, 95, 10, 10, 10, 0], [(0, 1), (1, 5), (0, 2), (2, 3), (2, 4), (3, 5), (4, 5)])
    delays, durations = solve(graph, 210, PacePolicy.SOLVED), graph.durations[graph.sources]
    first = (
        210 * 10 / (10 + math.sqrt(2) * 20)
    )  # ns until 2 starts: where 10^2 / first + 2 x 20^2 / (210 - first) is least
    least = 10**2 / first + 2 * 20**2 / (210 - first)
    assert (durations**2 / (durations + delays))[2:].sum() <= least * 1.05
    np.testing.assert_allclose(way_lengths(graph, delays), [210] * 3)


def test_slack_of_crossed_branches_is_used_up() -> None:
    delays = solve(CROSSED, 220, PacePolicy.SOLVED)
    np.testing.assert_allclose(delays[:2], [10, 100])
    assert (delays[2:] / CROSSED.durations[CROSSED.sources[2:]]).min() > 5  # 200 ns are left for 20 ns of work
    np.testing.assert_allclose(way_lengths(CROSSED, delays), [220] * 4)


@given(graphs(), st.floats(1.0, 20.0), st.integers(0, 2**32 - 1))
def test_the_total_is_kept_whatever_the_program_of_slack_answers(graph, stretch, seed) -> None:
    random = np.random.default_rng(seed)
    total = graph.baseline_ns * stretch
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slack, "_solved_starts", lambda *_: random.uniform(-0.1, 1.1, len(graph.durations)) * total)
        delays = solve(graph, total, PacePolicy.SOLVED)
    assert max(way_lengths(graph, delays)) <= total * (1 + 1e-12)
    assert (delays <= limits(graph) * (1 + 1e-12)).all()


def test_without_highs_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(UnavailableError, match="needs HiGHS") as caught:
        solve(CROSSED, 220, PacePolicy.SOLVED)
    assert "nndeploy-toolchain[pacing]" in caught.value.hint


def test_what_joins_on_the_longest_way_needs_no_highs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    graph = OperatorGraph([10, 30, 20, 10, 5, 5], [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (4, 5), (3, 5)])
    assert max(way_lengths(graph, solve(graph, 120, PacePolicy.SOLVED))) == pytest.approx(120)
    solve(CROSSED, 220)


@pytest.mark.parametrize("total", [54e6, math.nan])
def test_a_total_below_the_baseline_names_the_least_that_works(total: float) -> None:
    graph = OperatorGraph([10e6, 44.0001e6, 20e6, 1e6], [(0, 1), (0, 2), (1, 3), (2, 3)])
    with pytest.raises(UsageError, match=r"operators take 55.0001 ms without delays") as caught:
        solve(graph, total)
    assert caught.value.hint == "55.001 ms is the minimum"
    solve(graph, 55.001e6)


@pytest.mark.parametrize(("durations", "edges", "bounds", "message"), [
    ([1, 1, 1], [(0, 1), (1, 2), (2, 1)], None, "in a cycle: 1 -> 2 -> 1|in a cycle: 2 -> 1 -> 2"),
    ([1, 1], [(0, 0)], None, "in a cycle: 0 -> 0"),
    ([1, 1], [(0, 2)], None, r"edge \(0, 2\) names an operator that is not one of the 2"),
    ([1, 1], [(-1, 1)], None, r"edge \(-1, 1\) names an operator"),
    ([1, 1], [(0, 1), (0, 1)], None, r"edge \(0, 1\) is there twice"),
    ([1, math.nan], [(0, 1)], None, "a duration is nan, not a time"),
    ([1, -2], [(0, 1)], None, "a duration is -2.0, not a time"),
    ([1, 2], [(0, 1)], [1], "2 durations of operators, but 1 bounds"),
    ([1, 2], [(0, 1)], [1, -1], "a bound of delays is -1.0, not a multiple"),
])  # fmt: skip
def test_what_is_no_graph_is_refused(durations, edges, bounds, message) -> None:
    with pytest.raises(UsageError, match=message):
        OperatorGraph(durations, edges, bounds)


def test_graphs_without_edges_have_no_delays() -> None:
    for policy in PacePolicy:
        assert solve(OperatorGraph([5.0], []), 10, policy).shape == (0,)
        assert solve(OperatorGraph([], []), 10, policy).shape == (0,)
