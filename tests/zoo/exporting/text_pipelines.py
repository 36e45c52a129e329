# SPDX-License-Identifier: Apache-2.0
"""Pipelines of scikit-learn over strings and columns of several types, by skl2onnx.

Texts are in lower case already, for a StringNormalizer that lowers needs a locale that not every machine has.
"""

from pathlib import Path
from typing import Any

import numpy as np
from exporting.graphs import Array, Inputs, Scale, graph
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn import linear_model, naive_bayes, pipeline, preprocessing
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

_OPSET = {"": 18, "ai.onnx.ml": 3}
_GOOD = ("fine", "lovely", "warm", "bright", "quick", "gentle", "fresh")
_BAD = ("dull", "cold", "broken", "late", "grey", "stale", "noisy")
_THINGS = ("bread", "train", "street", "radio", "garden", "river", "paper")


def _texts(count: int = 120) -> tuple[list[str], list[int]]:
    random = np.random.default_rng(5)
    labels = random.integers(0, 2, count).tolist()
    return [" ".join(random.permutation([*random.choice(_GOOD if one else _BAD, 3), *random.choice(_THINGS, 2)]))
            for one in labels], labels  # fmt: skip


def _enter(name: str, kind: str, steps: list[Any], *, zipmap: bool) -> None:
    @graph(name, kind, f"skl2onnx, {'with' if zipmap else 'without'} ZipMap, strings, dynamic rows")
    def make(path: Path, scale: Scale) -> Inputs:
        texts, labels = _texts()
        model = pipeline.make_pipeline(*steps).fit(texts, labels)
        types = [("text", StringTensorType([None]))]
        made = to_onnx(model, initial_types=types, options={"zipmap": zipmap}, target_opset=_OPSET)
        path.write_bytes(made.SerializeToString())
        return {"text": np.array(texts[:4], dtype=np.str_)}


_enter(
    "text_tfidf", "text pipeline", [TfidfVectorizer(lowercase=False), linear_model.LogisticRegression()], zipmap=False
)
_enter(
    "text_tfidf_zipmap", "text pipeline",
    [TfidfVectorizer(ngram_range=(1, 2), lowercase=False), linear_model.LogisticRegression()], zipmap=True,
)  # fmt: skip
_enter("text_counts", "text pipeline", [CountVectorizer(lowercase=False), naive_bayes.MultinomialNB()], zipmap=False)


@graph("columns", "pipeline over columns of numbers and strings", "skl2onnx, without ZipMap, dynamic rows")
def _columns(path: Path, scale: Scale) -> Inputs:
    import pandas as pd

    random = np.random.default_rng(11)
    table = pd.DataFrame(
        {"price": random.random(90).astype(np.float32), "size": random.random(90).astype(np.float32),
         "colour": random.choice(["red", "green", "blue"], 90)}
    )  # fmt: skip
    labels = (table["price"] + (table["colour"] == "red") > 0.8).astype(int)
    parts = [
        ("numbers", preprocessing.StandardScaler(), ["price", "size"]),
        ("words", preprocessing.OneHotEncoder(handle_unknown="ignore"), ["colour"]),
    ]
    model = pipeline.make_pipeline(ColumnTransformer(parts), linear_model.LogisticRegression()).fit(table, labels)
    types = [(name, FloatTensorType([None, 1])) for name in ("price", "size")]
    types.append(("colour", StringTensorType([None, 1])))
    made = to_onnx(model, initial_types=types, options={"zipmap": False}, target_opset=_OPSET)
    path.write_bytes(made.SerializeToString())
    colours: Array = np.array(table[["colour"]][:5], dtype=np.str_)
    return {"price": table[["price"]].to_numpy()[:5], "size": table[["size"]].to_numpy()[:5], "colour": colours}
