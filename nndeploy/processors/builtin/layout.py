# SPDX-License-Identifier: Apache-2.0
"""layout: (H, W, C) -> the order of axes and channels that a model wants, with a batch axis."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Array, shape_text


@dataclass(frozen=True)
class Layout:
    """Puts channels first (`CHW`) or leaves them last (`HWC`), reverses them for `BGR`, adds an axis in front."""

    name: ClassVar[str] = "layout"
    takes: ClassVar[tuple[str, ...]] = ("tensor",)
    gives: ClassVar[tuple[str, ...]] = ("tensor",)

    order: Literal["CHW", "HWC"] = "CHW"
    channels: Literal["RGB", "BGR"] = "RGB"
    batch: bool = True

    def __call__(self, tensor: Array) -> Array:
        """Returns the tensor, in memory of its own where anything moved."""
        if not isinstance(tensor, np.ndarray) or tensor.ndim != 3:
            raise InputError(f"a tensor before layout is (H, W, C), this is {shape_text(tensor)}")
        if self.channels == "BGR":
            tensor = tensor[:, :, ::-1]
        if self.order == "CHW":
            tensor = tensor.transpose(2, 0, 1)
        tensor = np.ascontiguousarray(tensor)
        return tensor[np.newaxis] if self.batch else tensor
