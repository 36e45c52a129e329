# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolution of NCHW images, with an epilogue; the part of it that separable.py fuses is here too.

    out[n, c, p] = epilogue(sum over taps t of weights[c, t] * x[n, c // multiplier, place(p, t)])

A tile is BLOCK_C channels by BLOCK_P pixels. There is no sum over channels, so nothing here is a matrix product.
"""

import triton
import triton.language as tl

from nndeploy_triton.kernels.programs import finish


@triton.jit
def depthwise_tile(
    x, weights, channels, channel_mask, row, column, pixel_mask, in_height, in_width, pad_top, pad_left,
    KERNEL_H: tl.constexpr, KERNEL_W: tl.constexpr, STRIDE_H: tl.constexpr, STRIDE_W: tl.constexpr,
    DILATION_H: tl.constexpr, DILATION_W: tl.constexpr, MULTIPLIER: tl.constexpr,
):  # fmt: skip
    """Returns the depthwise sums of `channels` at the output's pixels (row, column), as float32; `x` is one image."""
    base = x + (channels // MULTIPLIER)[:, None] * (in_height * in_width)
    factors = weights + channels * (KERNEL_H * KERNEL_W)
    tile = tl.zeros((channels.shape[0], row.shape[0]), tl.float32)
    first_row, first_column = row * STRIDE_H - pad_top, column * STRIDE_W - pad_left
    for tap_h in range(KERNEL_H):
        in_row = first_row + tap_h * DILATION_H
        row_mask = (in_row >= 0) & (in_row < in_height) & pixel_mask
        for tap_w in tl.static_range(KERNEL_W):
            in_column = first_column + tap_w * DILATION_W
            inside = row_mask & (in_column >= 0) & (in_column < in_width)
            values = tl.load(
                base + (in_row * in_width + in_column)[None, :], mask=channel_mask[:, None] & inside[None, :], other=0.0
            )
            factor = tl.load(factors + tap_h * KERNEL_W + tap_w, mask=channel_mask, other=0.0)
            tile += factor.to(tl.float32)[:, None] * values.to(tl.float32)
    return tile


@triton.jit
def depthwise(
    out, x, weights, extras, extra_strides,
    num_pixels, out_width, num_channels, in_height, in_width, pad_top, pad_left, x_image_stride, out_image_stride,
    KERNEL_H: tl.constexpr, KERNEL_W: tl.constexpr, STRIDE_H: tl.constexpr, STRIDE_W: tl.constexpr,
    DILATION_H: tl.constexpr, DILATION_W: tl.constexpr, MULTIPLIER: tl.constexpr,
    EXTRAS: tl.constexpr, PROGRAM: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Writes one tile; axis 0 of the grid runs over pixels, 1 over output channels, 2 over images."""
    image = tl.program_id(2)
    pixels = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    channels = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    pixel_mask, channel_mask = pixels < num_pixels, channels < num_channels
    tile = depthwise_tile(
        x + image * x_image_stride, weights, channels, channel_mask, pixels // out_width, pixels % out_width,
        pixel_mask, in_height, in_width, pad_top, pad_left,
        KERNEL_H, KERNEL_W, STRIDE_H, STRIDE_W, DILATION_H, DILATION_W, MULTIPLIER,
    )  # fmt: skip
    tile = finish(tile, extras, extra_strides, EXTRAS, PROGRAM, image, channels, pixels, channel_mask, pixel_mask)
    target = out + image * out_image_stride + channels[:, None] * num_pixels + pixels[None, :]
    tl.store(target, tile.to(out.dtype.element_ty), mask=channel_mask[:, None] & pixel_mask[None, :])
