# SPDX-License-Identifier: Apache-2.0
"""Recurrences over time: one kernel instance walks all steps of one direction and one sequence of a batch.

What of the gates does not depend on the state was computed before, for all steps, by a matrix product; here remain
the products with the state. The state stays on the chip; the square weights are read anew at each step, from the cache.
"""

import triton
import triton.language as tl


@triton.jit
def lstm(
    out, gates, weights, initial_h, initial_c, num_steps, num_batch, hidden, num_directions,
    BACKWARDS: tl.constexpr, HAS_H: tl.constexpr, HAS_C: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    """Writes (num_steps + 2, num_directions, num_batch, hidden): the state after each step, then the last h and c.

    `gates` (direction, step, batch, 4 * hidden) and `weights` (direction, 4 * hidden, hidden) hold ONNX's order input,
    output, forget, cell. Axis 0 of the grid runs over directions, 1 over the batch. The second direction, or with
    BACKWARDS the only one, walks from the last step to the first.
    """
    direction, item = tl.program_id(0), tl.program_id(1)
    rows = tl.arange(0, BLOCK_H)
    columns = tl.arange(0, BLOCK_H)
    row_mask = rows < hidden
    square_mask = row_mask[:, None] & (columns < hidden)[None, :]
    square = weights + direction * 4 * hidden * hidden + rows[:, None] * hidden + columns[None, :]
    first = (direction * num_batch + item) * hidden + rows
    state = tl.zeros((BLOCK_H,), tl.float32)
    cell = tl.zeros((BLOCK_H,), tl.float32)
    if HAS_H:
        state += tl.load(initial_h + first, mask=row_mask, other=0.0).to(tl.float32)
    if HAS_C:
        cell += tl.load(initial_c + first, mask=row_mask, other=0.0).to(tl.float32)
    for number in range(num_steps):
        step = number
        if BACKWARDS:
            step = num_steps - 1 - number
        else:
            step = tl.where(direction == 1, num_steps - 1 - number, number)
        here = gates + ((direction * num_steps + step) * num_batch + item) * 4 * hidden + rows
        into = _sigmoid(_gate(here, square, state, 0, hidden, row_mask, square_mask))
        shown = _sigmoid(_gate(here, square, state, 1, hidden, row_mask, square_mask))
        kept = _sigmoid(_gate(here, square, state, 2, hidden, row_mask, square_mask))
        new = _tanh(_gate(here, square, state, 3, hidden, row_mask, square_mask))
        cell = kept * cell + into * new
        state = shown * _tanh(cell)
        at = ((step * num_directions + direction) * num_batch + item) * hidden + rows
        tl.store(out + at, state.to(out.dtype.element_ty), mask=row_mask)
    last = num_steps * num_directions * num_batch * hidden + first
    tl.store(out + last, state.to(out.dtype.element_ty), mask=row_mask)
    after = last + num_directions * num_batch * hidden
    tl.store(out + after, cell.to(out.dtype.element_ty), mask=row_mask)


@triton.jit
def _gate(here, square, state, number: tl.constexpr, hidden, row_mask, square_mask):
    """Returns one gate before its activation: what was computed before, and the product with the state."""
    weights = tl.load(square + number * hidden * hidden, mask=square_mask, other=0.0).to(tl.float32)
    before = tl.load(here + number * hidden, mask=row_mask, other=0.0).to(tl.float32)
    return before + tl.sum(weights * state[None, :], axis=1)


@triton.jit
def _sigmoid(a):
    return 1.0 / (1.0 + tl.exp(-a))


@triton.jit
def _tanh(a):
    decay = tl.exp(-2.0 * tl.abs(a))
    quotient = (1.0 - decay) / (1.0 + decay)
    return tl.where(a < 0.0, -quotient, quotient)
