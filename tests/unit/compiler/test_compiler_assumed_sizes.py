# SPDX-License-Identifier: Apache-2.0
"""Sizes that a model leaves open are assumed to be usual ones, which hold those of every sample."""

import numpy as np
import pytest

from nndeploy.bundle.manifest import NamedType
from nndeploy.compiler.chains.assumed_sizes import assumed_ranges
from nndeploy.values.types import DimRange, TensorType, Value


def image(*shape: int | str | None) -> list[NamedType]:
    return [NamedType("x", TensorType("float32", shape))]


def of(*shape: int) -> dict[str, Value]:
    return {"x": np.zeros(shape, np.float32)}


def test_where_the_number_of_images_alone_is_open_more_are_assumed() -> None:
    assert assumed_ranges(image("batch", 3, 8, 8), {}, [of(2, 3, 8, 8)]) == {1: {"batch": DimRange(1, 32, 2)}}
    found = assumed_ranges(image("batch", 3, "h", "w"), {}, [of(1, 3, 64, 96)])
    assert found[1] == {"batch": DimRange(1, 4, 1), "h": DimRange(32, 1536, 64), "w": DimRange(32, 1536, 96)}
    assert found[32]["w"] == DimRange(32, 1536, 96, 32)


def test_every_sample_is_in_range() -> None:
    samples = [of(1, 3, 20, 64), of(9, 3, 4000, 64)]
    found = assumed_ranges(image("batch", 3, "h", "w"), {}, samples)
    assert found == {1: {"batch": DimRange(1, 9, 1), "h": DimRange(20, 4000, 20), "w": DimRange(32, 1536, 64)}}


def test_what_the_user_told_stays() -> None:
    told = {"batch": DimRange(1, 2, 1)}
    found = assumed_ranges(image("batch", "length"), told, [of(1, 50)])
    assert found == {1: {"batch": DimRange(1, 2, 1), "length": DimRange(50, 4096, 50)}}
    assert assumed_ranges(image("batch", 4), told, [of(1, 4)]) == {}


@pytest.mark.parametrize("shape", [(None, 3), ("past_length", 3), ("a + b", 3), (1, "channels", 8, 8)])
def test_nothing_is_assumed_of_sizes_that_nothing_is_known_of(shape: tuple[int | str | None, ...]) -> None:
    sample = of(*(dim if isinstance(dim, int) else 5 for dim in shape))
    assert assumed_ranges(image("batch", 3), {}, [of(1, 3)])
    assert assumed_ranges([*image("batch", 3), NamedType("y", TensorType("float32", shape))], {}, [sample]) == {}
    assert assumed_ranges(image("batch", 3), {}, []) == {}
