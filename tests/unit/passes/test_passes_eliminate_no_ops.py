# SPDX-License-Identifier: Apache-2.0
"""Nodes that hand on their input as it is disappear, and nothing else does."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_harness import (
    GraphBuilder,
    assert_same_outputs,
    examples,
    graph,
    nodes,
    random_feeds,
    rewritten,
    run_onnxruntime,
)

NAME = "eliminate-no-ops"


CONSTANTS = """<int64[3] s = {2, 3, 4}, int64[3] zeros = {0, 0, 0}, int64[3] rest = {0, -1, 4},
    int64[3] ones = {1, 1, 1}, int64[3] swapped = {3, 2, 4}, int64[3] twice = {1, 1, 2},
    int64[1] z = {0}, int64[1] o = {1}, int64[1] two = {2}, int64[1] four = {4}, int64[1] back = {-1},
    int64[1] flat = {-1}, int64[1] first = {-9223372036854775807}, int64[4] four_ones = {1, 1, 1, 1},
    int64[1] far = {9223372036854775807}, int64[6] no_pads = {0, 0, 0, 0, 0, 0},
    int64[6] pads = {0, 0, 0, 0, 1, 0}, float one = {1}, float nil = {0}, float half = {0.5}, bool yes = {1},
    float[1,3,1] many = {1, 1, 1}, float[1,1,1,1] deep = {1}, float[4] mixed = {0, 1, 1, 1}>"""


@pytest.mark.parametrize(
    "no_op",
    [
        "b = Identity(a)",
        "b = Dropout(a)",
        "b, m = Dropout(a)",
        "b = Cast<to = 1>(a)",
        "b = Transpose<perm = [0, 1, 2]>(a)",
        "b = Reshape(a, s)",
        "b = Reshape(a, zeros)",
        "b = Reshape(a, rest)",
        "b = Slice(a, z, far, z, o)",
        "b = Slice(a, z, four, two, o)",
        "b = Expand(a, o)",
        "b = Expand(a, s)",
        "b = Tile(a, ones)",
        "b = Pad(a, no_pads)",
        "b = Concat<axis = 0>(a)",
        "b = Sum(a)",
        "b = Max(a)",
        "b = Min(a)",
        "b = Mean(a)",
        "b = Mul(a, one)",
        "b = Mul(one, a)",
        "b = Div(a, one)",
        "b = Pow(a, one)",
        "b = Sub(a, nil)",
        "b = Mul(a, many)",
    ],
)
def test_no_op_disappears(no_op: str) -> None:
    model = graph(f"(float[2,3,4] x) => (float[2,3,4] y) {CONSTANTS} {{ a = Relu(x) {no_op} y = Neg(b) }}")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["a = Relu(x)", "y = Neg(a)"]


@pytest.mark.parametrize(
    "node",
    [
        "b = Cast<to = 1>(i)",
        "b = Transpose<perm = [1, 0, 2]>(a)",
        "b = Transpose(a)",
        "b = Reshape(a, swapped)",
        "b = Slice(a, back, far, z, back)",
        "b = Slice(a, back, first, z, back)",
        "b = Slice(a, z, o, z, o)",
        "b = Expand(row, s)",
        "b = Expand(a, four_ones)",
        "b = Tile(a, twice)",
        "b = Pad(a, pads)",
        "b = Concat<axis = 0>(a, a)",
        "b = Sum(a, a)",
        "b = Mul(a, half)",
        "b = Div(one, a)",
        "b = Sub(nil, a)",
        "b = Pow(one, a)",
        "b = Add(a, nil)",
        "b = Mul(a, deep)",
        "b = Mul(row, many)",
        "b = Mul(a, mixed)",
        "b = Dropout(a, half, yes)",
        "c, m = Dropout(a) k = Cast<to = 1>(m) b = Add(c, k)",
    ],
)
def test_what_changes_anything_stays(node: str) -> None:
    inputs = "(float[2,3,4] x, int32[2,3,4] i, float[1,1,4] row)"
    model = graph(f"{inputs} => (float[N] y) {CONSTANTS} {{ a = Relu(x) {node} y = Reshape(b, flat) }}")
    before = nodes(model)
    assert rewritten(NAME, model) == 0
    assert nodes(model) == before


def test_integer_zero_is_added_by_nobody() -> None:
    model = graph("(int32[2] x) => (int32[2] y) <int32 nil = {0}> { a = Add(x, nil) b = Add(nil, a) y = Neg(b) }")
    assert rewritten(NAME, model) == 2
    assert nodes(model) == ["y = Neg(x)"]


def test_output_of_the_graph_keeps_its_name() -> None:
    model = graph("(float[2] x) => (float[2] y) { a = Relu(x) y = Identity(a) }")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y = Relu(x)"]


def test_other_readers_follow_the_new_name() -> None:
    model = graph("(float[2] x) => (float[2] y, float[2] z) { a = Relu(x) y = Identity(a) z = Neg(a) }")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y = Relu(x)", "z = Neg(y)"]


def test_keeps_identity_between_input_and_output() -> None:
    model = graph("(float[2] x) => (float[2] y) { y = Identity(x) }")
    assert rewritten(NAME, model) == 0


def test_other_no_op_between_input_and_output_becomes_an_identity() -> None:
    model = graph("(float[2] x) => (float[2] y) { y, m = Dropout(x) }")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y = Identity(x)"]
    onnx.checker.check_model(ir.to_proto(model))


def test_keeps_identity_of_an_initializer_and_of_another_output() -> None:
    model = graph(
        """(float[2] x) => (float[2] y, float[2] z, float[2] w) <float[2] c = {1, 2}>
        { y = Identity(c) z = Relu(x) w = Identity(z) }"""
    )
    assert rewritten(NAME, model) == 0


def test_value_that_a_body_reads_is_followed() -> None:
    model = graph(
        """(bool c, float[2] x) => (float[2] y) { a = Relu(x) b = Identity(a) y = If(c) <
            then_branch = t () => (float[2] p) { p = Neg(b) }, else_branch = e () => (float[2] q) { q = Abs(b) }> }"""
    )
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["a = Relu(x)", "y = If<else_branch={q = Abs(a)}, then_branch={p = Neg(a)}>(c)"]


def test_identity_of_an_outer_value_in_a_branch_stays() -> None:
    model = graph(
        """(bool c, float[2] x) => (float[2] y) { a = Relu(x) y = If(c) <
            then_branch = t () => (float[2] p) { p = Identity(a) },
            else_branch = e () => (float[2] q) { q = Abs(a) }> }"""
    )
    assert rewritten(NAME, model) == 0


@pytest.mark.parametrize(
    ("opset", "dropout", "count"),
    [
        (6, "Dropout<is_test = 1>(a)", 1),
        (6, "Dropout<is_test = 0>(a)", 0),
        (6, "Dropout(a)", 0),
        (7, "Dropout(a)", 1),
        (11, "Dropout<ratio = 0.9>(a)", 1),
        (12, "Dropout(a, r)", 1),
        (13, "Dropout(a, r, f)", 1),
        (13, "Dropout(a, r, t)", 0),
    ],
)
def test_dropout_of_each_opset(opset: int, dropout: str, count: int) -> None:
    constants = "<float r = {0.5}, bool t = {1}, bool f = {0}>"
    model = graph(f"(float[2] x) => (float[2] y) {constants} {{ a = Relu(x) b = {dropout} y = Neg(b) }}", opset=opset)
    assert rewritten(NAME, model) == count


@pytest.mark.parametrize(
    ("opset", "node"),
    [
        (1, "Reshape<shape = [2, 3]>(x)"),
        (9, "Slice<starts = [0, 0], ends = [2147483647, 3]>(x)"),
        (2, "Pad<pads = [0, 0, 0, 0]>(x)"),
        (10, 'Pad<pads = [0, 0, 0, 0], mode = "edge">(x)'),
    ],
)
def test_parameters_that_were_attributes(opset: int, node: str) -> None:
    body = f"(float[2,3] x) => (float[2,3] y) {{ a = {node} y = Relu(a) }}"
    model = ir.from_proto(
        onnx.shape_inference.infer_shapes(
            onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {body}')
        )
    )
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y = Relu(x)"]


def test_multiplication_of_old_opsets_stays() -> None:
    body = "(float[2] x) => (float[2] y) <float[1] one = {1}> { a = Mul<broadcast = 1>(x, one) y = Relu(a) }"
    model = ir.from_proto(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 6]> g {body}'))
    assert rewritten(NAME, model) == 0


@examples()
@given(data=st.data(), opset=st.sampled_from([9, 12, 13, 17, 21]))
def test_outputs_stay(data: st.DataObject, opset: int) -> None:
    """Random chains of nodes, about half of which do nothing, with random outputs."""
    build = GraphBuilder(opset, np.float32)
    shape = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=3))
    dynamic = data.draw(st.booleans())
    value = build.input(["N", *shape[1:]] if dynamic else shape)
    outputs, rank, ops = (
        [],
        len(shape),
        ["identity", "cast", "transpose", "slice", "pad", "scale", "expand", "relu", "reshape"],
    )
    for _ in range(data.draw(st.integers(1, 5))):
        does_nothing = data.draw(st.booleans())
        match data.draw(st.sampled_from(ops)):
            case "identity":
                value = build.node("Identity" if does_nothing else "Neg", value)
            case "cast":
                value = build.node("Cast", value, to=1)
            case "transpose":
                perm = list(range(rank)) if does_nothing else list(reversed(range(rank)))
                value = build.node("Transpose", value, perm=perm)
            case "slice" if opset >= 10:
                bounds = [[0], [2**31 - 1 if does_nothing else 1], [0], [1]]
                value = build.node("Slice", value, *(build.constant(bound, np.int64) for bound in bounds))
            case "pad" if opset >= 11:
                pads = [0] * (2 * rank) if does_nothing else [1] + [0] * (2 * rank - 1)
                value = build.node("Pad", value, build.constant(pads, np.int64))
            case "scale":
                op = data.draw(st.sampled_from(["Mul", "Div", "Sub", "Add", "Pow"]))
                neutral = 0.0 if op in ("Sub", "Add") else 1.0
                array = np.full([1] * data.draw(st.integers(0, rank + 1)), neutral if does_nothing else 2.0)
                value, rank = build.node(op, value, build.constant(array)), max(rank, array.ndim)
            case "expand":
                value = build.node("Expand", value, build.constant([1] if does_nothing else [2] + [1] * rank, np.int64))
                rank += not does_nothing
            case "reshape":
                value = build.node("Reshape", value, build.constant([0] * (rank - 1) + [-1], np.int64))
            case _:
                value = build.node("Relu", value)
        if data.draw(st.booleans()):
            outputs.append(value)
    proto = build.model(*dict.fromkeys([*outputs, value]), rank=rank)
    feeds = random_feeds(proto, dims={"N": shape[0]})
    assert_same_outputs(NAME, proto, feeds, tolerance=0, run=run_onnxruntime)
