# SPDX-License-Identifier: Apache-2.0
"""Rules for what ai.onnx.ml does with rows beside trees: linear models, scaling, and what is taken from a row.

    LinearClassifier     scores = transform(x by coefficients^T + intercepts), labels of the largest
    Scaler               (x - offset) * scale
    Normalizer           x / norm of its row, x itself where that is 0

Source: ONNX LinearClassifier, LinearRegressor, Scaler, Normalizer, Binarizer, ArrayFeatureExtractor, LabelEncoder; what
they leave open, as ONNX Runtime has it.
"""

import math
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, int_attribute, ints_attribute, operand, text_attribute
from nndeploy.values.size import product as product_of
from nndeploy_native.expressions import Domain, Expression, const
from nndeploy_native.expressions import operand as x_of
from nndeploy_native.lowering.classes import (
    NUMBERS,
    columns_output,
    emit_labels,
    emit_transformed,
    floats_attribute,
    int_labels,
    rows_of,
    scores_output,
    transform_of,
)
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.elementwise_rules import DOMAINS
from nndeploy_native.lowering.matrices import emit_linear
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.indexed import Picked
from nndeploy_native.steps.reduction import AlongAxis
from nndeploy_native.tensors import Layout
from nndeploy_native.transforms.texts_as_numbers import REFUSES_OTHERS

NORMS = {"MAX": "reduce_max", "L1": "reduce_l1", "L2": "reduce_l2"}
MOST_LABELS = 2**16
"""A table of labels has at most so many places."""


def linear_classifier(node: ir.Node, context: Context) -> None:
    """Lowers LinearClassifier with a row of coefficients for each label."""
    labels, coefficients = int_labels(node), floats_attribute(node, "coefficients")
    intercepts, transform = floats_attribute(node, "intercepts"), transform_of(node)
    classes = len(labels)
    if len(intercepts) != classes or classes < 2 or len(coefficients) % classes:
        raise BuildRefusedError(f"{len(intercepts)} intercepts for {classes} labels")
    x, output = rows_of(node, context), scores_output(node, context, classes)
    sums = output if transform == "NONE" else context.temporary("sums", output.shape, Layout.PLAIN)
    emit_linear(context, x, sums, coefficients.reshape(classes, -1), intercepts)
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
    emit_linear(context, x, output, coefficients.reshape(targets, -1), intercepts if len(intercepts) else None)


def scaler(node: ir.Node, context: Context) -> None:
    """Lowers Scaler; one number stands for all columns."""
    offset, scale = floats_attribute(node, "offset"), floats_attribute(node, "scale")
    x, output = context.plain(operand(node, 0)), context.output(node.outputs[0], Layout.PLAIN)
    if x.element not in NUMBERS or len(x.shape) not in (1, 2):
        raise BuildRefusedError(f"a Scaler of {x.element} with {len(x.shape)} axes")
    if any(len(one) not in (1, x.shape[-1]) for one in (offset, scale)):
        raise BuildRefusedError(f"{len(offset)} offsets and {len(scale)} scales for rows of {x.shape[-1]}")
    lead = (1,) * (len(x.shape) - 1)
    constants = [Operand((*lead, len(one)), None, one.reshape(*lead, -1)) for one in (offset, scale)]
    expression: Expression = ("mul", ("sub", x_of(0), x_of(1)), x_of(2))
    domain = DOMAINS.get(x.element, Domain.FLOAT32)
    context.emit(Elementwise(output, (Operand(x.shape, x), *constants), expression, domain))


def normalizer(node: ir.Node, context: Context) -> None:
    """Lowers Normalizer."""
    norm = text_attribute(node, "norm", "MAX")
    if norm not in NORMS:
        raise BuildRefusedError(f"a norm {norm!r:.40}")
    x, output = rows_of(node, context), context.output(node.outputs[0], Layout.PLAIN)
    (rows, columns), output = x.shape, replace(output, shape=x.shape)
    norms = context.temporary("norms", (rows, 1), Layout.PLAIN)
    context.emit(AlongAxis(norms, x, NORMS[norm], rows, columns, 1))
    quotient: Expression = ("where", ("equal", x_of(1), const(0.0)), x_of(0), ("div", x_of(0), x_of(1)))
    context.emit(Elementwise(output, (Operand(x.shape, x), Operand((rows, 1), norms)), quotient))


def binarizer(node: ir.Node, context: Context) -> None:
    """Lowers Binarizer: one where an element is above the threshold, else zero."""
    x, output = context.plain(operand(node, 0)), context.output(node.outputs[0], Layout.PLAIN)
    threshold = float_attribute(node, "threshold", 0.0)
    if x.element in ("int32", "int64") and abs(threshold) < 2**62:
        threshold, domain = math.floor(threshold), Domain.INT64  # of whole numbers the same are above
    elif x.element in DOMAINS:
        domain = DOMAINS[x.element]
    else:
        raise BuildRefusedError(f"a Binarizer of {x.element}")
    above: Expression = ("less", const(threshold), x_of(0))
    context.emit(Elementwise(output, (Operand(x.shape, x),), above, domain))


def array_feature_extractor(node: ir.Node, context: Context) -> None:
    """Lowers ArrayFeatureExtractor: elements of the last axis by whole numbers; of a vector, as a row."""
    data, places = context.plain(operand(node, 0)), context.whole_numbers(operand(node, 1))
    output, count = context.output(node.outputs[0], Layout.PLAIN), product_of(places.shape)
    flat = replace(places, shape=(count,))
    context.emit(Picked("gather", replace(output, shape=(*data.shape[:-1], count)), data, flat, len(data.shape) - 1))


def keys_of_table(node: ir.Node) -> tuple[int, ...] | None:
    """Returns the keys of a LabelEncoder where they are whole numbers that lie near each other, else None."""
    keys = ints_attribute(node, "keys_int64s")
    is_near = keys and max(keys) - min(keys) < MOST_LABELS and abs(min(keys)) <= 2**62
    has_values = "values_int64s" in node.attributes or "values_floats" in node.attributes
    return keys if is_near and has_values and REFUSES_OTHERS not in node.attributes else None


def label_encoder(node: ir.Node, context: Context) -> None:
    """Lowers LabelEncoder of `keys_of_table`: a table of what each of them becomes."""
    keys, x = keys_of_table(node), context.plain(operand(node, 0))
    output = context.output(node.outputs[0], Layout.PLAIN)
    if output.element == "fp32":
        values, other = floats_attribute(node, "values_floats"), float_attribute(node, "default_float", -0.0)
    else:
        values = np.array(ints_attribute(node, "values_int64s") or (), np.int64)
        other = int_attribute(node, "default_int64", -1)
    if x.element != "int64" or not keys or len(keys) != len(values):
        raise BuildRefusedError(f"labels of {x.element} that become {output.element}")
    least, most = min(keys), max(keys)
    table = np.full(most - least + 2, other, values.dtype)
    table[np.array(keys[::-1]) - least] = values[::-1]  # of equal keys the first one counts
    place: Expression = ("sub", x_of(0), const(least))
    is_outside: Expression = ("or", ("less", x_of(0), const(least)), ("less", const(most), x_of(0)))
    places = context.temporary("places", x.shape, Layout.PLAIN, "int64")
    found: Expression = ("where", is_outside, const(len(table) - 1), place)
    context.emit(Elementwise(places, (Operand(x.shape, x),), found, Domain.INT64))
    context.emit(Picked("gather", output, context.constant_of("labels", table), places, 0))
