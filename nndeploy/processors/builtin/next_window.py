# SPDX-License-Identifier: Apache-2.0
"""next-window: features of a whole sound, and how much of it was heard -> the window that is heard next."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError
from nndeploy.processors.arrays import floats_from_value, shape_text
from nndeploy.processors.known_shapes import Known, sizes_of
from nndeploy.processors.parameters import Count

HEARD = "heard"
"""The field that says how many frames were heard."""


@dataclass(frozen=True)
class NextWindow:
    """Gives the next `frames` of features (1, bins, N), with zeros behind the last; `heard` were heard, 0 at first."""

    name: ClassVar[str] = "next-window"
    takes: ClassVar[tuple[str, ...]] = ("features",)
    may_take: ClassVar[tuple[str, ...]] = (HEARD,)
    gives: ClassVar[tuple[str, ...]] = ("input_features",)

    frames: Count = 3000

    def __call__(self, features: object, *, heard: int = 0) -> npt.NDArray[np.float32]:
        """Returns the window, (1, bins, frames)."""
        whole = floats_from_value(features, "features")
        if whole.ndim != 3 or whole.shape[0] != 1 or not 0 <= heard <= whole.shape[2]:
            raise InputError(f"features must be (1, bins, frames), {heard} of them heard, are {shape_text(features)}")
        window = whole[:, :, heard : heard + self.frames]
        return np.pad(window, ((0, 0), (0, 0), (0, self.frames - window.shape[2])))

    def given_shapes(self, features: Known) -> tuple[Known]:
        """Returns what is known of the window."""
        return ((1, sizes_of(features, 3)[1], self.frames),)
