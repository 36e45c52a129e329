# SPDX-License-Identifier: Apache-2.0
"""Regions: every node in one, no cycle between them, an order that can run, as few as neighbours allow."""

import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nndeploy.graph.lanes import Lanes
from nndeploy.graph.nodes import node_name, values_read
from nndeploy.graph.regions import Region, regions_of
from nndeploy.graph.submodels import region_inputs, region_outputs, submodel_of, values_between


def graph_of(edges: list[list[int]]) -> ir.Graph:
    """Returns a graph whose node i adds up the outputs of the nodes `edges[i]` (the input where there are none)."""
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2]))
    nodes: list[ir.Node] = []
    for i, before in enumerate(edges):
        inputs = [nodes[p].outputs[0] for p in before] or [x]
        nodes.append(ir.node("Sum", inputs, name=f"n{i}"))
        nodes[-1].outputs[0].name = f"v{i}"
        nodes[-1].outputs[0].type = ir.TensorType(ir.DataType.FLOAT)
        nodes[-1].outputs[0].shape = ir.Shape([2])
    used = {p for before in edges for p in before}
    outputs = [node.outputs[0] for i, node in enumerate(nodes) if i not in used]
    return ir.Graph([x], outputs, nodes=nodes, opset_imports={"": 18}, name="g")


@st.composite
def graphs_with_backends(draw: st.DrawFn) -> tuple[ir.Graph, dict[str, str]]:
    count = draw(st.integers(1, 14))
    edges = [draw(st.lists(st.integers(0, i - 1), max_size=3, unique=True)) if i else [] for i in range(count)]
    backends = draw(st.lists(st.sampled_from("abc"), min_size=count, max_size=count))
    return graph_of(edges), {f"n{i}": backend for i, backend in enumerate(backends)}


def order_can_run(regions: list[Region], graph: ir.Graph) -> bool:
    known = {id(value) for value in graph.inputs}
    for region in regions:
        if not all(id(value) in known for value in region_inputs(region)):
            return False
        known |= {id(output) for node in region.nodes for output in node.outputs}
    return True


@settings(max_examples=200, deadline=None)
@given(graphs_with_backends())
def test_every_node_is_in_one_region_of_its_backend_and_the_order_can_run(
    case: tuple[ir.Graph, dict[str, str]],
) -> None:
    graph, backend_of = case
    regions = regions_of(graph, backend_of)
    names = [node_name(node) for region in regions for node in region.nodes]
    assert sorted(names) == sorted(backend_of)
    assert all(backend_of[node_name(node)] == region.backend for region in regions for node in region.nodes)
    assert order_can_run(regions, graph)


@settings(max_examples=100, deadline=None)
@given(graphs_with_backends())
def test_no_two_touching_regions_of_one_backend_could_still_be_merged(case: tuple[ir.Graph, dict[str, str]]) -> None:
    graph, backend_of = case
    regions = regions_of(graph, backend_of)
    for i, one in enumerate(regions):
        for other in regions[i + 1 :]:
            touching = {id(v) for v in region_inputs(other)} & {id(o) for n in one.nodes for o in n.outputs}
            if one.backend == other.backend and touching:
                merged = Region(one.backend, (*one.nodes, *other.nodes))
                rest = [region for region in regions if region not in (one, other)]
                assert not has_order([*rest, merged], graph)


SECONDS = st.lists(st.sampled_from([0.0, 1e-5, 1e-3, 2e-3]), min_size=14, max_size=14)


def lanes_of(seconds: list[float], cores: int = 2, call: float = 1e-5) -> Lanes:
    """Lanes on one CPU, for nodes n0, n1, ... that take so many seconds."""
    by_name = {f"n{i}": one for i, one in enumerate(seconds)}
    return Lanes(lambda node, _: by_name[node_name(node)], lambda _: call, dict.fromkeys("abc", "cpu"), {"cpu": cores})


@settings(max_examples=200, deadline=None)
@given(graphs_with_backends(), SECONDS)
def test_where_branches_run_at_once_the_laws_are_the_same(
    case: tuple[ir.Graph, dict[str, str]], seconds: list[float]
) -> None:
    graph, backend_of = case
    regions = regions_of(graph, backend_of, lanes=lanes_of(seconds))
    assert sorted(node_name(node) for region in regions for node in region.nodes) == sorted(backend_of)
    assert all(backend_of[node_name(node)] == region.backend for region in regions for node in region.nodes)
    assert order_can_run(regions, graph)


def named(regions: list[Region]) -> list[tuple[str, str]]:
    return [(region.backend, " ".join(node_name(node) for node in region.nodes)) for region in regions]


BRANCHES = [[], [], [0, 1]]
TO_EACH = {"n0": "a", "n1": "b", "n2": "b"}


def test_a_join_goes_apart_from_the_branch_that_would_wait_for_the_other() -> None:
    assert named(regions_of(graph_of(BRANCHES), TO_EACH)) == [("a", "n0"), ("b", "n1 n2")]
    lanes = lanes_of([1e-3, 1e-3, 1e-4])
    assert named(regions_of(graph_of(BRANCHES), TO_EACH, lanes=lanes)) == [("a", "n0"), ("b", "n1"), ("b", "n2")]


def test_a_branch_goes_apart_from_what_both_branches_need() -> None:
    graph, backend_of = graph_of([[], [0], [0], [1, 2]]), {"n0": "a", "n1": "a", "n2": "b", "n3": "a"}
    assert named(regions_of(graph, backend_of)) == [("a", "n0 n1"), ("b", "n2"), ("a", "n3")]
    lanes = lanes_of([1e-3] * 4)
    assert named(regions_of(graph, backend_of, lanes=lanes)) == [
        ("a", "n0"), ("a", "n1"), ("b", "n2"), ("a", "n3"),
    ]  # fmt: skip


@pytest.mark.parametrize(("seconds", "cores"), [
    ([1e-3, 1e-3, 1e-4], 1), ([1e-5, 1e-3, 1e-4], 2), ([1e-3, 1e-5, 1e-4], 2), ([3e-4, 3e-4, 1e-2], 2),
], ids=["one core", "short left", "short right", "much behind"])  # fmt: skip
def test_branches_that_would_gain_little_stay_as_few_regions(seconds: list[float], cores: int) -> None:
    lanes = lanes_of(seconds, cores)
    assert named(regions_of(graph_of(BRANCHES), TO_EACH, lanes=lanes)) == [("a", "n0"), ("b", "n1 n2")]


def has_order(regions: list[Region], graph: ir.Graph) -> bool:
    known = {id(value) for value in graph.inputs}
    waiting = list(regions)
    while waiting:
        inside = [{id(o) for n in region.nodes for o in n.outputs} for region in waiting]
        ready = [
            i
            for i, region in enumerate(waiting)
            if all(id(v) in known or id(v) in inside[i] for n in region.nodes for v in values_read(n))
        ]
        if not ready:
            return False
        known |= inside[ready[0]]
        waiting.pop(ready[0])
    return True


def test_a_diamond_with_one_refused_side_becomes_three_regions_not_a_cycle() -> None:
    graph = graph_of([[], [0], [0], [1, 2]])
    regions = regions_of(graph, {"n0": "a", "n1": "a", "n2": "b", "n3": "a"})
    assert [(r.backend, [n.name for n in r.nodes]) for r in regions] == [("a", ["n0", "n1"]), ("b", ["n2"]), ("a", [
        "n3"
    ])]  # fmt: skip


def test_one_backend_is_one_region_even_where_parts_do_not_touch() -> None:
    graph = graph_of([[], [], [0], [1]])
    assert len(regions_of(graph, dict.fromkeys(["n0", "n1", "n2", "n3"], "a"))) == 1


def test_submodels_chain_to_the_whole_model() -> None:
    graph = graph_of([[], [0], [0], [1, 2]])
    model = ir.Model(graph, ir_version=8)
    regions = regions_of(graph, {"n0": "a", "n1": "a", "n2": "b", "n3": "a"})
    between = values_between(regions, graph)
    submodels = [submodel_of(model, region, between) for region in regions]
    assert [[v.name for v in m.graph.inputs] for m in submodels] == [["x"], ["v0"], ["v1", "v2"]]
    assert [[v.name for v in m.graph.outputs] for m in submodels] == [["v0", "v1"], ["v2"], ["v3"]]
    assert [v.name for v in region_outputs(regions[0], between)] == ["v0", "v1"]
    assert graph.num_nodes() == 4, "the model itself is left as it was"
