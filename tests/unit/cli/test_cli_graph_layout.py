# SPDX-License-Identifier: Apache-2.0
"""A layered layout: everything has its place, nothing overlaps, edges lead downwards."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nndeploy.cli.pages import graph_layout
from nndeploy.cli.pages.graph_layout import _spread, layered_layout


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 14))
    pairs = [(a, b) for a in range(count) for b in range(count)]
    return [draw(st.integers(20, 200)) for _ in range(count)], draw(st.lists(st.sampled_from(pairs), max_size=24))


@given(graphs())
@settings(deadline=None)
def test_nothing_overlaps_and_edges_lead_downwards(graph) -> None:
    widths, edges = graph
    layout = layered_layout(widths, edges)
    assert len(layout.nodes) == len(widths)
    for (x, y), width in zip(layout.nodes, widths, strict=True):
        assert width / 2 <= x <= layout.width - width / 2
        assert 0 <= y <= layout.height
    for i, (x, y) in enumerate(layout.nodes):
        for j in range(i):
            other_x, other_y = layout.nodes[j]
            assert y != other_y or abs(x - other_x) >= (widths[i] + widths[j]) / 2
    for (a, b), route in zip(edges, layout.routes, strict=True):
        assert (route[0], route[-1]) == (layout.nodes[a], layout.nodes[b])
        if a < b:
            assert all(lower[1] > upper[1] for upper, lower in pairwise(route))


def test_a_line_is_straight() -> None:
    layout = layered_layout([50, 50, 50], [(0, 1), (1, 2)])
    assert len({x for x, _ in layout.nodes}) == 1


def test_a_long_edge_goes_around_what_stands_between() -> None:
    layout = layered_layout([50] * 3, [(0, 1), (1, 2), (0, 2)])
    (middle_x, middle_y), route = layout.nodes[1], layout.routes[2]
    assert len(route) == 3
    assert route[1][1] == middle_y
    assert abs(route[1][0] - middle_x) > 25


def test_a_source_stands_just_above_its_reader() -> None:
    layout = layered_layout([50] * 5, [(0, 1), (1, 2), (2, 4), (3, 4)])
    assert layout.nodes[3][1] == layout.nodes[2][1]


def test_crossings_are_removed() -> None:
    layout = layered_layout([50] * 6, [(0, 5), (1, 4), (2, 3)])
    assert all(layout.nodes[a][0] == pytest.approx(layout.nodes[b][0]) for a, b in ((0, 5), (1, 4), (2, 3)))


def test_nothing_at_all_has_a_layout() -> None:
    assert layered_layout([], []).nodes == ()


def test_a_hostile_number_of_long_edges_is_drawn_straight(monkeypatch) -> None:
    monkeypatch.setattr(graph_layout, "MAX_INVISIBLE", 20)
    edges = [(i, i + 1) for i in range(9)] + [(0, i) for i in range(2, 10)]
    layout = layered_layout([50] * 10, edges)
    assert len(layout.routes[-1]) == 2


def test_spreading_moves_as_little_as_possible() -> None:
    assert _spread([0, 100], [10, 10], 5) == [0, 100]
    assert _spread([50, 50], [10, 10], 10) == [40, 60]
    assert _spread([100, 0], [10, 10], 10) == [40, 60]
