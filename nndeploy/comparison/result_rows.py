# SPDX-License-Identifier: Apache-2.0
"""Results whose order and number rounding decides, compared as sets of rows: what a detector lists.

    boxes [1, N, 4], scores [1, N], classes [1, N]   ->   N rows of 6 numbers

Outputs that list along an axis of the same length are rows together, so that a score stays with its box and its class.
A row of one side and one of the other are partners if every column agrees; each has one partner at most. Rows without
one are as many as stand where a tie or a cut-off decides.

Law: any order of the rows gives the same share without partners.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nndeploy.values.types import Value

Array = np.ndarray[Any, Any]

NEAR = 0.01
"""Two numbers of a column are the same result within this much of the column's largest: boxes overlap by 0.98 then."""


def rows_of(values: Sequence[Value], axes: Sequence[int]) -> Array | None:
    """Returns the values as a table of one row for each result, None where they do not list equally many."""
    parts = []
    for value, axis in zip(values, axes, strict=True):
        if not isinstance(value, np.ndarray) or value.ndim <= axis or value.dtype.kind not in "fiub":
            return None
        width = math.prod(size for other, size in enumerate(value.shape) if other != axis)
        parts.append(np.moveaxis(value, axis, 0).reshape(value.shape[axis], width).astype(np.float64))
    if len({len(part) for part in parts}) != 1:
        return None
    return np.concatenate(parts, axis=1)


def unmatched_share(got: Array, want: Array) -> float:
    """Returns the share of rows, on the side that has more of them, that have no partner on the other."""
    most = max(len(got), len(want))
    if most == 0:
        return 0.0
    if got.shape[1] != want.shape[1]:
        return 1.0
    got, want = np.nan_to_num(got), np.nan_to_num(want)
    size = np.max(np.abs(want), axis=0, initial=0.0) if len(want) else np.zeros(want.shape[1])
    near = NEAR * size + 1e-6
    free = np.ones(len(want), dtype=np.bool_)
    matched = 0
    for i, row in enumerate(got):
        fits = free & np.all(np.abs(want - row) <= near, axis=1)
        if not fits.any():
            continue
        same_place = i < len(want) and fits[i]
        best = i if same_place else int(np.argmin(np.where(fits, np.sum(np.abs(want - row), axis=1), np.inf)))
        free[best] = False
        matched += 1
    return (most - matched) / most
