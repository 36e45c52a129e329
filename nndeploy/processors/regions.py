# SPDX-License-Identifier: Apache-2.0
"""Connected regions of a mask, and the smallest rectangle, however turned, around each.

A mask becomes its runs (pixels of one row that touch), runs that touch in neighbouring rows become one region, all by
arrays; only the convex hull of a region is walked point by point, and that has few. Written here rather than taken
from OpenCV, whose three functions for it would bring 90 MB onto every box that reads text.

Law: a region's rectangle holds every pixel of it whole (pixels are squares, see `arrays`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Points = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Runs:
    """Row, first column and column behind the last of each run, row by row from left to right."""

    rows: Ints
    starts: Ints
    ends: Ints


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle that may be turned: its centre, the unit vectors of its sides and their lengths."""

    centre: Points
    axes: Points
    sizes: Points

    def grown(self, distance: float) -> "Rectangle":
        """Returns it with each side moved outwards by `distance`."""
        return Rectangle(self.centre, self.axes, self.sizes + 2 * distance)

    def corners(self) -> Points:
        """Returns (4, 2), clockwise as one sees it; the first is the upper one of the two furthest left."""
        half = self.axes * (self.sizes / 2)[:, np.newaxis]
        signs = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        corners = self.centre + signs @ half
        by_x = corners[np.lexsort((corners[:, 1], corners[:, 0]))]
        left, right = by_x[:2][np.argsort(by_x[:2, 1], kind="stable")], by_x[2:][np.argsort(by_x[2:, 1], kind="stable")]
        return np.array([left[0], right[0], right[1], left[1]])


def runs_of(mask: npt.NDArray[np.bool_]) -> Runs:
    """Returns the runs of true pixels of a mask (H, W)."""
    edges = np.zeros((mask.shape[0], mask.shape[1] + 2), np.int8)
    edges[:, 1:-1] = mask
    steps = np.diff(edges, axis=1)
    rows, starts = np.nonzero(steps == 1)
    return Runs(rows, starts, np.nonzero(steps == -1)[1])


def regions_of(runs: Runs) -> Iterator[Ints]:
    """Yields the numbers of the runs of each region, in the order of its first run; corners that touch connect."""
    labels = _joined(*_touching(runs), len(runs.rows))
    order = np.argsort(labels, kind="stable")
    ends = np.flatnonzero(np.diff(labels[order])) + 1
    yield from np.split(order, ends) if len(order) else ()


def _touching(runs: Runs) -> tuple[Ints, Ints]:
    """Returns the pairs of runs of neighbouring rows that touch."""
    stride = int(runs.ends.max(initial=0)) + 2  # keys of one row are all below those of the next
    below = (runs.rows + 1) * stride
    first = np.searchsorted(runs.rows * stride + runs.ends, below + runs.starts, "left")
    behind = np.searchsorted(runs.rows * stride + runs.starts, below + runs.ends, "right")
    counts = np.maximum(behind - first, 0)
    upper = np.repeat(np.arange(len(counts)), counts)
    within = np.arange(len(upper)) - np.repeat(np.cumsum(counts) - counts, counts)
    return upper, np.repeat(first, counts) + within


def _joined(one: Ints, other: Ints, count: int) -> Ints:
    """Returns the smallest number of each connected set, for each of its members."""
    labels = np.arange(count)
    while True:
        low = np.minimum(labels[one], labels[other])
        np.minimum.at(labels, labels[one], low)
        np.minimum.at(labels, labels[other], low)
        while not np.array_equal(shorter := labels[labels], labels):
            labels = shorter
        if np.array_equal(labels[one], labels[other]):
            return labels


def corner_points(runs: Runs, members: Ints) -> Points:
    """Returns the outermost pixel corners of each row of a region, which have its convex hull."""
    rows, first = np.unique(runs.rows[members], return_index=True)
    left = np.minimum.reduceat(runs.starts[members], first)
    right = np.maximum.reduceat(runs.ends[members], first)
    columns = np.concatenate([left, right, left, right])
    return np.stack([columns, np.concatenate([rows, rows, rows + 1, rows + 1])], axis=1).astype(np.float64)


def convex_hull(points: Points) -> Points:
    """Returns the corners of the convex hull, none of them between two others (Andrew's monotone chain)."""
    ordered = sorted(set(map(tuple, points.tolist())))
    if len(ordered) < 3:
        return np.array(ordered, np.float64).reshape(-1, 2)
    return np.array(_chain(ordered)[:-1] + _chain(ordered[::-1])[:-1], np.float64)


def _chain(points: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
    chain: list[tuple[float, ...]] = []
    for x, y in points:
        while len(chain) > 1:
            (x1, y1), (x2, y2) = chain[-2:]
            if (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1) > 0:
                break
            chain.pop()
        chain.append((x, y))
    return chain


def smallest_rectangle(points: Points) -> Rectangle:
    """Returns the rectangle of least area around points that are not all on one line: one side of it is the hull's."""
    hull = convex_hull(points)
    sides = np.roll(hull, -1, axis=0) - hull
    along = sides / np.linalg.norm(sides, axis=1, keepdims=True)
    axes = np.stack([along, np.stack([-along[:, 1], along[:, 0]], axis=1)], axis=1)  # (sides, 2, 2)
    places = axes @ hull.T  # (sides, 2, points)
    low, high = places.min(axis=2), places.max(axis=2)
    best = int(np.argmin(np.round((high - low).prod(axis=1), 9)))
    return Rectangle((low[best] + high[best]) / 2 @ axes[best], axes[best], high[best] - low[best])
