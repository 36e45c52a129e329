# SPDX-License-Identifier: Apache-2.0
"""crop-quads: an image and quadrilaterals -> each of them as an upright rectangle, for lines of text."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.files.image_files import require_pillow
from nndeploy.processors.arrays import Image, Quads, image_from_value, quads_from_value
from nndeploy.processors.known_shapes import IMAGE, EachOf, Known
from nndeploy.processors.parameters import Range


@dataclass(frozen=True)
class CropQuads:
    """Straightens each quadrilateral into a rectangle as wide and high as its longer opposite sides, in their order.

    A crop that is `upright-above` times as high as wide is turned a quarter to the left, so that text that runs
    downwards lies. Pixels are interpolated; what lies outside of the image is black.
    """

    name: ClassVar[str] = "crop-quads"
    takes: ClassVar[tuple[str, ...]] = ("image", "quads")
    gives: ClassVar[tuple[str, ...]] = ("crops",)

    upright_above: Annotated[float, Range(1, 1e6)] = 1.5

    def __call__(self, image: Image, quads: Quads) -> list[Image]:
        """Returns the crops."""
        image = image_from_value(image)
        require_pillow()
        import PIL.Image

        picture = PIL.Image.fromarray(np.ascontiguousarray(image))
        diagonal = math.ceil(math.hypot(*image.shape[:2]))  # of the image: nothing in it is longer
        crops = []
        for quad in quads_from_value(quads).astype(np.float64):
            size = size_of_quad(quad, diagonal)
            coefficients = perspective(size, quad)
            if coefficients is None:
                crops.append(np.zeros((size[1], size[0], 3), np.uint8))
                continue
            how = PIL.Image.Transform.PERSPECTIVE
            straight = picture.transform(size, how, coefficients, PIL.Image.Resampling.BILINEAR)
            pixels = np.asarray(straight)
            crops.append(np.rot90(pixels) if size[1] >= self.upright_above * size[0] else pixels)
        return crops

    def given_shapes(self, image: Known, quads: Known) -> tuple[Known]:
        """Returns what is known of the crops."""
        del image, quads
        return (EachOf(IMAGE),)


def size_of_quad(quad: npt.NDArray[np.float64], most: int) -> tuple[int, int]:
    """Returns width and height of the rectangle that a quadrilateral becomes, each from one pixel to `most`."""
    top_left, top_right, bottom_right, bottom_left = np.nan_to_num(quad, posinf=0, neginf=0)
    width = max(np.linalg.norm(top_right - top_left), np.linalg.norm(bottom_right - bottom_left))
    height = max(np.linalg.norm(bottom_left - top_left), np.linalg.norm(bottom_right - top_right))
    return min(max(round(float(width)), 1), most), min(max(round(float(height)), 1), most)


def perspective(size: tuple[int, int], quad: npt.NDArray[np.float64]) -> tuple[float, ...] | None:
    """Returns (a..h) of x' = (a x + b y + c) / (g x + h y + 1), y' likewise, that maps a rectangle onto `quad`.

    None where there is no such map: corners on one line, or not finite.
    """
    width, height = size
    rows, right = [], []
    for (x, y), (u, v) in zip(((0, 0), (width, 0), (width, height), (0, height)), quad.tolist(), strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        right += [u, v]
    try:
        found = np.linalg.solve(np.array(rows, np.float64), np.array(right, np.float64))
    except np.linalg.LinAlgError:
        return None
    return tuple(found.tolist()) if np.isfinite(found).all() else None
