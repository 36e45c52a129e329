# SPDX-License-Identifier: Apache-2.0
"""Classifiers of tables and texts as skl2onnx writes them by default: names of classes, a map of scores for a row."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from exporting.graphs import Inputs, Scale, graph
from exporting.text_pipelines import _texts
from onnx import helper
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn import (
    datasets,
    ensemble,
    impute,
    linear_model,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
)
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer

_ROWS = 64
_make_attribute = helper.make_attribute


def _iris() -> Any:
    table, labels = datasets.load_iris(return_X_y=True)
    return table.astype(np.float32), np.array(["setosa", "versicolor", "virginica"])[labels]


def _enter(
    name: str, kind: str, make_model: Callable[[Scale], Any], *, classes: int = 3, dtype: type = np.float32
) -> None:
    @graph(f"table_{name}", kind, "skl2onnx by default, names of classes, dynamic rows")
    def make(path: Path, scale: Scale) -> Inputs:
        table, labels = _iris()
        table = table.astype(dtype)
        taken = np.isin(labels, np.unique(labels)[-classes:])
        model = make_model(scale).fit(table[taken], labels[taken])
        with mock.patch("onnx.helper.make_attribute", _with_whole_numbers):
            options = {"zipmap": False} if dtype is np.float64 else None  # of float64 ONNX has no such map
            path.write_bytes(to_onnx(model, table[:1], options=options).SerializeToString())
        return {"X": np.random.default_rng(2).permutation(table)[:_ROWS]}


def _with_whole_numbers(key: str, value: Any, *more: Any, **named: Any) -> Any:
    """Makes an attribute; truths, which skl2onnx 1.20 gives for missing values, protobuf takes for no integers."""
    if isinstance(value, list) and any(isinstance(one, bool | np.bool_) for one in value):
        value = [int(one) for one in value]
    return _make_attribute(key, value, *more, **named)


def _forest(scale: Scale) -> Any:
    return ensemble.RandomForestClassifier(scale.of(100, 4), random_state=0)


_enter("forest", "trees", _forest)
_enter("forest_of_two", "trees", _forest, classes=2)
_enter("logistic", "linear model", lambda _: linear_model.LogisticRegression())
_enter("logistic_of_two", "linear model", lambda _: linear_model.LogisticRegression(), classes=2)
_enter("machine", "support vectors", lambda _: svm.SVC())
_enter("machine_of_two", "support vectors", lambda _: svm.SVC(), classes=2)
_enter("machine_with_shares", "support vectors", lambda _: svm.SVC(probability=True, random_state=0))
_enter("machine_with_shares_of_two", "support vectors", lambda _: svm.SVC(probability=True, random_state=0), classes=2)
_enter("scaled_logistic_of_doubles", "linear model", lambda _: pipeline.make_pipeline(
    preprocessing.StandardScaler(), linear_model.LogisticRegression()), dtype=np.float64)  # fmt: skip
_enter("network_of_doubles", "multilayer perceptron", lambda _: pipeline.make_pipeline(
    preprocessing.StandardScaler(), neural_network.MLPClassifier(random_state=0)), dtype=np.float64)  # fmt: skip
_enter("forest_of_doubles", "trees", _forest, dtype=np.float64)
_enter("neighbours", "nearest neighbours", lambda _: neighbors.KNeighborsClassifier())
_enter("boosting", "trees", lambda scale: ensemble.GradientBoostingClassifier(
    n_estimators=scale.of(100, 4), random_state=0))  # fmt: skip
_enter("histogram_boosting", "trees", lambda scale: ensemble.HistGradientBoostingClassifier(
    max_iter=scale.of(100, 4), random_state=0))  # fmt: skip


@graph("table_columns", "pipeline over columns of numbers and strings", "skl2onnx by default, dynamic rows")
def _columns(path: Path, scale: Scale) -> Inputs:
    import pandas as pd

    random = np.random.default_rng(11)
    table = pd.DataFrame(
        {"age": random.normal(40, 10, 300).astype(np.float32), "income": random.random(300).astype(np.float32),
         "town": random.choice(["York", "Leeds", "Hull", "Ely"], 300), "kind": random.choice(["a", "b", "c"], 300)}
    )  # fmt: skip
    labels = np.where(table["age"] + 10 * (table["town"] == "York") > 44, "yes", "no")
    table.loc[::7, "age"] = np.nan
    numbers = pipeline.make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler())
    parts = [
        ("numbers", numbers, ["age", "income"]),
        ("words", preprocessing.OneHotEncoder(handle_unknown="ignore"), ["town", "kind"]),
    ]
    model = pipeline.make_pipeline(ColumnTransformer(parts), linear_model.LogisticRegression()).fit(table, labels)
    kinds = {"age": FloatTensorType, "income": FloatTensorType, "town": StringTensorType, "kind": StringTensorType}
    made = to_onnx(model, initial_types=[(name, kind([None, 1])) for name, kind in kinds.items()])
    path.write_bytes(made.SerializeToString())
    given = {name: table[[name]].to_numpy()[:_ROWS] for name in kinds}
    return {name: one.astype(np.str_) if one.dtype == object else one for name, one in given.items()}


@graph("table_texts", "text pipeline", "skl2onnx by default, dynamic rows")
def _texts_by_default(path: Path, scale: Scale) -> Inputs:
    texts, labels = _texts()
    steps = [TfidfVectorizer(ngram_range=(1, 2)), linear_model.LogisticRegression()]
    model = pipeline.make_pipeline(*steps).fit(texts, np.where(labels, "good", "bad"))
    types = [("text", StringTensorType([None]))]
    path.write_bytes(to_onnx(model, initial_types=types).SerializeToString())
    return {"text": np.array([text.capitalize() for text in texts[:_ROWS]], dtype=np.str_)}
