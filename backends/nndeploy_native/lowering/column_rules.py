# SPDX-License-Identifier: Apache-2.0
"""Rules for what makes columns of a table ready: missing values, categories, and columns side by side.

    Imputer             the value of its column where an element is missing, else the element
    OneHotEncoder       a truth for each category: (...) -> (..., categories)
    FeatureVectorizer   rows side by side, as floats

Source: ONNX Imputer, OneHotEncoder, FeatureVectorizer; what they leave open, as ONNX Runtime has it.
"""

import math
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, int_attribute, ints_attribute, operand
from nndeploy_native.expressions import Domain, Expression, const
from nndeploy_native.expressions import operand as x_of
from nndeploy_native.lowering.classes import NUMBERS, floats_attribute
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.elementwise_rules import DOMAINS
from nndeploy_native.lowering.movement_rules import emit_joined
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.tensors import Layout, Tensor


def imputer(node: ir.Node, context: Context) -> None:
    """Lowers Imputer; one value stands for all columns."""
    x = context.plain(operand(node, 0))
    if x.element in DOMAINS:
        values, missing = (
            floats_attribute(node, "imputed_value_floats"),
            float_attribute(node, "replaced_value_float", 0),
        )
        domain = DOMAINS[x.element]
    elif x.element == "int64":
        values = np.array(ints_attribute(node, "imputed_value_int64s") or (), np.int64)
        missing, domain = int_attribute(node, "replaced_value_int64", 0), Domain.INT64
    else:
        raise BuildRefusedError(f"an Imputer of {x.element}")
    if not x.shape or len(values) not in (1, x.shape[-1]):
        raise BuildRefusedError(f"{len(values)} values for {x.shape}")
    row = values.reshape(*(1,) * (len(x.shape) - 1), -1)
    is_missing: Expression = ("equal", x_of(0), const(missing))
    if math.isnan(missing):
        is_missing = ("not", ("equal", x_of(0), x_of(0)))
    output = context.output(node.outputs[0], Layout.PLAIN)
    found: Expression = ("where", is_missing, x_of(1), x_of(0))
    context.emit(Elementwise(output, (Operand(x.shape, x), Operand(row.shape, None, row)), found, domain))


def one_hot_encoder(node: ir.Node, context: Context) -> None:
    """Lowers OneHotEncoder of numbers, which it takes as whole ones; of what is no category all is zero."""
    categories, x = ints_attribute(node, "cats_int64s") or (), context.plain(operand(node, 0))
    if x.element not in NUMBERS or not categories:
        raise BuildRefusedError(f"{len(categories)} categories of {x.element}")
    if int_attribute(node, "zeros", 1) == 0:
        raise BuildRefusedError("categories of which no other may come")
    output = context.output(node.outputs[0], Layout.PLAIN)
    row = np.array(categories, np.int64).reshape(*(1,) * len(x.shape), -1)
    whole = replace(output, shape=(*x.shape, len(categories)))
    operands = (Operand((*x.shape, 1), x), Operand(row.shape, None, row))
    context.emit(Elementwise(whole, operands, ("equal", x_of(0), x_of(1)), Domain.INT64))


def feature_vectorizer(node: ir.Node, context: Context) -> None:
    """Lowers FeatureVectorizer; a vector is one row."""
    rows = [_row(context.plain(value), context) for value in node.inputs]
    said = ints_attribute(node, "inputdimensions") or [x.shape[1] for x in rows]
    if [*said] != [x.shape[1] for x in rows]:
        raise BuildRefusedError(f"rows of other sizes than {said}")
    output = context.output(node.outputs[0], Layout.PLAIN)
    emit_joined(context, output, rows, 1)


def _row(x: Tensor, context: Context) -> Tensor:
    if x.element not in NUMBERS or len(x.shape) not in (1, 2):
        raise BuildRefusedError(f"rows of {x.element} with {len(x.shape)} axes")
    row = x if len(x.shape) == 2 else replace(x, shape=(1, *x.shape))
    if x.element == "fp32":
        return row
    floats = context.temporary("floats", row.shape, Layout.PLAIN)
    context.emit(Elementwise(floats, (Operand(row.shape, row),), x_of(0)))
    return floats
