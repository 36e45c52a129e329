# SPDX-License-Identifier: Apache-2.0
"""Samples in two parts: those that ranges are taken from, and those that the accuracy is measured on.

One of each four is held out, at places that are drawn: those of a folder often take turns, such as cuts of a few
pictures, and every fourth would be of the same. Law: no sample is in both parts, unless there is one alone.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nndeploy.values.types import Value

HELD_OUT_STEP, SEED = 4, 0
FEW = 8
"""Samples below which ranges are guesses."""
MAX_HELD_OUT = 32
"""Each is run for every trial; more change the figures little."""

Sample = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class SplitSamples:
    """The two parts; with one sample alone they are the same."""

    calibration: tuple[Sample, ...]
    held_out: tuple[Sample, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of too few samples."""
        if len(self.calibration) >= FEW:
            return ()
        count = len(self.calibration)
        return (f"ranges come from {count} sample{'s' * (count != 1)}: give some twenty that are like what will come",)


def split_samples(samples: Sequence[Sample]) -> SplitSamples:
    """Returns the two parts of one sample or more, in order; the same of as many."""
    if len(samples) == 1:
        return SplitSamples((samples[0],), (samples[0],))
    draw = random.Random(SEED)  # noqa: S311 - the same places for all
    step = min(HELD_OUT_STEP, len(samples))
    places = {first + draw.randrange(step) for first in range(0, len(samples) - step + 1, step)}
    held_out = [sample for i, sample in enumerate(samples) if i in places]
    calibration = [sample for i, sample in enumerate(samples) if i not in places]
    return SplitSamples(tuple(calibration), tuple(held_out[:MAX_HELD_OUT]))
