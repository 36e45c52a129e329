# SPDX-License-Identifier: Apache-2.0
"""Values between elements: Resize, Upsample, GridSample, AffineGrid, RoiAlign.

Each axis is resampled by itself: a place of the output is a coordinate of the input, near which elements are weighed.
"""

import math
from itertools import product
from typing import Any

import numpy as np

from oracle.indexing import checked_index
from oracle.reductions import axes_of
from oracle.registry import Call, InvalidError, UnspecifiedError, is_float, operator


def _coordinate(call: Call, i: int, size: int, out: int, scale: float, width: float, roi: tuple[float, float]) -> float:
    """Returns where the i-th of `out` places lies in an axis of `size`; `width` is what the scale alone would make."""
    mode = call.coordinate_transformation_mode or "asymmetric"
    if mode == "half_pixel":
        return (i + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        return size / 2 * (1 - out / width) + (i + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel":
        return (i + 0.5) / scale - 0.5 if out > 1 else 0.0
    if mode == "align_corners":
        if width != out:
            raise UnspecifiedError("whether the length that is resized to has its fraction")
        return i * (size - 1) / (out - 1) if out > 1 else 0.0
    if mode == "asymmetric":
        return i / scale
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if mode == "tf_crop_and_resize":
        start, end = roi
        step = (end - start) * (size - 1) / (out - 1) if out > 1 else 0
        return start * (size - 1) + i * step if out > 1 else 0.5 * (start + end) * (size - 1)
    raise InvalidError(mode)


def _nearest(x: float, mode: str) -> int:
    if mode == "round_prefer_floor":
        return math.ceil(x - 0.5)
    if mode == "round_prefer_ceil":
        return math.floor(x + 0.5)
    return math.floor(x) if mode == "floor" else math.ceil(x)


def cubic(distance: float, a: float) -> float:
    """Returns the weight of an element at a distance in cubic convolution."""
    d = abs(distance)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def _weights(call: Call, at: float, size: int, scale: float) -> dict[int, float]:
    """Returns the elements of an axis that a coordinate is made of, each with its weight."""
    if call.mode == "nearest":
        return {min(max(_nearest(at, call.nearest_mode or "floor"), 0), size - 1): 1.0}
    stretch = max(1.0, 1 / scale) if call.antialias else 1.0
    reach = stretch * (2 if call.mode == "cubic" else 1)

    def weight(place: int) -> float:
        distance = (place - at) / stretch
        return cubic(distance, call.cubic_coeff_a) if call.mode == "cubic" else max(0.0, 1 - abs(distance))

    places = range(math.floor(at - reach), math.ceil(at + reach) + 1)
    found = {place: weight(place) for place in places if weight(place) != 0}
    if call.exclude_outside:
        found = {place: w for place, w in found.items() if 0 <= place < size}
    if call.exclude_outside or call.antialias:
        total = sum(found.values())
        found = {place: w / total for place, w in found.items()}
    merged: dict[int, float] = {}
    for place, w in found.items():
        inside = min(max(place, 0), size - 1)
        merged[inside] = merged.get(inside, 0.0) + w
    return merged


def _resized(call: Call, x: Any, scales: list[float], sizes: list[int], widths: list[float], rois: Any) -> Any:
    if call.mode != "nearest" and is_float(x.dtype) and not np.isfinite(x).all():
        raise UnspecifiedError("an infinite value that weighs 0")
    found = x.astype(np.float64) if call.mode != "nearest" else x
    is_outside = np.zeros((), bool)
    for axis, (scale, out, width) in enumerate(zip(scales, sizes, widths, strict=True)):
        size = x.shape[axis]
        if out == size and scale == 1 and call.coordinate_transformation_mode != "tf_crop_and_resize":
            continue
        if size == 0 and out:
            raise InvalidError("elements out of none")
        parts, beyond = [], []
        for i in range(out):
            at = _coordinate(call, i, size, out, scale, width, rois[axis])
            beyond.append(not 0 <= at <= size - 1)
            parts.append(sum(w * np.take(found, [p], axis) for p, w in _weights(call, at, size, scale).items()))
        shape = [1] * x.ndim
        shape[axis] = out
        found = np.concatenate(parts, axis) if parts else np.take(found, [], axis)
        is_outside = is_outside | np.array(beyond, bool).reshape(shape)
    if call.coordinate_transformation_mode == "tf_crop_and_resize":
        found = np.where(is_outside, call.extrapolation_value, found)
    return found if is_float(x.dtype) or call.mode == "nearest" else _as_integers(found, x.dtype)


def _as_integers(found: Any, dtype: Any) -> Any:
    if (np.abs(found - np.rint(found)) > 1e-9).any():
        raise UnspecifiedError("how fractions become integers")
    return np.rint(found)


def _cut(width: float) -> int:
    if math.floor(width) != math.floor(np.float32(width)):
        raise UnspecifiedError("a size that rounding decides")
    return math.floor(width)


@operator("Resize")
def _resize_by_scales(call: Call, x: Any, scales: Any) -> Any:
    """Version 10: coordinates are those of Upsample, the sizes divided by the scales."""
    return _by_scales(call, x, scales.tolist())


def _by_scales(call: Call, x: Any, scales: list[float]) -> Any:
    if len(scales) != x.ndim or min(scales, default=1) <= 0:
        raise InvalidError(f"scales {scales}")
    widths = [scale * size for scale, size in zip(scales, x.shape, strict=True)]
    sizes = [_cut(width) for width in widths]
    return _resized(call, x, scales, sizes, widths, [(0, 1)] * x.ndim)


@operator("Resize", since=11)
def _resize(call: Call, x: Any, roi: Any = None, scales: Any = None, sizes: Any = None) -> Any:
    axes = axes_of(range(x.ndim) if call.axes is None else call.axes, x.ndim)
    rois = [(0.0, 1.0)] * x.ndim
    if call.coordinate_transformation_mode == "tf_crop_and_resize":
        if roi is None:
            raise InvalidError("no roi")
        for k, axis in enumerate(axes):
            rois[axis] = (roi[k], roi[len(axes) + k])
    factors, targets, widths = [1.0] * x.ndim, list(x.shape), [float(size) for size in x.shape]
    if (scales is None or scales.size == 0) == (sizes is None or sizes.size == 0):
        raise InvalidError("either scales or sizes")
    if scales is not None and scales.size:
        for axis, scale in zip(axes, scales.tolist(), strict=True):
            widths[axis] = x.shape[axis] * (rois[axis][1] - rois[axis][0]) * scale
            factors[axis], targets[axis] = scale, _cut(widths[axis])
    else:
        for axis, out in zip(axes, _target_sizes(call, [x.shape[a] for a in axes], sizes.tolist()), strict=True):
            factors[axis], targets[axis], widths[axis] = out / x.shape[axis], out, float(out)
    return _resized(call, x, factors, targets, widths, rois)


def _target_sizes(call: Call, now: list[int], wanted: list[int]) -> list[int]:
    policy = call.keep_aspect_ratio_policy or "stretch"
    if policy == "stretch":
        return wanted
    choose = min if policy == "not_larger" else max
    scale = choose(w / n for w, n in zip(wanted, now, strict=True))
    return [math.floor(scale * n + 0.5) for n in now]


@operator("Upsample")
def _upsample(call: Call, x: Any, scales: Any = None) -> Any:
    if call.version == 1:
        factors = [1.0, 1.0, call.height_scale, call.width_scale]
        call.attributes = {**call.attributes, "mode": "linear" if call.mode == "bilinear" else call.mode}
    else:
        factors = call.scales if scales is None else scales.tolist()
    return _by_scales(call, x, factors)


@operator("AffineGrid")
def _affine_grid(call: Call, theta: Any, size: Any) -> Any:
    if not np.isfinite(theta).all():
        raise UnspecifiedError("an infinite share of a coordinate of 0")
    spatial = size.tolist()[2:]
    found = np.empty((theta.shape[0], *spatial, len(spatial)))
    for place in np.ndindex(*spatial):
        if call.align_corners:
            at = [2 * p / (n - 1) - 1 if n > 1 else 0.0 for p, n in zip(place, spatial, strict=True)]
        else:
            at = [(2 * p + 1) / n - 1 for p, n in zip(place, spatial, strict=True)]
        found[(slice(None), *place)] = theta @ np.array([*at[::-1], 1.0])
    return found


def _reflected(at: float, low: float, high: float) -> float:
    if high <= low:
        return low
    while not low <= at <= high:
        at = 2 * low - at if at < low else 2 * high - at
    return at


@operator("GridSample")
def _grid_sample(call: Call, x: Any, grid: Any) -> Any:
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(call.mode, call.mode)
    if not np.isfinite(grid).all():
        raise UnspecifiedError("places that are not finite")
    found = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n, place in product(range(x.shape[0]), np.ndindex(*grid.shape[1:-1])):
        at = [
            (g + 1) / 2 * (size - 1) if call.align_corners else ((g + 1) * size - 1) / 2
            for g, size in zip(grid[(n, *place)][::-1].tolist(), x.shape[2:], strict=True)
        ]
        if call.padding_mode == "reflection" and mode == "nearest" and any(a % 1 == 0.5 for a in at):
            raise UnspecifiedError("whether halves are rounded before they are mirrored")
        if call.padding_mode == "reflection":
            at = [_mirrored(call, a, size) for a, size in zip(at, x.shape[2:], strict=True)]
        elif call.padding_mode == "border" and mode != "cubic":
            at = [min(max(a, 0), size - 1) for a, size in zip(at, x.shape[2:], strict=True)]
        found[(n, slice(None), *place)] = _sampled(call, x[n], at, mode)
    return found if is_float(x.dtype) else np.trunc(found)


def _mirrored(call: Call, at: float, size: int) -> float:
    return _reflected(at, 0, size - 1) if call.align_corners else _reflected(at, -0.5, size - 0.5)


def _sampled(call: Call, x: Any, at: list[float], mode: str) -> Any:
    """Returns the values of all channels at a place."""
    if mode == "nearest":
        choices = [{round(a): 1.0} for a in at]  # halves go to the even index
    elif mode == "linear":
        choices = [{math.floor(a): 1 - (a - math.floor(a)), math.floor(a) + 1: a - math.floor(a)} for a in at]
    else:
        choices = [{math.floor(a) + k: cubic(a - math.floor(a) - k, -0.75) for k in (-1, 0, 1, 2)} for a in at]
    total = np.zeros(x.shape[0])
    for places in product(*(choice.items() for choice in choices)):
        index = [_inside(call, place, size) for (place, _), size in zip(places, x.shape[1:], strict=True)]
        weight = math.prod(w for _, w in places)
        if weight and None not in index:
            total += weight * x[(slice(None), *index)]
    return total


def _inside(call: Call, place: int, size: int) -> int | None:
    if 0 <= place < size:
        return place
    if call.padding_mode == "zeros":
        return None
    if call.padding_mode == "border":
        return min(max(place, 0), size - 1)
    return min(max(round(_mirrored(call, place, size)), 0), size - 1)


@operator("RoiAlign")
def _roi_align(call: Call, x: Any, rois: Any, batches: Any) -> Any:
    """Samples of a bin are averaged; each is interpolated between four elements."""
    if call.mode == "max":
        raise UnspecifiedError("whether the greatest is chosen before or after its weight is applied")
    if not np.isfinite(rois).all() or not np.isfinite(x).all():
        raise UnspecifiedError("a region without end, or a weight of nothing on what is not finite")
    shift = 0.5 if call.version >= 16 and call.coordinate_transformation_mode == "half_pixel" else 0.0
    height, width = call.output_height, call.output_width
    found = np.zeros((len(rois), x.shape[1], height, width))
    for r, roi in enumerate(rois):
        image = x[checked_index(batches[r], x.shape[0])]
        x1, y1, x2, y2 = (roi * call.spatial_scale - shift).tolist()
        w, h = x2 - x1, y2 - y1
        if not shift:
            w, h = max(w, 1.0), max(h, 1.0)
        rows = call.sampling_ratio or math.ceil(h / height)
        columns = call.sampling_ratio or math.ceil(w / width)
        if rows <= 0 or columns <= 0:
            raise UnspecifiedError("a mean of no samples")
        for i, j in product(range(height), range(width)):
            values = [
                _bilinear(image, y1 + (i + (a + 0.5) / rows) * h / height, x1 + (j + (b + 0.5) / columns) * w / width)
                for a, b in product(range(rows), range(columns))
            ]
            found[r, :, i, j] = np.mean(values, 0)
    return found


def _bilinear(image: Any, y: float, x: float) -> Any:
    """0 more than an element beyond the image; what is less beyond it takes the border."""
    height, width = image.shape[1:]
    if not -1 <= y <= height or not -1 <= x <= width:
        return np.zeros(image.shape[0])
    y, x = min(max(y, 0.0), height - 1.0), min(max(x, 0.0), width - 1.0)
    y0, x0 = math.floor(y), math.floor(x)
    y1, x1 = min(y0 + 1, height - 1), min(x0 + 1, width - 1)
    top = image[:, y0, x0] * (1 - (x - x0)) + image[:, y0, x1] * (x - x0)
    bottom = image[:, y1, x0] * (1 - (x - x0)) + image[:, y1, x1] * (x - x0)
    return top * (1 - (y - y0)) + bottom * (y - y0)
