# SPDX-License-Identifier: Apache-2.0
"""How far the outputs of a quantised model are from those of the float32 model, over samples that were held out.

The figure that decides is the ratio of signal to quantisation noise (SQNR), 10 log10(sum w^2 / sum (w - g)^2) over all
elements of an output on all samples, in dB. Of integers, booleans and texts the share d of the elements that differ
counts like an error of that size, -20 log10(d). Law: equal outputs have `MAX_DB`.
"""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nndeploy.values.types import Value

MAX_DB = 200.0
"""Ratio that stands for no noise at all; no other is larger."""
MIN_DB = -200.0
"""Ratio that stands for outputs that are not finite or of another shape; no other is smaller."""

Outputs = Sequence[Mapping[str, Value]]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The figures of one output: signal to noise in dB, largest and mean absolute difference."""

    output: str
    sqnr_db: float
    max_abs: float
    mean_abs: float


def worst_accuracy(got: Outputs, want: Outputs, names: Iterable[str]) -> Accuracy:
    """Returns the figures of the least accurate of the outputs `names`, over all samples."""
    found = [_accuracy(name, [g[name] for g in got], [w[name] for w in want]) for name in names]
    return min(found, key=lambda each: each.sqnr_db)


def _accuracy(name: str, got: Sequence[Value], want: Sequence[Value]) -> Accuracy:
    pairs = [(np.asarray(g), np.asarray(w)) for g, w in zip(got, want, strict=True)]
    if any(g.shape != w.shape or g.dtype != w.dtype for g, w in pairs):
        return Accuracy(name, MIN_DB, 0.0, 0.0)
    g, w = (np.concatenate([pair[i].ravel() for pair in pairs]) for i in (0, 1))
    if not w.size:
        return Accuracy(name, MAX_DB, 0.0, 0.0)
    if w.dtype.kind not in "fV":
        share = float(np.mean(g != w))
        return Accuracy(name, _decibels(1.0, share * share), 0.0, 0.0)
    return _of_floats(name, g.astype(np.float64), w.astype(np.float64))


def _of_floats(name: str, got: "np.ndarray[Any, Any]", want: "np.ndarray[Any, Any]") -> Accuracy:
    """Returns the figures over the places where the reference is finite; all else there is infinite noise."""
    finite = np.isfinite(want)
    got, want = got[finite], want[finite]
    if not np.isfinite(got).all():
        return Accuracy(name, MIN_DB, sys.float_info.max, sys.float_info.max)
    apart = np.abs(got - want)
    sqnr_db = _decibels(float(np.sum(want * want)), float(np.sum(apart * apart)))
    return Accuracy(name, sqnr_db, float(apart.max(initial=0.0)), float(apart.mean()) if apart.size else 0.0)


def _decibels(signal: float, noise: float) -> float:
    if noise == 0:
        return MAX_DB
    ratio = signal / noise
    return min(MAX_DB, max(MIN_DB, 10 * math.log10(ratio))) if ratio > 0 else MIN_DB  # which NaN is not
