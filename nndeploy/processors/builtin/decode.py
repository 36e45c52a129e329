# SPDX-License-Identifier: Apache-2.0
"""decode: the bytes of an image file -> the image, upright, RGB."""

from dataclasses import dataclass
from typing import ClassVar

from nndeploy.errors import InputError
from nndeploy.files.image_files import pixels_from_bytes
from nndeploy.processors.arrays import Image
from nndeploy.processors.known_shapes import IMAGE, Known


@dataclass(frozen=True)
class Decode:
    """Decodes a PNG, JPEG, GIF, BMP, WebP or TIFF file, turns the image as its EXIF data say, drops transparency."""

    name: ClassVar[str] = "decode"
    takes: ClassVar[tuple[str, ...]] = ("data",)
    gives: ClassVar[tuple[str, ...]] = ("image",)

    def __call__(self, data: bytes) -> Image:
        """Returns the image.

        Raises:
            InputError: the bytes are of no such format, damaged, too large, or of a kind that is not taken.
        """
        if not isinstance(data, bytes):
            raise InputError(f"data must be bytes, this is a {type(data).__name__}")
        return pixels_from_bytes(data)

    def given_shapes(self, data: Known) -> tuple[Known]:
        """Returns what is known of the image."""
        del data
        return (IMAGE,)
