# SPDX-License-Identifier: Apache-2.0
"""Sizes around those that were made up: lengths and pictures change, batches, channels and fixed sizes do not."""

import numpy as np

from nndeploy.bundle.manifest import NamedType
from nndeploy.checking.other_sizes import other_sizes
from nndeploy.values.types import TensorType


def sizes_around(*inputs: tuple[str, tuple[int | str, ...], tuple[int, ...]]) -> list[dict[str, int]]:
    """Returns what is found for inputs of (name, declared shape, made-up shape)."""
    declared = [NamedType(name, TensorType("float32", shape)) for name, shape, _ in inputs]
    return other_sizes({name: np.zeros(shape, np.float32) for name, _, shape in inputs}, declared)


def test_lengths_become_a_fourth_and_four_times_as_long() -> None:
    ids = ("ids", ("batch", "length"), (1, 64))
    mask = ("mask", ("batch", "length"), (1, 64))
    assert sizes_around(ids, mask) == [{"batch": 1, "length": 16}, {"batch": 1, "length": 256}]


def test_pictures_become_half_and_twice_as_high_and_wide_in_whole_strides() -> None:
    assert sizes_around(("x", (1, 3, "h", "w"), (1, 3, 224, 224))) == [{"h": 128, "w": 128}, {"h": 448, "w": 448}]


def test_what_is_fixed_or_grows_with_something_else_is_left() -> None:
    assert sizes_around(("x", (1, 3, 224, 224), (1, 3, 224, 224))) == []
    assert sizes_around(("x", ("batch", 3), (1, 3))) == []
    assert sizes_around(("past", ("batch", 4, "past_length", 8), (1, 4, 16, 8))) == []
