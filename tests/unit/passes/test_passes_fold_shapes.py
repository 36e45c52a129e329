# SPDX-License-Identifier: Apache-2.0
"""Shape arithmetic on known sizes becomes constants."""

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_harness import (
    GraphBuilder,
    assert_same_outputs,
    constants,
    examples,
    graph,
    node_line,
    nodes,
    random_feeds,
    rewritten,
)

NAME = "fold-shapes"


def test_known_size_among_unknown_ones_is_folded() -> None:
    model = graph("(float[N,3,8,8] x) => (int64 y) <int64 i = {2}> { s = Shape(x) d = Gather(s, i) y = Abs(d) }")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["s = Shape(x)", "y = Abs(d)"]
    assert constants(model)["d"] == 8


def test_unknown_size_is_not_folded() -> None:
    model = graph("(float[N,3] x) => (int64 y) <int64 i = {0}> { s = Shape(x) d = Gather(s, i) y = Abs(d) }")
    assert rewritten(NAME, model) == 0


def test_sizes_of_one_name_are_not_taken_for_numbers() -> None:
    model = graph("(float[N,M] x, float[N] z) => (int64[1] y) { s = Shape(z) t = Abs(s) y = Abs(t) }")
    assert rewritten(NAME, model) == 0


def test_rank_is_known_when_sizes_are_not() -> None:
    model = graph("(float[N,M,3] x) => (int64 y) { s = Shape(x) r = Size(s) y = Abs(r) }")
    assert rewritten(NAME, model) == 1
    assert constants(model) == {"r": 3}


def test_shape_takes_start_and_end() -> None:
    model = graph("(float[N,3,4,5] x) => (int64[2] y) { s = Shape<start = 1, end = -1>(x) y = Abs(s) }")
    assert rewritten(NAME, model) == 1
    assert constants(model) == {"s": [3, 4]}


@pytest.mark.parametrize(
    ("bounds", "sizes"),
    [
        ("int64[1] a = {1}, int64[1] b = {3}, int64[1] c = {0}, int64[1] d = {1}", [3, 4]),
        ("int64[1] a = {-1}, int64[1] b = {-9223372036854775808}, int64[1] c = {0}, int64[1] d = {-2}", [5, 3]),
        ("int64[1] a = {1}, int64[1] b = {9223372036854775807}, int64[1] c = {-1}, int64[1] d = {1}", [3, 4, 5]),
    ],
)
def test_slice_of_a_shape(bounds: str, sizes: list[int]) -> None:
    model = graph(
        f"(float[N,3,4,5] x) => (int64[M] y) <{bounds}> {{ s = Shape(x) t = Slice(s, a, b, c, d) y = Abs(t) }}"
    )
    assert rewritten(NAME, model) == 1
    assert constants(model)["t"] == sizes


def test_slice_with_attributes_of_old_opsets() -> None:
    body = "(float[N,3,4,5] x) => (int64[2] y) { s = Shape(x) t = Slice<starts = [1], ends = [3]>(s) y = Abs(t) }"
    model = graph(body, opset=9)
    assert rewritten(NAME, model) == 1
    assert constants(model) == {"t": [3, 4]}


def test_reshape_of_a_chain_gets_a_constant_target() -> None:
    model = graph(
        """(float[N,2,3,4] x) => (float[A,B] y) <int64 i = {0}, int64[1] z = {0}, int64[1] k = {24}>
        { s = Shape(x) d = Gather(s, i) u = Unsqueeze(d, z) t = Concat<axis = 0>(u, k) y = Reshape(x, t) }"""
    )
    assert rewritten(NAME, model) == 1
    assert nodes(model)[-1] == "y = Reshape(x, y.shape)"
    assert constants(model)["y.shape"] == [0, 24], "the first size of the target is the first size of x"


def test_one_unknown_size_that_is_not_in_its_place_is_what_is_left() -> None:
    model = graph(
        """(float[2,N,12] x) => (float[A,B,C] y) <int64[1] i = {1}, int64[1] k = {4}, int64[1] l = {6}>
        { s = Shape(x) d = Gather(s, i) t = Concat<axis = 0>(d, k, l) y = Reshape(x, t) }"""
    )
    assert rewritten(NAME, model) == 1
    assert constants(model)["y.shape"] == [-1, 4, 6]


def test_two_sizes_in_their_places_are_copied() -> None:
    model = graph(
        """(float[A,B,12] x) => (float[C,D,E,F] y) <int64[2] i = {0,1}, int64[2] k = {3,4}>
        { s = Shape(x) d = Gather(s, i) t = Concat<axis = 0>(d, k) y = Reshape(x, t) }"""
    )
    assert rewritten(NAME, model) == 1
    assert constants(model)["y.shape"] == [0, 0, 3, 4]


@pytest.mark.parametrize(
    "body",
    [
        # two sizes, not in their places
        """(float[A,B,12] x) => (float[C,D,E] y) <int64[2] i = {1,0}, int64[1] k = {12}>
        { s = Shape(x) d = Gather(s, i) t = Concat<axis = 0>(d, k) y = Reshape(x, t) }""",
        # the place is right, the tensor is another one
        """(float[A,B,12] x, float[C,D,12] z) => (float[E,F,G] y) <int64[2] i = {0,1}, int64[1] k = {12}>
        { s = Shape(z) d = Gather(s, i) t = Concat<axis = 0>(d, k) y = Reshape(x, t) }""",
        # an unknown size beside a size that is left to be found
        """(float[A,B,12] x) => (float[C,D,E] y) <int64[1] i = {1}, int64[2] k = {-1,12}>
        { s = Shape(x) d = Gather(s, i) t = Concat<axis = 0>(d, k) y = Reshape(x, t) }""",
        # an unknown size beside one that is copied
        """(float[A,B,12] x) => (float[C,D,E] y) <int64[1] i = {0}, int64[1] k = {0}, int64[1] l = {12}>
        { s = Shape(x) d = Gather(s, i) t = Concat<axis = 0>(k, d, l) y = Reshape(x, t) }""",
    ],
)
def test_target_that_is_not_fixed_by_what_is_known_stays(body: str) -> None:
    assert rewritten(NAME, graph(body)) == 0


def test_zero_that_means_zero_is_not_written_for_copy() -> None:
    model = graph(
        """(float[A,12] x) => (float[B,C] y) <int64[1] i = {0}, int64[1] k = {12}>
        { s = Shape(x) d = Gather(s, i) t = Concat<axis = 0>(d, k) y = Reshape<allowzero = 1>(x, t) }"""
    )
    assert rewritten(NAME, model) == 1
    assert constants(model)["y.shape"] == [-1, 12]


def test_shape_that_is_an_output_becomes_a_constant_node() -> None:
    model = graph("(float[2,3] x) => (int64[2] y) { y = Shape(x) }")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y = Constant<value=[2, 3]>()"]


def test_branch_of_if_is_entered_and_body_of_loop_is_not() -> None:
    model = graph(
        """(bool c, float[2,3] x) => (int64[2] y, int64[2] z) <int64 n = {3}, bool t = {1}> {
        y = If(c) < then_branch = t1 () => (int64[2] a) { s = Shape(x) a = Abs(s) },
                    else_branch = e1 () => (int64[2] b) { b = Shape(x) } >
        l, z = Loop(n, t, x) < body = b1 (int64 i, bool k, float[2,3] v) => (bool k2, float[2,3] v2, int64[2] w) {
            k2 = Identity(k) v2 = Identity(v) w = Shape(v) } > }""".replace("int64[2] z)", "int64[3,2] z)")
    )
    assert rewritten(NAME, model) == 2
    if_node, loop = model.graph
    assert list(if_node.attributes["then_branch"].as_graph().initializers) == ["s"]
    assert node_line(loop.attributes["body"].as_graph()[-1]) == "w = Shape(v)"


@examples()
@given(data=st.data(), opset=st.sampled_from([11, 13, 17, 21]))
def test_outputs_stay(data: st.DataObject, opset: int) -> None:
    """Random shape programs: parts of shapes of two inputs, put together again, as targets of Reshape."""
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=4))
    symbolic = data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
    build = GraphBuilder(opset, np.float32)
    x = build.input(
        [f"D{axis}" if flag else size for axis, (size, flag) in enumerate(zip(sizes, symbolic, strict=True))]
    )
    order = data.draw(st.permutations(range(len(sizes))))
    shape, parts = build.node("Shape", x), []
    for axis in order:
        kind = data.draw(st.sampled_from(["gather", "slice", "scalar", "cast"]))
        if kind == "slice":
            bounds = [build.constant([bound], np.int64) for bound in (axis, axis + 1, 0)]
            parts.append(build.node("Slice", shape, *bounds))
        elif kind == "scalar":
            scalar = build.node("Gather", shape, build.constant(axis, np.int64))
            parts.append(build.with_axes("Unsqueeze", scalar, [0]))
        elif kind == "cast":
            narrow = build.node("Cast", build.node("Gather", shape, build.constant([axis], np.int64)), to=6)
            parts.append(build.node("Cast", narrow, to=7))
        else:
            parts.append(build.node("Gather", shape, build.constant([axis], np.int64)))
    target = build.node("Concat", *parts, axis=0)
    y = build.node("Abs", build.node("Reshape", x, target))
    outputs = [y, target] if data.draw(st.booleans()) else [y]
    proto = build.model(*outputs, rank=len(sizes))
    feeds = random_feeds(proto, dims={f"D{axis}": size for axis, size in enumerate(sizes)})
    assert_same_outputs(NAME, proto, feeds, tolerance=0)


def test_types_of_folded_shapes_are_kept() -> None:
    model = graph("(float[2,3] x) => (int32[2] y) { s = Shape(x) t = Cast<to = 6>(s) y = Abs(t) }")
    assert rewritten(NAME, model) == 2
    assert model.graph.initializers["t"].dtype == ir.DataType.INT32


@pytest.mark.parametrize(
    "body",
    [
        "s = Shape(x) n = Gather(s, i) m = Neg(n) b = Unsqueeze(m, zero) y = Slice(x, b, far, one, one)",
        "s = Shape(x) n = Gather(s, i) e = Unsqueeze(n, zero) y = Slice(x, zero, e, one, one)",
        "s = Shape(x) n = Gather(s, i) e = Unsqueeze(n, zero) y = Slice(x, zero, e, one)",
    ],
    ids=["from minus the size", "to the size", "no steps"],
)
def test_a_slice_of_all_is_nothing(body: str) -> None:
    numbers = "<int64 i = {1}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] far = {9223372036854775807}>"
    model = graph(f"(float[2,N] x) => (float[2,M] z) {numbers} {{ {body} z = Relu(y) }}")
    rewritten(NAME, model)
    assert "y = Identity(x)" in nodes(model)


@pytest.mark.parametrize(
    "body",
    [
        "s = Shape(w) n = Gather(s, i) e = Unsqueeze(n, zero) y = Slice(x, zero, e, one, one)",
        "s = Shape(x) n = Gather(s, i) m = Neg(n) b = Unsqueeze(m, zero) y = Slice(x, b, far, one, two)",
    ],
    ids=["to another size", "every second"],
)
def test_a_slice_of_less_stays(body: str) -> None:
    numbers = "<int64 i = {1}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] far = {99}>"
    model = graph(f"(float[2,N] x, float[2,K] w) => (float[2,M] z) {numbers} {{ {body} z = Relu(y) }}")
    rewritten(NAME, model)
    assert any(" = Slice" in node for node in nodes(model))


def test_sizes_that_are_equal_are_one_condition() -> None:
    """As in relative attention that asks whether queries are as many as keys."""
    body = "s = Shape(x) a = Gather(s, i) b = Gather(s, j) e = Equal(a, b) n = Not(e) y = Cast<to = 6>(n)"
    model = graph(f"(float[N,N,3] x) => (int32 y) <int64 i = {{0}}, int64 j = {{1}}> {{ {body} }}")
    assert rewritten(NAME, model) > 0
    assert constants(model)["n"] == 0
    other = graph(f"(float[N,M,3] x) => (int32 y) <int64 i = {{0}}, int64 j = {{1}}> {{ {body} }}")
    assert rewritten(NAME, other) == 0


def test_truths_that_are_constant_choose_sizes() -> None:
    body = "s = Shape(x) c = Where(t, s, one) y = Expand(w, c)"
    model = graph(
        f"(float[4,3] x, float[1,3] w) => (float[N,3] y) <bool[2] t = {{1, 0}}, int64[2] one = {{1, 1}}> {{ {body} }}"
    )
    rewritten(NAME, model)
    assert constants(model)["c"] == [4, 1]
