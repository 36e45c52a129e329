# SPDX-License-Identifier: Apache-2.0
"""How the sizes and types of the outputs of ai.onnx.ml follow from the inputs: trees, linear models, what scales rows.

ONNX's own inference says little of these operators, and nothing of what comes behind them. Their inputs are rows
(rows, features), their outputs scores (rows, columns) of float32 and labels (rows). Source: ONNX, ai.onnx.ml 1 to 4.
"""

from collections.abc import Callable

import onnx_ir as ir

from nndeploy.graph.arithmetic_sizes import same
from nndeploy.graph.known_sizes import KnownSizes, Rule
from nndeploy.graph.operators import int_attribute, operand
from nndeploy.values.size import product

DOMAIN = "ai.onnx.ml"
FLOATS = {
    "FeatureVectorizer": 0, "LinearClassifier": 1, "LinearRegressor": 0, "Normalizer": 0, "OneHotEncoder": 0,
    "SVMClassifier": 1, "SVMRegressor": 0, "Scaler": 0, "TreeEnsembleClassifier": 1, "TreeEnsembleRegressor": 0,
}  # fmt: skip
"""Operators -> which of their outputs is float32, whatever the inputs are."""


def _rows(columns: Callable[[ir.Node], int | None], scores: int) -> Rule:
    """Returns the rule of an operator whose output `scores` has so many columns; one before it has the labels."""

    def rule(node: ir.Node, known: KnownSizes) -> None:
        shape, count = known.shape(operand(node, 0)), columns(node)
        if shape is None or len(shape) not in (1, 2):
            return
        rows = shape[0] if len(shape) == 2 else 1
        if scores == 1:
            known.learn_shape(node.outputs[0], (rows,))
        if count is not None and scores < len(node.outputs):
            known.learn_shape(node.outputs[scores], (rows, count))

    return rule


def _extracted(node: ir.Node, known: KnownSizes) -> None:
    data, places = known.shape(operand(node, 0)), known.shape(operand(node, 1))
    if data is not None and places is not None:
        known.learn_shape(node.outputs[0], ((1,) if len(data) == 1 else data[:-1]) + (product(places),))


def _one_hot(node: ir.Node, known: KnownSizes) -> None:
    shape, categories = known.shape(operand(node, 0)), _num_of(node, "cats_strings", "cats_int64s")
    if shape is not None and categories is not None:
        known.learn_shape(node.outputs[0], (*shape, categories))


def _side_by_side(node: ir.Node, known: KnownSizes) -> None:
    shapes = [known.shape(value) for value in node.inputs]
    rows = [shape if len(shape) == 2 else (1, *shape) for shape in shapes if shape is not None and len(shape) in (1, 2)]
    if rows and len(rows) == len(shapes):
        known.learn_shape(node.outputs[0], (rows[0][0], sum(row[1] for row in rows)))


def _machine_scores(node: ir.Node) -> int | None:
    """Of two classes both have a score, of more each pair has; with probabilities each class."""
    classes = _num_of(node, "classlabels_strings", "classlabels_ints")
    if classes is None or "prob_a" in node.attributes or classes <= 2 or "vectors_per_class" not in node.attributes:
        return classes
    return classes * (classes - 1) // 2


def _tree_classes(node: ir.Node) -> int | None:
    return _num_of(node, "classlabels_int64s") or _num_of(node, "classlabels_strings")


def _linear_classes(node: ir.Node) -> int | None:
    columns, labels = _num_of(node, "intercepts"), _num_of(node, "classlabels_ints", "classlabels_strings")
    return 2 if columns == 1 and labels == 2 else columns


def _num_of(node: ir.Node, *names: str) -> int | None:
    """Returns how many numbers or texts there are in the first attribute that there is."""
    found = (len(node.attributes[name].value) for name in names if name in node.attributes)
    return next(found, None)


RULES: dict[str, Rule] = {
    "ArrayFeatureExtractor": _extracted,
    "Binarizer": same,
    "CategoryMapper": same,
    "FeatureVectorizer": _side_by_side,
    "Imputer": same,
    "LabelEncoder": same,
    "LinearClassifier": _rows(_linear_classes, 1),
    "LinearRegressor": _rows(lambda node: int_attribute(node, "targets", 1), 0),
    "Normalizer": same,
    "OneHotEncoder": _one_hot,
    "SVMClassifier": _rows(_machine_scores, 1),
    "SVMRegressor": _rows(lambda _: 1, 0),
    "Scaler": same,
    "TreeEnsembleClassifier": _rows(_tree_classes, 1),
    "TreeEnsembleRegressor": _rows(lambda node: int_attribute(node, "n_targets", 1), 0),
}
"""What each operator tells of the sizes of its outputs."""


def learn_type(node: ir.Node) -> bool:
    """Gives the scores of an operator their type where they have none; returns whether it did."""
    number = FLOATS.get(node.op_type)
    if number is None or number >= len(node.outputs) or node.outputs[number].type is not None:
        return False
    node.outputs[number].type = ir.TensorType(ir.DataType.FLOAT)
    return True
