# SPDX-License-Identifier: Apache-2.0
"""Kernels that are told by tables where to read: Resize in every mode, Gather and Pad.

The tables are made on the host, once, exactly as ONNX defines them, and are constants of the program; the indices of a
Gather may also be computed by the model. `interpolate`, the Resize of sizes that are not fixed, computes its places.
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
def interpolate(
    out, x, num_pixels, out_width, in_height, in_width,
    row_factor, row_offset, row_divisor, column_factor, column_offset, column_divisor,
    KIND: tl.constexpr, BLOCK_P: tl.constexpr,
):  # fmt: skip
    """Writes BLOCK_P pixels of one plane; the grid is as in `resize`.

    Output row i stands for place (row_factor * i + row_offset) / row_divisor of the input, and so for columns. KIND
    "linear" weighs the two places around it, another takes the nearest one by that rounding.
    """
    plane = tl.program_id(0)
    pixels = tl.program_id(1) * BLOCK_P + tl.arange(0, BLOCK_P)
    mask = pixels < num_pixels
    base = x + plane * (in_height * in_width)
    row = tl.maximum((pixels // out_width) * row_factor + row_offset, 0)  # what is before the first place reads that
    column = tl.maximum((pixels % out_width) * column_factor + column_offset, 0)
    if KIND == "linear":
        top, left = row // row_divisor, column // column_divisor
        down = (row - top * row_divisor) / (row_divisor * 1.0)
        right = (column - left * column_divisor) / (column_divisor * 1.0)
        upper = _mixed(base, top, left, right, in_height, in_width, mask)
        lower = _mixed(base, top + 1, left, right, in_height, in_width, mask)
        result = upper * (1.0 - down) + lower * down
    else:
        top = tl.minimum(_rounded(row, row_divisor, KIND), in_height - 1)
        left = tl.minimum(_rounded(column, column_divisor, KIND), in_width - 1)
        result = tl.load(base + top * in_width + left, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + plane * num_pixels + pixels, result.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _mixed(base, row, left, right, in_height, in_width, mask):
    """Returns a row's values at `left` and next to it, the latter weighed with `right`; the edges go on outside."""
    start = base + tl.minimum(row, in_height - 1) * in_width
    near = tl.load(start + tl.minimum(left, in_width - 1), mask=mask, other=0.0).to(tl.float32)
    far = tl.load(start + tl.minimum(left + 1, in_width - 1), mask=mask, other=0.0).to(tl.float32)
    return near * (1.0 - right) + far * right


@triton.jit
def _rounded(place, divisor, KIND: tl.constexpr):
    """Returns place / divisor, neither of them negative, rounded."""
    if KIND == "floor":
        return place // divisor
    elif KIND == "ceil":
        return (place + divisor - 1) // divisor
    elif KIND == "round_prefer_floor":
        return (2 * place + divisor - 1) // (2 * divisor)
    else:
        tl.static_assert(KIND == "round_prefer_ceil", "the only other rounding")
        return (2 * place + divisor) // (2 * divisor)


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
