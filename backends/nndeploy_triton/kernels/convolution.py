# SPDX-License-Identifier: Apache-2.0
"""Convolution and transposed convolution of NCHW images as an implicit matrix product, with an epilogue.

    out[n, o, p] = epilogue(sum over k of weights[o, k] * x[n, channel(k), place(p, tap(k))])

p runs over the output's pixels, k over (channel, kernel row, kernel column) as the weights lie in memory. A tile is
BLOCK_O output channels by BLOCK_P pixels, so that neighbouring threads read and write neighbouring pixels.
"""

import triton
import triton.language as tl

from nndeploy_triton.kernels.programs import finish


@triton.jit
def convolution(
    out, x, weights, extras, extra_strides,
    num_pixels, out_width, num_outputs, num_channels, in_height, in_width, num_groups, pad_top, pad_left,
    x_image_stride, out_image_stride,
    KERNEL_H: tl.constexpr, KERNEL_W: tl.constexpr, STRIDE_H: tl.constexpr, STRIDE_W: tl.constexpr,
    DILATION_H: tl.constexpr, DILATION_W: tl.constexpr, POINTWISE: tl.constexpr, TRANSPOSED: tl.constexpr,
    EXTRAS: tl.constexpr, PROGRAM: tl.constexpr, PRECISION: tl.constexpr,
    BLOCK_P: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Writes one tile; axis 0 of the grid runs over pixels, 1 over output channels, 2 over images and groups.

    `num_outputs` and `num_channels` are those of one group. POINTWISE means 1x1, stride 1, no padding. TRANSPOSED
    reads the input where the output's place plus padding is a multiple of the stride; its weights come as (group,
    output, channel, tap), as the others.
    """
    image = tl.program_id(2) // num_groups
    group = tl.program_id(2) % num_groups
    pixels = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    outputs = tl.program_id(1) * BLOCK_O + tl.arange(0, BLOCK_O)
    pixel_mask, output_mask = pixels < num_pixels, outputs < num_outputs
    row, column = pixels // out_width, pixels % out_width
    x += image * x_image_stride + group * num_channels * in_height * in_width
    depth = num_channels * (KERNEL_H * KERNEL_W)
    weights += group * num_outputs * depth
    tile = tl.zeros((BLOCK_O, BLOCK_P), tl.float32)
    for start in range(0, depth, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        k_mask = k < depth
        factors = tl.load(
            weights + outputs[:, None] * depth + k[None, :], mask=output_mask[:, None] & k_mask[None, :], other=0.0
        )
        if POINTWISE:
            place = k[:, None] * num_pixels + pixels[None, :]
            mask = k_mask[:, None] & pixel_mask[None, :]
        else:
            channel, tap = k // (KERNEL_H * KERNEL_W), k % (KERNEL_H * KERNEL_W)
            shift_h, shift_w = (tap // KERNEL_W) * DILATION_H, (tap % KERNEL_W) * DILATION_W
            in_row, row_fits = _input_place(row[None, :], shift_h[:, None], pad_top, in_height, STRIDE_H, TRANSPOSED)
            in_column, column_fits = _input_place(
                column[None, :], shift_w[:, None], pad_left, in_width, STRIDE_W, TRANSPOSED
            )
            place = (channel[:, None] * in_height + in_row) * in_width + in_column
            mask = row_fits & column_fits & k_mask[:, None] & pixel_mask[None, :]
        values = tl.load(x + place, mask=mask, other=0.0)
        tile = tl.dot(factors, values, tile, input_precision=PRECISION)
    rows = group * num_outputs + outputs
    tile = finish(tile, extras, extra_strides, EXTRAS, PROGRAM, image, rows, pixels, output_mask, pixel_mask)
    target = out + image * out_image_stride + rows[:, None] * num_pixels + pixels[None, :]
    tl.store(target, tile.to(out.dtype.element_ty), mask=output_mask[:, None] & pixel_mask[None, :])


@triton.jit
def _input_place(place, shift, pad, size, STRIDE: tl.constexpr, TRANSPOSED: tl.constexpr):
    """Returns where an output place reads along one axis, and whether that is inside the input."""
    if TRANSPOSED:
        spread = place + pad - shift
        at = spread // STRIDE
        return at, (spread >= 0) & (at * STRIDE == spread) & (at < size)
    else:
        at = place * STRIDE - pad + shift
        return at, (at >= 0) & (at < size)
