# SPDX-License-Identifier: Apache-2.0
"""Rules for products of bytes by constant weights, whose sums are exact.

    MatMulInteger(a, b)                            its sums; Cast, Mul, Add and what follows join it later
    QLinearMatMul(a, b), QGemm(a, b, c)            the nearest bytes
    MatMul(dequantised a, dequantised b)           sums * (scale of a * scale of b), also of Gemm with a bias
    MatMulIntegerToFloat(a, b)                     the same, of com.microsoft
    DynamicQuantizeMatMul(a, b)                    the same of floats, which are quantised first by their range

Source: ONNX MatMulInteger, QLinearMatMul, DequantizeLinear; ONNX Runtime, docs/ContribOperators.md.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.constants import constant_array
from nndeploy.graph.operators import float_attribute, int_attribute, operand
from nndeploy.values.size import product
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.quantisation_rules import dynamically_quantised
from nndeploy_native.steps.integer_product import IntegerProduct
from nndeploy_native.tensors import Array, Layout, Tensor, may_be_same

BYTES = ("uint8", "int8")
SAME_SCALE = 1e-6
"""Scales that differ by no more, of their size, are those of the sums."""


def matmul_integer(node: ir.Node, context: Context) -> None:
    """Lowers MatMulInteger by constant weights."""
    weights, zeros = _weights(node.inputs[1], operand(node, 3))
    a, zero = context.plain(operand(node, 0)), zero_point(operand(node, 2), context)
    output = context.output(node.outputs[0], Layout.PLAIN)
    context.emit(IntegerProduct(output, _rows(a, weights), weights, zero, zeros))


def qlinear_matmul(node: ir.Node, context: Context) -> None:
    """Lowers QLinearMatMul by constant weights with constant scales."""
    weights, zeros = _weights(node.inputs[3], operand(node, 5))
    of_a, of_b, of_y = (constant_array(operand(node, index)) for index in (1, 4, 6))
    to = constant_array(operand(node, 7))
    if of_a is None or of_b is None or of_y is None or to is None or not of_a.size == of_y.size == to.size == 1:
        raise BuildRefusedError("a QLinearMatMul whose scales are no constants, or one a row")
    if of_b.dtype != np.float32 or of_b.size not in (1, weights.shape[1]):
        raise BuildRefusedError(f"a QLinearMatMul with scales of shape {of_b.shape}")
    a, zero = context.plain(operand(node, 0)), zero_point(operand(node, 2), context)
    output = context.output(node.outputs[0], Layout.PLAIN)
    factors = (of_a.reshape(1) * of_b.reshape(-1) / of_y.reshape(1)).astype(np.float32)
    context.emit(
        IntegerProduct(
            output, _rows(a, weights), weights, zero, zeros, factors=factors, output_zero=int(to.item())
        )
    )  # fmt: skip


def qgemm(node: ir.Node, context: Context) -> None:
    """Lowers QGemm by constant weights: a and b with their scales and zero points, a bias, those of the output.

    The bias has the scale alpha * scale of a * scale of b; without a scale of the output that is float32.
    """
    is_turned = int_attribute(node, "transB", 0) != 0
    weights, zeros = _weights(operand(node, 3), operand(node, 5), is_turned=is_turned)
    of_a, of_b, of_y = (constant_array(operand(node, index)) for index in (1, 4, 7))
    to, bias = constant_array(operand(node, 8)), constant_array(operand(node, 6))
    if int_attribute(node, "transA", 0):
        raise BuildRefusedError("a QGemm of turned rows")
    if of_a is None or of_b is None or of_a.size != 1 or of_b.size not in (1, weights.shape[1]):
        raise BuildRefusedError("a QGemm whose scales are no constants, one, or one a column")
    is_float = context.element_of(node.outputs[0]) == "fp32"
    if is_float != (operand(node, 7) is None) or not (is_float or (of_y is not None and of_y.size == 1)):
        raise BuildRefusedError("a QGemm to a scale that is no constant")
    if operand(node, 6) is not None and (bias is None or bias.size not in (1, weights.shape[1])):
        raise BuildRefusedError("a QGemm with a bias that is no constant, one number a column")
    if not is_float and (to is None or to.size != 1):
        raise BuildRefusedError("a QGemm to a zero point that is no constant")
    factors: Array = np.float32(float_attribute(node, "alpha", 1.0)) * of_a.reshape(1) * of_b.reshape(-1)
    factors = factors if of_y is None else factors / of_y.reshape(1)
    a, zero = context.plain(operand(node, 0)), zero_point(operand(node, 2), context)
    context.emit(
        IntegerProduct(
            context.output(node.outputs[0], Layout.PLAIN), _rows(a, weights), weights, zero, zeros,
            whole_bias=None if bias is None else bias.reshape(-1), factors=factors.astype(np.float32),
            output_zero=0 if is_float or to is None else int(to.item()),
        )
    )  # fmt: skip


def matmul_integer_to_float(node: ir.Node, context: Context) -> None:
    """Lowers MatMulIntegerToFloat by constant weights: a, b, their scales, their zero points, a bias."""
    zero = zero_point(operand(node, 4), context)
    context.sizes_of(operand(node, 0))
    a, scale = context.plain(operand(node, 0)), operand(node, 2)
    if context.constant(scale) is None and product(context.shape_of(scale)) != 1:
        raise BuildRefusedError("a scale for each row")
    _emit_floats(node, context, a, context.plain(scale), zero, [operand(node, number) for number in (1, 3, 5, 6)])


def dynamic_quantise_matmul(node: ir.Node, context: Context) -> None:
    """Lowers DynamicQuantizeMatMul by constant weights: a, b, the scale and zero point of b, a bias."""
    x = context.plain(operand(node, 0))
    context.shape_of(operand(node, 0))
    a, scale, zero = dynamically_quantised(x, context)
    _emit_floats(node, context, a, scale, zero, [operand(node, number) for number in (1, 2, 3, 4)])


def _emit_floats(
    node: ir.Node,
    context: Context,
    a: Tensor,
    scale: Tensor,
    zero: Tensor | Array | None,
    given: Sequence[ir.Value | None],
) -> None:
    """Emits a product of bytes, of floats; `given` are the weights, their scales, their zero points and a bias."""
    weights, zeros = _weights(given[0], given[2])
    factors, bias = context.floats(given[1], "a scale"), None
    if factors.size not in (1, weights.shape[1]) or factors.shape[-1:] not in ((), (factors.size,)):
        raise BuildRefusedError(f"scales of shape {factors.shape} for {weights.shape[1]} columns")
    if given[3] is not None:
        bias = context.floats(given[3], "a bias").reshape(-1)
    output = context.output(node.outputs[0], Layout.PLAIN)
    context.emit(
        IntegerProduct(
            output, _rows(a, weights), weights, zero, zeros, factors=factors.reshape(-1), factor=scale, bias=bias
        )
    )  # fmt: skip


class Dequantised(NamedTuple):
    """What a DequantizeLinear reads."""

    value: ir.Value
    scale: Array
    zero: ir.Value | None
    axis: int


def dequantised_product(node: ir.Node, context: Context) -> IntegerProduct | None:
    """Returns the product of bytes that a MatMul or Gemm of dequantised ones is; None where it is none.

    That is rows with one scale by a constant matrix with one, or one a column.
    """
    is_gemm = node.op_type == "Gemm"
    turned = is_gemm and int_attribute(node, "transB", 0) != 0
    left, right = (dequantised(operand(node, index)) for index in range(2))
    if left is None or right is None or left.scale.size != 1 or left.value.dtype is None:
        return None
    if is_gemm and (int_attribute(node, "transA", 0) or _is_scaled(node)):
        return None
    array = constant_array(right.value)
    if left.value.dtype.name.lower() not in BYTES or array is None or array.dtype.name not in BYTES or array.ndim != 2:
        return None
    if right.scale.size > 1 and right.axis % 2 != (0 if turned else 1):
        return None
    zeros = constant_array(right.zero)
    weights = array.T if turned else array
    factors = (left.scale.reshape(1) * right.scale.reshape(-1)).astype(np.float32)
    whole, bias = bias_of(operand(node, 2), factors, weights.shape[1], context) if is_gemm else (None, None)
    if is_gemm and operand(node, 2) is not None and whole is None and bias is None:
        return None
    a = context.plain(left.value)
    if not may_be_same(a.shape[-1:], weights.shape[:1]):
        return None
    zero = zero_point(left.zero, context)
    output = context.output(node.outputs[0], Layout.PLAIN)
    zeros = None if zeros is None or not zeros.any() else zeros.reshape(-1)
    return IntegerProduct(output, a, weights, zero, zeros, whole, factors, None, bias)


def _is_scaled(node: ir.Node) -> bool:
    numbers = (node.attributes.get(name) for name in ("alpha", "beta"))
    return any(one is not None and one.as_float() != 1.0 for one in numbers)


def bias_of(
    value: ir.Value | None, factors: Array, columns: int, context: Context
) -> tuple[Array | None, Array | None]:
    """Returns what a Gemm adds: to the sums, where it was quantised with their scales, or to floats."""
    found = dequantised(value)
    whole = None if found is None else constant_array(found.value)
    if found is not None and whole is not None and whole.dtype == np.int32 and whole.size in (1, columns):
        scales = np.broadcast_to(found.scale.reshape(-1), (max(found.scale.size, factors.size),))
        if found.zero is None and np.allclose(scales, factors, rtol=SAME_SCALE, atol=0):
            return whole.reshape(-1), None
    floats = context.constant(value)
    if floats is not None and floats.dtype == np.float32 and floats.size in (1, columns):
        return None, np.ascontiguousarray(floats).reshape(-1)
    return None, None


def dequantised(value: ir.Value | None) -> Dequantised | None:
    """Returns what is dequantised to a value with constant scales; None where they are of blocks, or it is another."""
    node = value.producer() if value is not None else None
    if node is None or node.op_type != "DequantizeLinear" or node.domain not in ("", "ai.onnx"):
        return None
    if int_attribute(node, "block_size", 0) or node.inputs[0] is None or node.inputs[1] is None:
        return None
    scale, zero = constant_array(node.inputs[1]), operand(node, 2)
    numbers = constant_array(zero)
    if scale is None or scale.dtype != np.float32 or (zero is not None and numbers is None):
        return None
    is_none = numbers is not None and not numbers.any() and numbers.dtype == np.int32
    return Dequantised(node.inputs[0], scale, None if is_none else zero, int_attribute(node, "axis", 1))


def _weights(value: ir.Value | None, zeros: ir.Value | None, *, is_turned: bool = False) -> tuple[Array, Array | None]:
    """Returns a constant matrix of bytes with its zero points; one that `is_turned` has rows for columns.

    Raises:
        BuildRefusedError: it is none, or its zero points are neither one nor one a column.
    """
    array = constant_array(value)
    if array is None or array.dtype.name not in BYTES or array.ndim != 2:
        raise BuildRefusedError("a product of bytes by something else than a constant matrix")
    array = array.T if is_turned else array
    if zeros is None:
        return array, None
    found = constant_array(zeros)
    if found is None or found.size not in (1, array.shape[1]) or (found.ndim > 1 and found.shape[-1] != found.size):
        raise BuildRefusedError("zero points of weights that are no constants, one or one a column")
    return array, np.ascontiguousarray(found).reshape(-1)


def zero_point(value: ir.Value | None, context: Context) -> Tensor | Array | None:
    """Returns one zero point of a whole tensor.

    Raises:
        BuildRefusedError: there are more.
    """
    if value is None:
        return None
    array = constant_array(value)
    if array is not None and array.size == 1:
        return array.reshape(1) if array.any() else None
    if product(context.sizes_of(value)) != 1:
        raise BuildRefusedError("a zero point for each row")
    return context.plain(value)


def _rows(a: Tensor, weights: Array) -> Tensor:
    """Returns rows that are as long as the columns of weights.

    Raises:
        BuildRefusedError: they are not.
    """
    if not may_be_same(a.shape[-1:], weights.shape[:1]):
        raise BuildRefusedError(f"rows of {a.shape} by columns of {weights.shape}")
    return a
