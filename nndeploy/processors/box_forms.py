# SPDX-License-Identifier: Apache-2.0
"""How detectors write a box, and boxes as corners in pixels, which is the only form that flows between processors."""

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from nndeploy.errors import UsageError
from nndeploy.processors.arrays import Boxes

BoxForm: TypeAlias = Literal["corners", "centres", "corner-and-size"]
"""(x0, y0, x1, y1), (x, y, width, height) around a centre, or (x0, y0, width, height)."""

Unit: TypeAlias = Literal["pixels", "fractions"]
"""What the numbers of a box count, in the image that the model saw."""


def check_unit(unit: Unit, width: int | None, height: int | None) -> None:
    """Checks that the size of the image is there if it is needed.

    Raises:
        UsageError: it is not, or it is of no use.
    """
    if (unit == "fractions") != (width is not None and height is not None):
        raise UsageError('width and height, those of the image that the model saw, go with unit = "fractions"')


def corners_from(rows: npt.NDArray[np.float32], form: BoxForm, unit: tuple[float, float] = (1, 1)) -> Boxes:
    """Returns rows of four numbers as corners, multiplied by `unit` (x, y)."""
    first, second = rows[:, :2].astype(np.float64), rows[:, 2:].astype(np.float64)
    if form == "centres":
        first, second = first - second / 2, first + second / 2
    elif form == "corner-and-size":
        second = first + second
    return (np.concatenate([first, second], axis=1) * (*unit, *unit)).astype(np.float32)
