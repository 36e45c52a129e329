# SPDX-License-Identifier: Apache-2.0
"""boxes-from-rows: the one output of a YOLO -> the boxes that are sure enough."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Array, floats_from_value, shape_text, without_batch
from nndeploy.processors.box_forms import BoxForm, corners_from
from nndeploy.processors.parameters import Fraction, Range


@dataclass(frozen=True)
class BoxesFromRows:
    """Reads rows (box, objectness if `objectness`, one score a class) and gives the boxes above `threshold`.

    `order` is `rows`, (N, 4 + ...), as YOLOv5 to v7 give, or `columns`, (4 + ..., N), as YOLOv8 and later. With
    objectness a score is objectness x class score. Boxes are in pixels of the image that the model saw. With `rest`
    that many columns behind the scores are given too, as the field `rest`: the keypoints of a pose model.
    """

    name: ClassVar[str] = "boxes-from-rows"
    takes: ClassVar[tuple[str, ...]] = ("output",)

    threshold: Fraction = 0.25
    form: BoxForm = "centres"
    order: Literal["rows", "columns"] = "rows"
    objectness: bool = True
    rest: Annotated[int, Range(0, 1 << 20)] = 0

    @property
    def gives(self) -> tuple[str, ...]:
        """The boxes, and the columns behind the scores where there are any."""
        return ("boxes", "scores", "classes", *(["rest"] if self.rest else ()))

    def __call__(self, output: object) -> tuple[Array, ...]:
        """Returns boxes, their scores, the numbers of their classes and the rest, in the model's order."""
        rows = without_batch(floats_from_value(output, "the output"), 2)
        if self.order == "columns" and rows.ndim == 2:
            rows = rows.T
        first = 5 if self.objectness else 4
        least = first + self.rest
        if rows.ndim != 2 or rows.shape[1] <= least:
            raise InputError(f"the output must have more than {least} {self._axis()}, is {shape_text(output)}")
        last = rows.shape[1] - self.rest
        columns = rows[:, first:last]
        classes = columns.argmax(axis=1)
        scores = columns[np.arange(len(rows)), classes]
        if self.objectness:
            scores = scores * rows[:, 4]
        kept = np.flatnonzero(scores > self.threshold)
        boxes = corners_from(rows[kept, :4], self.form)
        rest = (rows[kept, last:],) if self.rest else ()
        return boxes, scores[kept], classes[kept].astype(np.int64), *rest

    def _axis(self) -> str:
        return "columns" if self.order == "rows" else "rows"
