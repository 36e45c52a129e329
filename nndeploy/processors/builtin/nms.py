# SPDX-License-Identifier: Apache-2.0
"""nms: boxes -> the best one of each bunch that overlaps (non-maximum suppression)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError, UsageError
from nndeploy.processors.arrays import Array, Boxes, Classes, rows_from_value, shape_text, vector_from_value
from nndeploy.processors.parameters import Count, Fraction

_OWN = ("boxes", "scores", "classes")


@dataclass(frozen=True)
class Nms:
    """Takes boxes by falling score, equal ones by their place, and drops those that overlap a taken one above `iou`.

    Boxes of different classes do not drop each other unless `across-classes`. At most `max` are taken. `also` names
    further fields with a row for each box, of which those of the taken boxes stay. Where `inclusive`, the second corner
    is the last pixel of a box, and sizes are one more, as older detectors count.
    """

    name: ClassVar[str] = "nms"

    iou: Fraction = 0.5
    threshold: Fraction = 0.0
    max: Count = 1000
    across_classes: bool = False
    also: tuple[str, ...] = ()
    inclusive: bool = False

    def __post_init__(self) -> None:
        if len({*_OWN, *self.also}) != len(_OWN) + len(self.also):
            raise UsageError(f"also must name other fields than {', '.join(_OWN)}, each once")

    @property
    def takes(self) -> tuple[str, ...]:
        """The boxes and what else has a row for each."""
        return (*_OWN, *self.also)

    gives = takes

    def __call__(self, boxes: object, scores: object, classes: object, *others: object) -> tuple[Array, ...]:
        """Returns what is left, best first."""
        corners = rows_from_value(boxes, 4, "boxes")
        values = vector_from_value(scores, "scores")
        kinds = np.asarray(classes).reshape(-1).astype(np.int64)
        if not len(corners) == len(values) == len(kinds):
            raise InputError(f"there are {len(corners)} boxes, {len(values)} scores and {len(kinds)} classes")
        if np.isnan(values).any() or not np.isfinite(corners).all():
            raise InputError("boxes or scores hold NaN or infinity")
        order = np.argsort(-values, kind="stable")
        order = order[values[order] >= self.threshold]
        edges = corners[order] + np.array([0, 0, self.inclusive, self.inclusive], np.float32)
        kept = order[kept_boxes(edges, None if self.across_classes else kinds[order], self.iou, self.max)]
        return corners[kept], values[kept], kinds[kept], *self._kept_of(others, kept, len(corners))

    def _kept_of(self, others: Sequence[object], kept: npt.NDArray[np.intp], count: int) -> Iterator[Array]:
        for name, value in zip(self.also, others, strict=True):
            rows = np.asarray(value)
            if rows.ndim == 0 or len(rows) != count:
                raise InputError(f"there are {count} boxes, but {name} is {shape_text(value)}")
            yield rows[kept]


def kept_boxes(boxes: Boxes, classes: Classes | None, iou: float, most: int) -> npt.NDArray[np.intp]:
    """Returns the places of the boxes that stay; `boxes` come best first. Overlaps are computed in float64."""
    corners = boxes.astype(np.float64)
    areas = areas_of(corners)
    left = np.arange(len(corners))
    kept: list[int] = []
    while left.size and len(kept) < most:
        best, left = left[0], left[1:]
        kept.append(int(best))
        drops = overlaps(corners[best], areas[best], corners[left], areas[left]) > iou
        if classes is not None:
            drops &= classes[left] == classes[best]
        left = left[~drops]
    return np.array(kept, np.intp)


def areas_of(boxes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Returns the area of each box; one whose corners are the wrong way round has none."""
    sizes = np.maximum(boxes[:, 2:] - boxes[:, :2], 0)
    areas: npt.NDArray[np.float64] = sizes[:, 0] * sizes[:, 1]
    return areas


def overlaps(
    box: npt.NDArray[np.float64], area: float, others: npt.NDArray[np.float64], areas: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Returns intersection over union of one box with others; 0 where both are empty."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    sizes = np.maximum(high - low, 0)
    common = sizes[:, 0] * sizes[:, 1]
    union = area + areas - common
    found: npt.NDArray[np.float64] = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return found
