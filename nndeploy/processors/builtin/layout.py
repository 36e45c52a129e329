# SPDX-License-Identifier: Apache-2.0
"""layout: (H, W, C) -> the order of axes and channels that a model wants, with a batch axis."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Array, shape_text
from nndeploy.processors.known_shapes import Known, sizes_of


@dataclass(frozen=True)
class Layout:
    """Puts channels first (`CHW`) or leaves them last (`HWC`), adds an axis in front.

    Channels come as they are (`RGB`), reversed (`BGR`), or as one, their brightness (`L`: 0.299 R + 0.587 G + 0.114 B).
    """

    name: ClassVar[str] = "layout"
    takes: ClassVar[tuple[str, ...]] = ("tensor",)
    gives: ClassVar[tuple[str, ...]] = ("tensor",)

    order: Literal["CHW", "HWC"] = "CHW"
    channels: Literal["RGB", "BGR", "L"] = "RGB"
    batch: bool = True

    def __call__(self, tensor: Array) -> Array:
        """Returns the tensor, in memory of its own where anything moved."""
        if not isinstance(tensor, np.ndarray) or tensor.ndim != 3:
            raise InputError(f"a tensor before layout is (H, W, C), this is {shape_text(tensor)}")
        if self.channels == "BGR":
            tensor = tensor[:, :, ::-1]
        elif self.channels == "L":
            tensor = _brightness(tensor)
        if self.order == "CHW":
            tensor = tensor.transpose(2, 0, 1)
        tensor = np.ascontiguousarray(tensor)
        return tensor[np.newaxis] if self.batch else tensor

    def given_shapes(self, tensor: Known) -> tuple[Known]:
        """Returns what is known of the tensor."""
        height, width, channels = sizes_of(tensor, 3)
        channels = 1 if self.channels == "L" else channels
        sizes = (channels, height, width) if self.order == "CHW" else (height, width, channels)
        return ((1, *sizes) if self.batch else sizes,)


def _brightness(tensor: Array) -> Array:
    if tensor.shape[2] != 3:
        raise InputError(f"brightness is made of (H, W, 3), this is {shape_text(tensor)}")
    weights = np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R BT.601, as Pillow's mode L
    grey: Array = np.asarray(tensor, np.float32) @ weights
    return grey[:, :, np.newaxis]
