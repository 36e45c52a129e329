# SPDX-License-Identifier: Apache-2.0
"""text-boxes: a map of how likely each pixel is text -> a quadrilateral around each line (DB's post-processing).

Source: "Real-time Scene Text Detection with Differentiable Binarization" (Liao et al., AAAI 2020), section 3.5. The
polygon that grows by area x ratio / perimeter is a rectangle here, so growing moves its sides.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Quads, Scores, floats_from_value, shape_text, without_batch
from nndeploy.processors.parameters import Count, Fraction, Range
from nndeploy.processors.regions import Rectangle, Runs, corner_points, regions_of, runs_of, smallest_rectangle

MAX_PIXELS = 1 << 26


@dataclass(frozen=True)
class TextBoxes:
    """Finds regions above `threshold`, puts the smallest rectangle around each and grows it by `unclip`.

    Rectangles whose mean probability is below `box-threshold`, or whose shorter side is below `min-size` pixels
    before they grow, are dropped. Lines come in reading order: from top to bottom, within a line from left to right.
    """

    name: ClassVar[str] = "text-boxes"
    takes: ClassVar[tuple[str, ...]] = ("probabilities",)
    gives: ClassVar[tuple[str, ...]] = ("quads", "scores")

    threshold: Fraction = 0.3
    box_threshold: Fraction = 0.6
    unclip: Annotated[float, Range(0, 10)] = 1.5
    min_size: Annotated[float, Range(0, 1000)] = 3.0
    max: Count = 1000

    def __call__(self, probabilities: object) -> tuple[Quads, Scores]:
        """Returns the quadrilaterals in pixels of the map, and their mean probabilities."""
        likely = without_batch(floats_from_value(probabilities, "probabilities"), 2)
        if likely.ndim != 2 or not 0 < likely.size <= MAX_PIXELS:
            raise InputError(f"probabilities must be (H, W), are {shape_text(probabilities)}")
        runs = runs_of(likely > self.threshold)
        found = [line for members in regions_of(runs) if (line := self._line(likely, runs, members)) is not None]
        best = sorted(found, key=lambda line: -line[1])[: self.max]
        ordered = in_reading_order(best)
        height, width = likely.shape
        quads = np.array([np.clip(corners, 0, (width, height)) for corners, _ in ordered], np.float32)
        return quads.reshape(-1, 4, 2), np.array([score for _, score in ordered], np.float32)

    def _line(
        self, likely: Scores, runs: Runs, members: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.float64], float] | None:
        if (runs.ends[members] - runs.starts[members]).sum() < self.min_size:
            return None
        rectangle = smallest_rectangle(corner_points(runs, members))
        if rectangle.sizes.min() < self.min_size:
            return None
        score = mean_inside(likely, rectangle)
        if score < self.box_threshold:
            return None
        distance = rectangle.sizes.prod() * self.unclip / (2 * rectangle.sizes.sum())
        return rectangle.grown(distance).corners(), score


def mean_inside(likely: Scores, rectangle: Rectangle) -> float:
    """Returns the mean of the pixels whose centres are inside; 0 where there are none."""
    corners = rectangle.corners()
    low = np.maximum(np.floor(corners.min(axis=0)), 0).astype(int)
    high = np.ceil(corners.max(axis=0)).astype(int)
    part = likely[low[1] : high[1], low[0] : high[0]]
    x = np.arange(part.shape[1]) + (low[0] + 0.5 - rectangle.centre[0])
    y = np.arange(part.shape[0]) + (low[1] + 0.5 - rectangle.centre[1])
    inside = np.ones(part.shape, np.bool_)
    for (axis_x, axis_y), size in zip(rectangle.axes.tolist(), rectangle.sizes.tolist(), strict=True):
        inside &= np.abs(axis_x * x[np.newaxis] + axis_y * y[:, np.newaxis]) <= size / 2
    return float(part[inside].mean(dtype=np.float64)) if inside.any() else 0.0


def in_reading_order(
    lines: list[tuple[npt.NDArray[np.float64], float]],
) -> list[tuple[npt.NDArray[np.float64], float]]:
    """Returns lines from top to bottom; those that begin within half a height of each other from left to right."""
    left = sorted(lines, key=lambda line: (line[0][0, 1], line[0][0, 0]))
    ordered = []
    while left:
        corners = left[0][0]
        limit = corners[0, 1] + np.linalg.norm(corners[3] - corners[0]) / 2
        row = [line for line in left if line[0][0, 1] <= limit]
        ordered += sorted(row, key=lambda line: line[0][0, 0])
        left = left[len(row) :]
    return ordered
