# SPDX-License-Identifier: Apache-2.0
"""to-image: a model's output that is a picture -> the image, clipped to 0..255."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Image, floats_from_value, shape_text, without_batch
from nndeploy.processors.parameters import Range


@dataclass(frozen=True)
class ToImage:
    """Gives round(value * `multiply` + `add`), clipped to 0..255, as RGB; one channel becomes grey."""

    name: ClassVar[str] = "to-image"
    takes: ClassVar[tuple[str, ...]] = ("tensor",)
    gives: ClassVar[tuple[str, ...]] = ("image",)

    order: Literal["CHW", "HWC"] = "CHW"
    channels: Literal["RGB", "BGR"] = "RGB"
    multiply: Annotated[float, Range(-1e6, 1e6)] = 255.0
    add: Annotated[float, Range(-1e6, 1e6)] = 0.0

    def __call__(self, tensor: object) -> Image:
        """Returns the image; NaN becomes 0."""
        pixels = without_batch(floats_from_value(tensor, "the tensor"), 3)
        if pixels.ndim == 2:
            pixels = pixels[np.newaxis] if self.order == "CHW" else pixels[:, :, np.newaxis]
        if self.order == "CHW" and pixels.ndim == 3:
            pixels = pixels.transpose(1, 2, 0)
        if pixels.ndim != 3 or pixels.shape[2] not in (1, 3) or not pixels.size:
            raise InputError(
                f"a picture has one or three channels in the order {self.order}, this is {shape_text(tensor)}"
            )
        if self.channels == "BGR":
            pixels = pixels[:, :, ::-1]
        values = np.nan_to_num(pixels * np.float32(self.multiply) + np.float32(self.add), posinf=255, neginf=0)
        whole = np.clip(np.rint(values), 0, 255).astype(np.uint8)
        return np.ascontiguousarray(np.broadcast_to(whole, (*whole.shape[:2], 3)))
