# SPDX-License-Identifier: Apache-2.0
"""Images of another size, and the transforms that say where each point went.

Pillow resizes: where an image shrinks, each of its filters takes all pixels under it, so small things fade rather than
flicker. Without antialiasing only the two pixels nearest to each middle are taken along each axis, as OpenCV does it,
with which many models were trained.

Law: a transform is made of the sizes that were really used, after rounding, so that boxes map back exactly.
"""

from typing import Literal, TypeAlias

import numpy as np

from nndeploy.errors import UsageError
from nndeploy.files.image_files import require_pillow
from nndeploy.processors.arrays import Image, Transform
from nndeploy.processors.bilinear_bytes import resized_bytes

Filter: TypeAlias = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]

Size: TypeAlias = tuple[int, int]
"""Width, height."""


def check_filter(kind: Filter, *, antialias: bool) -> None:
    """Checks that there is this filter without antialiasing, where that is asked for.

    Raises:
        UsageError: there is none.
    """
    if not antialias and kind != "bilinear":
        raise UsageError(f'antialias = false goes with filter = "bilinear", not "{kind}"')


def resized(image: Image, size: Size, kind: Filter, *, antialias: bool = True) -> Image:
    """Returns the image with `size`; the same one where it has that size already."""
    height, width = image.shape[:2]
    if (width, height) == size:
        return image
    if not antialias:
        return resized_bytes(image, *size)
    require_pillow()
    import PIL.Image

    picture = PIL.Image.fromarray(np.ascontiguousarray(image))
    return np.asarray(picture.resize(size, PIL.Image.Resampling[kind.upper()]))


def transform_of(image: Image, size: Size, offset: tuple[int, int] = (0, 0)) -> Transform:
    """Returns the transform of an image that was resized to `size` and then moved by `offset`."""
    height, width = image.shape[:2]
    return np.array([size[0] / width, size[1] / height, *offset, width, height], np.float64)
