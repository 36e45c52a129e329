# SPDX-License-Identifier: Apache-2.0
"""crop: an image and boxes -> the parts of the image inside them."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from nndeploy.processors.arrays import Boxes, Image, image_from_value, rows_from_value
from nndeploy.processors.known_shapes import IMAGE, EachOf, Known
from nndeploy.processors.parameters import Range


@dataclass(frozen=True)
class Crop:
    """Cuts out the pixels that each box touches: one crop a box, in their order, each at least one pixel.

    `margin` widens a box on each side by that part of its width and height; `square` makes its shorter side as long
    as the longer one. What lies outside of the image is left off.
    """

    name: ClassVar[str] = "crop"
    takes: ClassVar[tuple[str, ...]] = ("image", "boxes")
    gives: ClassVar[tuple[str, ...]] = ("crops",)

    margin: Annotated[float, Range(-0.49, 10)] = 0.0
    square: bool = False

    def __call__(self, image: Image, boxes: Boxes) -> list[Image]:
        """Returns the crops; they are views of the image."""
        image = image_from_value(image)
        corners = self._widened(rows_from_value(boxes, 4, "boxes").astype(np.float64))
        height, width = image.shape[:2]
        low = np.clip(np.floor(corners[:, :2]), 0, (width - 1, height - 1)).astype(int)
        high = np.clip(np.ceil(corners[:, 2:]), low + 1, (width, height)).astype(int)
        return [image[y0:y1, x0:x1] for (x0, y0), (x1, y1) in zip(low.tolist(), high.tolist(), strict=True)]

    def given_shapes(self, image: Known, boxes: Known) -> tuple[Known]:
        """Returns what is known of the crops."""
        del image, boxes
        return (EachOf(IMAGE),)

    def _widened(
        self, boxes: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        boxes = np.nan_to_num(boxes, posinf=1e9, neginf=-1e9)
        centres = (boxes[:, :2] + boxes[:, 2:]) / 2
        sizes = np.maximum(boxes[:, 2:] - boxes[:, :2], 0)
        if self.square:
            sizes = np.repeat(sizes.max(axis=1, keepdims=True), 2, axis=1) if len(sizes) else sizes
        if not self.square and not self.margin:
            return boxes
        half = sizes * (0.5 + self.margin)
        return np.concatenate([centres - half, centres + half], axis=1)
