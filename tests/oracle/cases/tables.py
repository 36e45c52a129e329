# SPDX-License-Identifier: Apache-2.0
"""Cases of tables and texts: every pair of types that encoders take, and forms of n-grams, missing values and maps."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from onnx import numpy_helper

from oracle.cases.case import Case, floats, integers, one

F32, F64 = np.float32, np.float64
ML = "ai.onnx.ml"


def cases() -> Iterator[Case]:
    yield from _label_encoders()
    yield from _categories()
    yield from _columns()
    yield from _maps()
    yield from _n_grams()


def ml(name: str, version: int, *inputs: Any, **more: Any) -> Case:
    return one(name, version, *inputs, domain=ML, **more)


def text(*values: str) -> Any:
    return np.array(values, object)


def _label_encoders() -> Iterator[Case]:
    """A key, another one, and what is no key, in two axes."""
    keys: dict[str, tuple[Any, Any]] = {
        "strings": (["a", "äö"], text("äö", "", "a", "b").reshape(2, 2)),
        "int64s": ([-7, 1 << 40], np.array([[1 << 40, 3], [-7, 0]])),
        "floats": ([0.5, float("nan")], np.array([[np.nan, 1], [0.5, -0.0]], F32)),
    }
    values: dict[str, dict[str, Any]] = {
        "strings": {"values_strings": ["x", ""]},
        "int64s": {"values_int64s": [1 << 40, -1]},
        "floats": {"values_floats": [0.25, float("inf")]},
    }
    defaults = {"strings": {"default_string": "?"}, "int64s": {"default_int64": 9}, "floats": {"default_float": -2.5}}
    for (kind, (names, x)), (to, found) in product(keys.items(), values.items()):
        yield ml("LabelEncoder", 2, x, **{f"keys_{kind}": names}, **found, **defaults[to])
    for to, found in values.items():
        yield ml("LabelEncoder", 3, text("a", "z"), keys_strings=["a", "b"], **found, note=f"to {to}, no default")
    tensors = {
        "int64": (np.array([3, 4]), np.array([4, 5, 3])), "int32": tuple(np.array([[3, 4], [4, 5]], np.int32)),
        "float": (np.array([1.5, 2], F32), np.array([2, 0], F32)), "string": (text("a", "b"), text("b", "c")),
    }  # fmt: skip
    for name, (names, x) in tensors.items():
        for to, (found, _) in tensors.items():
            yield ml(
                "LabelEncoder", 4, x, keys_tensor=numpy_helper.from_array(names),
                values_tensor=numpy_helper.from_array(found), default_tensor=numpy_helper.from_array(found[:1]),
                note=f"tensors of {name} to {to}",
            )  # fmt: skip


def _categories() -> Iterator[Case]:
    for zeros in (0, 1):
        for shape in ((4,), (2, 2), (4, 1)):
            known = text("b", "äö", "a", "b").reshape(shape)
            yield ml("OneHotEncoder", 1, known, cats_strings=["a", "b", "äö"], zeros=zeros)
        yield ml(
            "OneHotEncoder", 1, text("b", "z"), cats_strings=["a", "b"], zeros=zeros, note=f"unknown zeros={zeros}"
        )
        yield ml("OneHotEncoder", 1, np.array([7, 1 << 40]), cats_int64s=[1 << 40, 7, -3], zeros=zeros)
    for dtype in (np.int32, np.int64, F32, F64):
        yield ml("OneHotEncoder", 1, np.array([[3], [5]], dtype), cats_int64s=[3, 4])
    yield ml("CategoryMapper", 1, text("b", "a").reshape(1, 2), cats_int64s=[7, 8], cats_strings=["a", "b"])


def _columns() -> Iterator[Case]:
    holes = np.array([[1, np.nan, 0], [np.nan, 2, 0]], F32)
    for old, new in product((float("nan"), 0.0, 2.0), ([7.5], [7.5, -8.0, 9.0])):
        yield ml("Imputer", 1, holes, imputed_value_floats=new, replaced_value_float=old)
    yield ml("Imputer", 1, holes, imputed_value_floats=[4.0], note="no missing value is said")
    whole = np.array([[1, 0, 1 << 40], [0, 2, -1]])
    for old, new in product((0, -1, 1 << 40), ([9], [9, -8, 1 << 41])):
        yield ml("Imputer", 1, whole, imputed_value_int64s=new, replaced_value_int64=old)
    yield ml("Imputer", 1, np.array([[np.nan, 3]], F64), imputed_value_floats=[1.0], replaced_value_float=float("nan"))
    for dtype in (np.int32, np.int64, F32, F64):
        x = integers(2, 3).astype(dtype)
        yield ml("Scaler", 1, x, offset=[0.5, 1, 2], scale=[2.0, 0.5, 1])
        yield ml("FeatureVectorizer", 1, x, x[:, :1], inputdimensions=[3, 1], note=f"{dtype.__name__} of two inputs")
        yield ml("ArrayFeatureExtractor", 1, x, np.array([2, 0, 2]))
        yield ml("Normalizer", 1, np.abs(x), norm="L2")
    yield ml("FeatureVectorizer", 1, floats(2, 3), inputdimensions=[3], note="one input")
    yield ml("ArrayFeatureExtractor", 1, text("a", "b", "c", "d").reshape(2, 2), np.array([1, 1, 0]))
    yield ml("ArrayFeatureExtractor", 1, floats(2, 2, 3), np.array([[1], [2]]), note="three axes")
    for dtype in (np.int32, F64):
        yield ml("Binarizer", 1, integers(2, 3).astype(dtype), threshold=-0.5)


def _maps() -> Iterator[Case]:
    yield ml("ZipMap", 1, floats(3), classlabels_int64s=[5, 6, 7], note="one row without an axis")
    yield ml("ZipMap", 1, floats(2, 5), classlabels_strings=list("abcdö"))
    yield ml("ZipMap", 1, floats(0, 2), classlabels_strings=["a", "b"], note="no rows")
    words = {4: "2.5", 0: "-1", 2: "7"}
    for form, size in product(("DENSE", "SPARSE"), (5, 3)):
        yield ml("CastMap", 1, words, map_form=form, cast_to="TO_FLOAT", max_map=size, note=f"texts {form} {size}")
        whole = {key: value for key, value in words.items() if "." not in value}
        yield ml(
            "CastMap", 1, whole, map_form=form, cast_to="TO_INT64", max_map=size, note=f"whole texts {form} {size}"
        )
    values = {"float": np.float32(1.5), "int64": np.int64(1 << 40), "string": "x"}
    for name, value in values.items():
        yield ml("DictVectorizer", 1, {"b": value}, string_vocabulary=["a", "b", "c"], note=f"{name} by texts")
        if name != "int64":
            yield ml("DictVectorizer", 1, {-4: value}, int64_vocabulary=[7, -4], note=f"{name} by numbers")


def _n_grams() -> Iterator[Case]:
    pool = {"ngram_counts": [0, 2, 6], "ngram_indexes": [3, 0, 1, 5, 2, 4]}
    words = ["a", "b", "a", "b", "b", "a", "a", "b", "a", "b", "b", "c"]
    x = text("b", "a", "b", "b", "x", "c").reshape(2, 3)
    weights = [0.5, 2, 4, 0.25, 8, 16]
    for mode, (least, most), skips in product(("TF", "IDF", "TFIDF"), ((1, 1), (1, 3), (2, 3)), (0, 7)):
        more = {"mode": mode, "min_gram_length": least, "max_gram_length": most, "max_skip_count": skips, **pool}
        more |= {} if mode == "TF" else {"weights": weights}
        yield one("TfIdfVectorizer", 9, x, pool_strings=words, **more)
        numbers = np.array([["abcx".index(word) - 1 for word in row] for row in x.tolist()])
        yield one("TfIdfVectorizer", 9, numbers, pool_int64s=["abcx".index(word) - 1 for word in words], **more)
    plain = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0, "ngram_counts": [0]}
    for dtype in (np.int32, np.int64):
        yield one("TfIdfVectorizer", 9, np.array([5, 5, 2], dtype), pool_int64s=[2, 5], ngram_indexes=[0, 1], **plain)
    yield one(
        "TfIdfVectorizer", 9, np.array([[5, 1 << 40]]), pool_int64s=[1 << 40, 5], ngram_indexes=[6, 1], **plain,
        note="columns that no gram counts in",
    )  # fmt: skip
    yield one("StringNormalizer", 10, text("Äa", "b").reshape(1, 2), case_change_action="UPPER", stopwords=["B"])
