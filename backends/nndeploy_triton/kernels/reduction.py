# SPDX-License-Identifier: Apache-2.0
"""Reductions along one axis, softmax, and normalisation of rows.

A tensor is seen as (outer, length, inner), and `length` is what is reduced. A kernel instance works on one outer index
and BLOCK_I inner ones, BLOCK_L of the axis at a time.
"""

import triton
import triton.language as tl


@triton.jit
def reduction(out, x, length, inner, KIND: tl.constexpr, BLOCK_L: tl.constexpr, BLOCK_I: tl.constexpr):
    """Writes (outer, inner); axis 0 of the grid runs over outer, 1 over inner.

    KIND is "sum", "mean", "max", "min", "l1", "l2" or "sum_square".
    """
    outer = tl.program_id(0)
    places = tl.program_id(1) * BLOCK_I + tl.arange(0, BLOCK_I)
    place_mask = places < inner
    partial = tl.full((BLOCK_L, BLOCK_I), _neutral(KIND), tl.float32)
    for start in range(0, length, BLOCK_L):
        along = start + tl.arange(0, BLOCK_L)
        mask = (along < length)[:, None] & place_mask[None, :]
        values = tl.load(x + (outer * length + along)[:, None] * inner + places[None, :], mask=mask, other=0.0)
        partial = tl.where(mask, _joined(KIND, partial, values.to(tl.float32)), partial)
    result = _folded(KIND, partial, length)
    tl.store(out + outer * inner + places, result.to(out.dtype.element_ty), mask=place_mask)


@triton.jit
def _neutral(KIND: tl.constexpr):
    if KIND == "max":
        return float("-inf")
    elif KIND == "min":
        return float("inf")
    else:
        return 0.0


@triton.jit
def _joined(KIND: tl.constexpr, partial, values):
    if KIND == "max":
        return tl.where((partial > values) | (partial != partial), partial, values)
    elif KIND == "min":
        return tl.where((partial < values) | (partial != partial), partial, values)
    elif KIND == "l1":
        return partial + tl.abs(values)
    elif KIND == "l2" or KIND == "sum_square":
        return partial + values * values
    else:
        return partial + values


@triton.jit
def _folded(KIND: tl.constexpr, partial, length):
    if KIND == "max" or KIND == "min":
        extreme = tl.max(partial, axis=0) if KIND == "max" else tl.min(partial, axis=0)
        num_nan = tl.sum(tl.where(partial != partial, 1, 0), axis=0)  # the reductions of the hardware drop NaN
        return tl.where(num_nan > 0, float("nan"), extreme)
    elif KIND == "mean":
        return tl.sum(partial, axis=0) / (length * 1.0)
    elif KIND == "l2":
        return tl.sqrt_rn(tl.sum(partial, axis=0))
    else:
        return tl.sum(partial, axis=0)


@triton.jit
def softmax(out, x, length, inner, LOG: tl.constexpr, BLOCK_L: tl.constexpr, BLOCK_I: tl.constexpr):
    """Writes exp(x - max) / sum over the axis, or its logarithm; the grid is as in `reduction`.

    Three passes (largest, sum, result): the axis need not fit on the chip, and infinities stay right.
    """
    base = tl.program_id(0) * length
    places = tl.program_id(1) * BLOCK_I + tl.arange(0, BLOCK_I)
    place_mask = places < inner
    largest = tl.full((BLOCK_L, BLOCK_I), float("-inf"), tl.float32)
    for start in range(0, length, BLOCK_L):
        values, mask, at = _piece(x, base, start, length, inner, places, place_mask, BLOCK_L)
        largest = tl.where(mask & ((values > largest) | (values != values)), values, largest)
    top = tl.max(largest, axis=0)[None, :]
    partial = tl.zeros((BLOCK_L, BLOCK_I), tl.float32)
    for start in range(0, length, BLOCK_L):
        values, mask, at = _piece(x, base, start, length, inner, places, place_mask, BLOCK_L)
        partial += tl.where(mask, tl.exp(values - top), 0.0)
    total = tl.sum(partial, axis=0)[None, :]
    for start in range(0, length, BLOCK_L):
        values, mask, at = _piece(x, base, start, length, inner, places, place_mask, BLOCK_L)
        if LOG:
            result = values - top - tl.log(total)
        else:
            result = tl.exp(values - top) / total
        tl.store(out + at, result.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _piece(x, base, start, length, inner, places, place_mask, BLOCK_L: tl.constexpr):
    along = start + tl.arange(0, BLOCK_L)
    mask = (along < length)[:, None] & place_mask[None, :]
    at = (base + along)[:, None] * inner + places[None, :]
    return tl.load(x + at, mask=mask, other=0.0).to(tl.float32), mask, at


@triton.jit
def normalization(
    out, x, scale, shift, length, num_scale_rows, scale_row_step, columns_per_scale,
    EPSILON: tl.constexpr, CENTERED: tl.constexpr, HAS_SCALE: tl.constexpr, HAS_SHIFT: tl.constexpr,
    BLOCK_L: tl.constexpr,
):  # fmt: skip
    """Writes (x - mean) / sqrt(variance + EPSILON) * scale + shift of each row; axis 0 of the grid runs over rows.

    Without CENTERED the mean is left out (root mean square). The scale of (row, column) is number
    `row % num_scale_rows * scale_row_step + column // columns_per_scale`, which serves layer, instance and group
    normalisation alike.
    """
    row = tl.program_id(0)
    source, target = x + row * length, out + row * length
    mean = 0.0
    if CENTERED:
        mean = _row_mean(source, length, 0.0, False, BLOCK_L)
    variance = _row_mean(source, length, mean, True, BLOCK_L)
    rate = 1.0 / tl.sqrt_rn(variance + EPSILON)
    first_scale = row % num_scale_rows * scale_row_step
    for start in range(0, length, BLOCK_L):
        columns = start + tl.arange(0, BLOCK_L)
        mask = columns < length
        result = (tl.load(source + columns, mask=mask, other=0.0).to(tl.float32) - mean) * rate
        at = first_scale + columns // columns_per_scale
        if HAS_SCALE:
            result = result * tl.load(scale + at, mask=mask, other=0.0).to(tl.float32)
        if HAS_SHIFT:
            result = result + tl.load(shift + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(target + columns, result.to(out.dtype.element_ty), mask=mask)


@triton.jit
def _row_mean(source, length, center, SQUARED: tl.constexpr, BLOCK_L: tl.constexpr):
    """Returns the mean of a row's values, or of their squared distances from `center`."""
    partial = tl.zeros((BLOCK_L,), tl.float32)
    for start in range(0, length, BLOCK_L):
        columns = start + tl.arange(0, BLOCK_L)
        mask = columns < length
        values = tl.load(source + columns, mask=mask, other=0.0).to(tl.float32)
        if SQUARED:
            values = tl.where(mask, (values - center) * (values - center), 0.0)
        partial += values
    return tl.sum(partial, axis=0) / (length * 1.0)
