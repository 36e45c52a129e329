# SPDX-License-Identifier: Apache-2.0
"""What is put into a cache at places that are data, against NumPy; what does not fit is refused."""

import numpy as np
import pytest
from kernel_library import OutOfRangeError, RefusedError, every_level, plan_of, run_plan
from nndeploy_native.steps.movement import Append
from nndeploy_native.tensors import Array, Tensor

FAR = 2**31 - 1


def put(level: str, past: Array, new: Array, places: Array, whole: int, length: int, threads: int = 1) -> Array:
    """Returns a cache of `whole` places along axis 2, of which the first `length` are written."""
    given = [
        Tensor("past", past.shape, element="fp32"), Tensor("new", new.shape, element="fp32"),
        Tensor("places", places.shape, element=places.dtype.name),
    ]  # fmt: skip
    shape = (*past.shape[:2], whole, *past.shape[3:])
    step = Append(Tensor("y", shape), given[0], given[1], 2, given[2], length)
    found = run_plan(level, plan_of([step], given, [step.output]), [past, new, places], [shape], threads=threads)[0]
    return np.asarray(found)[:, :, :length]


def wanted(past: Array, new: Array, places: Array, length: int) -> Array:
    found, added = np.zeros((*past.shape[:2], length, *past.shape[3:]), np.float32), new.shape[2]
    for b, place in enumerate(places.reshape(-1)):
        found[b, :, :place] = past[b, :, :place]
        found[b, :, place : place + added] = new[b]
    return found


@every_level
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("element", ["int32", "int64"])
@pytest.mark.parametrize(
    ("before", "added", "length", "whole"), [(7, 2, 9, 9), (7, 2, 9, 16), (0, 3, 3, 5), (12, 1, 12, 12)]
)
def test_places_of_each_row(
    level: str, threads: int, element: str, before: int, added: int, length: int, whole: int
) -> None:
    rng = np.random.default_rng(3)
    past, new = (rng.standard_normal((6, 3, count, 5)).astype(np.float32) for count in (before, added))
    last = min(before, length - added)
    places = np.array([0, last, last // 2, 0, last, last], element)
    found = put(level, past, new, places, whole, length, threads)
    np.testing.assert_array_equal(found, wanted(past, new, places, length))
    for place in (-1, last + 1, FAR):
        places[3:] = place
        with pytest.raises(OutOfRangeError) as caught:
            put(level, past, new, places, whole, length, threads)
        assert caught.value.args == (0, 3, place, last + 1)


@every_level
@pytest.mark.parametrize(
    ("shape", "places", "length", "reason"),
    [
        ((2, 3, 2, 5), 3, 9, "what is appended at places does not fit"),
        ((2, 3, 2, 5), 2, 1, "what is appended at places does not fit"),
        ((2, 3, 2, 5), 2, 10, "what is appended at places does not fit"),
        ((2, 3, 2, 5), 2, -1, "less than|negative|does not fit|size"),
        ((2, 4, 2, 5), 2, 9, "what is appended at places does not fit"),
    ],
)
def test_what_does_not_fit_is_refused(
    level: str, shape: tuple[int, ...], places: int, length: int, reason: str
) -> None:
    past, new = np.zeros((2, 3, 7, 5), np.float32), np.zeros(shape, np.float32)
    with pytest.raises(RefusedError, match=reason):
        put(level, past, new, np.zeros(places, np.int32), 9, length)
    with pytest.raises(RefusedError, match="no places"):
        put(level, past, np.zeros((2, 3, 2, 5), np.float32), np.zeros(2, np.bool_), 9, 9)
