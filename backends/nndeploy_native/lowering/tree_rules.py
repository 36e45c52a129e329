# SPDX-License-Identifier: Apache-2.0
"""Rules for ensembles of decision trees. Source: ONNX TreeEnsembleClassifier, TreeEnsembleRegressor; ONNX Runtime."""

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import int_attribute, operand, text_attribute
from nndeploy_native.expressions import Domain, Expression, const
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
from nndeploy_native.lowering.tree_tables import Ensemble, ensemble_of
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.trees import AGGREGATES, Trees
from nndeploy_native.tensors import Array, Layout, Tensor

_IS_NONE: Expression = ("and", ("equal", x_of(0), const(0.0)), ("less", ("reciprocal", x_of(0)), const(0.0)))
"""A sum that is -0: no leaf that a row reached had a number for it."""


def regressor(node: ir.Node, context: Context) -> None:
    """Lowers TreeEnsembleRegressor."""
    targets, transform = int_attribute(node, "n_targets", 1), transform_of(node)
    aggregate = text_attribute(node, "aggregate_function", "SUM").lower()
    if targets < 1 or aggregate not in (*AGGREGATES, "average"):
        raise BuildRefusedError(f"a TreeEnsembleRegressor of {targets} targets, aggregated by {aggregate!r:.40}")
    if targets == 1 and transform not in ("NONE", "PROBIT"):
        raise BuildRefusedError(f"one score by {transform!r:.40}, which ONNX Runtime leaves as it is")
    kind = "sum" if aggregate == "average" else aggregate
    ensemble = ensemble_of(node, "target", targets, kind)
    base = _base(node)
    base = base if base is not None and len(base) == targets else None
    if base is not None and targets > 1 and len(ensemble.sure) < targets:
        raise BuildRefusedError("base values of targets that no leaf may give, which ONNX Runtime leaves out")
    divisor = len(ensemble.tables.trees) if aggregate == "average" else 1
    x, output = _rows(node, context), columns_output(node.outputs[0], context, targets)
    sums = output if transform == "NONE" else context.temporary("sums", (x.shape[0], targets), Layout.PLAIN)
    context.emit(Trees(sums, x, ensemble.tables, kind, divisor, base))
    if transform != "NONE":
        emit_transformed(context, sums, output, transform)


def classifier(node: ir.Node, context: Context) -> None:
    """Lowers TreeEnsembleClassifier with labels that are numbers."""
    labels = int_labels(node)
    ensemble = ensemble_of(node, "class", len(labels), "sum")
    x = _rows(node, context)
    if len(labels) > 2:
        _classify(node, context, x, ensemble, labels)
    elif len(labels) == 2 and len(ensemble.used) == 1:
        _classify_by_one_column(node, context, x, ensemble, labels)
    else:
        raise BuildRefusedError("one class, or two with a score each, whose labels are then 0 and 1")


def _classify(node: ir.Node, context: Context, x: Tensor, ensemble: Ensemble, labels: tuple[int, ...]) -> None:
    base, transform, classes = _base(node), transform_of(node), len(labels)
    if base is not None and len(base) != classes:
        raise BuildRefusedError(f"{len(base)} base values for {classes} classes")
    output = scores_output(node, context, classes)
    sums = output if transform == "NONE" else context.temporary("sums", (x.shape[0], classes), Layout.PLAIN)
    context.emit(Trees(sums, x, ensemble.tables, "sum", 1, base))
    if transform != "NONE":
        emit_transformed(context, sums, output, transform)
    if base is None and len(ensemble.sure) < classes:  # a class without a score is not the largest one
        scored = context.temporary("scored", sums.shape, Layout.PLAIN)
        largest: Expression = ("where", _IS_NONE, const(-np.inf), x_of(0))
        context.emit(Elementwise(scored, (Operand(sums.shape, sums),), largest))
        sums = scored
    emit_labels(node.outputs[0], context, sums, labels)


def _classify_by_one_column(
    node: ir.Node, context: Context, x: Tensor, ensemble: Ensemble, labels: tuple[int, ...]
) -> None:
    """Two classes and the score of one: that of the second class, or the logarithm of the odds of it."""
    base, transform, (column,) = _base(node), transform_of(node), ensemble.used
    if transform == "PROBIT" or (base is not None and len(base) != 1) or (column == 1 and base is not None):
        raise BuildRefusedError("two classes, the score of one and several base values, or a PROBIT of it")
    tables = replace(ensemble.tables, trees=ensemble.tables.trees * np.array([1, 0, 1], np.int32))
    output = scores_output(node, context, 2)
    sums = context.temporary("sums", (x.shape[0], 1), Layout.PLAIN)
    context.emit(Trees(sums, x, tables, "sum", 1, base))
    is_share = bool(np.all(ensemble.weights >= 0))
    score, sign, x0 = Operand(sums.shape, sums), row_constant([-1.0, 1.0]), x_of(0)
    if column == 1:
        pair = context.temporary("pair", output.shape, Layout.PLAIN) if transform != "NONE" else output
        context.emit(Elementwise(pair, (score, row_constant([0.0, 1.0])), ("where", x_of(1), x0, const(0.0))))
        if transform != "NONE":
            emit_transformed(context, pair, output, transform)
    elif transform == "LOGISTIC":
        context.emit(Elementwise(output, (score, sign), ("sigmoid", ("mul", x0, x_of(1)))))
    elif is_share:
        shares: Expression = ("where", ("less", const(0.0), x_of(1)), x0, ("sub", const(1.0), x0))
        context.emit(Elementwise(output, (score, sign), shares))
    else:
        context.emit(Elementwise(output, (score, sign), ("mul", x0, x_of(1))))
    emit_binary_labels(node.outputs[0], context, sums, 0.5 if is_share else 0.0, labels)


def _rows(node: ir.Node, context: Context) -> Tensor:
    """Returns the rows as floats; each of float64 becomes one that no comparison of the trees tells from it.

    Raises:
        BuildRefusedError: there is none, as trees compare in several ways.
    """
    x, modes = context.plain(operand(node, 0)), set(node.attributes["nodes_modes"].as_strings()) - {"LEAF"}
    if x.element != "fp64":
        return rows_of(node, context)
    if modes <= {"BRANCH_LEQ", "BRANCH_GT"}:
        near: Expression = ("float_above", x_of(0))
    elif modes <= {"BRANCH_LT", "BRANCH_GTE"}:
        near = ("neg", ("float_above", ("neg", x_of(0))))
    else:
        raise BuildRefusedError("trees that compare float64 in several ways")
    if len(x.shape) not in (1, 2):
        raise BuildRefusedError(f"rows with {len(x.shape)} axes")
    floats = context.temporary("floats", x.shape if len(x.shape) == 2 else (1, *x.shape), Layout.PLAIN)
    operands = (Operand(floats.shape, replace(x, shape=floats.shape)),)
    context.emit(Elementwise(floats, operands, near, Domain.FLOAT64))
    return floats


def _base(node: ir.Node) -> Array | None:
    found = floats_attribute(node, "base_values")
    return found if len(found) else None
