# SPDX-License-Identifier: Apache-2.0
"""The nearest texts of a file that an embedder wrote; held against plain cosines in float64."""

import json
import math

import numpy as np
import pytest

from nndeploy.errors import DataError, InputError
from nndeploy.processors.builtin.nearest import Nearest
from nndeploy.processors.vector_lines import VectorLines


def written(*lines):
    return "\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines).encode()


def nearest(data, count=5):
    return Nearest(VectorLines.from_parameter("v.jsonl", lambda _: data), count)


def test_the_best_come_first_by_their_cosine() -> None:
    dice = np.random.default_rng(0)
    vectors, asked = dice.standard_normal((40, 8)), dice.standard_normal(8)
    vectors[7] = vectors[3] * 2  # as much like it
    data = written(
        *({"index": i, "outputs": {"text": f"t{i}", "embedding": one.tolist()}} for i, one in enumerate(vectors))
    )
    cosines = [
        sum(a * b for a, b in zip(one, asked, strict=True)) / math.hypot(*one) / math.hypot(*asked) for one in vectors
    ]
    want = sorted(range(40), key=lambda i: (-round(cosines[i], 12), i))
    texts, found = nearest(data, 40)(asked[None].astype(np.float32))
    np.testing.assert_allclose(found, sorted(cosines, reverse=True), atol=1e-6)
    assert texts == [f"t{i}" for i in want]
    assert nearest(data, 3)(asked)[0] == texts[:3]


def test_lines_may_be_the_outputs_alone_and_blank() -> None:
    data = written({"text": "a", "embedding": [1, 0]}, "", {"text": "b", "embedding": [0.0, 3.0]}, "")
    texts, cosines = nearest(data)([0.0, 2.0])
    assert (texts, cosines.tolist()) == (["b", "a"], [1.0, 0.0])


@pytest.mark.parametrize("data", [
    b"", b"\xff\n", written("{"), written("[" * 9999), written([1]), written({"text": "a"}),
    written({"text": 1, "embedding": [1]}), written({"text": "a", "embedding": [0, 0]}),
    written({"text": "a", "embedding": ["1"]}), written({"text": "a", "embedding": [True]}),
    written('{"text": "a", "embedding": [NaN]}'), written('{"text": "a", "embedding": [1e999]}'),
    written({"text": "a", "embedding": []}), written({"outputs": 3}),
    written({"text": "a", "embedding": [1]}, {"text": "b", "embedding": [1, 2]}),
])  # fmt: skip
def test_a_file_of_another_kind_is_refused(data) -> None:
    with pytest.raises(DataError):
        nearest(data)


@pytest.mark.parametrize("embedding", [[1.0], [0.0, 0.0], [math.nan, 1.0], "a"])
def test_an_embedding_that_does_not_fit_is_refused(embedding) -> None:
    with pytest.raises(InputError):
        nearest(written({"text": "a", "embedding": [1, 2]}))(embedding)
