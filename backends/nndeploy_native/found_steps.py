# SPDX-License-Identifier: Apache-2.0
"""Steps that find elements: the sizes of what they give depend on data, which no plan knows before it runs.

Source: ONNX Compress, NonMaxSuppression, NonZero.
"""

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from nndeploy.errors import InputError
from nndeploy.values.types import Array
from nndeploy_native.kernel_library import kernel_library
from nndeploy_native.plan import DTYPES, MAX_RANK
from nndeploy_native.python_step import Kind, MadeStep, Maker, PythonStep, check_number

_ROWS_OF_A_BOX = 2
"""Rows of three numbers that each box takes of the kernel's memory (`nnd_suppress`)."""


def _check_numbers(kind: Kind) -> None:
    if kind[0] not in DTYPES or not 0 < kind[1] <= MAX_RANK:
        raise ValueError(f"elements of {kind}")


def _non_zero(_: PythonStep, kind: Kind) -> MadeStep:
    _check_numbers(kind)
    return MadeStep((("int64", 2),), lambda x: np.array(x.nonzero(), np.int64))


def _compress(_: PythonStep, kind: Kind, condition: Kind, *, axis: int | None) -> MadeStep:
    _check_numbers(kind)
    if axis is not None:
        check_number(axis, kind[1])
    if condition != ("bool", 1):
        raise ValueError(f"conditions of {condition}")

    def compressed(x: Array, is_kept: Array) -> Array:
        try:
            return x.compress(is_kept, axis)
        except IndexError as err:
            raise InputError(str(err)) from None

    return MadeStep(((kind[0], 1 if axis is None else kind[1]),), compressed)


def _suppress(
    _: PythonStep, boxes: Kind, scores: Kind, *, most: int, overlap: float, least: float | None, is_centred: bool
) -> MadeStep:
    """Where there is no `least` every score counts."""
    check_number(most, 2**63)
    if boxes != ("fp32", 3) or scores != ("fp32", 3) or type(is_centred) is not bool:
        raise ValueError(f"boxes of {boxes}, scores of {scores}")
    if type(overlap) is not float or not 0.0 <= overlap <= 1.0 or (least is not None and type(least) is not float):
        raise ValueError(f"bounds {overlap!r:.40} and {least!r:.40}")
    bound = None if least is None else ctypes.c_float(least)

    def suppressed(x: Array, of: Array) -> Array:
        if x.shape[2] != 4 or x.shape[0] != of.shape[0] or x.shape[1] != of.shape[2]:
            raise InputError(f"boxes {x.shape} and scores {of.shape} do not fit each other")
        num_boxes = x.shape[1]
        candidates = of.size if bound is None else int(np.count_nonzero(of > bound.value))
        rows = min(candidates, of.shape[0] * of.shape[1] * min(most, num_boxes))
        places = np.empty((rows + _ROWS_OF_A_BOX * num_boxes, 3), np.int64)
        x, of = np.ascontiguousarray(x), np.ascontiguousarray(of)
        sizes = (ctypes.c_int64 * 3)(*of.shape)
        found = _kernel()(
            x.ctypes.data, of.ctypes.data, sizes, min(most, num_boxes), overlap,
            None if bound is None else ctypes.byref(bound), is_centred, places.ctypes.data, rows,
        )  # fmt: skip
        return places[:found].copy()

    return MadeStep((("int64", 2),), suppressed)


@cache
def _kernel() -> Any:
    return kernel_library("fp32").nnd_suppress


MAKERS: Mapping[str, Maker] = {"Compress": _compress, "NonMaxSuppression": _suppress, "NonZero": _non_zero}
