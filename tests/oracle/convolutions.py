# SPDX-License-Identifier: Apache-2.0
"""Convolutions, written as sums over windows: plain, of integers, quantised, transposed, deformable, causal."""

import math
from itertools import product
from typing import Any

import numpy as np

from oracle.elementwise import sigmoid
from oracle.pooling import Windows, matching
from oracle.registry import Call, InvalidError, UnspecifiedError, operator


def convolved(call: Call, x: Any, w: Any) -> Any:
    """Returns the convolution of x (N, C, D...) by w (M, C / group, K...) in float64 or Python's integers."""
    groups, (m, per_group) = call.group, w.shape[:2]
    if x.ndim != w.ndim or x.ndim < 3 or x.shape[1] != per_group * groups or m % groups:
        raise InvalidError(f"{x.shape} by {w.shape} in {groups} groups")
    if call.kernel_shape is not None and tuple(call.kernel_shape) != w.shape[2:]:
        raise InvalidError("kernel_shape is another than that of W")
    windows = Windows(call, x.shape[2:], list(w.shape[2:]))
    found = np.zeros((x.shape[0], m, *windows.counts), x.dtype)
    for k in np.ndindex(w.shape[2:]):
        to, at = windows.under(k)
        parts = x[(..., *at)]
        parts = parts.reshape(x.shape[0], groups, per_group, *parts.shape[2:])
        weights = w[(..., *k)].reshape(groups, m // groups, per_group)
        sums = np.einsum("ngc...,gmc->ngm...", parts, weights)
        found[(..., *to)] += sums.reshape(x.shape[0], m, *sums.shape[3:])
    return found


def along_channels(values: Any, rank: int) -> Any:
    """Returns one value a channel, or one for all, in the rank of (N, C, D...)."""
    return values if values.size == 1 and values.ndim == 0 else values.reshape(-1, *(1,) * (rank - 2))


@operator("Conv")
def _conv(call: Call, x: Any, w: Any, b: Any = None) -> Any:
    found = convolved(call, x, w)
    return found if b is None else found + along_channels(b, x.ndim)


@operator("ConvInteger")
def _conv_integer(call: Call, x: Any, w: Any, x_zero: Any = None, w_zero: Any = None) -> Any:
    """Padding stands for the zero point of x, so that it adds nothing."""
    return convolved(call, _without_zero(x, x_zero), _without_zero_of_rows(w, w_zero))


def _without_zero(x: Any, zero: Any) -> Any:
    return x.astype(np.int64) - (0 if zero is None else zero.reshape(()).astype(np.int64))


def _without_zero_of_rows(w: Any, zero: Any) -> Any:
    """Zero points of weights are one for all, or one a row of W."""
    zero = np.zeros((), np.int64) if zero is None else zero.astype(np.int64)
    return w.astype(np.int64) - (zero.reshape(()) if zero.size == 1 else zero.reshape(-1, *(1,) * (w.ndim - 1)))


@operator("QLinearConv")
def _qlinear_conv(
    call: Call, x: Any, xs: Any, xz: Any, w: Any, ws: Any, wz: Any, ys: Any, yz: Any, b: Any = None
) -> Any:
    sums = convolved(call, _without_zero(x, xz), _without_zero_of_rows(w, wz))
    if b is not None:
        sums = sums + along_channels(b.astype(np.int64), x.ndim)
    scale = xs.reshape(()) * ws.reshape(-1) / ys.reshape(())
    info = np.iinfo(call.dtypes[7])
    scaled = sums * (scale.reshape(()) if scale.size == 1 else along_channels(scale, x.ndim))
    return np.clip(np.rint(scaled) + int(yz.reshape(())), info.min, info.max)


@operator("ConvTranspose")
def _conv_transpose(call: Call, x: Any, w: Any, b: Any = None) -> Any:
    """Every element of the input adds the kernel, times itself, to the output; pads cut what they stand for."""
    rank, groups, per_group = x.ndim - 2, call.group, w.shape[1]
    if x.shape[1] != w.shape[0] or w.shape[0] % groups:
        raise InvalidError(f"{x.shape} by {w.shape} in {groups} groups")
    strides, dilations = call.strides or [1] * rank, call.dilations or [1] * rank
    extra = call.output_padding or [0] * rank
    full = [
        s * (n - 1) + (k - 1) * d + 1 for s, n, k, d in zip(strides, x.shape[2:], w.shape[2:], dilations, strict=True)
    ]
    begins, sizes = _transposed_sizes(call, x.shape[2:], strides, full, extra)
    found = np.zeros((x.shape[0], per_group * groups, *sizes))
    channels = x.shape[1] // groups
    parts = x.reshape(x.shape[0], groups, channels, *x.shape[2:])
    for k in np.ndindex(w.shape[2:]):
        at, to = zip(*(
            matching(n, size, s, i * d - p)
            for n, size, s, i, d, p in zip(x.shape[2:], sizes, strides, k, dilations, begins, strict=True)
        ), strict=True)  # fmt: skip
        sums = np.einsum("ngc...,gcm->ngm...", parts[(..., *at)], w[(..., *k)].reshape(groups, channels, per_group))
        found[(..., *to)] += sums.reshape(x.shape[0], per_group * groups, *sums.shape[3:])
    return found if b is None else found + along_channels(b, x.ndim)


def _transposed_sizes(call: Call, sizes: Any, strides: Any, full: Any, extra: Any) -> tuple[list[int], list[int]]:
    """Returns what is cut at the beginning of each axis, and the sizes of the output."""
    rank, mode = len(full), call.auto_pad or "NOTSET"
    wanted = call.output_shape
    if wanted is not None and len(wanted) == rank + 2:
        wanted = wanted[2:]
    if wanted is None and mode.startswith("SAME"):
        wanted = [n * s for n, s in zip(sizes, strides, strict=True)]
    if wanted is None:
        pads = call.pads or [0] * (2 * rank)
        pads = [0] * (2 * rank) if mode == "VALID" else pads
        return pads[:rank], [f + e - pads[i] - pads[rank + i] for i, (f, e) in enumerate(zip(full, extra, strict=True))]
    totals = [max(f + e - w, 0) for f, e, w in zip(full, extra, wanted, strict=True)]
    puts_odd_last = mode == "SAME_UPPER" if call.version >= 11 else mode != "SAME_UPPER"
    if call.version < 11 and any(total % 2 for total in totals):
        raise UnspecifiedError("version 1 says of an odd pad both in turn")
    return [t // 2 if puts_odd_last else t - t // 2 for t in totals], list(wanted)


def sampled(image: Any, at: Any) -> Any:
    """Returns the value of an image (H, W, ...) of any rank between its elements, linear; 0 beyond them."""
    total = 0.0
    for corner in product(*(range(2) for _ in at)):
        place = [math.floor(a) + c for a, c in zip(at, corner, strict=True)]
        share = math.prod(1 - abs(a - p) for a, p in zip(at, place, strict=True))
        if share and all(0 <= p < n for p, n in zip(place, image.shape, strict=True)):
            total += share * image[tuple(place)]
    return total


@operator("DeformConv")
def _deform_conv(call: Call, x: Any, w: Any, offset: Any, b: Any = None, mask: Any = None) -> Any:
    rank, kernel = x.ndim - 2, w.shape[2:]
    windows = Windows(call, x.shape[2:], list(kernel))
    groups, shifts = call.group, call.offset_group
    taps, (m, per_group) = math.prod(kernel), w.shape[:2]
    found = np.zeros((x.shape[0], m, *windows.counts))
    for n, c, place in product(range(x.shape[0]), range(x.shape[1]), np.ndindex(*windows.counts)):
        shift = c // (x.shape[1] // shifts)
        for tap, k in enumerate(np.ndindex(kernel)):
            at = [
                p * s - begin + i * d + offset[(n, (shift * taps + tap) * rank + axis, *place)]
                for axis, (p, s, begin, i, d) in enumerate(
                    zip(place, windows.strides, windows.begins, k, windows.dilations, strict=True)
                )
            ]
            value = sampled(x[n, c], at) * (1 if mask is None else mask[(n, shift * taps + tap, *place)])
            g = c // per_group
            for row in range(g * m // groups, (g + 1) * m // groups):
                found[(n, row, *place)] += value * w[(row, c % per_group, *k)]
    return found if b is None else found + along_channels(b, x.ndim)


@operator("Col2Im")
def _col2im(call: Call, x: Any, image_shape: Any, block_shape: Any) -> Any:
    sizes, kernel = tuple(image_shape.tolist()), block_shape.tolist()
    windows = Windows(call, sizes, kernel)
    taps = math.prod(kernel)
    if x.shape[1] % taps or x.shape[2] != math.prod(windows.counts):
        raise InvalidError(f"{x.shape} as {sizes} in blocks of {kernel}")
    found = np.zeros((x.shape[0], x.shape[1] // taps, *sizes))
    for block, (_, inside, _) in enumerate(windows.places()):
        for k, at in inside:
            tap = int(np.ravel_multi_index(k, kernel))
            found[(slice(None), slice(None), *at)] += x[:, tap::taps, block]
    return found


@operator("CausalConvWithState")
def _causal_conv(call: Call, x: Any, w: Any, bias: Any = None, past: Any = None) -> Any:
    k = w.shape[2]
    before = np.zeros((*x.shape[:2], k - 1)) if past is None else past
    whole = np.concatenate([before, x], 2)
    found = np.zeros_like(x)
    for t, tap in product(range(x.shape[2]), range(k)):
        found[:, :, t] += whole[:, :, t + tap] * w[:, 0, tap]
    found = found if bias is None else found + bias.reshape(-1, 1)
    if call.activation in ("silu", "swish"):
        found = found * sigmoid(found)
    return found, whole[:, :, whole.shape[2] - (k - 1) :]
