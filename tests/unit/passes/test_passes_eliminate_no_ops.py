# SPDX-License-Identifier: Apache-2.0
"""Nodes that hand on their input as it is disappear, and nothing else does."""

import onnx
import onnx_ir as ir
import pytest
from passes_harness import graph, nodes, rewritten

NAME = "eliminate-no-ops"


CONSTANTS = """<int64[3] s = {2, 3, 4}, int64[3] zeros = {0, 0, 0}, int64[3] rest = {0, -1, 4},
    int64[3] ones = {1, 1, 1}, int64[3] swapped = {3, 2, 4}, int64[3] twice = {1, 1, 2},
    int64[1] z = {0}, int64[1] o = {1}, int64[1] two = {2}, int64[1] four = {4}, int64[1] back = {-1},
    int64[1] flat = {-1}, int64[1] first = {-9223372036854775807}, int64[4] four_ones = {1, 1, 1, 1},
    int64[1] far = {9223372036854775807}, int64[6] no_pads = {0, 0, 0, 0, 0, 0},
    int64[6] pads = {0, 0, 0, 0, 1, 0}, float one = {1}, float nil = {0}, float half = {0.5}, bool yes = {1},
    float[1,3,1] many = {1, 1, 1}, float[1,1,1,1] deep = {1}, float[4] mixed = {0, 1, 1, 1}>"""


@pytest.mark.parametrize("no_op", [
    "b = Identity(a)", "b = Dropout(a)", "b, m = Dropout(a)", "b = Cast<to = 1>(a)",
    "b = Transpose<perm = [0, 1, 2]>(a)", "b = Reshape(a, s)", "b = Reshape(a, zeros)", "b = Reshape(a, rest)",
    "b = Slice(a, z, far, z, o)", "b = Slice(a, z, four, two, o)", "b = Expand(a, o)", "b = Expand(a, s)",
    "b = Tile(a, ones)", "b = Pad(a, no_pads)", "b = Concat<axis = 0>(a)", "b = Sum(a)", "b = Max(a)", "b = Min(a)",
    "b = Mean(a)", "b = Mul(a, one)", "b = Mul(one, a)", "b = Div(a, one)", "b = Pow(a, one)", "b = Sub(a, nil)",
    "b = Mul(a, many)",
])  # fmt: skip
def test_no_op_disappears(no_op: str) -> None:
    model = graph(f"(float[2,3,4] x) => (float[2,3,4] y) {CONSTANTS} {{ a = Relu(x) {no_op} y = Neg(b) }}")
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["a = Relu(x)", "y = Neg(a)"]


@pytest.mark.parametrize("node", [
    "b = Cast<to = 1>(i)", "b = Transpose<perm = [1, 0, 2]>(a)", "b = Transpose(a)", "b = Reshape(a, swapped)",
    "b = Slice(a, back, far, z, back)", "b = Slice(a, back, first, z, back)", "b = Slice(a, z, o, z, o)",
    "b = Expand(row, s)", "b = Expand(a, four_ones)", "b = Tile(a, twice)", "b = Pad(a, pads)",
    "b = Concat<axis = 0>(a, a)", "b = Sum(a, a)", "b = Mul(a, half)", "b = Div(one, a)", "b = Sub(nil, a)",
    "b = Pow(one, a)", "b = Add(a, nil)", "b = Mul(a, deep)", "b = Mul(row, many)", "b = Mul(a, mixed)",
    "b = Dropout(a, half, yes)", "c, m = Dropout(a) k = Cast<to = 1>(m) b = Add(c, k)",
])  # fmt: skip
def test_what_changes_anything_stays(node: str) -> None:
    inputs = "(float[2,3,4] x, int32[2,3,4] i, float[1,1,4] row)"
    model = graph(f"{inputs} => (float[N] y) {CONSTANTS} {{ a = Relu(x) {node} y = Reshape(b, flat) }}")
    before = nodes(model)
    assert rewritten(NAME, model) == 0
    assert nodes(model) == before


@pytest.mark.parametrize(("opset", "node"), [
    (1, "Reshape<shape = [2, 3]>(x)"), (9, "Slice<starts = [0, 0], ends = [2147483647, 3]>(x)"),
    (2, "Pad<pads = [0, 0, 0, 0]>(x)"), (10, 'Pad<pads = [0, 0, 0, 0], mode = "edge">(x)'),
])  # fmt: skip
def test_parameters_that_were_attributes(opset: int, node: str) -> None:
    body = f"(float[2,3] x) => (float[2,3] y) {{ a = {node} y = Relu(a) }}"
    model = ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g {body}'
    )))  # fmt: skip
    assert rewritten(NAME, model) == 1
    assert nodes(model) == ["y = Relu(x)"]
