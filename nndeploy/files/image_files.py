# SPDX-License-Identifier: Apache-2.0
"""Encoded images: bytes of an image file become pixels, pixels become the bytes of a PNG or JPEG.

Images may have been made by anybody: only formats that start no program are decoded, their size is capped before they
are, and what cannot be converted without loss of meaning (16 bits, CMYK) is refused. Of several pictures in a file the
first one is taken. Needs Pillow, the extra `vision`, which lets go of the interpreter while it decodes, resizes and
encodes, so that threads do it at once.

Law: an image is upright, as its EXIF data say, whoever decodes it for a pipeline.
"""

import io
import math
import warnings
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError, UnavailableError
from nndeploy.version import install_command

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 1 << 26
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF")
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff")
HEADS = {
    b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"GIF8": ".gif", b"BM": ".bmp", b"RIFF": ".webp",
    b"II*\0": ".tif", b"MM\0*": ".tif",
}  # fmt: skip
"""How files of each format begin, and one of its suffixes."""
TILE_TAGS = (322, 323)
"""Width and height of the tiles of a TIFF, for which memory is taken too."""
MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA")

ImageFormat = Literal["png", "jpeg"]
Pixels: TypeAlias = npt.NDArray[np.uint8]
"""uint8, (height, width, 3), RGB; (height, width) where they are grey."""


def require_pillow() -> None:
    """Checks that images can be decoded here.

    Raises:
        UnavailableError: Pillow is not installed.
    """
    try:
        import PIL.Image  # noqa: F401
    except ImportError as err:
        hint = install_command("vision")
        raise UnavailableError("images need the package pillow, which is not installed", hint=hint) from err


def decoded(data: bytes, *, upright: bool = True) -> "Image":
    """Returns the decoded image, turned upright where its EXIF data say how, or as it is stored.

    Raises:
        InputError: the bytes are of no such format, are damaged, too large, or of a kind that is not taken.
    """
    import PIL.Image
    import PIL.ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of large images; the size is checked here
            image = PIL.Image.open(io.BytesIO(data), formats=FORMATS)
            _check_kind(image)
            image.load()
            return PIL.ImageOps.exif_transpose(image) if upright else image
    except InputError:
        raise
    except PIL.UnidentifiedImageError as err:
        raise InputError(f"is not a supported image: {', '.join(FORMATS)}") from err
    except MemoryError as err:
        raise InputError("is an image that needs more memory than there is") from err
    except Exception as err:  # a decoder fails in many ways on damaged files
        raise InputError(f"is a damaged image: {type(err).__name__}: {err}") from err


def _check_kind(image: "Image") -> None:
    if image.width * image.height > MAX_PIXELS:
        raise InputError(f"has {image.width} x {image.height} pixels, more than {MAX_PIXELS}")
    if image.format == "TIFF" and math.prod(image.tag_v2.get(tag, 1) for tag in TILE_TAGS) > MAX_PIXELS:  # type: ignore[attr-defined]
        raise InputError(f"has tiles of more than {MAX_PIXELS} pixels")
    # of 16-bit colours Pillow keeps 8 bits, and calls that RGB; a 16-bit BMP has 5 or 6 bits for each
    is_deep = image.format != "BMP" and ";16" in str(getattr(image, "tile", ""))
    if image.mode not in MODES or is_deep:
        kind = "of 16-bit samples" if is_deep else f"of the mode {image.mode}"
        raise InputError(f"is an image {kind}, which is not taken", hint="convert it to 8-bit RGB or grey")


def pixels_from_bytes(data: bytes, mode: Literal["RGB", "L"] = "RGB", *, upright: bool = True) -> Pixels:
    """Returns an encoded image as RGB or grey pixels; a transparent one loses its transparency.

    Raises:
        InputError: as `decoded` does.
        UnavailableError: Pillow is not installed.
    """
    require_pillow()
    image = decoded(data, upright=upright)
    if image.mode in ("P", "PA"):
        image = image.convert("RGBA")  # a palette may hold transparent colours
    return np.asarray(image.convert(mode))


def bytes_from_pixels(image: Pixels, kind: ImageFormat, quality: int = 90) -> bytes:
    """Returns RGB or grey pixels as the bytes of a file; `quality` is that of a JPEG, 1 to 95.

    Grey ones may have 16 bits in a PNG.

    Raises:
        UnavailableError: Pillow is not installed.
    """
    require_pillow()
    import PIL.Image

    file = io.BytesIO()
    picture = PIL.Image.fromarray(np.ascontiguousarray(image))
    if kind == "png":
        picture.save(file, "PNG", compress_level=3)  # a third larger than the default, four times faster
    else:
        picture.save(file, "JPEG", quality=quality)
    return file.getvalue()
