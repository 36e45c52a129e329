# SPDX-License-Identifier: Apache-2.0
"""How far two tensors are apart, in figures that tell rounding from error, and whether that is within limits.

The largest difference alone says little where values flip by a step: one flip in a thousand elements and a wrong
channel may have the same. So there are four figures: the largest difference, the root mean square, the largest root
mean square of a slice (what shares an index of an axis, such as a channel), and the share of elements outside the
tolerance. Rounding spreads over all; an error has more of at least one of them.

Law: `distance(v, v, t)` is zero in every figure.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from nndeploy.bundle.manifest import Limits, Tolerance
from nndeploy.comparison.compare import allowed_distance
from nndeploy.values.types import Value, dtype_name

Array = np.ndarray[Any, Any]

LEAST_SLICE = 16
"""Elements of a slice of which the root mean square says something."""

_COUNTED = ("int16", "int32", "int64", "uint16", "uint32", "uint64", "bool", "string")
"""Types of indices, lengths and texts: how far apart two of them are means nothing, whether they differ does."""


@dataclass(frozen=True, slots=True)
class Distance:
    """The figures; of what can only be equal or not, `off` alone, and the others are 0."""

    max_abs: float
    rms: float
    slice_rms: float
    off: float


def distance(got: Value, want: Value, tolerance: Tolerance) -> Distance | None:
    """Returns how far `got` is from `want`, None where that has no meaning: another type, shape, or kind of value.

    NaN and infinities that stand on one side only make every figure infinite.
    """
    if not isinstance(got, np.ndarray) or not isinstance(want, np.ndarray):
        return None
    if got.shape != want.shape or got.dtype != want.dtype:
        return None
    if want.size == 0:
        return Distance(0.0, 0.0, 0.0, 0.0)
    if dtype_name(want.dtype) in _COUNTED:
        return Distance(0.0, 0.0, 0.0, float(np.mean(got != want)))
    return _of_numbers(got, want, tolerance)


def is_within(found: Distance, limits: Limits) -> bool:
    """Returns whether every figure is within its limit."""
    return (
        found.max_abs <= limits.max_abs
        and found.rms <= limits.rms
        and found.slice_rms <= limits.slice_rms
        and found.off <= limits.off
    )


def exceeded(found: Distance, limits: Limits) -> str:
    """Says which figures are over their limits."""
    pairs = (
        ("max abs", found.max_abs, limits.max_abs),
        ("rms", found.rms, limits.rms),
        ("rms of a slice", found.slice_rms, limits.slice_rms),
        ("share off", found.off, limits.off),
    )
    over = [f"{name} {is_:.3g} instead of {most:.3g}" for name, is_, most in pairs if is_ > most]
    return f"{', '.join(over)} at most, as engines that are right differ"


def _of_numbers(got: Array, want: Array, tolerance: Tolerance) -> Distance:
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    with np.errstate(all="ignore"):
        finite = np.isfinite(got) & np.isfinite(want)
        same = finite | (np.isnan(got) & np.isnan(want)) | (got == want)
        if not same.all():
            return Distance(np.inf, np.inf, np.inf, 1.0)
        apart = np.where(finite, np.abs(got - want), 0.0)
        size = np.where(finite, np.abs(want), 0.0)
        square = apart * apart
        return Distance(
            max_abs=float(np.max(apart)),
            rms=float(np.sqrt(np.mean(square))),
            slice_rms=_of_slices(square),
            off=float(np.mean(apart > allowed_distance(size, tolerance))),
        )


def _of_slices(square: Array) -> float:
    """Returns the largest root of a mean of squares over the elements that share an index of an axis."""
    worst = float(np.mean(square))
    for axis, size in enumerate(square.shape):
        if size > 1 and square.size // size >= LEAST_SLICE:
            others = tuple(other for other in range(square.ndim) if other != axis)
            worst = max(worst, float(np.max(np.mean(square, axis=others))))
    return float(np.sqrt(worst))
