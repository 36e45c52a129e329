# SPDX-License-Identifier: Apache-2.0
"""Cases of text and of ai.onnx.ml."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from onnx import numpy_helper

from oracle.cases.case import Case, floats, integers, one

F32, F64 = np.float32, np.float64
ML = "ai.onnx.ml"


def cases() -> Iterator[Case]:
    yield from _text()
    yield from _n_grams()
    yield from _encoders()
    yield from _linear()
    yield from _trees()


def text(*values: str) -> Any:
    return np.array(values, object)


def _text() -> Iterator[Case]:
    yield one("StringConcat", 20, text("a", "b").reshape(2, 1), text("x", "", "äö"))
    for case, sensitive in product(("NONE", "LOWER", "UPPER"), (0, 1)):
        yield one(
            "StringNormalizer", 10, text("Monday", "tuesday", "WEDNESDAY"), case_change_action=case,
            is_case_sensitive=sensitive, stopwords=["monday", "x"],
        )  # fmt: skip
    yield one("StringNormalizer", 10, text("Ärger", "straße").reshape(1, 2), case_change_action="LOWER", note="umlauts")
    yield one("StringNormalizer", 10, text("a", "b"), stopwords=["a", "b"], note="nothing left")
    yield one(
        "StringNormalizer", 10, text("a", "b").reshape(1, 2), stopwords=["a", "b"], is_case_sensitive=1,
        note="nothing left of a row",
    )  # fmt: skip
    for delimiter, most in product((None, "", ",", "ab"), (None, 0, 1, 2)):
        texts = text("a,b,,c", " x  y ", "1ab2ab" if delimiter else "")
        yield one("StringSplit", 20, texts, delimiter=delimiter, maxsplit=most, outputs=2)
    yield one("StringSplit", 20, np.zeros((0,), object), outputs=2, delimiter=",", note="no text")
    for pattern in (r"[a-z]+@[a-z]+\.com", r"\d{2,3}", "", "(?i)ABC"):
        yield one("RegexFullMatch", 20, text("me@there.com", "12", "1234", "", "abc"), pattern=pattern)


def _n_grams() -> Iterator[Case]:
    pool = {
        "ngram_counts": [0, 4], "ngram_indexes": [0, 1, 2, 3, 4, 5, 6], "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
    }  # fmt: skip
    x = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]], np.int32)
    for mode, skips, n in product(("TF", "IDF", "TFIDF"), (0, 5), (1, 2)):
        weights = [0.5, 1, 2, 3, 4, 5, 6] if mode != "TF" else None
        yield one(
            "TfIdfVectorizer", 9, x, mode=mode, min_gram_length=n, max_gram_length=2, max_skip_count=skips,
            weights=weights, **pool,
        )  # fmt: skip
    yield one("TfIdfVectorizer", 9, x[0], mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=1, **pool)
    yield one(
        "TfIdfVectorizer", 9, text("a", "b", "a"), mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=0,
        ngram_counts=[0, 2], ngram_indexes=[0, 1, 2], pool_strings=["a", "b", "b", "a"],
    )  # fmt: skip


def _encoders() -> Iterator[Case]:
    def ml(name: str, version: int, *inputs: Any, **more: Any) -> Case:
        return one(name, version, *inputs, domain=ML, **more)

    yield ml("ArrayFeatureExtractor", 1, floats(3, 4), np.array([2, 0]))
    yield ml("ArrayFeatureExtractor", 1, floats(4), np.array([[3, 1]]))
    yield ml("ArrayFeatureExtractor", 1, floats(4), np.array([4]), note="index out of range")
    yield ml("Binarizer", 1, floats(3, 4), threshold=0.5)
    yield ml("Binarizer", 1, integers(3, 4))
    yield ml("CategoryMapper", 1, text("b", "x", "a"), cats_int64s=[7, 8], cats_strings=["a", "b"], default_int64=-5)
    yield ml("CategoryMapper", 1, np.array([8, 1, 7]), cats_int64s=[7, 8], cats_strings=["a", "b"], default_string="?")
    yield ml("FeatureVectorizer", 1, floats(2, 3), floats(2, 1), inputdimensions=[3, 1])
    yield ml("FeatureVectorizer", 1, integers(2, 3), integers(2, 1), inputdimensions=[3, 1])
    yield ml(
        "Imputer", 1, np.array([[1, np.nan], [np.nan, 2]], F32), imputed_value_floats=[7.0, 8.0],
        replaced_value_float=float("nan"),
    )  # fmt: skip
    yield ml("Imputer", 1, np.array([[1, 0], [0, 2]]), imputed_value_int64s=[9], replaced_value_int64=0)
    yield ml("LabelEncoder", 1, text("b", "x"), classes_strings=["a", "b"], default_int64=-3)
    yield ml("LabelEncoder", 1, np.array([1, 5]), classes_strings=["a", "b"], default_string="?")
    for version in (2, 4):
        yield ml(
            "LabelEncoder", version, text("b", "x"), keys_strings=["a", "b"], values_int64s=[5, 6], default_int64=-3
        )
        yield ml(
            "LabelEncoder", version, np.array([1.5, np.nan, 0], F32), keys_floats=[1.5, float("nan")],
            values_strings=["a", "b"],
        )  # fmt: skip
        yield ml(
            "LabelEncoder", version, np.array([1, 3]), keys_int64s=[1, 2], values_floats=[0.5, 1.5], default_float=9.0
        )
    keys, values = numpy_helper.from_array(np.array([1, 2])), numpy_helper.from_array(np.array([0.5, 0.25]))
    yield ml(
        "LabelEncoder", 4, np.array([2, 3]), keys_tensor=keys, values_tensor=values,
        default_tensor=numpy_helper.from_array(np.array([9.0])),
    )  # fmt: skip
    for values_in in (np.array([4, 9]), text("b", "z")):
        kind = {"cats_strings": ["a", "b"]} if values_in.dtype == object else {"cats_int64s": [3, 4]}
        yield ml("OneHotEncoder", 1, values_in, **kind)
    yield ml("OneHotEncoder", 1, np.array([[3.0, 4.0]], F32), cats_int64s=[3, 4, 5])
    yield ml("OneHotEncoder", 1, np.array([9]), cats_int64s=[3, 4], zeros=0, note="no category")
    for shape in ((2, 3), (3,)):
        yield ml("Scaler", 1, floats(*shape), offset=[0.5, 1, 2], scale=[2.0, 0.5, 1])
        for norm in ("MAX", "L1", "L2"):
            yield ml("Normalizer", 1, np.abs(floats(*shape)), norm=norm)
    yield ml("Scaler", 1, integers(2, 3), offset=[0.5], scale=[2.0])
    yield ml("Normalizer", 1, np.zeros((1, 3), F32), norm="L1", note="zeros")
    yield ml("ZipMap", 1, floats(2, 3), classlabels_int64s=[5, 6, 7])
    yield ml("ZipMap", 1, floats(2, 2), classlabels_strings=["a", "b"])
    numbers = {1: np.float32(1.5), 3: np.float32(-2), 0: np.float32(4)}
    for form, kind in product(("DENSE", "SPARSE"), ("TO_FLOAT", "TO_INT64")):
        yield ml("CastMap", 1, numbers, map_form=form, cast_to=kind, max_map=5)
    yield ml("DictVectorizer", 1, {"a": np.float32(1.5), "c": np.float32(2)}, string_vocabulary=["a", "b", "c"])


def _linear() -> Iterator[Case]:
    weights, intercepts = floats(12).tolist(), floats(3).tolist()
    for post in ("NONE", "SOFTMAX", "LOGISTIC"):
        for labels in ({"classlabels_ints": [4, 5, 6]}, {"classlabels_strings": ["a", "b", "c"]}):
            yield one(
                "LinearClassifier", 1, floats(2, 4), domain=ML, outputs=2, coefficients=weights, intercepts=intercepts,
                post_transform=post, **labels,
            )  # fmt: skip
        yield one(
            "LinearRegressor", 1, floats(2, 4), domain=ML, coefficients=weights, intercepts=intercepts, targets=3,
            post_transform=post,
        )  # fmt: skip
    yield one("LinearRegressor", 1, floats(2, 4), domain=ML, coefficients=weights[:4])
    vectors = {"support_vectors": floats(9).tolist(), "coefficients": floats(3).tolist(), "n_supports": 3, "rho": [0.5]}
    for kernel, one_class in product(("LINEAR", "POLY", "RBF", "SIGMOID"), (0, 1)):
        params = [0.5, 1.0, 2.0]
        yield one(
            "SVMRegressor", 1, floats(4, 3), domain=ML, kernel_type=kernel, kernel_params=params, one_class=one_class,
            **vectors,
        )  # fmt: skip


def _trees() -> Iterator[Case]:
    nodes: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1], "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
        "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0], "nodes_values": [0.5, -0.5, 0, 0, 0, 1, 0, 0],
        "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 0, 0], "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0],
    }  # fmt: skip
    x = np.concatenate([floats(5, 3), [[np.nan, 1, 1], [0.5, np.nan, np.nan]]]).astype(F32)
    leaves = {
        "_treeids": [0, 0, 0, 1, 1], "_nodeids": [2, 3, 4, 1, 2], "_weights": [1.0, 2, 3, 4, 5],
        "_ids": [0, 1, 2, 1, 0],
    }  # fmt: skip
    for mode in ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ"):
        modes = [f"BRANCH_{mode}"] * 2 + ["LEAF"] * 3 + [f"BRANCH_{mode}", "LEAF", "LEAF"]
        for missing in (None, [1, 0, 0, 0, 0, 1, 0, 0]):
            tree = {**nodes, "nodes_modes": modes, "nodes_missing_value_tracks_true": missing}
            targets = {f"target{name}": value for name, value in leaves.items()}
            yield one(
                "TreeEnsembleRegressor", 3, x, domain=ML, n_targets=3, note=f"{mode} missing={missing}", **tree,
                **targets,
            )  # fmt: skip
    for kind in ("SUM", "AVERAGE", "MIN", "MAX"):
        tree = {**nodes, "nodes_modes": ["BRANCH_LEQ"] * 2 + ["LEAF"] * 3 + ["BRANCH_LEQ", "LEAF", "LEAF"]}
        targets = {f"target{name}": value for name, value in {**leaves, "_ids": [0] * 5}.items()}
        yield one(
            "TreeEnsembleRegressor", 1, x, domain=ML, n_targets=1, aggregate_function=kind, base_values=[0.5],
            note=f"{kind} one target", **tree, **targets,
        )  # fmt: skip
    for labels in ({"classlabels_int64s": [7, 8, 9]}, {"classlabels_strings": ["a", "b", "c"]}):
        classes = {f"class{name}": value for name, value in leaves.items()}
        for post in ("NONE", "SOFTMAX", "LOGISTIC"):
            yield one(
                "TreeEnsembleClassifier", 3, x, domain=ML, outputs=2, post_transform=post, note=f"{post} {labels}",
                **tree, **classes, **labels,
            )  # fmt: skip
    yield from _tree_ensembles(x)


def _tree_ensembles(x: Any) -> Iterator[Case]:
    tree: dict[str, Any] = {
        "tree_roots": [0], "nodes_featureids": [0, 1, 2],
        "nodes_splits": numpy_helper.from_array(np.array([0.5, -0.5, 1], F32)),
        "nodes_truenodeids": [1, 0, 3], "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 1, 2], "nodes_falseleafs": [0, 1, 1],
        "leaf_targetids": [0, 1, 0, 1], "leaf_weights": numpy_helper.from_array(np.array([1, 2, 3, 4], F32)),
    }  # fmt: skip
    for mode in range(6):
        modes = numpy_helper.from_array(np.full(3, mode, np.uint8))
        yield one("TreeEnsemble", 5, x, domain=ML, n_targets=2, nodes_modes=modes, note=f"mode {mode}", **tree)
    members = numpy_helper.from_array(np.array([0.5, 1.0, np.nan, -0.5], F32))
    modes = numpy_helper.from_array(np.array([6, 6, 0], np.uint8))
    yield one(
        "TreeEnsemble", 5, x, domain=ML, n_targets=2, nodes_modes=modes, membership_values=members, note="members",
        **tree,
    )  # fmt: skip
