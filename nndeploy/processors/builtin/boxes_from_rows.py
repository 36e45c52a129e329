# SPDX-License-Identifier: Apache-2.0
"""boxes-from-rows: the one output of a YOLO -> the boxes that are sure enough."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Boxes, Classes, Scores, floats_from_value, shape_text, without_batch
from nndeploy.processors.box_forms import BoxForm, corners_from
from nndeploy.processors.parameters import Fraction


@dataclass(frozen=True)
class BoxesFromRows:
    """Reads rows (box, objectness if `objectness`, one score a class) and gives the boxes above `threshold`.

    `order` is `rows`, (N, 4 + ...), as YOLOv5 to v7 give, or `columns`, (4 + ..., N), as YOLOv8 and later. With
    objectness a score is objectness x class score. Boxes are in pixels of the image that the model saw.
    """

    name: ClassVar[str] = "boxes-from-rows"
    takes: ClassVar[tuple[str, ...]] = ("output",)
    gives: ClassVar[tuple[str, ...]] = ("boxes", "scores", "classes")

    threshold: Fraction = 0.25
    form: BoxForm = "centres"
    order: Literal["rows", "columns"] = "rows"
    objectness: bool = True

    def __call__(self, output: object) -> tuple[Boxes, Scores, Classes]:
        """Returns boxes, their scores and the numbers of their classes, in the model's order."""
        rows = without_batch(floats_from_value(output, "the output"), 2)
        if self.order == "columns" and rows.ndim == 2:
            rows = rows.T
        first = 5 if self.objectness else 4
        if rows.ndim != 2 or rows.shape[1] <= first:
            raise InputError(f"the output must have more than {first} {self._axis()}, is {shape_text(output)}")
        columns = rows[:, first:]
        classes = columns.argmax(axis=1)
        scores = columns[np.arange(len(rows)), classes]
        if self.objectness:
            scores = scores * rows[:, 4]
        kept = np.flatnonzero(scores > self.threshold)
        return corners_from(rows[kept, :4], self.form), scores[kept], classes[kept].astype(np.int64)

    def _axis(self) -> str:
        return "columns" if self.order == "rows" else "rows"
