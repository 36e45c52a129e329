# SPDX-License-Identifier: Apache-2.0
"""Rules for products by constant weights of 4 or 8 bits in blocks, or of float16, which stay as small as they are.

    MatMulNBits(a, numbers, scales, zero points)                 of com.microsoft: a column's numbers side by side
    MatMul(a, DequantizeLinear(numbers, scales, zero points))    the same of ONNX, in either order, also of Gemm

Activations stay float32, but for MatMulNBits of 4 bits whose `accuracy_level` is 4: they may be rounded to bytes.
Source: ONNX Runtime, docs/ContribOperators.md; ONNX DequantizeLinear, opset 21.
"""

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.constants import constant_array
from nndeploy.graph.operators import int_attribute, ints_attribute, operand
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.matrices import matrix, product
from nndeploy_native.steps.matmul import BitWeights, OfBlocks
from nndeploy_native.tensors import Array, Layout, may_be_same

_FLOATS = (np.float32, np.float16)
_WIDTHS = {"int4": 4, "uint4": 4, "int8": 8, "uint8": 8}
_MOST_AT_ONCE = {4: 128, 8: 64}
"""The longest blocks that the kernels take whole: NND_BITS_PIECE of the kernel library."""
LEAST_HALVES = 2048
"""Elements of a constant of float16 from which on it pays that they take half the memory."""
_BYTES = 4
"""The `accuracy_level` that lets activations be int8."""
_LEAST_BLOCK = 8
"""Shorter blocks are better off as floats."""


def nbits_weights(node: ir.Node, context: Context) -> BitWeights:
    """Returns the weights of a MatMulNBits.

    Raises:
        BuildRefusedError: they are no constants, or of a form that the kernels do not have.
    """
    bits, block = int_attribute(node, "bits", 4), int_attribute(node, "block_size", 0)
    inner, columns = int_attribute(node, "K", 0), int_attribute(node, "N", 0)
    if operand(node, 4) is not None:
        raise BuildRefusedError("a MatMulNBits whose rows are in another order (g_idx)")
    if bits not in (4, 8) or block < 16 or block & (block - 1) or inner < 1 or columns < 1:
        raise BuildRefusedError(f"a MatMulNBits of {bits} bits in blocks of {block}, {inner} by {columns}")
    numbers, scales = constant_array(operand(node, 1)), context.floats(operand(node, 2), "a scale")
    blocks = -(-inner // block)
    if numbers is None or numbers.dtype != np.uint8 or numbers.size != columns * blocks * block * bits // 8:
        raise BuildRefusedError("a MatMulNBits by something else than constant bytes for all blocks")
    if scales.size != columns * blocks:
        raise BuildRefusedError(f"{scales.size} scales for {blocks} blocks of {columns} columns")
    zeros, zero = _zeros_of(operand(node, 3), bits, blocks, columns)
    of_scales = OfBlocks(scales.reshape(-1), 1, blocks)
    steps = (1, blocks * block)
    rounds = bits == 4 and int_attribute(node, "accuracy_level", 0) == _BYTES
    return BitWeights(numbers.reshape(-1), bits, False, inner, columns, steps, block, of_scales, zeros, zero, rounds)


def _zeros_of(value: ir.Value | None, bits: int, blocks: int, columns: int) -> tuple[OfBlocks | None, int]:
    """Returns zero points, or the one that all blocks have."""
    if value is None:
        return None, 1 << (bits - 1)
    array = constant_array(value)
    if array is not None and array.dtype in _FLOATS and array.size == columns * blocks:
        return OfBlocks(array.astype(np.float32).reshape(-1), 1, blocks), 0
    column_bytes = -(-blocks * bits // 8)
    if array is None or array.dtype != np.uint8 or array.size != columns * column_bytes:
        raise BuildRefusedError("a MatMulNBits with zero points that are neither float32 nor bytes for all blocks")
    return OfBlocks(array.reshape(-1), 1, column_bytes * 8 // bits), 0


def matmul_nbits(node: ir.Node, context: Context) -> None:
    """Lowers MatMulNBits: inputs a, numbers, scales, zero points, an order of the rows, a bias."""
    shape, weights = context.shape_of(node.outputs[0]), nbits_weights(node, context)
    a, bias = matrix(node.inputs[0], context, shares_b=True), operand(node, 5)
    if len(a.sizes) < 2:
        raise BuildRefusedError("a MatMulNBits of a vector")
    if not may_be_same(a.sizes[-1:], (weights.inner,)) or not may_be_same(shape[-1:], (weights.columns,)):
        raise BuildRefusedError(f"a MatMulNBits of {weights.inner} by {weights.columns} from {a.sizes} to {shape}")
    step = product(context.output(node.outputs[0], Layout.PLAIN), a, weights)
    if bias is not None:
        floats = context.floats(bias, "a bias").reshape(-1)
        if floats.size != weights.columns:
            raise BuildRefusedError(f"a bias of {floats.size} numbers for {weights.columns} columns")
        step = replace(step, bias=floats)
    context.emit(step)


def narrow_weights(value: ir.Value | None, *, is_turned: bool = False) -> BitWeights | None:
    """Returns the matrix that a value is which is float16, or dequantised from a constant; None where it is neither.

    Scales are of all, of columns, or of blocks along k, which is the second axis where it `is_turned`.
    """
    halves = constant_array(value)
    if halves is not None:
        return _halves(halves, is_turned=is_turned)
    node = value.producer() if value is not None else None
    if node is None or node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type == "Transpose" and ints_attribute(node, "perm") in (None, (1, 0)):
        return narrow_weights(operand(node, 0), is_turned=not is_turned)
    array = constant_array(operand(node, 0)) if node.op_type == "DequantizeLinear" else None
    scales, zeros = constant_array(operand(node, 1)), constant_array(operand(node, 2))
    if array is None or array.ndim != 2 or array.dtype.name not in _WIDTHS or not array.size:
        return None
    if scales is None or scales.dtype not in _FLOATS or (zeros is None and operand(node, 2) is not None):
        return None
    if zeros is not None and (zeros.dtype != array.dtype or zeros.shape != scales.shape):
        return None
    k, of_columns = (1, 0) if is_turned else (0, 1)
    inner, columns = array.shape[k], array.shape[of_columns]
    axis, block = int_attribute(node, "axis", 1) % 2, int_attribute(node, "block_size", 0)
    if scales.size == 1 and scales.ndim <= 1:
        block, steps = inner, (0, 0)
    elif not block and axis == of_columns and scales.shape == (columns,):
        block, steps = inner, (0, 1)
    elif block >= _LEAST_BLOCK and axis == k and inner % block == 0:
        if scales.ndim != 2 or (scales.shape[k], scales.shape[of_columns]) != (inner // block, columns):
            return None
        steps = _steps_of(scales.shape, k)
    else:
        return None
    bits = _WIDTHS[array.dtype.name]
    if block > _MOST_AT_ONCE[bits] and block % _MOST_AT_ONCE[bits] and block < inner:
        return None
    of_zeros = None if zeros is None or not zeros.astype(np.int8).any() else OfBlocks(_packed(zeros, bits), *steps)
    of_scales, is_signed = OfBlocks(scales.astype(np.float32).reshape(-1), *steps), array.dtype.name.startswith("int")
    numbers, of_numbers = _packed(array, bits), _steps_of(array.shape, k)
    return BitWeights(numbers, bits, is_signed, inner, columns, of_numbers, block, of_scales, of_zeros)


def _halves(array: Array, *, is_turned: bool) -> BitWeights | None:
    """Returns a matrix of float16; None where it is another, or so small that it is better off as floats."""
    if array.dtype != np.float16 or array.ndim != 2 or array.size < LEAST_HALVES:
        return None
    k = 1 if is_turned else 0
    inner, columns = array.shape[k], array.shape[1 - k]
    return BitWeights(array.reshape(-1), 16, False, inner, columns, _steps_of(array.shape, k), inner, None)


def _steps_of(shape: tuple[int, ...], k: int) -> tuple[int, int]:
    """Returns how far elements of a matrix are from each other along axis `k` and along the other one."""
    return (1, shape[1]) if k == 1 else (shape[1], 1)


def _packed(array: Array, bits: int) -> Array:
    """Returns numbers as bytes: of 4 bits two a byte, the first one low, as ONNX stores them."""
    if bits == 8:
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    nibbles = array.reshape(-1).astype(np.int8).view(np.uint8) & 15
    nibbles = np.append(nibbles, np.zeros(nibbles.size % 2, np.uint8))
    return nibbles[0::2] | nibbles[1::2] << 4
