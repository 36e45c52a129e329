# SPDX-License-Identifier: Apache-2.0
"""Elementwise programs: what a kernel does with each element, as data that is compiled into it.

A program is a tuple of steps such as `(("add", 0, 1), ("const", 0.5), ("mul", 2, 3))`. A number names a value: first
the kernel's inputs (or the accumulator and then its extra inputs), then the results of the steps so far; the last
result is the program's. Reals are float32, whole numbers keep their type until "float" converts them, truth is 1.0
and 0.0, or 1 and 0. `program.py` holds the same on the host, with the list of operators.
"""

import triton
import triton.language as tl


@triton.jit
def run_program(values, program: tl.constexpr):
    """Returns the program's last value; `values` is a tuple of float32 blocks that can be broadcast together."""
    for index in tl.static_range(len(program)):
        values = values + (_value_of(values, program, index),)
    return values[len(values) - 1]


@triton.constexpr_function
def _num_operands(program, index):
    return len(program[index]) - 1


@triton.jit
def _value_of(values, program: tl.constexpr, index: tl.constexpr):
    """Returns the value of one step; Triton 3.6 takes no part of a tuple for a constant, so the whole comes here."""
    if program[index][0] == "const":
        return tl.full((), program[index][1], tl.float32)
    elif _num_operands(program, index) == 1:
        return _unary(tl.constexpr(program[index][0]), values[program[index][1]])
    elif _num_operands(program, index) == 2:
        return _binary(tl.constexpr(program[index][0]), values[program[index][1]], values[program[index][2]])
    else:
        tl.static_assert(program[index][0] == "where", "the only operator with three operands")
        condition = values[program[index][1]] != 0.0
        return tl.where(condition, values[program[index][2]], values[program[index][3]])


@triton.jit
def _unary(op: tl.constexpr, a):
    if op == "same":
        return a
    elif op == "float":
        return a.to(tl.float32)
    elif op == "neg":
        return -a
    elif op == "abs":
        return tl.abs(a)
    elif op == "reciprocal":
        return 1.0 / a
    elif op == "sqrt":
        return tl.sqrt_rn(a)
    elif op == "exp":
        return tl.exp(a)
    elif op == "log":
        return tl.log(a)
    elif op == "sin":
        return tl.sin(a)
    elif op == "cos":
        return tl.cos(a)
    elif op == "erf":
        return tl.erf(a)
    elif op == "sigmoid":
        return 1.0 / (1.0 + tl.exp(-a))
    elif op == "tanh":
        return _tanh(a)
    elif op == "softplus":
        return tl.where(a > 0.0, a, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(a)))
    elif op == "relu":
        return tl.where(a < 0.0, 0.0, a)  # so that NaN stays NaN
    elif op == "floor":
        return tl.floor(a)
    elif op == "ceil":
        return tl.ceil(a)
    elif op == "round":
        return _round_half_even(a)
    elif op == "sign":
        return tl.where(a > 0.0, 1.0, tl.where(a < 0.0, -1.0, a))
    elif op == "not":
        return tl.where(a != 0.0, 0.0, 1.0)
    elif op == "isnan":
        return tl.where(a != a, 1.0, 0.0)
    else:
        tl.static_assert(False, "no such operator of one operand")


@triton.jit
def _binary(op: tl.constexpr, a, b):
    if op == "add":
        return a + b
    elif op == "sub":
        return a - b
    elif op == "mul":
        return a * b
    elif op == "div":
        return tl.div_rn(a, b)
    elif op == "max":
        return tl.where((a > b) | (a != a), a, b)  # NaN stays NaN, on either side
    elif op == "min":
        return tl.where((a < b) | (a != a), a, b)
    elif op == "less":
        return tl.where(a < b, 1.0, 0.0)
    elif op == "less_equal":
        return tl.where(a <= b, 1.0, 0.0)
    elif op == "equal":
        return tl.where(a == b, 1.0, 0.0)
    elif op == "and":
        return tl.where((a != 0.0) & (b != 0.0), 1.0, 0.0)
    elif op == "or":
        return tl.where((a != 0.0) | (b != 0.0), 1.0, 0.0)
    else:
        tl.static_assert(False, "no such operator of two operands")


@triton.jit
def _tanh(a):
    """Returns tanh: a series where the quotient would cancel, the quotient of one exponential elsewhere."""
    square = a * a
    series = a * (1.0 + square * (-1.0 / 3 + square * (2.0 / 15 + square * (-17.0 / 315 + square * (62.0 / 2835)))))
    decay = tl.exp(-2.0 * tl.abs(a))
    quotient = (1.0 - decay) / (1.0 + decay)
    return tl.where(tl.abs(a) < 0.25, series, tl.where(a < 0.0, -quotient, quotient))


@triton.jit
def _round_half_even(a):
    above = tl.floor(a + 0.5)
    is_tie = above - a == 0.5
    is_odd = above - 2.0 * tl.floor(above * 0.5) == 1.0
    rounded = tl.where(is_tie & is_odd, above - 1.0, above)
    return tl.where(tl.abs(a) < 8388608.0, rounded, a)  # from 2**23 on every float32 is an integer


@triton.jit
def load_extra(pointer, strides, kinds: tl.constexpr, index: tl.constexpr, batch, rows, columns, row_mask, column_mask):
    """Returns one extra input of an epilogue at (batch, rows, columns) of the output.

    `kinds[index]` says where it varies: "scalar" (by batch only), "row", "column" or "tile"; `strides` belong to
    (batch, row, column) and are in elements.
    """
    base = pointer + batch * strides[0]
    if kinds[index] == "scalar":
        return as_operand(tl.load(base))
    elif kinds[index] == "row":
        return as_operand(tl.load(base + rows * strides[1], mask=row_mask, other=0))[:, None]
    elif kinds[index] == "column":
        return as_operand(tl.load(base + columns * strides[2], mask=column_mask, other=0))[None, :]
    else:
        at = rows[:, None] * strides[1] + columns[None, :] * strides[2]
        return as_operand(tl.load(base + at, mask=row_mask[:, None] & column_mask[None, :], other=0))


@triton.jit
def as_operand(value):
    """Returns a loaded block as programs take it: reals as float32, whole numbers as they are."""
    if value.dtype.is_floating():
        return value.to(tl.float32)
    else:
        return value


@triton.jit
def finish(
    tile, extras, strides, kinds: tl.constexpr, program: tl.constexpr, batch, rows, columns, row_mask, column_mask
):
    """Returns the epilogue's value of an output tile (rows, columns); `tile` is the program's value 0."""
    values = (tile,)
    for index in tl.static_range(len(extras)):
        extra = load_extra(extras[index], strides[index], kinds, index, batch, rows, columns, row_mask, column_mask)
        values = values + (extra,)
    return run_program(values, program)
