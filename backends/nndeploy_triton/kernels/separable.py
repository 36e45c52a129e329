# SPDX-License-Identifier: Apache-2.0
"""A depthwise convolution and the pointwise one after it as one kernel: what lies between never leaves the chip.

    middle[n, c, p] = inner(sum over taps t of depth_weights[c, t] * x[n, c, place(p, t)])
    out[n, o, p]    = outer(sum over c of point_weights[o, c] * middle[n, c, p])

inner and outer are programs (bias, activation, residual). A kernel instance makes BLOCK_P pixels of BLOCK_O output
channels; the middle tile (BLOCK_C channels at a time) is made where the matrix product needs it. Where the output has
more than BLOCK_O channels the middle is made once for each block of them, which is cheap: taps are few.
"""

import triton
import triton.language as tl

from nndeploy_triton.kernels.depthwise import depthwise_tile
from nndeploy_triton.kernels.programs import finish


@triton.jit
def separable(
    out, x, depth_weights, point_weights, inner_extras, inner_strides, extras, extra_strides,
    num_pixels, out_width, num_channels, num_outputs, in_height, in_width, pad_top, pad_left,
    x_image_stride, out_image_stride,
    KERNEL_H: tl.constexpr, KERNEL_W: tl.constexpr, STRIDE_H: tl.constexpr, STRIDE_W: tl.constexpr,
    DILATION_H: tl.constexpr, DILATION_W: tl.constexpr,
    INNER_EXTRAS: tl.constexpr, INNER_PROGRAM: tl.constexpr, EXTRAS: tl.constexpr, PROGRAM: tl.constexpr,
    PRECISION: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_O: tl.constexpr, BLOCK_C: tl.constexpr,
):  # fmt: skip
    """Writes one tile; axis 0 of the grid runs over pixels, 1 over output channels, 2 over images."""
    image = tl.program_id(2)
    pixels = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    outputs = tl.program_id(1) * BLOCK_O + tl.arange(0, BLOCK_O)
    pixel_mask, output_mask = pixels < num_pixels, outputs < num_outputs
    row, column = pixels // out_width, pixels % out_width
    tile = tl.zeros((BLOCK_O, BLOCK_P), tl.float32)
    for start in range(0, num_channels, BLOCK_C):
        channels = start + tl.arange(0, BLOCK_C)
        channel_mask = channels < num_channels
        middle = depthwise_tile(
            x + image * x_image_stride, depth_weights, channels, channel_mask, row, column, pixel_mask,
            in_height, in_width, pad_top, pad_left,
            KERNEL_H, KERNEL_W, STRIDE_H, STRIDE_W, DILATION_H, DILATION_W, 1,
        )  # fmt: skip
        middle = finish(
            middle, inner_extras, inner_strides, INNER_EXTRAS, INNER_PROGRAM, image, channels, pixels,
            channel_mask, pixel_mask,
        )  # fmt: skip
        factors = tl.load(
            point_weights + outputs[:, None] * num_channels + channels[None, :],
            mask=output_mask[:, None] & channel_mask[None, :],
            other=0.0,
        )
        tile = tl.dot(factors, middle.to(factors.dtype), tile, input_precision=PRECISION)
    tile = finish(tile, extras, extra_strides, EXTRAS, PROGRAM, image, outputs, pixels, output_mask, pixel_mask)
    target = out + image * out_image_stride + outputs[:, None] * num_pixels + pixels[None, :]
    tl.store(target, tile.to(out.dtype.element_ty), mask=output_mask[:, None] & pixel_mask[None, :])
