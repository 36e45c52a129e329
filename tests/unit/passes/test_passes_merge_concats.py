# SPDX-License-Identifier: Apache-2.0
"""Concats that build on each other become one."""

import pytest
from passes_harness import GraphBuilder, assert_same_outputs, graph, nodes, random_feeds, rewritten

NAME = "merge-concats"


def test_a_chain_of_concats_becomes_one() -> None:
    model = graph(
        "(float[1,2] x, float[1,3] y) => (float[1,7] z) "
        "{ a = Concat<axis = 1>(x, y) b = Concat<axis = -1>(x, a) z = Relu(b) }"
    )
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["b = Concat<axis=1>(x, x, y)", "z = Relu(b)"]


@pytest.mark.parametrize(
    "body",
    [
        "(float[2,2] x) => (float[4,4] z) { a = Concat<axis = 0>(x, x) z = Concat<axis = 1>(a, a) }",
        "(float[1,2] x) => (float[1,6] z, float[1,4] a) { a = Concat<axis = 1>(x, x) z = Concat<axis = 1>(a, x) }",
        "(float[1,2] x) => (float[1,6] z, float[1,4] r) "
        "{ a = Concat<axis = 1>(x, x) z = Concat<axis = 1>(a, x) r = Relu(a) }",
        "(float[1,2] x) => (float[1,8] z) { a = Concat<axis = 1>(x, x) z = Concat<axis = 1>(a, a) }",
    ],
    ids=["another axis", "an output", "another reader", "read twice"],
)
def test_what_is_needed_as_it_is_stays(body: str) -> None:
    assert rewritten(NAME, graph(body)) == 0


@pytest.mark.parametrize(("first", "count"), [(7, 1), (8, 0)])
def test_more_inputs_than_kernels_take_are_not_made(first: int, count: int) -> None:
    inputs = ", ".join("x" * first)
    body = f"(float[1,1] x) => (float[1,N] z) {{ a = Concat<axis = 1>({inputs}) z = Concat<axis = 1>(a, x) }}"
    assert rewritten(NAME, graph(body)) == count


def test_what_has_no_elements_is_left_out() -> None:
    model = graph(
        "(float[2,0] x, float[2,N] y, float[2,3] z) => (float[2,M] u) { a = Concat<axis = 1>(x, y, z) u = Relu(a) }"
    )
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["a = Concat<axis=1>(y, z)", "u = Relu(a)"]


def test_one_of_several_without_elements_stays() -> None:
    model = graph("(float[2,0] x) => (float[2,0] u) { a = Concat<axis = 1>(x, x) u = Relu(a) }")
    assert rewritten(NAME, model) == 0


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_the_numbers_are_the_same(axis: int) -> None:
    build = GraphBuilder()
    x, y = build.input([2, 2, 2]), build.input([2, 2, 2])
    inner = build.node("Concat", y, build.node("Concat", x, y, axis=axis), axis=axis)
    proto = build.model(build.node("Concat", inner, x, build.node("Concat", x, x, axis=axis), axis=axis))
    assert assert_same_outputs(NAME, proto, random_feeds(proto), tolerance=0) > 0
