# SPDX-License-Identifier: Apache-2.0
"""How detectors write a box, and boxes as corners in pixels, which is the only form that flows between processors."""

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from nndeploy.processors.arrays import Boxes

BoxForm: TypeAlias = Literal["corners", "centres", "corner-and-size"]
"""(x0, y0, x1, y1), (x, y, width, height) around a centre, or (x0, y0, width, height)."""


def corners_from(rows: npt.NDArray[np.float32], form: BoxForm, unit: tuple[float, float] = (1, 1)) -> Boxes:
    """Returns rows of four numbers as corners, multiplied by `unit` (x, y)."""
    first, second = rows[:, :2].astype(np.float64), rows[:, 2:].astype(np.float64)
    if form == "centres":
        first, second = first - second / 2, first + second / 2
    elif form == "corner-and-size":
        second = first + second
    return (np.concatenate([first, second], axis=1) * (*unit, *unit)).astype(np.float32)
