# SPDX-License-Identifier: Apache-2.0
"""faces-from-grids: the outputs of SCRFD or YuNet, a grid for each stride -> the faces that are sure enough.

Sources: `insightface/model_zoo/scrfd.py` of insightface, and OpenCV's `modules/objdetect/src/face_detect.cpp`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError, UsageError
from nndeploy.processors.arrays import Array, Boxes, rows_from_value, shape_text
from nndeploy.processors.box_forms import corners_from
from nndeploy.processors.parameters import Fraction, Range, Side

Floats: TypeAlias = npt.NDArray[np.float32]

_PROBABILITIES = {"scrfd": ("scores",), "yunet": ("classes", "objectness")}
_COLUMNS = {"boxes": 4, "points": 10}


@dataclass(frozen=True)
class FacesFromGrids:
    """Reads boxes, scores and `points` of cells of `strides` pixels, and gives those that reach `threshold`.

    SCRFD (`head`) says how far the edges of a box and its points are from the corner of a cell, in cells, with one
    score. YuNet says where the centre of a box and its points are, and the logarithm of its size; a score is the root
    of class x objectness. `width` and `height` are those of the image that the model saw.
    """

    name: ClassVar[str] = "faces-from-grids"

    head: Literal["scrfd", "yunet"] = "scrfd"
    width: Side = 640
    height: Side = 640
    threshold: Fraction = 0.5
    strides: tuple[Annotated[int, Range(1, 1 << 10)], ...] = (8, 16, 32)
    points: bool = True

    def __post_init__(self) -> None:
        if not self.strides or len(set(self.strides)) != len(self.strides):
            raise UsageError("strides must name at least one size of cells, each once")

    @property
    def takes(self) -> tuple[str, ...]:
        """The outputs, those of one kind beside each other, by stride."""
        return tuple(f"{kind}-{stride}" for kind in self._kinds for stride in self.strides)

    @property
    def gives(self) -> tuple[str, ...]:
        """The boxes, and the points where there are any."""
        return ("boxes", "scores", "classes", *(["keypoints"] if self.points else ()))

    @property
    def _kinds(self) -> tuple[str, ...]:
        return (*_PROBABILITIES[self.head], "boxes", *(["points"] if self.points else ()))

    def __call__(self, *outputs: object) -> tuple[Array, ...]:
        """Returns boxes, scores, classes (all 0) and points (N, 5, 2), stride by stride, cell by cell, row by row."""
        found = [self._of_stride(stride, outputs[i :: len(self.strides)]) for i, stride in enumerate(self.strides)]
        boxes, scores, *points = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return boxes, scores, np.zeros(len(scores), np.int64), *points

    def _of_stride(self, stride: int, outputs: Sequence[object]) -> Iterator[Floats]:
        """Yields boxes, scores and points of the cells of one stride that reach the threshold."""
        num_columns, num_rows = self.width // stride, self.height // stride
        rows = self._rows(outputs, stride, num_columns * num_rows)
        scores = rows["scores"][:, 0] if self.head == "scrfd" else _root(rows["classes"], rows["objectness"])
        kept = np.flatnonzero(scores >= self.threshold)
        cells = kept // (len(scores) // (num_columns * num_rows))
        corners = np.stack([cells % num_columns, cells // num_columns], axis=1).astype(np.float64)
        with np.errstate(over="ignore"):  # boxes of infinite size are refused where they are compared
            yield self._boxes(corners, rows["boxes"][kept].astype(np.float64), stride)
        yield scores[kept]
        if self.points:
            moved = rows["points"][kept].reshape(len(kept), _COLUMNS["points"] // 2, 2) + corners[:, np.newaxis]
            yield (moved * stride).astype(np.float32)

    def _rows(self, outputs: Sequence[object], stride: int, cells: int) -> dict[str, Floats]:
        """Returns the outputs of one stride by their kinds.

        Raises:
            InputError: they have other columns, or other rows than so many for each cell.
        """
        rows = {
            kind: rows_from_value(output, _COLUMNS.get(kind, 1), f"{kind}-{stride}")
            for kind, output in zip(self._kinds, outputs, strict=True)
        }
        counts = {len(one) for one in rows.values()}
        if len(counts) != 1 or not cells or 0 in counts or max(counts) % cells:
            found = ", ".join(f"{kind} {shape_text(one)}" for kind, one in rows.items())
            raise InputError(f"stride {stride} must have as many rows for each of {cells} cells, has {found}")
        return rows

    def _boxes(self, corners: npt.NDArray[np.float64], found: npt.NDArray[np.float64], stride: int) -> Boxes:
        if self.head == "scrfd":
            edges = np.concatenate([corners - found[:, :2], corners + found[:, 2:]], axis=1)
            return corners_from(edges, "corners", (stride, stride))
        centres = np.concatenate([corners + found[:, :2], np.exp(found[:, 2:])], axis=1)
        return corners_from(centres, "centres", (stride, stride))


def _root(classes: Floats, objectness: Floats) -> Floats:
    both: Floats = np.sqrt(np.clip(classes[:, 0], 0, 1) * np.clip(objectness[:, 0], 0, 1))
    return both
