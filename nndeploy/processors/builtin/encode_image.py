# SPDX-License-Identifier: Apache-2.0
"""encode-image: an image -> the bytes of a PNG or JPEG file, in a worker rather than in the sink."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from nndeploy.files.image_files import ImageFormat, bytes_from_pixels
from nndeploy.processors.arrays import Image, image_from_value
from nndeploy.processors.parameters import Range


@dataclass(frozen=True)
class EncodeImage:
    """Encodes an image as the bytes of a PNG or JPEG file; `quality` is a JPEG's."""

    name: ClassVar[str] = "encode-image"
    takes: ClassVar[tuple[str, ...]] = ("image",)
    gives: ClassVar[tuple[str, ...]] = ("data",)

    format: ImageFormat = "png"
    quality: Annotated[int, Range(1, 95)] = 90

    def __call__(self, image: Image) -> bytes:
        """Returns the bytes."""
        return bytes_from_pixels(image_from_value(image), self.format, self.quality)
