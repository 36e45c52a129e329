# SPDX-License-Identifier: Apache-2.0
"""Models of tables: scikit-learn's, XGBoost's and LightGBM's, trained on a made-up task."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import xgboost
from exporting.graphs import Array, Inputs, Scale, graph
from onnxmltools import convert_lightgbm, convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType as ToolsFloat
from skl2onnx import to_onnx
from sklearn import ensemble, linear_model, naive_bayes, neighbors, neural_network, pipeline, preprocessing, svm
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessRegressor

_FEATURES = 12
_OPSET = {"": 18, "ai.onnx.ml": 3}


def _task(rows: int = 400, classes: int = 3) -> tuple[Array, Array]:
    random = np.random.default_rng(3)
    table = random.standard_normal((rows, _FEATURES)).astype(np.float32)
    hidden = table @ random.standard_normal((_FEATURES, classes)) + np.sin(table[:, :1] * 3)
    return table, hidden.argmax(1).astype(np.int64)


def _rows(count: int = 16) -> Inputs:
    return {"X": np.random.default_rng(9).standard_normal((count, _FEATURES)).astype(np.float32)}


def _enter(name: str, kind: str, build: Callable[[Scale], Any], *, zipmap: bool | str | None = None,
           regress: bool = False) -> None:  # fmt: skip
    said = {None: "", True: ", with ZipMap", False: ", without ZipMap", "columns": ", ZipMap to columns"}[zipmap]

    @graph(name, kind, f"skl2onnx{said}, dynamic rows")
    def make(path: Path, scale: Scale) -> Inputs:
        table, labels = _task()
        model = build(scale).fit(table, table[:, 0] * labels if regress else labels)
        options = None if zipmap is None else {"zipmap": zipmap}
        path.write_bytes(to_onnx(model, table[:1], options=options, target_opset=_OPSET).SerializeToString())
        return _rows()


def _forest(scale: Scale) -> Any:
    return ensemble.RandomForestClassifier(scale.of(100, 4), max_depth=scale.of(10, 3), random_state=0)


def _scaled(scale: Scale) -> Any:
    return pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression(random_state=0))


_enter("forest_zipmap", "trees", _forest, zipmap=True)
_enter("forest", "trees", _forest, zipmap=False)
_enter("forest_columns", "trees", _forest, zipmap="columns")
_enter("forest_regressor", "trees", lambda scale: ensemble.RandomForestRegressor(
    scale.of(60, 4), max_depth=scale.of(9, 3), random_state=0), regress=True)  # fmt: skip
_enter("boosting", "trees", lambda scale: ensemble.GradientBoostingClassifier(
    n_estimators=scale.of(50, 4), random_state=0), zipmap=False)  # fmt: skip
_enter("extra_trees", "trees", lambda scale: ensemble.ExtraTreesRegressor(
    scale.of(40, 3), max_depth=scale.of(8, 3), random_state=0), regress=True)  # fmt: skip
_enter("logistic_zipmap", "linear model", lambda scale: linear_model.LogisticRegression(random_state=0), zipmap=True)
_enter("logistic", "linear model", lambda scale: linear_model.LogisticRegression(random_state=0), zipmap=False)
_enter("svm", "support vectors", lambda scale: svm.SVC(probability=True, random_state=0), zipmap=False)
_enter("svm_regressor", "support vectors", lambda scale: svm.SVR(), regress=True)
_enter("scaled_logistic", "pipeline of a scaler and a linear model", _scaled, zipmap=True)
_enter("scaled_pca_forest", "pipeline of scaler, PCA and trees", lambda scale: pipeline.make_pipeline(
    preprocessing.StandardScaler(), PCA(4, random_state=0), _forest(scale)), zipmap=False)  # fmt: skip
_enter("isolation_forest", "trees, outliers", lambda scale: ensemble.IsolationForest(
    n_estimators=scale.of(30, 3), random_state=0))  # fmt: skip
_enter("neighbours", "nearest neighbours", lambda scale: neighbors.KNeighborsClassifier(5), zipmap=False)
_enter("bayes", "naive Bayes", lambda scale: naive_bayes.GaussianNB(), zipmap=False)
_enter("perceptron", "dense layers", lambda scale: neural_network.MLPClassifier(
    (scale.of(64, 8), 8), max_iter=60, random_state=0), zipmap=False)  # fmt: skip
_enter("kmeans", "clusters", lambda scale: KMeans(5, n_init=2, random_state=0))
_enter("gaussian_process", "Gaussian process", lambda scale: GaussianProcessRegressor(), regress=True)


@graph("xgboost", "trees", "onnxmltools, dynamic rows")
def _xgboost(path: Path, scale: Scale) -> Inputs:
    table, labels = _task()
    model = xgboost.XGBClassifier(n_estimators=scale.of(40, 3), max_depth=scale.of(6, 2), random_state=0, n_jobs=1)
    model.fit(table, labels)
    made = convert_xgboost(model, initial_types=[("X", ToolsFloat([None, _FEATURES]))], target_opset=15)
    path.write_bytes(made.SerializeToString())
    return _rows()


@graph("xgboost_regressor", "trees", "onnxmltools, dynamic rows")
def _xgboost_regressor(path: Path, scale: Scale) -> Inputs:
    table, labels = _task()
    model = xgboost.XGBRegressor(n_estimators=scale.of(60, 3), max_depth=scale.of(6, 2), random_state=0, n_jobs=1)
    model.fit(table, table[:, 0] * labels)
    made = convert_xgboost(model, initial_types=[("X", ToolsFloat([None, _FEATURES]))], target_opset=15)
    path.write_bytes(made.SerializeToString())
    return _rows()


def _enter_lightgbm(name: str, zipmap: bool) -> None:
    @graph(name, "trees", f"onnxmltools, {'with' if zipmap else 'without'} ZipMap, dynamic rows")
    def make(path: Path, scale: Scale) -> Inputs:
        table, labels = _task()
        model = lightgbm.LGBMClassifier(
            n_estimators=scale.of(40, 3), num_leaves=scale.of(31, 4), random_state=0, n_jobs=1, verbose=-1
        )
        model.fit(table, labels)
        types = [("X", ToolsFloat([None, _FEATURES]))]
        made = convert_lightgbm(model, initial_types=types, zipmap=zipmap, target_opset=15)
        path.write_bytes(made.SerializeToString())
        return _rows()


_enter_lightgbm("lightgbm", False)
_enter_lightgbm("lightgbm_zipmap", True)
