# SPDX-License-Identifier: Apache-2.0
"""Windowed pooling of NCHW images: the largest value or the mean of each window.

out[n, c, p] = max or mean over taps t of x[n, c, place(p, t)]
"""

import triton
import triton.language as tl


@triton.jit
def pooling(
    out, x, num_pixels, out_width, in_height, in_width, pad_top, pad_left, pad_bottom, pad_right,
    KERNEL_H: tl.constexpr, KERNEL_W: tl.constexpr, STRIDE_H: tl.constexpr, STRIDE_W: tl.constexpr,
    DILATION_H: tl.constexpr, DILATION_W: tl.constexpr, KIND: tl.constexpr, COUNT_PADDING: tl.constexpr,
    BLOCK_P: tl.constexpr,
):  # fmt: skip
    """Writes BLOCK_P pixels of one plane; axis 0 of the grid runs over planes (image, channel), 1 over pixels.

    KIND is "max" or "mean". A mean counts the elements inside the image, with COUNT_PADDING also those inside its
    padding, but never what ceil_mode adds beyond it.
    """
    plane = tl.program_id(0)
    pixels = tl.program_id(1) * BLOCK_P + tl.arange(0, BLOCK_P)
    pixel_mask = pixels < num_pixels
    row, column = pixels // out_width * STRIDE_H - pad_top, pixels % out_width * STRIDE_W - pad_left
    base = x + plane * (in_height * in_width)
    result = tl.full((BLOCK_P,), float("-inf") if KIND == "max" else 0.0, tl.float32)
    count = tl.zeros((BLOCK_P,), tl.float32)
    for tap in range(KERNEL_H * KERNEL_W):
        in_row = row + tap // KERNEL_W * DILATION_H
        in_column = column + tap % KERNEL_W * DILATION_W
        inside = (in_row >= 0) & (in_row < in_height) & (in_column >= 0) & (in_column < in_width)
        values = tl.load(base + in_row * in_width + in_column, mask=inside & pixel_mask, other=0.0).to(tl.float32)
        if KIND == "max":
            result = tl.where(inside & ((values > result) | (values != values)), values, result)
        else:
            result += tl.where(inside, values, 0.0)
        if COUNT_PADDING:
            inside = (in_row < in_height + pad_bottom) & (in_column < in_width + pad_right)
        count += tl.where(inside, 1.0, 0.0)
    if KIND == "mean":
        result = result / count
    tl.store(out + plane * num_pixels + pixels, result.to(out.dtype.element_ty), mask=pixel_mask)
