# SPDX-License-Identifier: Apache-2.0
"""stack-frames: frames of features -> longer ones, each of several neighbours (low frame rate, LFR)."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError
from nndeploy.processors.arrays import floats_from_value, shape_text, without_batch
from nndeploy.processors.known_shapes import Known, sizes_of
from nndeploy.processors.parameters import Range

MAX_NUMBERS = 1 << 30


@dataclass(frozen=True)
class StackFrames:
    """Gives frames of `size` neighbours in a row, each `hop` frames after the one before.

    (N, C) becomes (N / `hop` rounded up, `size` x C). The first one is around the first frame, with (`size` - 1) / 2
    before it; frames that lie before the first or after the last are copies of these (`edges = "copy"`), or those
    that would need them are left off (`"drop"`). `batch` adds an axis in front.
    """

    name: ClassVar[str] = "stack-frames"
    takes: ClassVar[tuple[str, ...]] = ("frames",)
    gives: ClassVar[tuple[str, ...]] = ("frames",)

    size: Annotated[int, Range(1, 1024)]
    hop: Annotated[int, Range(1, 1024)] = 1
    edges: Literal["copy", "drop"] = "copy"
    batch: bool = False

    def __call__(self, frames: object) -> npt.NDArray[np.float32]:
        """Returns the longer frames."""
        values = without_batch(floats_from_value(frames, "frames"), 2)
        if values.ndim != 2:
            raise InputError(f"frames must be (N, C), are {shape_text(values)}")
        places = self._places(len(values))
        if places.size * values.shape[1] > MAX_NUMBERS:
            raise InputError(f"{len(places)} frames of {self.size} x {values.shape[1]} numbers are too many")
        stacked = values[places].reshape(len(places), self.size * values.shape[1])
        return stacked[np.newaxis] if self.batch else stacked

    def given_shapes(self, frames: Known) -> tuple[Known]:
        """Returns what is known of the longer frames."""
        columns = sizes_of(frames, 2)[1]
        sizes = (None, columns and self.size * columns)
        return ((1, *sizes) if self.batch else sizes,)

    def _places(self, count: int) -> npt.NDArray[np.int64]:
        """Returns which frames stand in each of the longer ones, (N, size)."""
        if self.edges == "drop":
            first = np.arange(0, count - self.size + 1, self.hop)
        else:
            first = np.arange(0, count, self.hop) - (self.size - 1) // 2
        places: npt.NDArray[np.int64] = np.clip(first[:, np.newaxis] + np.arange(self.size), 0, max(count - 1, 0))
        return places
