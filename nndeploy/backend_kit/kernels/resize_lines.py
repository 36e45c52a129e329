# SPDX-License-Identifier: Apache-2.0
"""Resize and Upsample of sizes that are not fixed: where an output place lies in the input, in whole numbers.

Output place i of an axis stands for place (factor * i + offset) / divisor of the input. Between two places a linear
Resize weighs them by how near they are; beyond the edge the edge counts. What `resize_tables.py` writes into tables for
one size follows here from the sizes of a call.
Source: ONNX Resize, opset 19: coordinate transformations, nearest modes.
"""

from dataclasses import dataclass
from fractions import Fraction

import onnx_ir as ir

from nndeploy.backend_kit.kernels.resize_tables import mode_of, scales_of
from nndeploy.errors import BuildRefusedError
from nndeploy.values.size import MAX_SIZE, Dim, bounds, most

KINDS = ("linear", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
"""Linear, or the nearest place by one of ONNX's roundings."""


@dataclass(frozen=True, slots=True)
class PlaceLine:
    """Output place i stands for place (factor * i + offset) / divisor; the divisor is positive."""

    factor: Dim
    offset: Dim
    divisor: Dim


def resize_lines(
    node: ir.Node, rank: int, sizes: tuple[Dim, Dim], out_sizes: tuple[Dim, Dim]
) -> tuple[str, list[PlaceLine]]:
    """Returns the kind of `KINDS`, and the lines of height and width, of a node whose input has `rank` axes.

    `sizes` and `out_sizes` are (height, width).

    Raises:
        BuildRefusedError: the node computes otherwise, or with numbers beyond 32 bits.
    """
    mode, scales = mode_of(node), scales_of(node, rank)
    kind = "linear" if mode.kind == "linear" else mode.nearest
    if mode.kind == "cubic" or mode.antialias or kind not in KINDS:
        raise BuildRefusedError("a Resize that is cubic or smoothed, of a size that is not fixed")
    lines = []
    for axis in range(2):
        size, out_size = sizes[axis], out_sizes[axis]
        line = _line(mode.coordinates, size, out_size, None if scales is None else scales[axis])
        if bounds(2 * (line.factor * out_size + line.divisor))[1] > MAX_SIZE:
            raise BuildRefusedError("a Resize of so long an axis")
        lines.append(line)
    return kind, lines


def _line(coordinates: str, size: Dim, out_size: Dim, scale: float | None) -> PlaceLine:
    """Returns the line of an axis; without a scale that of the sizes counts, grown / shrunk."""
    grown, shrunk = (out_size, size) if scale is None else Fraction(scale).as_integer_ratio()
    match coordinates:
        case "pytorch_half_pixel" if not out_size > 1:
            return PlaceLine(0, 0, 1)
        case "half_pixel" | "pytorch_half_pixel":
            return PlaceLine(2 * shrunk, shrunk - grown, 2 * grown)
        case "align_corners" if scale is None:
            return PlaceLine(size - 1, 0, most(1, out_size - 1))
        case "align_corners":  # ONNX takes the output's length before it is rounded down
            return PlaceLine((size - 1) * shrunk, 0, most(1, size * grown - shrunk))
        case "asymmetric":
            return PlaceLine(shrunk, 0, grown)
    raise BuildRefusedError(f"a Resize with coordinates {coordinates!r} of a size that is not fixed")
