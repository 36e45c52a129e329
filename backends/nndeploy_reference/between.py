# SPDX-License-Identifier: Apache-2.0
"""Values between elements, and boxes: resampling, regions, suppression.

Resize goes axis by axis, over all places of the output at once.

Source: ONNX operators Resize (10-19), Upsample (1-9), GridSample (16-22), RoiAlign (10-22), NonMaxSuppression (10, 11).
"""

from collections.abc import Callable, Sequence
from itertools import product
from math import ceil, prod
from typing import Any

import numpy as np

from nndeploy_reference.operator_table import Array, Node, front_axis, in_float32, operator


def _coordinates(mode: str, size: int, out: int, scale: float, width: float, roi: tuple[float, float]) -> Array:
    """Returns where places of an axis of the output lie on that of the input; `width` is size times scale."""
    i = np.arange(out, dtype=np.float64)
    if mode == "align_corners":
        return i * ((size - 1) / (width - 1)) if out > 1 else np.zeros(out)
    if mode == "asymmetric":
        return i / scale
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if mode == "tf_crop_and_resize":
        start, end = roi
        if out > 1:
            return start * (size - 1) + i * (end - start) * (size - 1) / (out - 1)
        return np.full(out, 0.5 * (start + end) * (size - 1))
    if mode == "pytorch_half_pixel" and out <= 1:
        return np.zeros(out)
    centred = (i + 0.5) / scale - 0.5
    return centred + size / 2 * (1 - out / width) if mode == "half_pixel_symmetric" else centred


_ROUNDED: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def cubic(distance: Array, a: float) -> Array:
    """Returns the weights of elements at distances. Source: Keys (1981), equation 4."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    return np.where(d <= 1, near, np.where(d < 2, ((a * d - 5 * a) * d + 8 * a) * d - 4 * a, 0))


def _taps(node: Node, at: Array, size: int, scale: float) -> tuple[Array, Array]:
    """Returns for values at coordinates the elements that they are made of, and their weights: (len(at), taps) each."""
    stretch = max(1.0, 1 / scale) if node.antialias else 1.0
    reach = ceil(stretch * (2 if node.mode == "cubic" else 1))
    places = np.floor(at).astype(np.int64)[:, None] + np.arange(-reach, reach + 2)
    distance = (places - at[:, None]) / stretch
    weight = cubic(distance, node.cubic_coeff_a) if node.mode == "cubic" else np.maximum(1 - np.abs(distance), 0)
    if node.exclude_outside:
        weight = np.where((places >= 0) & (places < size), weight, 0)
    if node.exclude_outside or stretch > 1:
        weight = weight / weight.sum(1, keepdims=True)
    return np.clip(places, 0, size - 1), weight


def _mixed(x: Array, places: Array, weights: Array, axis: int) -> Array:
    """Returns sums of elements along an axis, times weights; what weighs 0 adds nothing, even where it is infinite."""
    along = [-1 if i == axis else 1 for i in range(x.ndim)]
    total = np.zeros([len(places) if i == axis else size for i, size in enumerate(x.shape)])
    for place, weight in zip(places.T, weights.T, strict=True):
        if weight.any():
            share = weight.reshape(along)
            total = total + np.where(share == 0, 0, np.take(x, place, axis) * share)
    return total


def _resampled(
    node: Node, x: Array, axes: Sequence[int], scales: Sequence[float], sizes: Sequence[int], rois: Any
) -> Array:
    mode = node.coordinate_transformation_mode or "asymmetric"
    found, is_outside = x if node.mode == "nearest" else x.astype(np.float64), np.zeros((), bool)
    for axis, scale, out, roi in zip(axes, scales, sizes, rois, strict=True):
        size, width = x.shape[axis], x.shape[axis] * scale * (roi[1] - roi[0] if mode == "tf_crop_and_resize" else 1)
        if out == size and scale == 1 and mode != "tf_crop_and_resize":
            continue
        at = _coordinates(mode, size, out, scale, width, roi)
        if node.mode == "nearest":
            places = _ROUNDED[node.nearest_mode or "floor"](at).astype(np.int64)
            found = np.take(found, np.clip(places, 0, size - 1), axis)
        else:
            found = _mixed(found, *_taps(node, at, size, scale), axis)
        beyond = (at < 0) | (at > size - 1)
        is_outside = is_outside | beyond.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    if mode == "tf_crop_and_resize":
        found = np.where(is_outside, node.extrapolation_value, found)
    if node.mode != "nearest" and x.dtype.kind in "iu":
        info = np.iinfo(x.dtype)
        found = np.clip(np.trunc(found), info.min, info.max)
    return found.astype(x.dtype)


@operator("Resize")
@in_float32
def _resize(node: Node, x: Array, *inputs: Array) -> Array:
    roi, scales, sizes = (*((None, *inputs) if node.version == 10 else inputs), None, None, None)[:3]
    axes = [front_axis(axis, x.ndim) for axis in node.axes or range(x.ndim)]
    rois: Any = [(0.0, 1.0)] * len(axes)
    if node.coordinate_transformation_mode == "tf_crop_and_resize":
        rois = roi.reshape(2, -1).T.astype(np.float64).tolist()
    lengths = [x.shape[axis] for axis in axes]
    if scales is not None and scales.size:
        factors = scales.astype(np.float64).tolist()
        outs = [_length(n * (end - start), f) for n, f, (start, end) in zip(lengths, factors, rois, strict=True)]
    else:
        outs = _wanted((node.keep_aspect_ratio_policy or "stretch"), lengths, sizes.tolist())
        factors = [out / n if n else 1.0 for out, n in zip(outs, lengths, strict=True)]
    return _resampled(node, x, axes, factors, outs, rois)


def _length(size: float, scale: float) -> int:
    """Returns a size times a scale, cut; in float32, as ONNX's own inference of shapes has it."""
    return int(np.floor(np.float32(size) * np.float32(scale)))


def _wanted(policy: str, now: Sequence[int], sizes: list[int]) -> list[int]:
    if policy == "stretch":
        return sizes
    choose = min if policy == "not_larger" else max
    scale = choose(size / n for size, n in zip(sizes, now, strict=True))
    return [int(np.floor(scale * n + 0.5)) for n in now]


@operator("Upsample")
@in_float32
def _upsample(node: Node, x: Array, scales: Array = None) -> Array:
    if node.version == 1:
        factors = [1.0, 1.0, float(node.height_scale), float(node.width_scale)]
        node.mode = "linear" if node.mode == "bilinear" else node.mode
    else:
        factors = [float(f) for f in (node.scales if scales is None else scales)]
    outs = [_length(n, f) for n, f in zip(x.shape, factors, strict=True)]
    return _resampled(node, x, range(x.ndim), factors, outs, [(0.0, 1.0)] * x.ndim)


@operator("GridSample")
@in_float32
def _grid_sample(node: Node, x: Array, grid: Array) -> Array:
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(node.mode, node.mode)
    sizes, count = x.shape[2:], prod(grid.shape[1:-1])
    flat = grid.reshape(len(x), count, x.ndim - 2)[..., ::-1].astype(np.float64)
    at = []
    for a, size in enumerate(sizes):
        g = flat[..., a]
        place = (g + 1) / 2 * (size - 1) if node.align_corners else ((g + 1) * size - 1) / 2
        at.append(_bounded(node, place, size, mode))
    choices = [_choices(a, mode) for a in at]
    total = np.zeros((len(x), flat.shape[1], x.shape[1]))
    images, channels_last = np.arange(len(x))[:, None], np.moveaxis(x, 1, -1).astype(np.float64)
    for corner in product(*choices):
        weight, index = np.ones(flat.shape[:2]), []
        for (place, share), size in zip(corner, sizes, strict=True):
            inside, is_there = _inside(node, place, size)
            weight = weight * share * is_there
            index.append(inside)
        total += np.where(weight[..., None] == 0, 0, weight[..., None] * channels_last[(images, *index)])
    total = np.moveaxis(total, -1, 1).reshape(len(x), x.shape[1], *grid.shape[1:-1])
    return (np.trunc(total) if x.dtype.kind in "iu" else total).astype(x.dtype)


def _bounded(node: Node, at: Array, size: int, mode: str) -> Array:
    if node.padding_mode == "reflection" and mode != "nearest":  # there the chosen element is mirrored
        return _mirrored(at, 0, size - 1) if node.align_corners else _mirrored(at, -0.5, size - 0.5)
    return np.clip(at, 0, size - 1) if node.padding_mode == "border" and mode != "cubic" else at


def _mirrored(at: Array, low: float, high: float) -> Array:
    span = high - low
    if span <= 0:
        return np.full_like(at, low)
    within = np.mod(at - low, 2 * span)
    return low + np.where(within > span, 2 * span - within, within)


def _choices(at: Array, mode: str) -> list[tuple[Array, Array]]:
    """Returns the elements along an axis that values are made of, each with its weights."""
    if mode == "nearest":
        return [(np.rint(at).astype(np.int64), np.ones_like(at))]
    base = np.floor(at)
    if mode == "linear":
        return [(base.astype(np.int64), 1 - (at - base)), (base.astype(np.int64) + 1, at - base)]
    return [(base.astype(np.int64) + k, cubic(at - base - k, -0.75)) for k in (-1, 0, 1, 2)]


def _inside(node: Node, place: Array, size: int) -> tuple[Array, Array]:
    if node.padding_mode == "reflection":
        low, high = (0, size - 1) if node.align_corners else (-0.5, size - 0.5)
        place = np.rint(_mirrored(place.astype(np.float64), low, high)).astype(np.int64)
    is_there = (place >= 0) & (place < size) if node.padding_mode == "zeros" else np.ones(place.shape, bool)
    return np.clip(place, 0, size - 1), is_there


@operator("RoiAlign")
@in_float32
def _roi_align(node: Node, x: Array, rois: Array, batches: Array) -> Array:
    """One region after the other, all its samples at once."""
    is_shifted = node.version >= 16 and node.coordinate_transformation_mode == "half_pixel"
    height, width = node.output_height, node.output_width
    found = np.zeros((len(rois), x.shape[1], height, width), x.dtype)
    for r, roi in enumerate(rois.astype(np.float64)):
        if not np.isfinite(roi).all():
            raise ValueError(f"a region without end in RoiAlign: {roi.tolist()}")
        if not -len(x) <= batches[r] < len(x):
            raise IndexError(f"an index out of range in RoiAlign: {batches[r]} of {len(x)}")
        x1, y1, x2, y2 = (roi * node.spatial_scale - (0.5 if is_shifted else 0)).tolist()
        w, h = (x2 - x1, y2 - y1) if is_shifted else (max(x2 - x1, 1.0), max(y2 - y1, 1.0))
        rows, columns = node.sampling_ratio or ceil(h / height), node.sampling_ratio or ceil(w / width)
        if rows <= 0 or columns <= 0:
            continue  # no sample: 0, as in ONNX Runtime
        ys = y1 + (np.arange(height * rows) + 0.5) * h / (height * rows)
        xs = x1 + (np.arange(width * columns) + 0.5) * w / (width * columns)
        samples = _bilinear(x[int(batches[r])].astype(np.float64), ys, xs, node.mode == "max")
        samples = samples.reshape(*samples.shape[:-2], height, rows, width, columns)
        pooled = samples.max((-3, -1)) if node.mode == "max" else samples.mean((-3, -1))
        found[r] = pooled.max(0) if node.mode == "max" else pooled
    return found


def _bilinear(image: Array, ys: Array, xs: Array, apart: bool) -> Array:
    """Returns values of an image (C, H, W) at rows and columns, 0 more than an element beyond it.

    With `apart` the four weighed neighbours of each sample come apart, as mode "max" of ONNX takes them.
    """
    pairs = []
    for at, size in ((ys, image.shape[1]), (xs, image.shape[2])):
        inside = np.clip(at, 0, size - 1)
        low = np.floor(inside).astype(np.int64)
        share, is_there = inside - low, (at >= -1) & (at <= size)
        pairs.append(((low, (1 - share) * is_there), (np.minimum(low + 1, size - 1), share * is_there)))
    parts = []
    for (rows, row_shares), (columns, shares) in product(*pairs):
        share = row_shares[:, None] * shares
        parts.append(np.where(share == 0, 0, image[:, rows[:, None], columns] * share))
    return np.stack(parts) if apart else sum(parts)


@operator("NonMaxSuppression")
def _suppress(
    node: Node, boxes: Array, scores: Array, most: Array = None, iou: Array = None, least: Array = None
) -> Array:
    limit = 0 if most is None else int(most.reshape(()))
    bound = 0.0 if iou is None else float(iou.reshape(()))
    found = []
    for batch, of_class in np.ndindex(*scores.shape[:2]) if limit > 0 else ():
        corners, row = _corners(node, boxes[batch]), scores[batch, of_class]
        order = np.argsort(-row, kind="stable")
        if least is not None:
            order = order[row[order] > least.reshape(())]
        chosen: list[int] = []
        while order.size and len(chosen) < limit:
            chosen.append(int(order[0]))
            order = order[1:][_overlaps(corners[order[0]], corners[order[1:]]) <= bound]
        found += [(batch, of_class, box) for box in chosen]
    return np.array(found, np.int64).reshape(-1, 3)


def _corners(node: Node, boxes: Array) -> Array:
    boxes = boxes.astype(np.float64)
    if node.center_point_box:
        centre, half = boxes[:, :2], boxes[:, 2:] / 2
        return np.concatenate([centre - half, centre + half], 1)
    return np.concatenate([np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], 1)


def _overlaps(box: Array, others: Array) -> Array:
    sides = np.maximum(np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2]), 0)
    inner = sides.prod(1)
    outer = (box[2:] - box[:2]).prod() + (others[:, 2:] - others[:, :2]).prod(1) - inner
    return np.where(inner > 0, inner / np.where(outer > 0, outer, 1), 0)
