# SPDX-License-Identifier: Apache-2.0
"""Whether what an engine gave is right: element types and sizes exactly, numbers as near as the type allows.

Integers, booleans and text must be equal. The sign of a zero counts where the caller says so.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from nndeploy.checking.tolerances import OperatorClass, tolerance_for
from nndeploy.values.types import DTYPES


def difference(
    wanted: Mapping[str, Any], got: Mapping[str, Any], *, signed_zeros: bool = False, steps: float = 1.0
) -> str:
    """Returns in one line how outputs differ, "" where they do not."""
    for name, want in wanted.items():
        if name not in got:
            return f"{name}: absent"
        if found := _value_difference(want, got[name], signed_zeros, steps):
            return f"{name}: {found}"
    return ""


def _value_difference(want: Any, got: Any, signed_zeros: bool, steps: float) -> str:
    if want is None or got is None:
        return "" if want is None and got is None else f"{got!r} instead of {want!r}"
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return f"a sequence of {len(want)} is wanted, got {got!r:.80}"
        parts = (_value_difference(w, g, signed_zeros, steps) for w, g in zip(want, got, strict=True))
        return next((part for part in parts if part), "")
    if isinstance(want, dict):
        if not isinstance(got, dict) or list(want) != list(got):
            return f"{got!r:.80} instead of {want!r:.80}"
        pair = [np.array(list(value.values())) for value in (want, got)]
        if pair[0].dtype.kind == "f":  # how wide the numbers of a map are, the interface leaves open
            pair = [value.astype(np.float32) for value in pair]
        return _array_difference(*pair, False, steps)
    return _array_difference(np.asarray(want), np.asarray(got), signed_zeros, steps)


def _array_difference(want: Any, got: Any, signed_zeros: bool, steps: float) -> str:
    if want.shape != got.shape:
        return f"shape {got.shape} instead of {want.shape}"
    if want.dtype != got.dtype:
        return f"{got.dtype} instead of {want.dtype}"
    wrong = ~_alike(want, got, steps)
    if signed_zeros:
        zeros = (want == 0) & (got == 0)
        wrong |= zeros & (np.signbit(want) != np.signbit(got))
    if not wrong.any():
        return ""
    return f"{wrong.sum()}/{want.size} differ: got {_few(got[wrong])} want {_few(want[wrong])}"


def _alike(want: Any, got: Any, steps: float) -> Any:
    if want.dtype.kind in "biuO" or want.dtype.name not in DTYPES:
        return want == got
    tolerance = tolerance_for(want.dtype.name, OperatorClass.FUNCTIONS)
    w, g = want.astype(np.float64), got.astype(np.float64)
    size = np.max(np.abs(w), initial=0, where=np.isfinite(w))
    near = tolerance.atol * max(1.0, size) + tolerance.rtol * np.abs(w)
    with np.errstate(invalid="ignore"):
        return (np.isnan(w) & np.isnan(g)) | (w == g) | (np.isfinite(w) & (np.abs(w - g) <= steps * near))


def _few(values: Any) -> str:
    flat = values.ravel()[:4]
    return str(flat.tolist() if flat.dtype.kind != "V" else flat.astype(np.float64).tolist())
