# SPDX-License-Identifier: Apache-2.0
"""windows: samples -> pieces of equal length, for models that hear a little at a time."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Samples, vector_from_value
from nndeploy.processors.known_shapes import EachOf, Known
from nndeploy.processors.parameters import Count, Range

MAX_WINDOWS = 1 << 22


@dataclass(frozen=True)
class Windows:
    """Gives windows of `size` samples, each `hop` (`size` if it is not given) after the one before.

    `context` puts that many samples from before a window in front of it, zeros at first. The rest that fills no
    window is filled up with zeros (`rest = "pad"`) or left off (`"drop"`). `batch` makes each window (1, size).
    """

    name: ClassVar[str] = "windows"
    takes: ClassVar[tuple[str, ...]] = ("samples",)
    gives: ClassVar[tuple[str, ...]] = ("windows",)

    size: Count
    hop: Count | None = None
    context: Annotated[int, Range(0, 1 << 31)] = 0
    rest: Literal["pad", "drop"] = "pad"
    batch: bool = False

    def __call__(self, samples: object) -> list[Samples]:
        """Returns the windows."""
        values = vector_from_value(samples, "samples")
        hop = self.hop or self.size
        count = self._count(len(values), hop)
        if count > MAX_WINDOWS:
            raise InputError(f"{len(values)} samples make {count} windows, more than {MAX_WINDOWS}")
        length = self.context + max(count - 1, 0) * hop + self.size
        padded = np.zeros(max(length, self.context + len(values)), np.float32)
        padded[self.context : self.context + len(values)] = values
        pieces = (padded[i * hop : i * hop + self.context + self.size] for i in range(count))
        return [piece[np.newaxis] if self.batch else piece for piece in pieces]

    def given_shapes(self, samples: Known) -> tuple[Known]:
        """Returns what is known of the windows."""
        del samples
        length = self.context + self.size
        return (EachOf((1, length) if self.batch else (length,)),)

    def _count(self, num_samples: int, hop: int) -> int:
        if not num_samples:
            return 0
        beyond = max(num_samples - self.size, 0)
        if self.rest == "pad":
            return -(-beyond // hop) + 1
        return beyond // hop + 1 if num_samples >= self.size else 0
