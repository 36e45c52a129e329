# SPDX-License-Identifier: Apache-2.0
"""Resize and Upsample over the spatial axes: the tables of a kernel, as ONNX defines them.

For each axis an output place is a weighted sum of input places: one for "nearest", two for "linear", four for "cubic",
more where antialiasing widens the window. The weights are computed in float64 and rounded once.
Source: ONNX Resize, opset 19: coordinate transformations, nearest modes, cubic coefficients (Keys, 1981), antialias.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.constants import Array, constant_array
from nndeploy.graph.operators import float_attribute, int_attribute, ints_attribute, operand, text_attribute


@dataclass(frozen=True, slots=True)
class Mode:
    """How a Resize computes, from its attributes."""

    kind: str
    coordinates: str
    nearest: str
    cubic: float
    excludes_outside: bool
    antialias: bool
    beyond: float = 0.0
    """What stands beyond the input, where a part of it is resized (extrapolation_value)."""


def resize_tables(
    node: ir.Node, rank: int, sizes: tuple[int, ...], out_sizes: tuple[int, ...]
) -> list[tuple[Array, Array]]:
    """Returns the tables of height and width of a Resize or Upsample whose input has `rank` axes.

    `sizes` and `out_sizes` are (height, width); a table is (places, weights), each (size of the output, taps).

    Raises:
        BuildRefusedError: the node computes otherwise.
    """
    mode, scales = mode_of(node), scales_of(node, rank)
    if scales is None:
        scales = out_sizes[0] / sizes[0], out_sizes[1] / sizes[1]
    return [axis_table(*one, mode) for one in zip(sizes, out_sizes, scales, strict=True)]


def axis_table(length: int, out_length: int, scale: float, mode: Mode) -> tuple[Array, Array]:
    """Returns (places, weights), each (out_length, taps): where each output place reads along one axis."""
    if length == out_length and scale == 1.0:
        return np.arange(length)[:, None], np.ones((length, 1))
    rows = [_taps(_coordinate(i, length, out_length, scale, mode), length, scale, mode) for i in range(out_length)]
    taps = max(len(row) for row in rows)
    places, weights = np.zeros((out_length, taps), np.int64), np.zeros((out_length, taps))
    for i, row in enumerate(rows):
        for j, (place, weight) in enumerate(sorted(row.items())):
            places[i, j], weights[i, j] = place, weight
    return places, weights


def _coordinate(i: int, length: int, out_length: int, scale: float, mode: Mode) -> float:
    """Returns the place in the input that output place `i` stands for.

    With given scales ONNX takes the output's length before it is rounded down, which is `scale * length`.
    """
    match mode.coordinates:
        case "half_pixel":
            return (i + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            adjustment = out_length / (scale * length)
            return length / 2 * (1 - adjustment) + (i + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (i + 0.5) / scale - 0.5 if out_length > 1 else 0.0
        case "align_corners":
            return i * (length - 1) / (scale * length - 1) if scale * length != 1 else 0.0
        case "asymmetric":
            return i / scale
    raise BuildRefusedError(f"a Resize with coordinates {mode.coordinates!r}")


def _taps(x: float, length: int, scale: float, mode: Mode) -> dict[int, float]:
    """Returns the weight of each input place that makes the value at coordinate `x`; they add up to 1."""
    if mode.kind == "nearest":
        return {min(max(_nearest(x, mode.nearest), 0), length - 1): 1.0}
    reach, weight = _filter(mode, scale)
    first = math.floor(x) - reach + 1
    found = {place: weight(x - place) for place in range(first, first + 2 * reach)}
    if mode.excludes_outside:
        found = {place: value for place, value in found.items() if 0 <= place < length}
    if mode.excludes_outside or mode.antialias:
        total = sum(found.values())
        found = {place: value / total for place, value in found.items()}
    taps: dict[int, float] = {}
    for place, value in found.items():
        inside = min(max(place, 0), length - 1)
        taps[inside] = taps.get(inside, 0.0) + value
    return taps


def _filter(mode: Mode, scale: float) -> tuple[int, Callable[[float], float]]:
    """Returns how far the filter reaches, in input places, and its weight at a distance."""
    narrow: Callable[[float], float] = (
        (lambda d: max(0.0, 1.0 - abs(d))) if mode.kind == "linear" else (lambda d: _cubic(abs(d), mode.cubic))
    )
    reach = 1 if mode.kind == "linear" else 2
    if not mode.antialias or scale >= 1.0:
        return reach, narrow
    return math.ceil(reach / scale), lambda d: narrow(d * scale)


def _cubic(d: float, a: float) -> float:
    if d <= 1.0:
        return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    return ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a if d < 2.0 else 0.0


def _nearest(x: float, mode: str) -> int:
    """Returns the nearest place; compares what is left of `x`, for adding a half to it would round."""
    whole = math.floor(x)
    match mode:
        case "round_prefer_floor":
            return whole + (x - whole > 0.5)
        case "round_prefer_ceil":
            return whole + (x - whole >= 0.5)
        case "floor":
            return whole
        case "ceil":
            return math.ceil(x)
    raise BuildRefusedError(f"a Resize with nearest mode {mode!r}")


def mode_of(node: ir.Node) -> Mode:
    """Returns how a Resize or Upsample computes.

    Raises:
        BuildRefusedError: its mode is none of ONNX's.
    """
    kind = text_attribute(node, "mode", "nearest")
    if kind not in ("nearest", "linear", "cubic"):
        raise BuildRefusedError(f"a Resize of mode {kind!r}")
    is_old = node.op_type == "Upsample" or len(node.inputs) == 2  # opset 10 and before: neither had a choice
    return Mode(
        kind,
        text_attribute(node, "coordinate_transformation_mode", "asymmetric" if is_old else "half_pixel"),
        text_attribute(node, "nearest_mode", "floor" if is_old else "round_prefer_floor"),
        float_attribute(node, "cubic_coeff_a", -0.75),
        int_attribute(node, "exclude_outside", 0) == 1,
        int_attribute(node, "antialias", 0) == 1,
        float_attribute(node, "extrapolation_value", 0.0),
    )


def scales_of(node: ir.Node, rank: int) -> tuple[float, float] | None:
    """Returns the scales of height and width that are given, None where the sizes of the output are.

    Raises:
        BuildRefusedError: the aspect ratio is kept, or the scales are not constant.
    """
    if aspect_of(node) != "stretch":
        raise BuildRefusedError("a Resize that keeps the aspect ratio")
    scales = axis_scales(node, rank)
    return None if scales is None else (scales[-2], scales[-1])


def axis_scales(node: ir.Node, rank: int) -> tuple[float, ...] | None:
    """Returns the scale of each axis, 1 of those that are not named; None where the sizes of the output are given.

    Raises:
        BuildRefusedError: the scales are not constant.

    Source: ONNX Resize, opset 18: `axes`; Upsample, opset 7: `scales` as an attribute.
    """
    given = list(node.attributes["scales"].as_floats()) if "scales" in node.attributes else None
    value = operand(node, 1 if len(node.inputs) == 2 else 2)
    if given is None and value is not None:
        array = constant_array(value)
        if array is None and operand(node, 3) is None:
            raise BuildRefusedError("a Resize by scales that are not constant")
        given = None if array is None or not array.size else [float(one) for one in array.reshape(-1)]
    return None if given is None else tuple(_of_axes(node, rank, given, 1.0))


def axis_sizes(node: ir.Node, rank: int) -> tuple[int, ...] | None:
    """Returns the sizes of the output that are given, -1 of axes that are not named; None where none are constant."""
    array = constant_array(value) if (value := operand(node, 3)) is not None else None
    return None if array is None else tuple(int(one) for one in _of_axes(node, rank, array.reshape(-1).tolist(), -1))


def axis_crops(node: ir.Node, rank: int) -> tuple[tuple[float, float], ...]:
    """Returns which part of each axis is resized: (begin, end) as shares of its last place.

    Raises:
        BuildRefusedError: that is no constant.
    """
    value = operand(node, 1)
    if mode_of(node).coordinates != "tf_crop_and_resize":
        return ((0.0, 1.0),) * rank
    array = constant_array(value) if value is not None else None
    if array is None or array.size % 2:
        raise BuildRefusedError("a Resize of a part of its input that is not constant")
    begins, ends = array.reshape(2, -1).astype(np.float64).tolist()
    return tuple(zip(_of_axes(node, rank, begins, 0.0), _of_axes(node, rank, ends, 1.0), strict=True))


def aspect_of(node: ir.Node) -> str:
    """Returns how a Resize keeps the ratio of its axes, "stretch" where it does not."""
    return text_attribute(node, "keep_aspect_ratio_policy", "stretch")


def _of_axes(node: ir.Node, rank: int, given: Sequence[float], default: float) -> list[float]:
    axes = ints_attribute(node, "axes") or range(rank)
    if len(axes) != len(given):
        raise BuildRefusedError(f"a Resize of {len(axes)} axes with {len(given)} numbers")
    found = [default] * rank
    for axis, number in zip(axes, given, strict=True):
        found[axis % rank] = number
    return found
