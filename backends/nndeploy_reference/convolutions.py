# SPDX-License-Identifier: Apache-2.0
"""Convolutions: a product of matrices for each place of the kernel, over all windows at once.

Source: ONNX operators Conv, ConvTranspose (1-22), ConvInteger (10), QLinearConv (10), DeformConv (19, 22), Col2Im (18).
"""

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np

from nndeploy_reference.operator_table import Array, Node, in_float32, operator
from nndeploy_reference.windows import windows_of


def _convolved(node: Node, x: Array, w: Array) -> Array:
    """Returns the convolution of x (N, C, D..) by w (M, C / group, K..), a product of matrices for each tap."""
    groups, windows = node.group, windows_of(node, x.shape[2:], w.shape[2:])
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
    """Returns x less its zero point in float64, whose sums of products of bytes are exact and fast."""
    wide = x.astype(np.float64)
    if zero is None:
        return wide
    return wide - (zero.reshape(-1, *(1,) * (x.ndim - 1)) if by_row and zero.size > 1 else zero.reshape(()))


@operator("ConvInteger")
def _conv_integer(node: Node, x: Array, w: Array, x_zero: Array = None, w_zero: Array = None) -> Array:
    return _convolved(node, _centred(x, x_zero), _centred(w, w_zero, by_row=True)).astype(np.int64).astype(np.int32)


@operator("QLinearConv")
def _qlinear_conv(
    node: Node, x: Array, xs: Array, xz: Array, w: Array, ws: Array, wz: Array, ys: Array, yz: Array, b: Array = None
) -> Array:
    found = _convolved(node, _centred(x, xz), _centred(w, wz, by_row=True))
    found = found if b is None else found + _by_channel(b, x.ndim)
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
    whole: Array = np.zeros(
        (x.shape[0], groups, w.shape[1], *(max(f, n + p) for f, n, p in zip(full, sizes, begins, strict=True))), x.dtype
    )
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
    windows = windows_of(node, image_shape.tolist(), block_shape.tolist())
    channels = x.shape[1] // max(prod(windows.kernel), 1)
    columns = x.reshape(x.shape[0], channels, *windows.kernel, *windows.counts)
    whole = windows.padded(np.zeros((x.shape[0], columns.shape[1], *windows.sizes), x.dtype), 0)
    for tap, view in windows.taps():
        whole[(..., *view)] += columns[(slice(None), slice(None), *tap)]
    return whole[(..., *(slice(b, b + n) for b, n in zip(windows.begins, windows.sizes, strict=True)))]


@operator("DeformConv")
@in_float32
def _deform_conv(node: Node, x: Array, w: Array, offset: Array, b: Array = None, mask: Array = None) -> Array:
    """All places of the kernel are sampled where their offsets say, then multiplied as a convolution does."""
    windows, rank = windows_of(node, x.shape[2:], w.shape[2:]), x.ndim - 2
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
    """Returns values of images (N, G, C, D..) at coordinates, (N, G, ...) for each D: linear, 0 beyond the image."""
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
        share = weight[..., None].astype(image.dtype)
        total += np.where(share == 0, 0, share * channels_last[(*index, *inside)])
    return np.moveaxis(total, -1, 2)
