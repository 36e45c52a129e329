# SPDX-License-Identifier: Apache-2.0
"""class-probability: the probabilities of all classes -> that of one, wherever there are several of them."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError
from nndeploy.processors.arrays import floats_from_value, shape_text
from nndeploy.processors.parameters import Range


@dataclass(frozen=True)
class ClassProbability:
    """Gives the probability of the class with the number `index` along the last axis, or of any other (`others`)."""

    name: ClassVar[str] = "class-probability"
    takes: ClassVar[tuple[str, ...]] = ("probabilities",)
    gives: ClassVar[tuple[str, ...]] = ("probability",)

    index: Annotated[int, Range(0, 1 << 20)]
    others: bool = False

    def __call__(self, probabilities: object) -> npt.NDArray[np.float32]:
        """Returns float32 without the last axis."""
        array = floats_from_value(probabilities, "probabilities")
        if not array.ndim or self.index >= array.shape[-1]:
            raise InputError(f"probabilities {shape_text(array)} have no class {self.index}")
        found: npt.NDArray[np.float32] = array[..., self.index]
        return 1 - found if self.others else found
