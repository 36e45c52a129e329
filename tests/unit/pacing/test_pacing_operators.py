# SPDX-License-Identifier: Apache-2.0
"""What operators compute and move: counted from shapes, summed for the points that a backend has left of them."""

import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.pacing.plan.estimate import estimated_ns, explained, least_ns
from nndeploy.pacing.plan.operators import Amount, Operator, Operators
from nndeploy.partition.count_operators import counted_operators
from nndeploy.plugin.interface import Roof
from nndeploy.target.target import Target

MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,8,10,10] x) => (float[1,16,10,10] y)
<float[16,8,1,1] w = {0}, int64[4] s = {1, 16, 10, 10}>
{
  c = Conv(x, w)
  r = Relu(c)
  v = Reshape(r, s)
  y = Add(v, c)
}"""
INPUT, MADE = 4 * 8 * 100, 4 * 16 * 100
WEIGHTS = 4 * 16 * 8


@pytest.fixture(scope="module")
def counted() -> Operators:
    text = MODEL.replace("{0}", "{" + ", ".join(["0"] * 128) + "}")
    model = ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text)))
    return counted_operators(model, {})


def test_each_operator_counts_its_multiply_adds_and_what_it_reads_and_writes(counted: Operators) -> None:
    assert {name: amount for name, amount, _ in counted.each()} == {
        "Conv c": Amount(2 * 1600 * 8, INPUT + WEIGHTS + MADE),
        "Relu r": Amount(1600, 2 * MADE),
        "Add y": Amount(1600, 3 * MADE),
    }


def test_values_between_operators_done_together_are_not_moved(counted: Operators) -> None:
    assert counted.between([["r"], ["y"]]) == [
        Amount(2 * 1600 * 8 + 1600, INPUT + WEIGHTS + 2 * MADE),  # c is read by another one
        Amount(1600, 3 * MADE),  # v is r by another name
    ]
    assert counted.between([["y"]]) == [Amount(2 * 1600 * 8 + 3200, INPUT + WEIGHTS + MADE)] == [counted.whole()]


def test_a_second_point_of_a_value_copies_it_and_an_unknown_one_is_nothing(counted: Operators) -> None:
    first, copy, unknown, last = counted.between([["c"], ["c"], ["reorder_7"], ["y"]])
    assert first.flops == 2 * 1600 * 8
    assert copy == Amount(0, 2 * MADE)
    assert unknown == Amount(0, 0)
    assert last.flops == 3200


def test_a_point_stands_for_all_operators_since_the_one_before(counted: Operators) -> None:
    conv, all_of_it = counted.between([["c"]])[0], counted.whole()
    first, last = counted.between([["c"], ["r", "reorder", "y", "y"]])
    assert (first, last.flops) == (conv, 3200)
    assert counted.between([["c", "r", "y"]]) == [all_of_it]
    with_copy = counted.between([["c", "c", "r", "y"]])
    assert with_copy == [Amount(all_of_it.flops, all_of_it.bytes + 2 * MADE)]


def test_a_sample_says_the_shapes_where_the_model_does_not() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[n,4] x) => (float[n,4] y) { y = Neg(x) }"""
    model = ir.from_proto(onnx.parser.parse_model(text))
    shapes = {"x": (7, 4), "y": (7, 4)}
    assert counted_operators(model, shapes).whole() == Amount(28, 2 * 28 * 4)


@st.composite
def graphs(draw: st.DrawFn) -> Operators:
    """Operators in order, each reading values before it."""
    count = draw(st.integers(1, 12))
    values = tuple((f"v{number}", draw(st.integers(0, 1000))) for number in range(count + 1))
    operators = [
        Operator(
            "Op", tuple(draw(st.lists(st.integers(0, number), max_size=3, unique=True))), (number + 1,),
            draw(st.integers(0, 1000)), draw(st.integers(0, 1000)),
        )
        for number in range(count)
    ]  # fmt: skip
    return Operators(values, tuple(operators))


@given(graphs(), st.randoms(use_true_random=False))
def test_with_a_point_for_every_operator_nothing_is_lost(operators: Operators, dice) -> None:
    points = [f"v{number + 1}" for number in range(len(operators.operators))]
    dice.shuffle(points)
    amounts = operators.between([[name] for name in points])
    assert [one.flops for one in amounts] == [operators.operators[int(name[1:]) - 1].flops for name in points]
    assert sum(one.bytes for one in amounts) >= operators.whole().bytes


@given(graphs(), st.data())
def test_no_operator_counts_for_two_points(operators: Operators, data: st.DataObject) -> None:
    names = [f"v{number + 1}" for number in range(len(operators.operators))]
    amounts = operators.between(data.draw(st.lists(st.lists(st.sampled_from(names), max_size=3))))
    assert sum(one.flops for one in amounts) <= operators.whole().flops


def test_estimates_follow_what_is_slower() -> None:
    amounts = [Amount(1000, 10), Amount(10, 1000)]
    box = Target("box", "x86_64", flops_per_s=10**9, bytes_per_s=5 * 10**8)
    assert estimated_ns(amounts, box).tolist() == [1000, 2000]
    assert estimated_ns(amounts).tolist() == [10, 100]


def test_r2_is_one_for_any_scale_and_less_where_estimates_are_wrong() -> None:
    measured = np.array([1.0, 5.0, 2.0])
    assert explained(7 * measured, measured) == pytest.approx(1)
    right = explained(np.array([5.0, 1.0, 2.0]), measured)
    assert right is not None
    assert right < 0.9
    assert explained(np.ones(3), measured) is None
    assert explained(np.ones(1), np.ones(1)) is None


ROOF = Roof(1, float32_per_s=100e9, int8_per_s=400e9, bytes_per_s={1 << 14: 200e9, 1 << 15: 100e9, 1 << 16: 25e9})


@pytest.mark.parametrize(
    ("amount", "is_quantised", "computing", "moving"),
    [
        (Amount(1000, 0), False, 10.0, 0.0),
        (Amount(1000, 0), True, 2.5, 0.0),
        (Amount(0, 1 << 14), False, 0.0, (1 << 14) / 200),  # all of it in the smallest memory
        (Amount(0, (1 << 14) + 1), False, 0.0, ((1 << 14) + 1) / 100),
        (Amount(0, 1 << 20), False, 0.0, (1 << 20) / 25),  # more than was measured
    ],
)
def test_the_roof_is_that_of_the_operations_and_of_the_smallest_memory_that_holds_the_bytes(
    amount: Amount, is_quantised: bool, computing: float, moving: float
) -> None:
    assert least_ns(amount, ROOF, is_quantised=is_quantised) == pytest.approx((computing, moving))


def test_points_that_make_integers_of_few_bits_are_known() -> None:
    kinds = ("Conv", "QLinearConv", "MatMulInteger", "QuantizeLinear", "Relu")
    operators = [Operator(kind, (number,), (number + 1,), 1, 0) for number, kind in enumerate(kinds)]
    found = Operators(tuple((f"v{number}", 4) for number in range(6)), tuple(operators))
    assert found.quantised([[f"v{number}"] for number in range(1, 6)]) == [False, True, True, True, False]
    assert found.quantised([["v1"], ["v5"]]) == [False, True]  # the last one is fused with those before it
