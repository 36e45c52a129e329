# SPDX-License-Identifier: Apache-2.0
"""Random ensembles of trees, and other operators of ai.onnx.ml, as models."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx import TensorProto, helper

from nndeploy.passes import optimise

Attributes = dict[str, Any]
DOMAIN = "ai.onnx.ml"
ORDERED = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")
MODES = (*ORDERED, "BRANCH_EQ", "BRANCH_NEQ")


@dataclass(frozen=True)
class Drawn:
    """How trees are drawn: `columns` have numbers in each leaf; without, each has its own choice of `num_columns`."""

    num_trees: int
    levels: int
    features: int
    num_columns: int
    columns: tuple[int, ...] = ()
    modes: tuple[str, ...] = ("BRANCH_LEQ",)
    has_tracks: bool = False
    is_positive: bool = False


def trees_of(rng: np.random.Generator, drawn: Drawn, what: str) -> Attributes:
    """Returns the attributes of an ensemble: nodes in any order, thresholds that elements often meet."""
    found: dict[str, list[Any]] = defaultdict(list)
    for tree in range(drawn.num_trees):
        waiting, last = [(0, drawn.levels)], 0
        while waiting:
            number, levels = waiting.pop(int(rng.integers(0, len(waiting))))
            is_leaf = levels == 0 or (number > 0 and rng.random() < 0.2)
            children = (0, 0) if is_leaf else (last + 1, last + 2)
            if is_leaf:
                _add_leaf(found, rng, drawn, what, tree, number)
            else:
                last += 2
                waiting += [(one, levels - 1) for one in children]
            found["nodes_treeids"].append(tree)
            found["nodes_nodeids"].append(number)
            found["nodes_featureids"].append(0 if is_leaf else int(rng.integers(0, drawn.features)))
            found["nodes_values"].append(0.0 if is_leaf else float(rng.integers(-2, 3)) / 2)
            found["nodes_modes"].append("LEAF" if is_leaf else str(rng.choice(drawn.modes)))
            found["nodes_falsenodeids"].append(children[0])
            found["nodes_truenodeids"].append(children[1])
            if drawn.has_tracks:
                found["nodes_missing_value_tracks_true"].append(int(rng.integers(0, 2)))
    return dict(found)


def _add_leaf(
    found: dict[str, list[Any]], rng: np.random.Generator, drawn: Drawn, what: str, tree: int, number: int
) -> None:
    columns = drawn.columns or tuple(np.flatnonzero(rng.random(drawn.num_columns) < 0.6).tolist())
    for column in columns:
        weight = float(np.round(rng.standard_normal(), 1))
        found[f"{what}_treeids"].append(tree)
        found[f"{what}_nodeids"].append(number)
        found[f"{what}_ids"].append(column)
        found[f"{what}_weights"].append(abs(weight) if drawn.is_positive else weight)


def rows_drawn(rng: np.random.Generator, rows: int, features: int) -> "np.ndarray[Any, np.dtype[np.float32]]":
    """Returns rows that meet thresholds, with NaN, infinities and both zeros."""
    x = (rng.integers(-4, 5, (rows, features)) / 4).astype(np.float32)
    for number, share in ((np.nan, 0.15), (np.inf, 0.05), (-np.inf, 0.05), (-0.0, 0.1)):
        x[rng.random(x.shape) < share] = number
    return x


def row_model(
    operator: str, features: int, outputs: dict[str, int | None], attributes: Attributes,
    element: int = TensorProto.FLOAT,
) -> ir.Model:  # fmt: skip
    """Returns a model of one operator on rows x (n, features); outputs without columns are labels (n).

    Labels are texts where the attributes have such.
    """
    labels = TensorProto.STRING if "classlabels_strings" in attributes else TensorProto.INT64
    node = helper.make_node(operator, ["x"], list(outputs), domain=DOMAIN, **attributes)
    types = [
        helper.make_tensor_value_info(name, labels, ["n"])
        if columns is None
        else helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", columns])
        for name, columns in outputs.items()
    ]
    given = helper.make_tensor_value_info("x", element, ["n", features])
    imports = [helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, 3)]
    proto = helper.make_model(helper.make_graph([node], "g", [given], types), opset_imports=imports, ir_version=8)
    onnx.checker.check_model(proto)
    model = ir.from_proto(proto)
    optimise(model, {})
    return model


def regressor(rng: np.random.Generator, drawn: Drawn, **attributes: object) -> ir.Model:
    """Returns a TreeEnsembleRegressor."""
    found = {**trees_of(rng, drawn, "target"), "n_targets": drawn.num_columns, **attributes}
    return row_model("TreeEnsembleRegressor", drawn.features, {"y": drawn.num_columns}, found)


def classifier(rng: np.random.Generator, drawn: Drawn, **attributes: object) -> ir.Model:
    """Returns a TreeEnsembleClassifier."""
    found = {"classlabels_int64s": list(range(drawn.num_columns)), **trees_of(rng, drawn, "class"), **attributes}
    return row_model("TreeEnsembleClassifier", drawn.features, {"label": None, "y": drawn.num_columns}, found)
