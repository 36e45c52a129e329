# SPDX-License-Identifier: Apache-2.0
"""resample: samples -> the rate that a model was trained on.

Each output sample is a sum of the input samples around its time, weighted by a windowed sinc: a low-pass at half of
the lower rate (a little below it), so that nothing folds back.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError
from nndeploy.processors.arrays import MAX_RATE_HZ, Samples, rate_from_value, vector_from_value
from nndeploy.processors.known_shapes import Known
from nndeploy.processors.parameters import Range

ZERO_CROSSINGS = 32
"""How many zero crossings of the sinc are used on each side of its middle."""
CUTOFF = 0.945
"""Cutoff frequency, as a share of half of the lower rate."""
KAISER_BETA = 8.6
"""80 dB of attenuation in the stop band (Kaiser's formula: 0.1102 (A - 8.7))."""
MAX_PHASES = 1 << 14


@dataclass(frozen=True)
class Resample:
    """Changes the rate of samples to `rate`; the sound keeps its length, rounded up to a whole sample."""

    name: ClassVar[str] = "resample"
    takes: ClassVar[tuple[str, ...]] = ("samples", "rate")
    gives: ClassVar[tuple[str, ...]] = ("samples", "rate")

    rate: Annotated[int, Range(100, MAX_RATE_HZ)]

    def __call__(self, samples: object, rate: int) -> tuple[Samples, int]:
        """Returns the samples and their new rate."""
        values = vector_from_value(samples, "samples")
        source = rate_from_value(rate)
        if source == self.rate:
            return values, source
        common = math.gcd(source, self.rate)
        up, down = self.rate // common, source // common
        if up > MAX_PHASES:
            raise InputError(f"{source} Hz cannot become {self.rate} Hz: the ratio {up}/{down} has too many phases")
        return resampled(values, up, down), self.rate

    def given_shapes(self, samples: Known, rate: Known) -> tuple[Known, ...]:
        """Returns what is known of the samples, and their new rate."""
        del samples, rate
        return (None,), self.rate


def resampled(values: Samples, up: int, down: int) -> Samples:
    """Returns `values` at up/down times their rate; output i is at the time of input i * down / up."""
    count = -(-len(values) * up // down)
    filters = _filters(up, down)
    reach = filters.shape[1] // 2
    padded = np.zeros(len(values) + 2 * reach + 1, np.float32)
    padded[reach : reach + len(values)] = values
    around = np.lib.stride_tricks.sliding_window_view(padded, filters.shape[1])
    found = np.empty(count, np.float32)
    for phase in range(min(up, count)):  # outputs phase, phase + up, ... share a filter
        first = phase * down // up
        places = around[first::down][: len(range(phase, count, up))]
        found[phase::up] = places @ filters[phase * down % up]
    return found


@lru_cache(maxsize=16)
def _filters(up: int, down: int) -> npt.NDArray[np.float32]:
    """Returns a filter for each place between two input samples, in steps of 1 / up, as (up, 2 * reach + 1)."""
    cutoff = CUTOFF * min(1.0, up / down)  # in halves of the input's rate
    reach = math.ceil(ZERO_CROSSINGS / cutoff) + 1
    offsets = np.arange(-reach, reach + 1)[np.newaxis] - np.arange(up)[:, np.newaxis] / up
    inside = np.clip(1 - (offsets * cutoff / ZERO_CROSSINGS) ** 2, 0, None)
    taps = np.sinc(offsets * cutoff) * np.i0(KAISER_BETA * np.sqrt(inside)) * (inside > 0)
    return np.asarray(taps / taps.sum(axis=1, keepdims=True), np.float32)
