# SPDX-License-Identifier: Apache-2.0
"""Rules for what ai.onnx.ml does with rows beside trees: linear models, scaling, and what is taken from a row.

    LinearClassifier     scores = transform(x by coefficients^T + intercepts), labels of the largest
    Scaler               (x - offset) * scale
    Normalizer           x / norm of its row, x itself where that is 0

Source: ONNX LinearClassifier, LinearRegressor, Scaler, Normalizer, Binarizer, ArrayFeatureExtractor, LabelEncoder,
SVMRegressor; what they leave open, as ONNX Runtime has it.
"""

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, int_attribute, ints_attribute, operand, text_attribute
from nndeploy.values.size import product as product_of
from nndeploy_native.expressions import Domain, Expression, const
from nndeploy_native.expressions import operand as x_of
from nndeploy_native.lowering.classes import (
    columns_output,
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
from nndeploy_native.lowering.matrices import product
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.indexed import Picked
from nndeploy_native.steps.movement import View
from nndeploy_native.steps.reduction import AlongAxis
from nndeploy_native.tensors import Array, Layout, Tensor

NORMS = {"MAX": "reduce_max", "L1": "reduce_l1", "L2": "reduce_l2"}
MOST_LABELS = 2**16
"""A table of labels has at most so many places."""
MOST_EXPONENT = 64.0
"""Support vectors lie so far from their middle at most, as exponents of exp(-gamma * distance^2): distances are
computed from squares, which round the more the larger they are."""


def linear_classifier(node: ir.Node, context: Context) -> None:
    """Lowers LinearClassifier with a row of coefficients for each label."""
    labels, coefficients = int_labels(node), floats_attribute(node, "coefficients")
    intercepts, transform = floats_attribute(node, "intercepts"), transform_of(node)
    classes = len(labels)
    if len(intercepts) != classes or classes < 2 or len(coefficients) % classes:
        raise BuildRefusedError(f"{len(intercepts)} intercepts for {classes} labels")
    x, output = rows_of(node, context), scores_output(node, context, classes)
    sums = output if transform == "NONE" else context.temporary("sums", output.shape, Layout.PLAIN)
    _emit_linear(context, x, sums, coefficients.reshape(classes, -1), intercepts)
    if transform != "NONE":
        emit_transformed(context, sums, output, transform)
    emit_labels(node.outputs[0], context, sums, labels)


def linear_regressor(node: ir.Node, context: Context) -> None:
    """Lowers LinearRegressor."""
    targets, coefficients = int_attribute(node, "targets", 1), floats_attribute(node, "coefficients")
    intercepts = floats_attribute(node, "intercepts")
    if transform_of(node) != "NONE" or targets < 1 or len(coefficients) % targets:
        raise BuildRefusedError(f"a LinearRegressor of {targets} targets by {transform_of(node)!r:.40}")
    if len(intercepts) not in (0, targets):
        raise BuildRefusedError(f"{len(intercepts)} intercepts for {targets} targets")
    x, output = rows_of(node, context), columns_output(node.outputs[0], context, targets)
    _emit_linear(context, x, output, coefficients.reshape(targets, -1), intercepts if len(intercepts) else None)


def scaler(node: ir.Node, context: Context) -> None:
    """Lowers Scaler; one number stands for all columns."""
    offset, scale = floats_attribute(node, "offset"), floats_attribute(node, "scale")
    x, output = context.plain(operand(node, 0)), context.output(node.outputs[0], Layout.PLAIN)
    if x.element not in ("fp32", "int32", "int64") or len(x.shape) not in (1, 2):
        raise BuildRefusedError(f"a Scaler of {x.element} with {len(x.shape)} axes")
    if any(len(one) not in (1, x.shape[-1]) for one in (offset, scale)):
        raise BuildRefusedError(f"{len(offset)} offsets and {len(scale)} scales for rows of {x.shape[-1]}")
    lead = (1,) * (len(x.shape) - 1)
    constants = [Operand((*lead, len(one)), None, one.reshape(*lead, -1)) for one in (offset, scale)]
    expression: Expression = ("mul", ("sub", x_of(0), x_of(1)), x_of(2))
    context.emit(Elementwise(output, (Operand(x.shape, x), *constants), expression))


def normalizer(node: ir.Node, context: Context) -> None:
    """Lowers Normalizer."""
    norm = text_attribute(node, "norm", "MAX")
    if norm not in NORMS:
        raise BuildRefusedError(f"a norm {norm!r:.40}")
    x, output = rows_of(node, context), context.output(node.outputs[0], Layout.PLAIN)
    rows, columns = x.shape
    norms = context.temporary("norms", (rows, 1), Layout.PLAIN)
    context.emit(AlongAxis(norms, x, NORMS[norm], rows, columns, 1))
    quotient: Expression = ("where", ("equal", x_of(1), const(0.0)), x_of(0), ("div", x_of(0), x_of(1)))
    context.emit(Elementwise(output, (Operand(x.shape, x), Operand((rows, 1), norms)), quotient))


def binarizer(node: ir.Node, context: Context) -> None:
    """Lowers Binarizer: one where an element is above the threshold, else zero."""
    x, output = context.plain(operand(node, 0)), context.output(node.outputs[0], Layout.PLAIN)
    if x.element != "fp32":
        raise BuildRefusedError(f"a Binarizer of {x.element}")
    above: Expression = ("less", const(float_attribute(node, "threshold", 0.0)), x_of(0))
    context.emit(Elementwise(output, (Operand(x.shape, x),), above))


def array_feature_extractor(node: ir.Node, context: Context) -> None:
    """Lowers ArrayFeatureExtractor: elements of the last axis by whole numbers; of a vector, as a row."""
    data, places = context.plain(operand(node, 0)), context.whole_numbers(operand(node, 1))
    output, count = context.output(node.outputs[0], Layout.PLAIN), product_of(places.shape)
    flat = replace(places, shape=(count,))
    context.emit(Picked("gather", replace(output, shape=(*data.shape[:-1], count)), data, flat, len(data.shape) - 1))


def label_encoder(node: ir.Node, context: Context) -> None:
    """Lowers LabelEncoder of whole numbers that lie near each other: a table of what each of them becomes."""
    keys, x = ints_attribute(node, "keys_int64s") or (), context.plain(operand(node, 0))
    output = context.output(node.outputs[0], Layout.PLAIN)
    if output.element == "fp32":
        values, other = floats_attribute(node, "values_floats"), float_attribute(node, "default_float", -0.0)
    else:
        values = np.array(ints_attribute(node, "values_int64s") or (), np.int64)
        other = int_attribute(node, "default_int64", -1)
    if x.element != "int64" or not keys or len(keys) != len(values):
        raise BuildRefusedError(f"labels of {x.element} that become {output.element}")
    least, most = min(keys), max(keys)
    if most - least >= MOST_LABELS or abs(least) > 2**62:
        raise BuildRefusedError("labels that lie too far apart for a table")
    table = np.full(most - least + 2, other, values.dtype)
    table[np.array(keys[::-1]) - least] = values[::-1]  # of equal keys the first one counts
    place: Expression = ("sub", x_of(0), const(least))
    is_outside: Expression = ("or", ("less", x_of(0), const(least)), ("less", const(most), x_of(0)))
    places = context.temporary("places", x.shape, Layout.PLAIN, "int64")
    found: Expression = ("where", is_outside, const(len(table) - 1), place)
    context.emit(Elementwise(places, (Operand(x.shape, x),), found, Domain.INT64))
    context.emit(Picked("gather", output, context.constant_of("labels", table), places, 0))


def svm_regressor(node: ir.Node, context: Context) -> None:
    """Lowers SVMRegressor: a kernel of each support vector, then a product of these."""
    vectors, weights = floats_attribute(node, "support_vectors"), floats_attribute(node, "coefficients")
    count, rho = int_attribute(node, "n_supports", 0), floats_attribute(node, "rho")
    if count < 1 or len(vectors) % count or len(weights) != count or len(rho) != 1:
        raise BuildRefusedError("a SVMRegressor without support vectors")
    if transform_of(node) != "NONE" or int_attribute(node, "one_class", 0):
        raise BuildRefusedError("a SVMRegressor of one class, or whose score is transformed")
    x, output = rows_of(node, context), columns_output(node.outputs[0], context, 1)
    kernels = _emit_kernels(node, context, x, vectors.reshape(count, -1))
    _emit_linear(context, kernels, output, weights.reshape(1, -1), rho)


def _emit_kernels(node: ir.Node, context: Context, x: Tensor, vectors: Array) -> Tensor:
    """Emits the kernel of each row with each support vector, (rows, vectors)."""
    kind, params = text_attribute(node, "kernel_type", "LINEAR"), floats_attribute(node, "kernel_params")
    gamma, zero, degree = params.tolist() if len(params) == 3 else (0.0, 0.0, 3.0)
    rows, output = x.shape[0], context.temporary("kernels", (x.shape[0], len(vectors)), Layout.PLAIN)
    if kind == "RBF":
        _emit_radial(context, x, output, vectors, gamma)
        return output
    if kind == "LINEAR":
        _emit_linear(context, x, output, vectors, None)
        return output
    if kind not in ("POLY", "SIGMOID"):
        raise BuildRefusedError(f"a kernel {kind!r:.40}")
    products = context.temporary("products", (rows, len(vectors)), Layout.PLAIN)
    _emit_linear(context, x, products, vectors, None)
    line: Expression = ("add", ("mul", x_of(0), const(gamma)), const(zero))
    value: Expression = ("pow", line, const(degree)) if kind == "POLY" else ("tanh", line)
    context.emit(Elementwise(output, (Operand(products.shape, products),), value))
    return output


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


def _emit_linear(context: Context, x: Tensor, output: Tensor, coefficients: Array, intercepts: Array | None) -> None:
    """Emits x by the coefficients (columns, features) turned, and intercepts for each column."""
    if coefficients.shape[1] != x.shape[1]:
        raise BuildRefusedError(f"rows of {x.shape[1]} for {coefficients.shape[1]} coefficients")
    step = product(output, View.of(x), np.ascontiguousarray(coefficients).T)
    context.emit(step if intercepts is None else replace(step, bias=intercepts))
