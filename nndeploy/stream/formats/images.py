# SPDX-License-Identifier: Apache-2.0
"""Turns an image file into the input tensor that the bundle describes, and class scores into a label.

decode -> upright -> channels -> resize (bilinear) -> (pixel - mean) / std -> layout, batch of one. Images may have
been made by anybody: `nndeploy.files.image_files` says what is decoded. Needs Pillow, the extra `vision`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nndeploy.bundle.manifest import ImageInput, Manifest
from nndeploy.errors import InputError
from nndeploy.files.image_files import SUFFIXES, decoded, require_pillow
from nndeploy.files.whole_files import read_regular
from nndeploy.values.types import TensorType, Value, numpy_dtype

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_FILE_BYTES = 256 << 20

__all__ = ["SUFFIXES", "array_from_image", "best_label", "decoded", "read_image", "require_pillow"]

_Array: TypeAlias = np.ndarray[Any, Any]


def read_image(path: Path, how: ImageInput, tensor: TensorType) -> _Array:
    """Returns the image at `path` as the input tensor, batch of one, of the dtype of `tensor`.

    Raises:
        MissingInputError: there is no such file.
        InputError: the file is of no format that is taken, is damaged, too large, or of a kind that is not taken.
    """
    try:
        return array_from_image(decoded(read_regular(path, MAX_FILE_BYTES)), how, tensor.dtype)
    except InputError as err:
        if str(path) not in err.where:
            err.within(str(path))
        raise


def array_from_image(image: "Image", how: ImageInput, dtype: str) -> _Array:
    """Returns an image as (1, C, H, W) or (1, H, W, C)."""
    import PIL.Image

    if image.mode in ("P", "PA"):
        image = image.convert("RGBA")  # a palette may hold transparent colours
    image = image.convert("L" if how.channels == "L" else "RGB")
    if image.size != (how.width, how.height):
        image = image.resize((how.width, how.height), PIL.Image.Resampling.BILINEAR)
    pixels = np.asarray(image, dtype=np.float32).reshape(how.height, how.width, -1)
    if how.channels == "BGR":
        pixels = pixels[:, :, ::-1]
    scaled = (pixels - np.asarray(how.mean, np.float32)) / np.asarray(how.std, np.float32)
    if how.layout == "NCHW":
        scaled = scaled.transpose(2, 0, 1)
    batch: _Array = np.ascontiguousarray(_as_dtype(scaled[np.newaxis], dtype))
    return batch


def _as_dtype(values: _Array, dtype: str) -> _Array:
    want = numpy_dtype(dtype)
    if want.kind in "iu":
        limits = np.iinfo(want)
        values = np.clip(np.rint(values), limits.min, limits.max)
    converted: _Array = values.astype(want)
    return converted


def best_label(manifest: Manifest, outputs: Mapping[str, Value]) -> tuple[str, float] | None:
    """Returns the most likely class of one image and its probability, where the bundle names classes.

    Scores that are not probabilities already are made such by a softmax.
    """
    labels = manifest.image_input.labels if manifest.image_input else ()
    if not labels or not manifest.outputs:
        return None
    scores = np.asarray(outputs[manifest.outputs[0].name])
    if scores.size != len(labels) or scores.dtype.kind in "OSUTcb":
        return None
    scores = scores.astype(np.float64).ravel()
    best = int(np.argmax(scores))
    return labels[best], float(_probabilities(scores)[best])


def _probabilities(scores: _Array) -> _Array:
    if scores.min() >= 0 and abs(scores.sum() - 1) < 1e-3:
        return scores
    with np.errstate(all="ignore"):  # a score may be infinite
        powers: _Array = np.exp(scores - scores.max())
        shares: _Array = powers / powers.sum()
    return shares
