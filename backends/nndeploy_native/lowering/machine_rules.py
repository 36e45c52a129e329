# SPDX-License-Identifier: Apache-2.0
"""Rules for support vector machines.

    kernels (rows, vectors)    of each row with each support vector
    scores  (rows, pairs)      kernels by the coefficients of a pair of classes (i, j), i < j, plus its rho
    label                      the class with the most votes: i where the score of a pair is above 0, else j
    shares  (rows, classes)    by coupling the shares of pairs, where a logistic function of each is given

Source: ONNX SVMClassifier, SVMRegressor; what they leave open, as ONNX Runtime has it.
"""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import int_attribute, ints_attribute, text_attribute
from nndeploy_native.expressions import Expression, const
from nndeploy_native.expressions import operand as x_of
from nndeploy_native.lowering.classes import (
    columns_output,
    emit_binary_labels,
    emit_labels,
    emit_transformed,
    floats_attribute,
    int_labels,
    row_constant,
    rows_of,
    scores_output,
    transform_of,
)
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.elementwise_rules import POWERS
from nndeploy_native.lowering.matrices import emit_linear, product
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.movement import View
from nndeploy_native.steps.pairwise_shares import PairwiseShares
from nndeploy_native.steps.reduction import AlongAxis
from nndeploy_native.tensors import Array, Layout, Tensor

MOST_CLASSES = 1024
"""Classes whose shares are coupled: the bound of the kernel library."""
MOST_EXPONENT = 64.0
"""Support vectors lie so far from their middle at most, as exponents of exp(-gamma * distance^2): distances are
computed from squares, which round the more the larger they are."""


def svm_regressor(node: ir.Node, context: Context) -> None:
    """Lowers SVMRegressor: a kernel of each support vector, then a product of these."""
    vectors, weights = floats_attribute(node, "support_vectors"), floats_attribute(node, "coefficients")
    count, rho = int_attribute(node, "n_supports", 0), floats_attribute(node, "rho")
    if count < 1 or len(vectors) % count or len(weights) != count or len(rho) != 1:
        raise BuildRefusedError("a SVMRegressor without support vectors")
    if transform_of(node) != "NONE":
        raise BuildRefusedError("a SVMRegressor whose score is transformed")
    x, output = rows_of(node, context), columns_output(node.outputs[0], context, 1)
    kernels = _emit_kernels(node, context, x, vectors.reshape(count, -1))
    is_sign = int_attribute(node, "one_class", 0)
    sums = context.temporary("sums", output.shape, Layout.PLAIN) if is_sign else output
    emit_linear(context, kernels, sums, weights.reshape(1, -1), rho)
    if is_sign:
        sign: Expression = ("where", ("less", const(0.0), x_of(0)), const(1.0), const(-1.0))
        context.emit(Elementwise(output, (Operand(sums.shape, sums),), sign))


def svm_classifier(node: ir.Node, context: Context) -> None:
    """Lowers SVMClassifier with support vectors."""
    labels, transform, counts = int_labels(node), transform_of(node), ints_attribute(node, "vectors_per_class") or ()
    count, classes = sum(counts), len(labels)
    pairs = list(combinations(range(classes), 2))
    vectors, weights = floats_attribute(node, "support_vectors"), floats_attribute(node, "coefficients")
    rho = floats_attribute(node, "rho")
    if classes < 2 or len(counts) != classes or min(counts) < 0 or count < 1 or len(vectors) % count:
        raise BuildRefusedError("a SVMClassifier without support vectors of each class")
    if len(weights) != count * (classes - 1) or len(rho) != len(pairs):
        raise BuildRefusedError(f"{len(weights)} coefficients and {len(rho)} rho for {count} vectors")
    slopes, offsets = (floats_attribute(node, name) for name in ("prob_a", "prob_b"))
    has_shares = len(slopes) > 0
    if transform != "NONE" and (classes == 2 or has_shares):
        raise BuildRefusedError("a SVMClassifier with probabilities or of two classes whose scores are transformed")
    if has_shares and (not len(slopes) == len(offsets) == len(pairs) or classes > MOST_CLASSES):
        raise BuildRefusedError(f"{len(slopes)} slopes and {len(offsets)} offsets for {len(pairs)} pairs of classes")
    x = rows_of(node, context)
    kernels = _emit_kernels(node, context, x, vectors.reshape(count, -1))
    by_pair = _weights_of_pairs(weights.reshape(classes - 1, count), counts, pairs)
    if has_shares:
        sums = context.temporary("sums", (x.shape[0], len(pairs)), Layout.PLAIN)
        emit_linear(context, kernels, sums, by_pair, rho)
        if node.outputs[1].name:
            context.emit(PairwiseShares(scores_output(node, context, classes), sums, classes, slopes, offsets))
        _emit_voted(node, context, sums, pairs, labels)
        return
    if classes > 2:
        output = scores_output(node, context, len(pairs))
        sums = output if transform == "NONE" else context.temporary("sums", output.shape, Layout.PLAIN)
        emit_linear(context, kernels, sums, by_pair, rho)
        if transform != "NONE":
            emit_transformed(context, sums, output, transform)
        _emit_voted(node, context, sums, pairs, labels)
        return
    output = scores_output(node, context, 2)
    sums = context.temporary("sums", (x.shape[0], 1), Layout.PLAIN)
    emit_linear(context, kernels, sums, by_pair, rho)
    signs = row_constant([-1.0, 1.0])
    context.emit(Elementwise(output, (Operand(sums.shape, sums), signs), ("mul", x_of(0), x_of(1))))
    emit_binary_labels(node.outputs[0], context, sums, 0.0, labels[::-1])


def _weights_of_pairs(weights: Array, counts: tuple[int, ...], pairs: list[tuple[int, int]]) -> Array:
    """Returns the weight that each support vector has in each pair, (pairs, vectors), of (classes - 1, vectors)."""
    starts = np.cumsum([0, *counts])
    found = np.zeros((len(pairs), weights.shape[1]), np.float32)
    for row, (i, j) in zip(found, pairs, strict=True):
        of_i, of_j = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        row[of_i], row[of_j] = weights[j - 1, of_i], weights[i, of_j]
    return found


def _emit_voted(
    node: ir.Node, context: Context, sums: Tensor, pairs: list[tuple[int, int]], labels: tuple[int, ...]
) -> None:
    """Emits the label of the class that wins most pairs, the first of those that win as many."""
    wins = context.temporary("wins", sums.shape, Layout.PLAIN)
    votes = context.temporary("votes", (sums.shape[0], len(labels)), Layout.PLAIN)
    context.emit(Elementwise(wins, (Operand(sums.shape, sums),), ("less", const(0.0), x_of(0))))
    first, second = (np.eye(len(labels), dtype=np.float32)[[pair[side] for pair in pairs]] for side in (0, 1))
    emit_linear(context, wins, votes, (first - second).T, second.sum(0))
    emit_labels(node.outputs[0], context, votes, labels)


def _emit_kernels(node: ir.Node, context: Context, x: Tensor, vectors: Array) -> Tensor:
    """Emits the kernel of each row with each support vector, (rows, vectors)."""
    kind, params = text_attribute(node, "kernel_type", "LINEAR"), floats_attribute(node, "kernel_params")
    gamma, zero, degree = params.tolist() if len(params) == 3 else (0.0, 0.0, 3.0)
    rows, output = x.shape[0], context.temporary("kernels", (x.shape[0], len(vectors)), Layout.PLAIN)
    if kind == "RBF":
        _emit_radial(context, x, output, vectors, gamma)
        return output
    if kind == "LINEAR":
        emit_linear(context, x, output, vectors, None)
        return output
    if kind not in ("POLY", "SIGMOID"):
        raise BuildRefusedError(f"a kernel {kind!r:.40}")
    products = context.temporary("products", (rows, len(vectors)), Layout.PLAIN)
    emit_linear(context, x, products, vectors, None)
    line: Expression = ("add", ("mul", x_of(0), const(gamma)), const(zero))
    value: Expression = POWERS.get(degree, _power_of(degree))(line) if kind == "POLY" else ("tanh", line)
    context.emit(Elementwise(output, (Operand(products.shape, products),), value))
    return output


def _power_of(degree: float) -> Callable[[Expression], Expression]:
    return lambda x: ("pow", x, const(degree))


def _emit_radial(context: Context, x: Tensor, output: Tensor, vectors: Array, gamma: float) -> None:
    """exp(-gamma |x - s|^2), of what differs from the middle m of the vectors: |x-m|^2 - 2 (x-m)(s-m) + |s-m|^2."""
    exact = vectors.astype(np.float64)
    middle = exact.mean(0).astype(np.float32)
    shifted = exact - middle
    squares = (shifted**2).sum(1)
    if gamma * float(squares.max()) > MOST_EXPONENT:
        raise BuildRefusedError("support vectors that lie too far apart for their kernel")
    rows, features = x.shape
    moved = context.temporary("shifted", x.shape, Layout.PLAIN)
    context.emit(Elementwise(moved, (Operand(x.shape, x), row_constant(middle)), ("sub", x_of(0), x_of(1))))
    lengths = context.temporary("lengths", (rows, 1), Layout.PLAIN)
    context.emit(AlongAxis(lengths, moved, "reduce_sum_square", rows, features, 1))
    products = context.temporary("products", output.shape, Layout.PLAIN)
    context.emit(product(products, View.of(moved), (2 * gamma * shifted.T).astype(np.float32)))
    operands = (Operand(output.shape, products), row_constant(-gamma * squares), Operand((rows, 1), lengths))
    distance: Expression = ("sub", ("add", x_of(0), x_of(1)), ("mul", x_of(2), const(gamma)))
    context.emit(Elementwise(output, operands, ("exp", ("min", distance, const(0.0)))))
