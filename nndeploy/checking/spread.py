# SPDX-License-Identifier: Apache-2.0
"""What engines that are right give for one sample -> how far any right engine may be from the reference.

The limits are those distances, times a factor: another right engine is drawn from the same lot. Law: whatever was
counted among the right engines is within the limits.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nndeploy.bundle.manifest import Limits, Tolerance
from nndeploy.comparison.compare import tolerance_for
from nndeploy.comparison.distance import Distance, distance
from nndeploy.comparison.judge import MIN_COSINE, row_groups, share_without_partner
from nndeploy.values.types import Value, ValueType, dtype_name

FACTOR = 4.0
"""Factor that root mean squares and shares may exceed the spread by: they vary little from engine to engine.

OpenVINO 2026.4, which fuses what stands between two quantisations into one, is 2.0 to 3.2 times as far off as the
farthest of the others (mobilenet_v2, resnet18, vit and yolov8n quantised statically, random weights, 2026-11-22).
"""
FACTOR_OF_LARGEST = 5.0
"""Factor that the largest difference may exceed the spread by: it is that of one element."""

FACTOR_OF_THE_FAR = 1.5
TURNED = float(np.sqrt(1 - MIN_COSINE**2))
"""A result that is so far from its reference, relative, may point elsewhere (`MIN_COSINE`)."""

STEP = 1 / 255
"""Quantisation step of a quantised float output, relative to its largest element."""
LARGEST_STEPS, RMS_STEPS = 2.0, 0.5
"""A quantised network is always granted two steps of single elements, and half a step of all together."""
INTEGER_STEPS, INTEGER_RMS = 1.0, 0.25
"""An output of 8-bit integers: one step, of one element in sixteen."""
LEAST_OFF = 1 / 16
UNMATCHED = 0.02
ROWS_OF_ONE = 10
"""Least number of results of which one may be without a partner: the last before the cut."""

_STEPPED = ("int8", "uint8", "int4", "uint4", "int2", "uint2")
Outputs = Mapping[str, Value]


def limits_of(
    want: Outputs,
    right: Sequence[Outputs],
    types: Mapping[str, ValueType],
    tolerances: Mapping[str, Tolerance],
    axes: Mapping[str, int],
    quantised: bool,
) -> dict[str, Limits]:
    """Returns the limits of each output on which the right engines `right` differ from the reference `want`.

    `axes` are those along which outputs list results. Outputs that have no limits are left to their tolerance.
    """
    found = {}
    for name, kind in types.items():
        value = want.get(name)
        if name not in axes and isinstance(value, np.ndarray):
            tolerance = tolerance_for(kind, tolerances)
            apart = [d for outputs in right if (d := distance(outputs.get(name), value, tolerance)) is not None]
            limits = _limits(value, [d for d in apart if np.isfinite(d.rms)], quantised)
            if limits is not None:
                found[name] = limits
    for group in row_groups(want, axes):
        inside = {name: axes[name] for name in group}
        shares = [share_without_partner(outputs, want, inside) for outputs in right]
        most = want[group[0]].shape[axes[group[0]]]
        unmatched = max([FACTOR * share for share in shares] + [UNMATCHED, 1 / most if most >= ROWS_OF_ONE else 0.0])
        found.update({name: Limits(0.0, 0.0, 0.0, 0.0, axis, min(1.0, unmatched)) for name, axis in inside.items()})
    return found


def _limits(want: "np.ndarray[Any, Any]", apart: Sequence[Distance], quantised: bool) -> Limits | None:
    least = _least(want, quantised)
    if not apart and least == Distance(0.0, 0.0, 0.0, 0.0):
        return None
    most = [Distance(0.0, 0.0, 0.0, 0.0), *apart]
    off = max(FACTOR * max(d.off for d in most), least.off)
    rms = _capped(max(d.rms for d in most), 0.0 if quantised else _rms(want))
    return Limits(
        max_abs=_rounded(max(FACTOR_OF_LARGEST * max(d.max_abs for d in most), least.max_abs)),
        rms=_rounded(max(rms, least.rms)),
        slice_rms=_rounded(max(FACTOR * max(d.slice_rms for d in most), least.slice_rms)),
        off=min(1.0, _rounded(max(off, _at_least_one_off(want, apart)))),
    )


def _capped(rms: float, size: float) -> float:
    """Returns the limit of a root mean square, which for a `size` that is known lets no result point elsewhere.

    Unless the right engines themselves are so far apart: then nothing tighter can be asked for.
    """
    limit = FACTOR * rms
    return min(limit, max(FACTOR_OF_THE_FAR * rms, TURNED * size)) if size else limit


def _rms(want: "np.ndarray[Any, Any]") -> float:
    """Returns the root mean square of the finite numbers, 0 for what is no float."""
    if not dtype_name(want.dtype).startswith(("float", "bfloat")):
        return 0.0
    wide = want.astype(np.float64)
    return float(np.sqrt(np.mean(np.where(np.isfinite(wide), wide, 0.0) ** 2))) if want.size else 0.0


def _at_least_one_off(want: "np.ndarray[Any, Any]", apart: Sequence[Distance]) -> float:
    """Returns the least share of numbers that may be off; of indices and texts none may where all engines agree."""
    is_number = dtype_name(want.dtype).startswith(("float", "bfloat", "complex"))
    return max(LEAST_OFF, 1 / want.size) if is_number and any(d.rms > 0 for d in apart) else 0.0


def _least(want: "np.ndarray[Any, Any]", quantised: bool) -> Distance:
    """Returns the distance that is always granted."""
    name = dtype_name(want.dtype)
    if name in _STEPPED:
        return Distance(INTEGER_STEPS, INTEGER_RMS, 2 * INTEGER_RMS, LEAST_OFF)
    if not quantised or not name.startswith(("float", "bfloat")) or not want.size:
        return Distance(0.0, 0.0, 0.0, 0.0)
    finite = np.abs(np.where(np.isfinite(want.astype(np.float64)), want.astype(np.float64), 0.0))
    step = STEP * float(np.max(finite))
    return Distance(LARGEST_STEPS * step, RMS_STEPS * step, 2 * RMS_STEPS * step, 1.0)


def _rounded(figure: float) -> float:
    """Returns a figure to three digits, never less than it was."""
    if figure == 0 or not np.isfinite(figure):
        return figure
    return float(f"{figure * 1.005:.3g}")
