# SPDX-License-Identifier: Apache-2.0
"""Pairs are edges of the data-flow graph, users may choose them by name, and delays of one first operator add up."""

import re

import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.errors import UsageError
from nndeploy.pacing.plan.data_flow import DataFlow
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.plan.operators import Operators
from nndeploy.pacing.plan.pace_plan import PairShares, serial_plan
from nndeploy.pacing.plan.pairs import (
    END,
    ChosenPair,
    Pair,
    PointNames,
    chosen,
    num_sharing,
    pair_name,
    pairs_in,
    presets_of,
)
from nndeploy.pacing.plan.policy import PacePolicy
from nndeploy.partition.count_operators import counted_operators

MS = 1_000_000
BRANCHES = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,8,4,4] x) => (float[1,8,4,4] y)
<int64[3] s = {1, 8, 16}, int64[4] t = {1, 8, 4, 4}>
{
  a = Exp(x)
  r = Relu(a)
  b = Sin(r)
  v = Reshape(r, s)
  c = Neg(v)
  w = Reshape(c, t)
  y = Add(b, w)
}"""


@pytest.fixture(scope="module")
def branches() -> Operators:
    model = ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(BRANCHES)))
    return counted_operators(model, {})


@pytest.mark.parametrize(("is_known", "points", "pairs"), [
    (True, "r,b,c,y", [(0, 1), (0, 2), (1, 3), (2, 3), (3, END)]),  # who reads what whom made, not who runs next
    (True, "r,c,y", [(0, 1), (0, 2), (1, 2), (2, END)]),  # a fused step is one end, a new name is no operator
    (True, "r,b,v,c,y", [(0, 1), (0, 2), (1, 4), (2, 3), (3, 4), (4, END)]),  # unless it has a point
    (True, "x,r,b,b,c,y", [(0, 1), (1, 2), (1, 4), (2, 3), (2, 5), (3, 5), (4, 5), (5, END)]),  # a copy
    (True, "r,of its own,b,c,y", [(0, 1), (0, 2), (0, 3), (1, 2), (2, 4), (3, 4), (4, END)]),  # nothing is known of it
    (False, "r,b,y", [(0, 1), (1, 2), (2, END)]),
])  # fmt: skip
def test_pairs_are_who_reads_what_whom_made(branches, is_known, points, pairs) -> None:
    flow = DataFlow()
    flow.add([[name] for name in points.split(",")], branches if is_known else None, ["x"], ["y"])
    assert [pair[:2] for pair in flow.pairs()] == pairs


def test_a_fused_step_is_all_of_its_operators(branches: Operators) -> None:
    flow = DataFlow()
    flow.add([["r"], ["c"], ["y"]], branches, ["x"], ["y"])
    assert flow.done[0] == ("Exp a", "Relu r")
    assert "Sin b" in flow.done[2]


def test_pairs_go_through_submodels(branches: Operators) -> None:
    flow = DataFlow()
    flow.add([["r"], ["b"], ["c"], ["y"]], branches, ["x"], ["y", "b"])
    flow.add([["p"]], None, ["b"], ["p"])
    flow.add([["q"]], None, ["y"], ["q"])
    assert [pair[:2] for pair in flow.pairs()] == [
        (0, 1), (0, 2), (1, 3), (1, 4), (2, 3), (3, 5), (4, END), (5, END),
    ]  # fmt: skip


PAIRS = [Pair(0, 1), Pair(0, 2), Pair(1, 3), Pair(2, 3), Pair(3, END)]
NAMES = PointNames(
    ["dense 3x3 8->8 r", "Sin b", "Neg c", "Add y"],
    [("Conv a", "Relu r"), ("Sin b",), ("Neg c",), ("Add /y_output_0",)],
)


@pytest.mark.parametrize(("texts", "found"), [
    (["dense 3x3 8->8 r -> Sin b"], [Pair(0, 1)]),  # a name may hold an arrow
    (["r->b=2ms"], [Pair(0, 1, 2 * MS)]), ([" Relu r  ->  Neg c = 0.5ms"], [Pair(0, 2, MS // 2)]),
    (["a->c"], [Pair(0, 2)]), (["b->/y=2ms"], [Pair(1, 3, 2 * MS)]),  # as torch calls the node of a value
    (["Add y->end=1s"], [Pair(3, END, 1000 * MS)]), (["c->Add y", "r->b=1ms"], [Pair(0, 1, MS), Pair(2, 3)]),
    ((), PAIRS),  # none means all
])  # fmt: skip
def test_pairs_are_chosen_by_the_names_of_their_operators(texts: list[str], found: list[Pair]) -> None:
    assert chosen(PAIRS, NAMES, pairs_in(texts) if texts else ()) == found


NODES = {"entry": ["r"], "left": ["b"], "b": ["b"], "twice": ["b", "c"], "c": ["/y_output_0"], "gone": ["zz"]}


@pytest.mark.parametrize(("texts", "found"), [
    (["entry->left=2ms"], [Pair(0, 1, 2 * MS)]),
    (["r->left"], [Pair(0, 1)]), (["entry->Neg c"], [Pair(0, 2)]),
    (["r->b"], [Pair(0, 1)]),  # a node and its value of one name are one operator
])  # fmt: skip
def test_operators_are_also_known_by_the_names_of_the_nodes(texts, found) -> None:
    assert chosen(PAIRS, NAMES._replace(nodes=NODES), pairs_in(texts)) == found


@pytest.mark.parametrize(("texts", "reason", "hint"), [
    (["r->twice"], "'twice' names several operators", "kind and value of one: 'Sin b', 'Neg c'"),
    (["r->c"], "'c' names several operators", "'Neg c', 'Add /y_output_0'"),
    (["gone->b"], "no operator is named 'gone'", ""),
    (["entri->b"], "no operator is named 'entri'", "nearest: 'entry'"),
])  # fmt: skip
def test_a_name_of_several_operators_is_refused_with_theirs(texts, reason, hint) -> None:
    with pytest.raises(UsageError, match=reason) as caught:
        chosen(PAIRS, NAMES._replace(nodes=NODES), pairs_in(texts))
    assert hint in caught.value.hint


@pytest.mark.parametrize(("texts", "reason", "hint"), [
    (["r->bb"], "no operator is named 'bb'", "nearest: .*'b'"),
    (["rr->b"], "no operator is named 'rr'", "nearest: .*'r'"),
    (["something else->b"], "no operator is named 'something else'", "known: 'dense 3x3 8->8 r'"),
    (["r->Add y"], "'Add y' does not read what 'r' makes", "its pairs: 'dense 3x3 8->8 r -> Sin b', "),
    (["b->r"], "'r' does not read what 'b' makes", "its pairs: 'Sin b -> Add y'"),
    (["r->b=1ms", "a->b=2ms"], "two delays for 'dense 3x3 8->8 r -> Sin b'", ""),
])  # fmt: skip
def test_what_is_no_pair_is_one_line_with_what_is_near(texts: list[str], reason: str, hint: str) -> None:
    with pytest.raises(UsageError, match=reason) as caught:
        chosen(PAIRS, NAMES, pairs_in(texts))
    assert caught.match(reason)
    assert re.search(hint, caught.value.hint)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "a", "->", "a->", "->b", "a->b=2", "a->b=2 h", "a->b=0ms", "a->b=-1ms", "=2ms"])
def test_what_is_no_pair_at_all_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--pace-pair"):
        chosen(PAIRS, NAMES, pairs_in([text]))


def test_a_name_may_hold_an_equal_sign() -> None:
    assert pairs_in(["a=b->c"]) == (ChosenPair("a=b->c"),)
    assert pairs_in(["a=b->c=2us"]) == (ChosenPair("a=b->c", 2000),)


def test_a_pair_reads_as_its_operators() -> None:
    assert pair_name(NAMES.names, Pair(1, 3)) == "Sin b -> Add y"
    assert pair_name(NAMES.names, Pair(3, END)) == "Add y -> end"


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from((0, 0, 1, 2))), max_size=20))
def test_in_a_row_delays_behind_one_operator_are_a_sum(rows: list[tuple[int, int, int]]) -> None:
    pairs = [Pair(a, b, preset) for a, b, preset in rows]
    assert presets_of(pairs, 6).sum() == sum(pair.preset_ns for pair in pairs)
    assert num_sharing(pairs, 6).sum() == sum(not pair.preset_ns for pair in pairs)


def test_equal_delays_are_those_of_pairs_and_proportional_ones_of_operators() -> None:
    durations, sharing = np.array([4.0, 2.0, 2.0, 1.0]), np.array([2.0, 1.0, 0.0, 1.0])
    shares = PairShares(sharing, np.zeros(4))
    equal = serial_plan(durations, np.full(4, False), 1e9, 0.0, PacePolicy.EQUAL, shares)
    np.testing.assert_allclose(equal.weights, [2 / 3, 1 / 3, 0, 0])
    proportional = serial_plan(durations, np.full(4, False), 1e9, 0.0, PacePolicy.PROPORTIONAL, shares)
    np.testing.assert_allclose(proportional.weights, [4 / 6, 2 / 6, 0, 0])


def test_a_total_is_what_delays_take_beside_the_work() -> None:
    assert PaceGoal(total_ns=60 * MS).budget_ns(10.0 * MS) == 70 * MS
    with pytest.raises(UsageError, match="exclude each other"):
        PaceGoal(max_latency_ns=1, total_ns=1)


def test_delays_that_are_set_must_fit_what_is_granted() -> None:
    goal = PaceGoal(max_latency_ns=30 * MS, pairs=pairs_in(["a->b=15ms"]))
    goal.check(10.0 * MS, 15.0 * MS)
    with pytest.raises(UsageError, match="take 15 ms, more than the 10 ms left beside 20 ms of work"):
        goal.check(20.0 * MS, 15.0 * MS)
    PaceGoal(pairs=pairs_in(["a->b=15ms"])).check(20.0 * MS, 15.0 * MS)  # nothing else was granted
    with pytest.raises(UsageError, match="needed to pace by"):
        PaceGoal(pairs=pairs_in(["a->b=15ms", "b->c"]))
