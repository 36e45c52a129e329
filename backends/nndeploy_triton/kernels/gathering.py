# SPDX-License-Identifier: Apache-2.0
"""Kernels that are told by tables where to read: Resize in every mode, Gather and Pad.

The tables are made on the host, once, exactly as ONNX defines them, and are constants of the program; the indices of a
Gather may also be computed by the model.
"""

import triton
import triton.language as tl


@triton.jit
def resize(
    out, x, rows, row_weights, columns, column_weights, num_pixels, out_width, in_width, in_pixels,
    TAPS_H: tl.constexpr, TAPS_W: tl.constexpr, BLOCK_P: tl.constexpr,
):  # fmt: skip
    """Writes BLOCK_P pixels of one plane; axis 0 of the grid runs over planes, 1 over pixels.

    Output row i is the sum over its TAPS_H entries j of `row_weights[i, j]` times input row `rows[i, j]`, and so for
    columns: one tap of weight 1 is "nearest", two are "linear", four "cubic".
    """
    plane = tl.program_id(0)
    pixels = tl.program_id(1) * BLOCK_P + tl.arange(0, BLOCK_P)
    mask = pixels < num_pixels
    row, column = pixels // out_width, pixels % out_width
    base = x + plane * in_pixels
    result = tl.zeros((BLOCK_P,), tl.float32)
    for tap_h in range(TAPS_H):
        in_row = tl.load(rows + row * TAPS_H + tap_h, mask=mask, other=0)
        row_weight = tl.load(row_weights + row * TAPS_H + tap_h, mask=mask, other=0.0)
        for tap_w in range(TAPS_W):
            in_column = tl.load(columns + column * TAPS_W + tap_w, mask=mask, other=0)
            weight = row_weight * tl.load(column_weights + column * TAPS_W + tap_w, mask=mask, other=0.0)
            result += weight * tl.load(base + in_row * in_width + in_column, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + plane * num_pixels + pixels, result.to(out.dtype.element_ty), mask=mask)


@triton.jit
def gather(
    out, x, table, num_elements, out_length, in_length, inner,
    FILL: tl.constexpr, WRAPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Writes out[o, i, j] = x[o, table[i], j], and FILL where the entry is outside; any element type.

    With WRAPS a negative entry counts from the end, as indices that a model computes may.
    """
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < num_elements
    place = at % inner
    along = at // inner % out_length
    outer = at // inner // out_length
    entry = tl.load(table + along, mask=mask, other=-1)
    if WRAPS:
        entry = tl.where(entry < 0, entry + in_length, entry)
    inside = mask & (entry >= 0) & (entry < in_length)
    values = tl.load(x + (outer * in_length + entry) * inner + place, mask=inside, other=FILL)
    tl.store(out + at, values, mask=mask)
