# SPDX-License-Identifier: Apache-2.0
"""boxes-from-detections: the one output of a detector that chooses by itself -> the boxes that are sure enough."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Boxes, Classes, Scores, floats_from_value, shape_text, without_batch
from nndeploy.processors.box_forms import BoxForm, Unit, check_unit, corners_from
from nndeploy.processors.parameters import Fraction, Side

ROW = 6


@dataclass(frozen=True)
class BoxesFromDetections:
    """Reads rows (box, score, number of the class) and gives the boxes above `threshold`, without any `nms`.

    YOLOv10, YOLO26 and RT-DETR give such rows, and other YOLOs exported with `nms=True`. Boxes are in pixels of the
    image that the model saw (`unit`), or in fractions of its `width` and `height`.
    """

    name: ClassVar[str] = "boxes-from-detections"
    takes: ClassVar[tuple[str, ...]] = ("output",)
    gives: ClassVar[tuple[str, ...]] = ("boxes", "scores", "classes")

    threshold: Fraction = 0.25
    form: BoxForm = "corners"
    unit: Unit = "pixels"
    width: Side | None = None
    height: Side | None = None

    def __post_init__(self) -> None:
        check_unit(self.unit, self.width, self.height)

    def __call__(self, output: object) -> tuple[Boxes, Scores, Classes]:
        """Returns boxes, their scores and the numbers of their classes, in the model's order."""
        rows = without_batch(floats_from_value(output, "the output"), 2)
        if rows.ndim != 2 or rows.shape[1] != ROW:
            raise InputError(f"the output must have {ROW} columns, is {shape_text(output)}")
        kept = rows[rows[:, 4] > self.threshold]
        numbers = kept[:, 5]
        if not np.array_equal(numbers, np.rint(numbers)):
            raise InputError(f"column {ROW} of the output must have numbers of classes, has {numbers.max():g}")
        boxes = corners_from(kept[:, :4], self.form, (self.width or 1, self.height or 1))
        return boxes, kept[:, 4], numbers.astype(np.int64)
