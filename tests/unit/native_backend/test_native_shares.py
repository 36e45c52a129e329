# SPDX-License-Identifier: Apache-2.0
"""Shares of classes of support vector machines, held to libsvm's formulas in float64.

A share of each pair by a logistic function of its score (Platt), then those of all classes by coupling these (Wu, Lin
and Weng 2004, their second method): they make a quadratic form least, and libsvm stops near to where that is.
"""

from itertools import combinations
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from native_models import FLOAT_LEVELS, Array, built, by_onnxruntime, each_float_level, run
from nndeploy_native.lowering.table import refusal_of
from oracle.machines import ML
from tree_models import row_model

FEATURES = 3


def machine(kernel: str, classes: int) -> dict[str, Any]:
    rng = np.random.default_rng(classes)
    counts, pairs = [3 + i % 2 for i in range(classes)], classes * (classes - 1) // 2
    return {
        "support_vectors": rng.standard_normal(FEATURES * sum(counts)).tolist(), "vectors_per_class": counts,
        "coefficients": (rng.standard_normal(sum(counts) * (classes - 1))).tolist(), "kernel_type": kernel,
        "kernel_params": [0.3, 0.5, 3.0], "rho": rng.standard_normal(pairs).tolist(),
        "prob_a": (-1 - rng.random(pairs)).tolist(), "prob_b": (rng.standard_normal(pairs) / 4).tolist(),
        "classlabels_ints": [7 * i - 3 for i in range(classes)],
    }  # fmt: skip


def model_of(attributes: dict[str, Any], element: ir.DataType = ir.DataType.FLOAT) -> ir.Model:
    classes = len(attributes["classlabels_ints"])
    return row_model("SVMClassifier", FEATURES, {"label": None, "shares": classes}, attributes, int(element))


def scores_of(given: dict[str, Any], x: Array) -> Array:
    """Returns the score of each pair, (rows, pairs)."""
    gamma, zero, degree = given["kernel_params"]
    vectors, counts = np.array(given["support_vectors"]).reshape(-1, FEATURES), given["vectors_per_class"]
    products, apart = x @ vectors.T, ((x[:, None] - vectors[None]) ** 2).sum(-1)
    line = gamma * products + zero
    of_kind = {"LINEAR": products, "POLY": line**degree, "SIGMOID": np.tanh(line), "RBF": np.exp(-gamma * apart)}
    kernels = of_kind[given["kernel_type"]]
    weights, ends = np.array(given["coefficients"]).reshape(len(counts) - 1, -1), np.cumsum([0, *counts])
    found = []
    for (i, j), rho in zip(combinations(range(len(counts)), 2), given["rho"], strict=True):
        of_i, of_j = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        found.append(kernels[:, of_i] @ weights[j - 1, of_i] + kernels[:, of_j] @ weights[i, of_j] + rho)
    return np.stack(found, 1)


def pairwise(given: dict[str, Any], scores: Array) -> Array:
    """Returns what is left of class j against i, of a row: (classes, classes)."""
    classes = len(given["classlabels_ints"])
    shares = np.zeros((classes, classes))
    lines = np.array(given["prob_a"]) * scores + np.array(given["prob_b"])
    for (i, j), line in zip(combinations(range(classes), 2), lines, strict=True):
        shares[i, j] = np.clip(1 / (1 + np.exp(min(line, 700.0))), 1e-7, 1 - 1e-7)
        shares[j, i] = 1 - shares[i, j]
    return shares


def form_of(r: Array) -> Array:
    """Returns Q, of which p Q p is the sum over pairs of (r(j, i) p(i) - r(i, j) p(j))^2."""
    q = -r * r.T
    np.fill_diagonal(q, (r**2).sum(0) - np.diag(r) ** 2)
    return q


def coupled(r: Array) -> Array:
    """Returns what libsvm's steps end with."""
    q, classes = form_of(r), len(r)
    p = np.full(classes, 1 / classes)
    for _ in range(max(100, classes)):
        if np.abs(q @ p - p @ q @ p).max() < 0.005 / classes:
            break
        for t in range(classes):  # what minimises along this class, then all add up to 1 again
            p[t] += (p @ q @ p - q[t] @ p) / q[t, t]
            p /= p.sum()
    return p


def least(r: Array) -> Array:
    """Returns what makes the form least: the solution of its linear equations."""
    classes = len(r)
    bordered = np.block([[form_of(r), np.ones((classes, 1))], [np.ones((1, classes)), np.zeros((1, 1))]])
    return np.linalg.solve(bordered, np.eye(classes + 1)[-1])[:classes]


@each_float_level
@pytest.mark.parametrize("classes", [2, 3, 4, 11, 20])
@pytest.mark.parametrize("kernel", ["RBF", "LINEAR", "POLY", "SIGMOID"])
def test_shares_are_those_of_libsvm(level: str, kernel: str, classes: int) -> None:
    given = machine(kernel, classes)
    x = np.random.default_rng(1).standard_normal((23, FEATURES)).astype(np.float32)
    found = run(built(model_of(given)), {"x": x}, level, threads=2)
    scores = scores_of(given, x.astype(np.float64))
    near = [pairwise(given, row) for row in scores]
    np.testing.assert_allclose(found["shares"], [coupled(one) for one in near], rtol=0, atol=2e-5)
    np.testing.assert_allclose(found["shares"], [least(one) for one in near], rtol=0, atol=0.03)
    np.testing.assert_allclose(found["shares"].sum(1), 1, rtol=1e-6)
    votes = np.zeros((len(x), classes))
    for pair, (i, j) in enumerate(combinations(range(classes), 2)):
        votes[np.arange(len(x)), np.where(scores[:, pair] > 0, i, j)] += 1
    np.testing.assert_array_equal(found["label"], np.array(given["classlabels_ints"])[votes.argmax(1)])


def test_shares_are_those_of_onnx_runtime_also_of_doubles() -> None:
    given = machine("RBF", 5)
    x = np.random.default_rng(2).standard_normal((9, FEATURES)).astype(np.float32)
    wanted = by_onnxruntime(model_of(given), {"x": x})
    for element, rows in ((ir.DataType.FLOAT, x), (ir.DataType.DOUBLE, x.astype(np.float64))):
        found = run(built(model_of(given, element)), {"x": rows})
        np.testing.assert_array_equal(found["label"], wanted["label"])
        np.testing.assert_allclose(found["shares"], wanted["shares"], rtol=0, atol=2e-5)


def test_scores_that_leave_nothing_to_the_others_keep_shares_within_their_bounds() -> None:
    given = machine("LINEAR", 4)
    x = np.array([[1e6, -1e6, 1e6], [np.inf, 0, 0], [np.nan, 0, 0]], np.float32)
    for level in FLOAT_LEVELS:
        shares = run(built(model_of(given)), {"x": x}, level)["shares"]
        right = coupled(pairwise(given, scores_of(given, x[:1].astype(np.float64))[0]))
        np.testing.assert_allclose(shares[0], right, rtol=0, atol=1e-6)
        np.testing.assert_array_equal(shares[1:], np.full((2, 4), 0.25))  # no step leads anywhere: as libsvm has it


@pytest.mark.parametrize(("changes", "reason"), [
    ({"prob_b": [0.0]}, "3 slopes and 1 offsets for 3 pairs"), ({"prob_a": [1.0, 2.0]}, "2 slopes and 3 offsets"),
    ({"post_transform": "SOFTMAX"}, "probabilities or of two classes whose scores are transformed"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(changes: dict[str, Any], reason: str) -> None:
    model = model_of(machine("RBF", 3) | changes)
    (node,) = [one for one in model.graph if one.domain == ML]
    assert reason in refusal_of(node, model, {})
