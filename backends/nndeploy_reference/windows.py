# SPDX-License-Identifier: Apache-2.0
"""Pooling and convolutions: one step for each place of the window, over all windows at once.

Windows are places of an output; a place of the window is a strided view of the padded input. With ceil_mode a last
window that would begin beyond the input and its padding at the beginning is left out. An average counts elements of the
input, with count_include_pad those of its padding too.

Source: ONNX operators MaxPool (1-22), AveragePool (1-22), LpPool (1-22), Conv (1-22), ConvTranspose (1-22),
ConvInteger (10), QLinearConv (10), DeformConv (19, 22), Col2Im (18), MaxUnpool (9-22), MaxRoiPool (1, 22), LRN (1, 13).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import ceil, floor, prod

import numpy as np

from nndeploy_reference.operator_table import Array, Node, in_float32, operator


@dataclass(frozen=True, slots=True)
class _Windows:
    """Windows over spatial axes: sizes of the input and the output, of the window, and what is padded."""

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    counts: tuple[int, ...]

    def taps(self) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
        """Yields each place of the window with the view of a padded input that all windows have there."""
        for tap in product(*map(range, self.kernel)):
            starts = [t * d for t, d in zip(tap, self.dilations, strict=True)]
            yield (
                tap,
                tuple(
                    slice(start, start + (count - 1) * stride + 1, stride)
                    for start, count, stride in zip(starts, self.counts, self.strides, strict=True)
                ),
            )

    def padded(self, x: Array, filler: float, within: bool = False) -> Array:
        """Returns x with all that windows reach; with `within` its own padding is 1, and only what is beyond filled."""
        reaches = [
            (count - 1) * stride + (k - 1) * d + 1 - begin - size
            for count, stride, k, d, begin, size in zip(
                self.counts, self.strides, self.kernel, self.dilations, self.begins, self.sizes, strict=True
            )
        ]
        lead = [(0, 0)] * (x.ndim - len(self.sizes))
        if within:
            x = np.pad(x, [*lead, *zip(self.begins, self.ends, strict=True)], constant_values=1)
            begins: Sequence[int] = [0] * len(self.sizes)
            reaches = [reach - end for reach, end in zip(reaches, self.ends, strict=True)]
        else:
            begins = self.begins
        wide = [(begin, max(reach, 0)) for begin, reach in zip(begins, reaches, strict=True)]
        return np.pad(x, [*lead, *wide], constant_values=filler)


def _windows(node: Node, sizes: Sequence[int], kernel: Sequence[int]) -> _Windows:
    rank = len(sizes)
    strides, dilations = tuple(node.strides or [1] * rank), tuple(node.dilations or [1] * rank)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    mode, pads = node.auto_pad or "NOTSET", node.pads or [0] * (2 * rank)
    if mode.startswith("SAME"):
        counts = [ceil(size / stride) for size, stride in zip(sizes, strides, strict=True)]
        missing = [max((c - 1) * s + k - n, 0) for c, s, k, n in zip(counts, strides, spans, sizes, strict=True)]
        lower = [m // 2 if mode == "SAME_UPPER" else m - m // 2 for m in missing]
        pads = [*lower, *(m - low for m, low in zip(missing, lower, strict=True))]
    else:
        pads = [0] * (2 * rank) if mode == "VALID" else list(pads)
        rounded = ceil if mode == "NOTSET" and node.ceil_mode else floor
        counts = []
        for size, stride, span, begin, end in zip(sizes, strides, spans, pads[:rank], pads[rank:], strict=True):
            count = rounded((size + begin + end - span) / stride) + 1
            counts.append(count - (rounded is ceil and (count - 1) * stride >= size + begin))
    if min(counts, default=1) < 1:
        raise ValueError(f"a window of {spans} over {list(sizes)} with pads {pads}")
    return _Windows(
        tuple(sizes), tuple(kernel), strides, dilations, tuple(pads[:rank]), tuple(pads[rank:]), tuple(counts)
    )


def _least(dtype: "np.dtype[np.generic]") -> float:
    return -np.inf if dtype.kind == "f" else float(np.iinfo(dtype).min)


@operator("MaxPool")
@in_float32
def _max_pool(node: Node, x: Array) -> tuple[Array, ...]:
    windows = _windows(node, x.shape[2:], node.kernel_shape)
    padded = windows.padded(x, _least(x.dtype))
    if node.num_outputs == 1:
        return (reduce(np.maximum, (padded[(..., *view)] for _, view in windows.taps())),)
    order = "F" if node.storage_order else "C"
    places = np.arange(prod(x.shape[2:])).reshape(x.shape[2:], order=order)
    numbered = windows.padded(places, -1)
    best = index = None
    for _, view in windows.taps():
        value, place = padded[(..., *view)], numbered[view]
        if best is None:
            best, index = value.copy(), np.broadcast_to(place, value.shape).copy()
            continue
        is_new = (place >= 0) & ((value > best) | (index < 0) | (np.isnan(value) & ~np.isnan(best)))
        best, index = np.where(is_new, value, best), np.where(is_new, place, index)
    images = np.arange(prod(x.shape[:2])).reshape(*x.shape[:2], *(1 for _ in x.shape[2:]))
    return best, (images * places.size + index).astype(np.int64)


@operator("AveragePool")
@in_float32
def _average_pool(node: Node, x: Array) -> Array:
    windows = _windows(node, x.shape[2:], node.kernel_shape)
    padded, mask = windows.padded(x, 0), np.ones(x.shape[2:])
    counted = windows.padded(mask, 0, within=bool(node.count_include_pad))
    total = sum(padded[(..., *view)].astype(np.float64) for _, view in windows.taps())
    return (total / sum(counted[view] for _, view in windows.taps())).astype(x.dtype)


@operator("LpPool")
@in_float32
def _lp_pool(node: Node, x: Array) -> Array:
    windows = _windows(node, x.shape[2:], node.kernel_shape)
    padded = np.abs(windows.padded(x, 0).astype(np.float64)) ** node.p
    return (sum(padded[(..., *view)] for _, view in windows.taps()) ** (1 / node.p)).astype(x.dtype)


@operator("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool")
@in_float32
def _global_pool(node: Node, x: Array) -> Array:
    axes = tuple(range(2, x.ndim))
    if node.op_type == "GlobalMaxPool":
        return x.max(axes, keepdims=True)
    wide = x.astype(np.float64)
    if node.op_type == "GlobalAveragePool":
        return wide.mean(axes, keepdims=True).astype(x.dtype)
    return ((np.abs(wide) ** node.p).sum(axes, keepdims=True) ** (1 / node.p)).astype(x.dtype)


@operator("MaxUnpool")
def _max_unpool(node: Node, x: Array, indices: Array, output_shape: Array = None) -> Array:
    rank = x.ndim - 2
    strides, pads = node.strides or [1] * rank, node.pads or [0] * (2 * rank)
    spatial = [
        (size - 1) * stride + k - pads[i] - pads[rank + i]
        for i, (size, stride, k) in enumerate(zip(x.shape[2:], strides, node.kernel_shape, strict=True))
    ]
    small = np.zeros(prod(x.shape[:2]) * prod(spatial), x.dtype)
    if indices.size and not (0 <= indices.min() and indices.max() < small.size):
        raise IndexError(f"an index out of range in MaxUnpool: {indices.max()} of {small.size}")
    small[indices.ravel()] = x.ravel()
    small = small.reshape(*x.shape[:2], *spatial)
    if output_shape is None:
        return small
    found = np.zeros(output_shape.tolist(), x.dtype)
    found[tuple(map(slice, small.shape))] = small
    return found


@operator("LRN")
@in_float32
def _lrn(node: Node, x: Array) -> Array:
    wide, channels = x.astype(np.float64), x.shape[1]
    before = (node.size - 1) // 2
    pads = [(0, 0)] * x.ndim
    pads[1] = (before, node.size - 1 - before)
    squares = np.pad(wide * wide, pads)
    total = sum(squares[:, i : i + channels] for i in range(node.size))
    return (wide / (node.bias + node.alpha / node.size * total) ** node.beta).astype(x.dtype)


@operator("MaxRoiPool")
@in_float32
def _max_roi_pool(node: Node, x: Array, rois: Array) -> Array:
    """Corners are rounded, bins take whole elements outward; a bin of nothing is 0. Source: Fast R-CNN."""
    height, width = node.pooled_shape
    found = np.zeros((len(rois), x.shape[1], height, width), x.dtype)
    for r, roi in enumerate(rois.astype(np.float64)):
        left, top, right, bottom = np.round(roi[1:] * node.spatial_scale).astype(int).tolist()
        rows = _bins(top, max(bottom - top + 1, 1), height, x.shape[2])
        columns = _bins(left, max(right - left + 1, 1), width, x.shape[3])
        for i, j in product(range(height), range(width)):
            part = x[int(roi[0]), :, rows[i], columns[j]]
            found[r, :, i, j] = part.max((1, 2)) if part.size else 0
    return found


def _bins(begin: int, size: int, count: int, limit: int) -> list[slice]:
    edges = [(floor(i * size / count) + begin, ceil((i + 1) * size / count) + begin) for i in range(count)]
    return [slice(min(max(a, 0), limit), min(max(b, 0), limit)) for a, b in edges]


def _convolved(node: Node, x: Array, w: Array) -> Array:
    """Returns the convolution of x (N, C, D..) by w (M, C / group, K..), a product of matrices for each tap."""
    groups, windows = node.group, _windows(node, x.shape[2:], w.shape[2:])
    padded = windows.padded(x, 0)
    kernels = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    found = np.zeros((x.shape[0], groups, w.shape[0] // groups, prod(windows.counts)), x.dtype)
    for tap, view in windows.taps():
        part = padded[(..., *view)].reshape(x.shape[0], groups, w.shape[1], prod(windows.counts))
        found += kernels[(..., *tap)] @ part
    return found.reshape(x.shape[0], w.shape[0], *windows.counts)


def _by_channel(values: Array, rank: int) -> Array:
    return values.reshape(-1, *(1,) * (rank - 2)) if values.ndim else values


@operator("Conv")
@in_float32
def _conv(node: Node, x: Array, w: Array, b: Array = None) -> Array:
    found = _convolved(node, x, w)
    return found if b is None else found + _by_channel(b, x.ndim)


def _centred(x: Array, zero: Array, by_row: bool = False) -> Array:
    """Returns x less its zero point as int64; float64 would be no more exact."""
    if zero is None:
        return x.astype(np.int64)
    zero = zero.astype(np.int64)
    zero = zero.reshape(-1, *(1,) * (x.ndim - 1)) if by_row and zero.size > 1 else zero.reshape(())
    return x.astype(np.int64) - zero


@operator("ConvInteger")
def _conv_integer(node: Node, x: Array, w: Array, x_zero: Array = None, w_zero: Array = None) -> Array:
    return _convolved(node, _centred(x, x_zero), _centred(w, w_zero, by_row=True)).astype(np.int32)


@operator("QLinearConv")
def _qlinear_conv(
    node: Node, x: Array, xs: Array, xz: Array, w: Array, ws: Array, wz: Array, ys: Array, yz: Array, b: Array = None
) -> Array:
    found = _convolved(node, _centred(x, xz), _centred(w, wz, by_row=True))
    found = found if b is None else found + _by_channel(b.astype(np.int64), x.ndim)
    scale = xs.astype(np.float64).reshape(()) * ws.astype(np.float64).reshape(-1) / ys.astype(np.float64).reshape(())
    info = np.iinfo(yz.dtype)
    rounded = np.rint(found * _by_channel(scale, x.ndim)) + int(yz.reshape(()))
    return np.clip(rounded, info.min, info.max).astype(yz.dtype)


@operator("ConvTranspose")
@in_float32
def _conv_transpose(node: Node, x: Array, w: Array, b: Array = None) -> Array:
    rank, groups = x.ndim - 2, node.group
    strides, dilations = node.strides or [1] * rank, node.dilations or [1] * rank
    full = [
        (n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(x.shape[2:], strides, w.shape[2:], dilations, strict=True)
    ]
    begins, sizes = _cut(node, x.shape[2:], strides, full)
    parts = x.reshape(x.shape[0], groups, x.shape[1] // groups, prod(x.shape[2:]))
    kernels = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    whole = np.zeros((x.shape[0], groups, w.shape[1], *(max(f, n + p) for f, n, p in zip(full, sizes, begins, strict=True))), x.dtype)
    for tap in product(*map(range, w.shape[2:])):
        view = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(tap, dilations, x.shape[2:], strides, strict=True)
        )
        added = np.swapaxes(kernels[(..., *tap)], 1, 2) @ parts
        whole[(..., *view)] += added.reshape(x.shape[0], groups, w.shape[1], *x.shape[2:])
    cut = tuple(slice(p, p + n) for p, n in zip(begins, sizes, strict=True))
    found = whole[(..., *cut)].reshape(x.shape[0], groups * w.shape[1], *sizes)
    return found if b is None else found + _by_channel(b, x.ndim)


def _cut(node: Node, sizes: Sequence[int], strides: Sequence[int], full: Sequence[int]) -> tuple[list[int], list[int]]:
    """Returns how much of the whole is left out at each beginning, and the sizes of what is kept."""
    rank, mode = len(full), node.auto_pad or "NOTSET"
    extra = node.output_padding or [0] * rank
    wanted = node.output_shape and list(node.output_shape)[-rank:]
    if not wanted and mode.startswith("SAME"):
        wanted = [n * s for n, s in zip(sizes, strides, strict=True)]
    if wanted:
        totals = [max(f + e - n, 0) for f, e, n in zip(full, extra, wanted, strict=True)]
        return [t // 2 if mode == "SAME_UPPER" else t - t // 2 for t in totals], wanted
    pads = [0] * (2 * rank) if mode == "VALID" or not node.pads else list(node.pads)
    return pads[:rank], [f + e - p - q for f, e, p, q in zip(full, extra, pads[:rank], pads[rank:], strict=True)]


@operator("Col2Im")
def _col2im(node: Node, x: Array, image_shape: Array, block_shape: Array) -> Array:
    windows = _windows(node, image_shape.tolist(), block_shape.tolist())
    columns = x.reshape(x.shape[0], -1, *windows.kernel, *windows.counts)
    whole = windows.padded(np.zeros((x.shape[0], columns.shape[1], *windows.sizes), x.dtype), 0)
    for tap, view in windows.taps():
        whole[(..., *view)] += columns[(slice(None), slice(None), *tap)]
    return whole[(..., *(slice(b, b + n) for b, n in zip(windows.begins, windows.sizes, strict=True)))]


@operator("DeformConv")
@in_float32
def _deform_conv(node: Node, x: Array, w: Array, offset: Array, b: Array = None, mask: Array = None) -> Array:
    """All places of the kernel are sampled where their offsets say, then multiplied as a convolution does."""
    windows, rank = _windows(node, x.shape[2:], w.shape[2:]), x.ndim - 2
    n, groups, shifts, taps = x.shape[0], node.group, node.offset_group, prod(windows.kernel)
    offset = offset.reshape(n, shifts, taps, rank, *windows.counts)
    mask = np.ones((n, shifts, taps, *windows.counts), x.dtype) if mask is None else mask
    mask = mask.reshape(n, shifts, taps, *windows.counts)
    found = np.zeros((n, groups, w.shape[0] // groups, prod(windows.counts)), x.dtype)
    kernels = w.reshape(groups, w.shape[0] // groups, w.shape[1], taps)
    image = x.reshape(n, shifts, x.shape[1] // shifts, *x.shape[2:])
    for tap, place in enumerate(product(*map(range, windows.kernel))):
        at = [
            np.arange(windows.counts[a]).reshape([-1 if i == a else 1 for i in range(rank)]) * windows.strides[a]
            - windows.begins[a]
            + place[a] * windows.dilations[a]
            + offset[:, :, tap, a]
            for a in range(rank)
        ]
        part = sampled(image, at) * mask[:, :, None, tap]
        found += kernels[..., tap] @ part.reshape(n, groups, w.shape[1], prod(windows.counts))
    found = found.reshape(n, w.shape[0], *windows.counts)
    return found if b is None else found + _by_channel(b, x.ndim)


def sampled(image: Array, at: Sequence[Array]) -> Array:
    """Returns values of images (N, G, C, D..) at coordinates (N, G, ...) for each D, linear between elements, 0 beyond."""
    low = [np.floor(a) for a in at]
    lead = np.ogrid[tuple(map(slice, image.shape[:2]))]
    shape = (*image.shape[:2], *(1 for _ in at[0].shape[2:]))
    total = np.zeros((*image.shape[:2], *at[0].shape[2:], image.shape[2]), image.dtype)
    channels_last = np.moveaxis(image, 2, -1)
    for corner in product((0, 1), repeat=len(at)):
        places = [(base + c).astype(np.int64) for base, c in zip(low, corner, strict=True)]
        weight = np.ones(at[0].shape, image.dtype)
        for a, base, c, place, size in zip(at, low, corner, places, image.shape[3:], strict=True):
            weight = weight * (a - base if c else 1 - (a - base)) * ((place >= 0) & (place < size))
        inside = [np.clip(place, 0, size - 1) for place, size in zip(places, image.shape[3:], strict=True)]
        index = tuple(np.broadcast_to(axis.reshape(axis.shape + (1,) * (len(shape) - 2)), at[0].shape) for axis in lead)
        total += weight[..., None].astype(image.dtype) * channels_last[(*index, *inside)]
    return np.moveaxis(total, -1, 2)
