# SPDX-License-Identifier: Apache-2.0
"""boxes-from-grid: the output of FastestDet, one box a cell -> the boxes that are sure enough.

Source: FastestDet (github.com/dog-qiuqiu/FastestDet), the decoding in its README and `test.py`.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nndeploy.errors import InputError
from nndeploy.processors.arrays import Boxes, Classes, Scores, floats_from_value, shape_text, without_batch
from nndeploy.processors.box_forms import corners_from
from nndeploy.processors.builtin.sigmoid import sigmoid
from nndeploy.processors.parameters import Fraction, Side

OBJECTNESS_POWER = 0.6
CLASS_POWER = 0.4


@dataclass(frozen=True)
class BoxesFromGrid:
    """Reads a grid (objectness, x, y, width, height, one score a class) x rows x columns of cells.

    The centre of a box is its cell's corner plus tanh(x, y) cells, its size sigmoid(width, height) of the image, its
    score objectness^0.6 x class score^0.4. `width` and `height` are those of the image that the model saw.
    """

    name: ClassVar[str] = "boxes-from-grid"
    takes: ClassVar[tuple[str, ...]] = ("output",)
    gives: ClassVar[tuple[str, ...]] = ("boxes", "scores", "classes")

    width: Side
    height: Side
    threshold: Fraction = 0.5

    def __call__(self, output: object) -> tuple[Boxes, Scores, Classes]:
        """Returns boxes, their scores and the numbers of their classes, cell by cell, row by row."""
        grid = without_batch(floats_from_value(output, "the output"), 3)
        if grid.ndim != 3 or grid.shape[0] < 6 or not grid.size:
            raise InputError(f"the output must be (5 + classes, rows, columns), is {shape_text(output)}")
        num_rows, num_columns = grid.shape[1:]
        cells = grid.reshape(grid.shape[0], -1)
        classes = cells[5:].argmax(axis=0)
        best = cells[5:][classes, np.arange(cells.shape[1])]
        scores = np.maximum(cells[0], 0) ** OBJECTNESS_POWER * np.maximum(best, 0) ** CLASS_POWER
        kept = np.flatnonzero(scores > self.threshold)
        found = cells[1:5, kept]
        corner = np.stack([kept % num_columns, kept // num_columns]).astype(np.float32)
        centres = (corner + np.tanh(found[:2])) / np.array([[num_columns], [num_rows]], np.float32)
        rows = np.concatenate([centres, sigmoid(found[2:])]).T
        return (
            corners_from(rows, "centres", (self.width, self.height)),
            scores[kept].astype(np.float32),
            classes[kept].astype(np.int64),
        )
