# SPDX-License-Identifier: Apache-2.0
"""Classes and bytes: softmax, sigmoid, the likeliest, their names, a file's beginning and end."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nndeploy.errors import InputError
from nndeploy.processors.builtin.byte_window import ByteWindow


def test_softmax_and_sigmoid_do_not_overflow(step) -> None:
    scores = np.array([[1000, 1000, -1000], [-2, 0, 1]], np.float32)
    found = step("softmax")({"scores": scores})["probabilities"]
    np.testing.assert_allclose(found[0], [0.5, 0.5, 0])
    np.testing.assert_allclose(found[1], [math.exp(s) / sum(map(math.exp, (-2, 0, 1))) for s in (-2, 0, 1)], rtol=1e-6)
    across = step("softmax", axis=0)({"scores": scores})["probabilities"]
    np.testing.assert_allclose(across.sum(axis=0), 1, rtol=1e-6)
    found = step("sigmoid")({"scores": scores})["probabilities"]
    np.testing.assert_allclose(found[0], [1, 1, 0])
    np.testing.assert_allclose(found[1], [1 / (1 + math.exp(-s)) for s in (-2, 0, 1)], rtol=1e-6)
    with pytest.raises(InputError, match=r"float32 \(2, 3\) have no axis 2"):
        step("softmax", axis=2)({"scores": scores})
    with pytest.raises(InputError, match="NaN or infinity"):
        step("softmax")({"scores": [np.inf]})


def test_class_probability_is_that_of_one_class_or_of_all_others(step) -> None:
    probabilities = np.array([[[0.25, 0.5, 0.25], [1, 0, 0]]], np.float32)
    found = step("class-probability", index=0)({"probabilities": probabilities})["probability"]
    assert found.tolist() == [[0.25, 1]]
    others = step("class-probability", index=0, others=True)({"probabilities": probabilities})["probability"]
    assert others.tolist() == [[0.75, 0]]
    with pytest.raises(InputError, match=r"probabilities float32 \(1, 2, 3\) have no class 3"):
        step("class-probability", index=3)({"probabilities": probabilities})
    with pytest.raises(InputError, match=r"probabilities float32 \(\) have no class 0"):
        step("class-probability", index=0)({"probabilities": np.float32(1)})


def test_class_map_is_the_best_class_of_each_place(step) -> None:
    scores = np.array([[[0.1, 0.9], [0.5, 0.5]], [[0.8, 0.2], [0.5, 0.6]]], np.float32)  # (classes, rows, columns)
    classes = step("class-map")({"scores": scores})["classes"]
    assert classes.dtype == np.int64
    assert classes.tolist() == [[1, 0], [0, 1]]
    assert step("class-map", axis=-1)({"scores": scores})["classes"].tolist() == [[1, 0], [0, 1]]
    for wrong in (np.float32(1), np.zeros((0, 3), np.float32)):
        with pytest.raises(InputError, match="have no classes along axis 0"):
            step("class-map")({"scores": wrong})


def test_top_k_is_best_first_and_equal_ones_by_number(step) -> None:
    fields = {"probabilities": np.array([[0.1, 0.4, 0.4, 0.1]], np.float32)}
    found = step("top-k", k=3, labels=["w", "x", "y", "z"])(fields)
    assert found["labels"] == ["x", "y", "w"]
    assert found["classes"].tolist() == [1, 2, 0]
    assert found["scores"].tolist() == pytest.approx([0.4, 0.4, 0.1])
    assert step("top-k", k=9)(fields)["labels"] == ["1", "2", "0", "3"]
    with pytest.raises(InputError, match="there are 4 probabilities, but 2 labels"):
        step("top-k", labels=["a", "b"])(fields)
    with pytest.raises(InputError, match=r"probabilities must be \(N,\)"):
        step("top-k")({"probabilities": np.zeros((2, 3))})


def test_labels_name_classes(step, tmp_path) -> None:
    (tmp_path / "names.txt").write_bytes(b"cat\ndog\n")
    named = step("labels", labels="names.txt")
    assert named({"classes": np.array([1, 0, 1])})["labels"] == ["dog", "cat", "dog"]
    assert named({"classes": []})["labels"] == []
    with pytest.raises(InputError, match="class 2 has no name: there are 2 labels"):
        named({"classes": [2]})


def windowed(data: bytes, begin: int, end: int, block: int) -> list[int]:
    """Returns the tokens byte by byte, as Magika's documentation says."""
    first = list(data[:block].lstrip())[:begin]
    last = list(data[-block:].rstrip())[-end:] if end and data else []
    return first + [256] * (begin - len(first)) + [256] * (end - len(last)) + last


@given(st.lists(st.sampled_from([b" ", b"\n", b"ab", b"\0", b"xyz"]), max_size=30).map(b"".join))
def test_byte_window_is_the_beginning_and_the_end(data) -> None:
    found = ByteWindow(begin=4, end=3, block=8)(data)
    assert found.dtype == np.int32
    assert found.tolist() == [windowed(data, 4, 3, 8)]


def test_byte_window_can_leave_white_space_and_either_end(step) -> None:
    assert step("byte-window", begin=3, end=0, strip=False)({"data": b" a"})["tokens"].tolist() == [[32, 97, 256]]
    assert step("byte-window", begin=0, end=3, padding=-1)({"data": b"a "})["tokens"].tolist() == [[-1, -1, 97]]
    with pytest.raises(InputError, match="data must be bytes, this is a str"):
        step("byte-window")({"data": "a"})
