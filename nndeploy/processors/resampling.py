# SPDX-License-Identifier: Apache-2.0
"""Images of another size, and the transforms that say where each point went.

Pillow resizes: where an image shrinks, each of its filters takes all pixels under it (OpenCV's take two a side), so
small things fade rather than flicker.

Law: a transform is made of the sizes that were really used, after rounding, so that boxes map back exactly.
"""

from typing import Literal, TypeAlias

import numpy as np

from nndeploy.files.image_files import require_pillow
from nndeploy.processors.arrays import Image, Transform

Filter: TypeAlias = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]

Size: TypeAlias = tuple[int, int]
"""Width, height."""


def resized(image: Image, size: Size, kind: Filter) -> Image:
    """Returns the image with `size`; the same one where it has that size already."""
    if (image.shape[1], image.shape[0]) == size:
        return image
    require_pillow()
    import PIL.Image

    picture = PIL.Image.fromarray(np.ascontiguousarray(image))
    return np.asarray(picture.resize(size, PIL.Image.Resampling[kind.upper()]))


def transform_of(image: Image, size: Size, offset: tuple[int, int] = (0, 0)) -> Transform:
    """Returns the transform of an image that was resized to `size` and then moved by `offset`."""
    height, width = image.shape[:2]
    return np.array([size[0] / width, size[1] / height, *offset, width, height], np.float64)
