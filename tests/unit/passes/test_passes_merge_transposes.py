# SPDX-License-Identifier: Apache-2.0
"""Two transpositions become one, or none."""

from hypothesis import given
from hypothesis import strategies as st
from passes_harness import GraphBuilder, assert_same_outputs, examples, graph, nodes, random_feeds, rewritten

NAME = "merge-transposes"


def test_two_become_one() -> None:
    model = graph(
        "(float[2,3,4] x) => (float[4,2,3] y) { a = Transpose<perm = [1, 2, 0]>(x) y = Transpose<perm = [1, 2, 0]>(a) }"
    )
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y = Transpose<perm=[2, 0, 1]>(x)"]


def test_inverse_cancels() -> None:
    model = graph(
        """(float[2,3,4] x) => (float[2,3,4] y)
        { a = Transpose<perm = [1, 2, 0]>(x) b = Transpose<perm = [2, 0, 1]>(a) y = Neg(b) }"""
    )
    assert rewritten(NAME, model) == 1
    assert nodes(model)[-1] == "y = Neg(x)"


def test_left_out_perm_is_reversal() -> None:
    model = graph(
        "(float[2,3,4] x) => (float[2,3,4] y) { a = Transpose(x) b = Transpose<perm = [2, 1, 0]>(a) y = Neg(b) }"
    )
    assert rewritten(NAME, model) == 1
    assert nodes(model)[-1] == "y = Neg(x)"


def test_unknown_rank_stays() -> None:
    model = graph("(float[2,3] x) => (float[2,3] y) { a = Transpose(x) y = Transpose<perm = [0, 1]>(a) }")
    model.graph.inputs[0].shape = None
    assert rewritten(NAME, model) == 0


def test_first_with_other_readers_stays() -> None:
    model = graph(
        """(float[2,3,4] x) => (float[4,2,3] y, float[3,4,2] z)
        { a = Transpose<perm = [1, 2, 0]>(x) y = Transpose<perm = [1, 2, 0]>(a) z = Neg(a) }"""
    )
    assert rewritten(NAME, model) == 0


def test_pair_between_input_and_output_becomes_one_that_keeps_the_axes() -> None:
    model = graph("(float[2,3] x) => (float[2,3] y) { a = Transpose(x) y = Transpose(a) }")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y = Transpose<perm=[0, 1]>(x)"]


@examples()
@given(data=st.data())
def test_outputs_stay(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 4))
    build = GraphBuilder()
    value = build.input([data.draw(st.integers(1, 3)) for _ in range(rank)])
    outputs = []
    for _ in range(data.draw(st.integers(2, 5))):
        if data.draw(st.integers(0, 4)):
            perm = {"perm": data.draw(st.permutations(range(rank)))} if data.draw(st.booleans()) else {}
            value = build.node("Transpose", value, **perm)
        else:
            value = build.node("Neg", value)
        if not data.draw(st.integers(0, 3)):
            outputs.append(value)
    proto = build.model(*dict.fromkeys([*outputs, value]))
    assert_same_outputs(NAME, proto, random_feeds(proto), tolerance=0)
