# SPDX-License-Identifier: Apache-2.0
"""Ensembles of trees through the rules and the kernel library, as ONNX Runtime computes them."""

import numpy as np
import onnx_ir as ir
import pytest
from native_models import FLOAT_LEVELS, Array, built, by_onnxruntime, each_float_level, run
from tree_models import MODES, ORDERED, Drawn, classifier, row_model, rows_drawn, trees_of

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def assert_same(model: ir.Model, x: Array, level: str, *, is_exact: bool = True) -> None:
    """Checks that ONNX Runtime's labels come out, and its scores: to the bit, or but for rounding."""
    wanted, artifact = by_onnxruntime(model, {"x": x}), built(model)
    found, shared = (run(artifact, {"x": x}, level, threads=threads) for threads in (1, 3))
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], shared[name])
        assert found[name].shape == array.shape
        if is_exact or array.dtype == np.int64:
            np.testing.assert_array_equal(found[name], array)
        else:
            np.testing.assert_allclose(found[name], array, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("labels", [[0, 1, 2, 3], [5, -5, 2**40, 7]], ids=["numbers", "names"])
def test_classes(transform: str, labels: list[int]) -> None:
    rng = np.random.default_rng(43)
    every = (0, 1, 2, 3)
    for columns, base in ((every, {}), (every, {"base_values": [0.5, -1.0, 2.0, 0.25]}), ((), {}), ((1, 2), {})):
        drawn = Drawn(6, 4, 5, 4, columns, ORDERED, has_tracks=True)
        model = classifier(rng, drawn, classlabels_int64s=labels, post_transform=transform, **base)
        assert_same(model, rows_drawn(rng, 21, 5), FLOAT_LEVELS[-1], is_exact=transform == "NONE")


@each_float_level
@pytest.mark.parametrize("transform", [one for one in TRANSFORMS if one != "PROBIT"])
@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize("is_positive", [False, True])
def test_two_classes_by_one_score(level: str, transform: str, column: int, is_positive: bool) -> None:
    rng = np.random.default_rng(44)
    for base in ({}, {"base_values": [0.25]}) if column == 0 else ({},):
        drawn = Drawn(3, 3, 4, 2, (column,), is_positive=is_positive)
        model = classifier(rng, drawn, classlabels_int64s=[3, 9], post_transform=transform, **base)
        assert_same(model, rows_drawn(rng, 17, 4), level, is_exact=transform == "NONE")


@each_float_level
@pytest.mark.parametrize("element", [ir.DataType.INT64, ir.DataType.INT32])
def test_rows_of_whole_numbers(level: str, element: ir.DataType) -> None:
    rng = np.random.default_rng(45)
    attributes = {**trees_of(rng, Drawn(4, 4, 3, 3, (0, 1, 2)), "class"), "classlabels_int64s": [0, 1, 2]}
    model = row_model("TreeEnsembleClassifier", 3, {"label": None, "y": 3}, attributes, int(element))
    x = rng.integers(-3, 4, (11, 3)).astype(element.numpy())
    assert_same(model, x, level)


def test_thresholds_at_the_ends_of_floats() -> None:
    """What is less than the least number is nothing, what is at least that everything but a NaN."""
    ends = [-np.inf, np.inf, 0.0, -0.0, 1e-45]
    x = np.array([[-np.inf], [np.inf], [0.0], [-0.0], [1e-45], [-1e-45], [np.nan], [1.0]], np.float32)
    for mode in MODES:
        for threshold in ends:
            attributes = {
                "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0],
                "nodes_values": [threshold, 0.0, 0.0], "nodes_modes": [mode, "LEAF", "LEAF"],
                "nodes_falsenodeids": [1, 0, 0], "nodes_truenodeids": [2, 0, 0], "n_targets": 1,
                "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0],
            }  # fmt: skip
            assert_same(row_model("TreeEnsembleRegressor", 1, {"y": 1}, attributes), x, "x86-64-v2")
