# SPDX-License-Identifier: Apache-2.0
"""boxes: a detector's boxes and its scores for each class -> the boxes that are sure enough; for SSD and UltraFace."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Boxes as BoxArray
from nndeploy.processors.arrays import (
    Classes,
    Scores,
    floats_from_value,
    rows_from_value,
    shape_text,
    without_batch,
)
from nndeploy.processors.box_forms import BoxForm, Unit, check_unit, corners_from
from nndeploy.processors.parameters import Fraction, Range, Side


@dataclass(frozen=True)
class Boxes:
    """Gives the boxes whose best class has a score above `threshold`, as corners in pixels, in the model's order.

    `form` is how the model writes a box: `corners` (x0, y0, x1, y1), `centres` (x, y, width, height) or
    `corner-and-size` (x0, y0, width, height), in `unit` pixels, or fractions of `width` and `height`. `background` is
    the column of scores that means nothing was found.
    """

    name: ClassVar[str] = "boxes"
    takes: ClassVar[tuple[str, ...]] = ("boxes", "scores")
    gives: ClassVar[tuple[str, ...]] = ("boxes", "scores", "classes")

    threshold: Fraction = 0.5
    form: BoxForm = "corners"
    unit: Unit = "pixels"
    width: Side | None = None
    height: Side | None = None
    background: Annotated[int, Range(0, 1 << 20)] | None = None

    def __post_init__(self) -> None:
        check_unit(self.unit, self.width, self.height)

    def __call__(self, boxes: object, scores: object) -> tuple[BoxArray, Scores, Classes]:
        """Returns boxes, their scores and the numbers of their classes, the background left out of the counting."""
        rows = rows_from_value(boxes, 4, "boxes")
        columns = self._foreground(scores, len(rows))
        if not columns.size:
            return np.zeros((0, 4), np.float32), np.zeros(0, np.float32), np.zeros(0, np.int64)
        classes = columns.argmax(axis=1)
        best = columns[np.arange(len(columns)), classes]
        kept = np.flatnonzero(best > self.threshold)
        unit = (self.width or 1, self.height or 1)
        return corners_from(rows[kept], self.form, unit), best[kept], classes[kept].astype(np.int64)

    def _foreground(self, scores: object, num_boxes: int) -> Scores:
        columns = without_batch(floats_from_value(scores, "scores"), 2)
        if columns.ndim == 1:
            columns = columns[:, np.newaxis]
        if columns.ndim != 2 or len(columns) != num_boxes:
            raise InputError(f"there are {num_boxes} boxes, but scores are {shape_text(columns)}")
        if self.background is None:
            return columns
        if self.background >= columns.shape[1]:
            raise InputError(f"background is column {self.background}, but scores are {shape_text(columns)}")
        return np.delete(columns, self.background, axis=1)
