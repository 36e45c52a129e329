# SPDX-License-Identifier: Apache-2.0
"""What becomes of the sums of a classifier or regressor of ai.onnx.ml: scores by `post_transform`, and labels.

    scores (rows, classes) = transform(sums)    label (rows) = classlabels[the first of the largest sums]

Source: ONNX LinearClassifier, TreeEnsembleClassifier; what they leave open, as ONNX Runtime has it.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import ints_attribute, operand, text_attribute
from nndeploy_native.expressions import Expression, const
from nndeploy_native.expressions import operand as x_of
from nndeploy_native.lowering.context import Context
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.indexed import Picked
from nndeploy_native.steps.reduction import AlongAxis
from nndeploy_native.tensors import Array, Layout, Tensor

NUMBERS = ("fp32", "fp64", "int32", "int64")
"""What operators of ai.onnx.ml take."""
NO_SCORE = 1e-7
"""What is nearer to zero than this has no part in a SOFTMAX_ZERO."""
_PROBIT = 0.147
_PI = 3.14159


def rows_of(node: ir.Node, context: Context) -> Tensor:
    """Returns the rows (rows, features) that an operator of ai.onnx.ml reads, as floats; a vector is one row.

    Raises:
        BuildRefusedError: the input has more axes, or is of a type that is not taken.
    """
    x = context.plain(operand(node, 0))
    if len(x.shape) not in (1, 2) or x.element not in NUMBERS:
        raise BuildRefusedError(f"rows of {x.element} with {len(x.shape)} axes")
    x = x if len(x.shape) == 2 else replace(x, shape=(1, *x.shape))
    if x.element == "fp32":
        return x
    floats = context.temporary("floats", x.shape, Layout.PLAIN)
    context.emit(Elementwise(floats, (Operand(x.shape, x),), x_of(0)))
    return floats


def int_labels(node: ir.Node) -> tuple[int, ...]:
    """Returns the labels of a classifier.

    Raises:
        BuildRefusedError: they are strings, or there are none.
    """
    found = ints_attribute(node, "classlabels_int64s") or ints_attribute(node, "classlabels_ints")
    if not found:
        raise BuildRefusedError("labels that are strings")
    return found


def scores_output(node: ir.Node, context: Context, columns: int) -> Tensor:
    """Returns what the scores of a classifier are written into, which nobody may have asked for."""
    if node.outputs[1].name:
        return columns_output(node.outputs[1], context, columns)
    return context.temporary("scores", (context.sizes_of(node.outputs[0])[0], columns), Layout.PLAIN)


def columns_output(value: ir.Value, context: Context, columns: int) -> Tensor:
    """Returns what a value (rows, columns) is written into, whatever the model calls the number of its columns.

    Raises:
        BuildRefusedError: it has no such axes.
    """
    output = context.output(value, Layout.PLAIN)
    if len(output.shape) != 2:
        raise BuildRefusedError(f"rows of {columns} columns with {len(output.shape)} axes")
    return replace(output, shape=(output.shape[0], columns))


def emit_labels(label: ir.Value, context: Context, sums: Tensor, labels: Sequence[int]) -> None:
    """Emits the label of the largest of the sums (rows, classes); the first one of those that are equal."""
    rows, classes = sums.shape
    if label.name:
        places = _places(label, context, labels)
        context.emit(AlongAxis(places, sums, "arg_max", rows, classes, 1, {"is_last": False}))
        _emit_picked(label, context, places, labels)


def emit_binary_labels(label: ir.Value, context: Context, sums: Tensor, least: float, labels: Sequence[int]) -> None:
    """Emits the second label where the sum (rows, 1) is larger than `least`, else the first one."""
    if label.name:
        places = _places(label, context, labels)
        whole = replace(places, shape=sums.shape)
        context.emit(Elementwise(whole, (Operand(sums.shape, sums),), ("less", const(least), x_of(0))))
        _emit_picked(label, context, places, labels)


def emit_transformed(context: Context, sums: Tensor, output: Tensor, transform: str) -> None:
    """Emits scores = transform(sums), of a shape (rows, classes).

    Raises:
        BuildRefusedError: there is no such transform.
    """
    rows, classes = sums.shape
    if transform == "SOFTMAX":
        context.emit(AlongAxis(output, sums, "softmax", rows, classes, 1))
    elif transform == "SOFTMAX_ZERO":
        _emit_softmax_zero(context, sums, output)
    elif transform in _ELEMENTWISE:
        context.emit(Elementwise(output, (Operand(sums.shape, sums),), _ELEMENTWISE[transform]))
    else:
        raise BuildRefusedError(f"scores by {transform!r:.40}")


def floats_attribute(node: ir.Node, name: str) -> Array:
    """Returns the numbers of an attribute, none where it is left out."""
    attribute = node.attributes.get(name)
    return np.array(() if attribute is None else attribute.as_floats(), np.float32)


def transform_of(node: ir.Node) -> str:
    """Returns what becomes of sums."""
    return text_attribute(node, "post_transform", "NONE")


def _places(label: ir.Value, context: Context, labels: Sequence[int]) -> Tensor:
    """Returns where the numbers of classes go: the labels themselves, where these are 0, 1, 2..."""
    if tuple(labels) == tuple(range(len(labels))):
        return context.output(label, Layout.PLAIN)
    return context.temporary("classes", context.sizes_of(label), Layout.PLAIN, "int64")


def _emit_picked(label: ir.Value, context: Context, places: Tensor, labels: Sequence[int]) -> None:
    if places.name != label.name:
        names = context.constant_of("labels", np.array(labels, np.int64))
        context.emit(Picked("gather", context.output(label, Layout.PLAIN), names, places, 0))


def _emit_softmax_zero(context: Context, sums: Tensor, output: Tensor) -> None:
    """exp(x - largest) / sum of these; what is about zero takes no part in it: x * exp(-largest) / sum."""
    rows, classes = sums.shape
    largest, total = (context.temporary(name, (rows, 1), Layout.PLAIN) for name in ("largest", "total"))
    parts = context.temporary("parts", sums.shape, Layout.PLAIN)
    x, is_none = x_of(0), ("less_equal", ("abs", x_of(0)), const(NO_SCORE))
    context.emit(AlongAxis(largest, sums, "reduce_max", rows, classes, 1))
    operands = [Operand(sums.shape, sums), Operand((rows, 1), largest)]
    part: Expression = ("where", is_none, const(0.0), ("exp", ("sub", x, x_of(1))))
    context.emit(Elementwise(parts, tuple(operands), part))
    context.emit(AlongAxis(total, parts, "reduce_sum", rows, classes, 1))
    operands += [Operand(sums.shape, parts), Operand((rows, 1), total)]
    score: Expression = ("where", is_none, ("mul", x, ("exp", ("neg", x_of(1)))), x_of(2))
    context.emit(Elementwise(output, tuple(operands), ("div", score, x_of(3))))


def _probit() -> Expression:
    """sqrt(2) * erf^-1(2 p - 1), as Winitzki approximates it, without what would cancel about a half.

    There log(1 - x^2) is a series, and root - v is (root^2 - v^2) / (root + v).
    """
    x: Expression = ("sub", ("mul", x_of(0), const(2.0)), const(1.0))
    square: Expression = ("mul", x, x)
    series: Expression = const(1 / 4)
    for part in (1 / 3, 1 / 2, 1.0):
        series = ("add", ("mul", square, series), const(part))
    series = ("neg", ("mul", square, series))
    far: Expression = ("log", ("mul", ("sub", const(1.0), x), ("add", x, const(1.0))))
    log: Expression = ("where", ("less", square, const(0.01)), series, far)
    v: Expression = ("add", ("mul", log, const(0.5)), const(2 / (_PI * _PROBIT)))
    scaled: Expression = ("mul", log, const(-1 / _PROBIT))
    root: Expression = ("sqrt", ("add", ("mul", v, v), scaled))
    ratio: Expression = ("where", ("less", const(0.0), v), ("div", scaled, ("add", root, v)), ("sub", root, v))
    size: Expression = ("mul", ("sqrt", ratio), const(2**0.5))
    return ("where", ("less", x, const(0.0)), ("neg", size), size)


_ELEMENTWISE: dict[str, Expression] = {"NONE": x_of(0), "LOGISTIC": ("sigmoid", x_of(0)), "PROBIT": _probit()}


def row_constant(numbers: Sequence[float] | Array) -> Operand:
    """Returns numbers that are one of each column."""
    array = np.asarray(numbers, np.float32).reshape(1, -1)
    return Operand(array.shape, None, array)
