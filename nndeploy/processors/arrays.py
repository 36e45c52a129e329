# SPDX-License-Identifier: Apache-2.0
"""The kinds of values that processors hand to each other, and the checks that a value is one.

Pixel (x, y) covers [x, x + 1) x [y, y + 1), so an image spans [0, width] x [0, height] and its whole is the box
(0, 0, width, height). A *transform* maps points of an image that came in to those of the image that went out, axis by
axis: (scale_x, scale_y, offset_x, offset_y, width, height), where out = in * scale + offset, and the last two are the
size of the image that came in.

Law: a value that is not of its kind is refused with both shapes, before it is worked on.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError
from nndeploy.values.types import Value

MAX_RATE_HZ = 1 << 20

Array: TypeAlias = npt.NDArray[Any]

Image: TypeAlias = npt.NDArray[np.uint8]
"""uint8, (height, width, 3), RGB."""

Boxes: TypeAlias = npt.NDArray[np.float32]
"""float32, (N, 4): x0, y0, x1, y1 in pixels, corners as edges of pixels."""

Quads: TypeAlias = npt.NDArray[np.float32]
"""float32, (N, 4, 2): corners x, y, clockwise as one sees it, from the top left one."""

Points: TypeAlias = npt.NDArray[np.float32]
"""float32, (N, K, 2): x, y in pixels of the K points of each of N things."""

Scores: TypeAlias = npt.NDArray[np.float32]
"""float32, (N,)."""

Classes: TypeAlias = npt.NDArray[np.int64]
"""int64, (N,)."""

Samples: TypeAlias = npt.NDArray[np.float32]
"""float32, (N,), within -1 to 1."""

Transform: TypeAlias = npt.NDArray[np.float64]
"""float64, (6,): see the module's docstring."""


def image_from_value(value: Value) -> Image:
    """Returns `value`, which must be an image that is not empty.

    Raises:
        InputError: it is no image.
    """
    if not isinstance(value, np.ndarray) or value.dtype != np.uint8 or value.ndim != 3 or value.shape[2] != 3:
        raise InputError(f"an image is uint8 (height, width, 3), this is {shape_text(value)}")
    if not value.size:
        raise InputError(f"the image is empty: {shape_text(value)}")
    return value


def floats_from_value(value: Value, what: str) -> npt.NDArray[np.float32]:
    """Returns `value` as float32; a list is stacked.

    Raises:
        InputError: it holds no numbers, or lists of different lengths.
    """
    try:
        array: Array = np.asarray(value)
        if array.dtype.kind not in "OSUTcmM" or not array.size:  # small floating types are of the kind V
            return np.asarray(array, np.float32)
    except (ValueError, TypeError):  # lists of different lengths, records
        pass
    raise InputError(f"{what} must be numbers, this is {shape_text(value)}")


def rows_from_value(value: Value, columns: int, what: str) -> npt.NDArray[np.float32]:
    """Returns `value` as float32 (N, columns); batch axes of one in front are taken off, an empty value has no rows.

    Raises:
        InputError: its shape is another.
    """
    array = without_batch(floats_from_value(value, what), 2)
    if array.size == 0 and array.ndim != 2:
        array = array.reshape(0, columns)
    if array.ndim != 2 or array.shape[1] != columns:
        raise InputError(f"{what} must be (N, {columns}), this is {shape_text(value)}")
    return array


def quads_from_value(value: Value) -> Quads:
    """Returns `value` as float32 (N, 4, 2).

    Raises:
        InputError: its shape is another.
    """
    array = floats_from_value(value, "quads")
    if array.size == 0:
        return np.zeros((0, 4, 2), np.float32)
    if array.ndim != 3 or array.shape[1:] != (4, 2):
        raise InputError(f"quads must be (N, 4, 2), these are {shape_text(value)}")
    return array


def vector_from_value(value: Value, what: str) -> npt.NDArray[np.float32]:
    """Returns `value` as float32 (N,); axes of one are taken off.

    Raises:
        InputError: it has more than one axis that is not one.
    """
    array = floats_from_value(value, what)
    if sum(size != 1 for size in array.shape) > 1:
        raise InputError(f"{what} must be (N,), this is {shape_text(value)}")
    return array.reshape(-1)


def tokens_from_value(value: Value, what: str) -> npt.NDArray[np.int64]:
    """Returns `value`, whole numbers such as those of tokens, as int64 (N,); axes of one are taken off.

    Raises:
        InputError: it holds something else, or has more than one axis that is not one.
    """
    array = np.asarray(value) if not isinstance(value, list) or value else np.zeros(0, np.int64)
    if array.dtype.kind not in "iub" or sum(size != 1 for size in array.shape) > 1:
        raise InputError(f"{what} must be whole numbers (N,), this is {shape_text(value)}")
    return array.astype(np.int64).reshape(-1)


def rate_from_value(value: Value) -> int:
    """Returns `value`, how many samples there are a second.

    Raises:
        InputError: it is no whole number from 1 to 1048576.
    """
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "iuf":
        raise InputError(f"a rate must be one number, this is {shape_text(value)}")
    if not 1 <= array.item() <= MAX_RATE_HZ or array.item() % 1:
        raise InputError(f"a rate of {array.item()} Hz is not taken")
    return int(array.item())


def transform_from_value(value: Value) -> Transform:
    """Returns `value`, which must be a transform.

    Raises:
        InputError: it is none.
    """
    if not isinstance(value, np.ndarray) or value.shape != (6,) or not np.isfinite(value).all() or not value[:2].all():
        raise InputError(f"a transform is six finite numbers, this is {shape_text(value)}")
    return np.asarray(value, np.float64)


def without_batch(array: Array, num_axes: int) -> Array:
    """Returns `array` without the axes of size one that stand in front of its last `num_axes`."""
    while array.ndim > num_axes and array.shape[0] == 1:
        array = array[0]
    return array


def shape_text(value: Value) -> str:
    """Returns dtype and shape of a value for a message."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} ({', '.join(map(str, value.shape))})"
    return f"a {type(value).__name__}"
