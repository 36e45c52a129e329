# SPDX-License-Identifier: Apache-2.0
"""Encoded images: bytes of a PNG or JPEG file become pixels, pixels become such bytes.

Images may have been made by anybody: only the two formats are decoded, their size is capped before they are, and what
cannot be converted without loss of meaning (16 bits, CMYK) is refused. Needs Pillow, the extra `vision`, which lets go
of the interpreter while it decodes, resizes and encodes, so that threads do it at once.

Law: an image is upright, as its EXIF data say, whoever decodes it.
"""

import io
import warnings
from typing import TYPE_CHECKING, Literal

import numpy as np

from nndeploy.errors import InputError, UnavailableError
from nndeploy.processors.arrays import Image as Pixels

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = 1 << 26
SUFFIXES = (".png", ".jpg", ".jpeg")
MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA")

ImageFormat = Literal["png", "jpeg"]


def require_pillow() -> None:
    """Checks that images can be decoded here.

    Raises:
        UnavailableError: Pillow is not installed.
    """
    try:
        import PIL.Image  # noqa: F401
    except ImportError as err:
        hint = "pip install 'nndeploy-toolchain[vision]'"
        raise UnavailableError("images need the package pillow, which is not installed", hint=hint) from err


def decoded(data: bytes) -> "Image":
    """Returns the decoded image, turned upright where its EXIF data say how.

    Raises:
        InputError: the bytes are no PNG or JPEG, are damaged, too large, or of a kind that is not taken.
    """
    import PIL.Image
    import PIL.ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of large images; the size is checked here
            image = PIL.Image.open(io.BytesIO(data), formats=("PNG", "JPEG"))
            _check_kind(image)
            image.load()
            return PIL.ImageOps.exif_transpose(image)
    except InputError:
        raise
    except PIL.UnidentifiedImageError as err:
        raise InputError("is no PNG or JPEG image") from err
    except MemoryError as err:
        raise InputError("is an image that needs more memory than there is") from err
    except Exception as err:  # a decoder fails in many ways on damaged files
        raise InputError(f"is a damaged image: {type(err).__name__}: {err}") from err


def _check_kind(image: "Image") -> None:
    if image.width * image.height > MAX_PIXELS:
        raise InputError(f"has {image.width} x {image.height} pixels, more than {MAX_PIXELS}")
    if image.mode not in MODES:
        hint = "convert it to 8-bit RGB or grey"
        raise InputError(f"is an image of the mode {image.mode}, which is not taken", hint=hint)


def pixels_from_bytes(data: bytes) -> Pixels:
    """Returns an encoded image as RGB pixels; a transparent one loses its transparency.

    Raises:
        InputError: as `decoded` does.
        UnavailableError: Pillow is not installed.
    """
    require_pillow()
    image = decoded(data)
    if image.mode in ("P", "PA"):
        image = image.convert("RGBA")  # a palette may hold transparent colours
    return np.asarray(image.convert("RGB"))


def bytes_from_pixels(image: Pixels, kind: ImageFormat, quality: int = 90) -> bytes:
    """Returns RGB pixels as the bytes of a file; `quality` is that of a JPEG, 1 to 95.

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
