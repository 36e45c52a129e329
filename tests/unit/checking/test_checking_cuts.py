# SPDX-License-Identifier: Apache-2.0
"""Results behind an operator that chooses are compared as sets, what it is given as numbers."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from planted_errors import model_of

from nndeploy.bundle.manifest import Limits, Tolerance
from nndeploy.checking.cuts import behind_cuts, listing_axes, model_before_cuts
from nndeploy.comparison.judge import judge
from nndeploy.comparison.result_rows import rows_of, unmatched_share
from nndeploy.values.types import TensorType

TEXT = (
    '<ir_version: 8, opset_import: ["": 18]> g (float[1, 9] x) => (float[1, 3] best, int64[1, 3] place, float[1, 9] r)'
    " <int64[1] k = {3}> { r = Relu(x) s = Exp(r) v, i = TopK(s, k) best = Neg(v) place = Identity(i) }"
)


def graph() -> ir.Model:
    return ir.from_proto(onnx.parser.parse_model(TEXT))


def test_what_depends_on_a_choice_is_known() -> None:
    assert behind_cuts(graph().graph) == {"v", "i", "best", "place"}


def test_the_model_before_the_cut_ends_with_what_the_operator_is_given() -> None:
    before = model_before_cuts(graph())
    assert before is not None
    assert [value.name for value in before.graph.outputs] == ["s", "r"]
    assert [node.op_type for node in before.graph] == ["Relu", "Exp"]
    onnx.checker.check_model(ir.to_proto(before))


def test_a_model_that_chooses_nothing_has_no_cut() -> None:
    assert model_before_cuts(ir.from_proto(model_of("float"))) is None


@pytest.mark.parametrize(("shapes", "axes"), [
    ({"boxes": (40, 4), "scores": (40,)}, {"boxes": 0, "scores": 0}), ({"rows": (1, 300, 6)}, {"rows": 1}),
    ({"boxes": (2, 40, 4), "scores": (2, 40)}, {"boxes": 1, "scores": 1}),
])  # fmt: skip
def test_the_axis_of_the_list_stands_behind_the_batch(shapes: dict[str, tuple[int, ...]], axes: dict[str, int]) -> None:
    want = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    assert listing_axes(frozenset(want), want) == axes


def results(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.random((50, 4), dtype=np.float32) * 100, np.sort(random.random(50, dtype=np.float32))[::-1].copy()


LIMITS = {"boxes": Limits(0, 0, 0, 0, 0, 0.02), "scores": Limits(0, 0, 0, 0, 0, 0.02)}
TYPES = {"boxes": TensorType("float32", ("N", 4)), "scores": TensorType("float32", ("N",))}
STRICT = {"float32": Tolerance(1e-4, 1e-5)}


def is_ok(boxes: np.ndarray, scores: np.ndarray) -> bool:
    want_boxes, want_scores = results()
    got, want = {"boxes": boxes, "scores": scores}, {"boxes": want_boxes, "scores": want_scores}
    return all(found.ok for found in judge(got, want, TYPES, STRICT, lambda: LIMITS).values())


def test_another_order_and_one_result_less_are_the_same_set() -> None:
    boxes, scores = results()
    order = np.random.default_rng(1).permutation(50)
    assert is_ok(boxes[order], scores[order])
    assert is_ok(boxes[:-1], scores[:-1])
    assert not is_ok(boxes[:-2], scores[:-2])


def test_a_score_of_another_box_is_another_result() -> None:
    boxes, scores = results()
    assert not is_ok(boxes, scores[::-1].copy())


def test_a_box_that_is_elsewhere_is_another_result() -> None:
    boxes, scores = results()
    assert not is_ok(boxes + np.array([3, 0, 0, 0], np.float32), scores)


def test_without_any_result_nothing_is_unmatched() -> None:
    none = rows_of([np.zeros((0, 4), np.float32), np.zeros((0,), np.float32)], [0, 0])
    assert none is not None
    assert unmatched_share(none, none) == 0.0
