# SPDX-License-Identifier: Apache-2.0
"""What rules read of constants that were quantised: their numbers, their scales, and the floats that they stand for.

    DequantizeLinear(x, scale, zero_point)  =>  (x - zero_point) * scale

Source: ONNX DequantizeLinear, opset 21: scales of a tensor, of an axis, or of blocks of one.
"""

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.constants import constant_array
from nndeploy.graph.operators import int_attribute, operand
from nndeploy.values.size import fixed, is_fixed, product
from nndeploy_native.tensors import Array, Shape

_WIDE = {"int4": np.int8, "uint4": np.uint8}
"""Numbers of 4 bits, and the type that holds each in a byte."""


def whole_numbers_of(value: ir.Value | None) -> Array | None:
    """Returns the numbers of a constant, those of 4 bits a byte each; None of any other value."""
    array = constant_array(value) if value is not None else None
    return array.astype(_WIDE[array.dtype.name]) if array is not None and array.dtype.name in _WIDE else array


def is_zero(value: ir.Value) -> bool:
    """Whether a value is constant, and zero everywhere."""
    array = whole_numbers_of(value)
    return array is not None and not array.any()


def parameter_shapes(node: ir.Node, shape: Shape, of_scale: Shape) -> tuple[Shape, Shape]:
    """Returns how the operand of QuantizeLinear or DequantizeLinear is seen, and its scales, which spread over it.

    Raises:
        BuildRefusedError: there are other numbers of scales, or blocks of sizes that are not fixed.
    """
    rank, block = len(shape), int_attribute(node, "block_size", 0)
    axis = int_attribute(node, "axis", 1)
    if is_fixed(of_scale) and product(of_scale) == 1 and len(of_scale) <= 1:
        return shape, ()
    if not -rank <= axis < rank:
        raise BuildRefusedError(f"an axis {axis} of {rank}")
    axis %= rank
    if not block:
        if len(of_scale) != 1:
            raise BuildRefusedError(f"scales of shape {of_scale}")
        return shape, (*[1] * axis, *of_scale, *[1] * (rank - axis - 1))
    if len(of_scale) != rank or not is_fixed((shape[axis], of_scale[axis])):
        raise BuildRefusedError(f"blocks of {shape} with scales of shape {of_scale}")
    if block * fixed(of_scale[axis]) != fixed(shape[axis]):
        raise BuildRefusedError(f"{shape[axis]} elements in blocks of {block}")
    seen = (*shape[:axis], of_scale[axis], block, *shape[axis + 1 :])
    return seen, (*of_scale[: axis + 1], 1, *of_scale[axis + 1 :])


def dequantised_constant(value: ir.Value) -> Array | None:
    """Returns the floats that a constant stands for which a DequantizeLinear makes; None of any other value."""
    node = value.producer()
    if node is None or node.op_type != "DequantizeLinear" or node.domain not in ("", "ai.onnx"):
        return None
    x, scale, zero = (whole_numbers_of(operand(node, index)) for index in range(3))
    if (
        x is None
        or scale is None
        or scale.dtype not in (np.float32, np.float16)
        or (zero is None and operand(node, 2) is not None)
    ):
        return None
    try:
        seen, spread = parameter_shapes(node, x.shape, scale.shape)
    except BuildRefusedError:
        return None
    numbers = x.reshape([fixed(size) for size in seen]).astype(np.int64)
    places = [fixed(size) for size in spread]
    if zero is not None:
        numbers = numbers - zero.reshape(places).astype(np.int64)
    return (numbers.astype(np.float32) * scale.astype(np.float32).reshape(places)).reshape(x.shape)
