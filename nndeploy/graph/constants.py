# SPDX-License-Identifier: Apache-2.0
"""What passes know of constant values: reading them, and rounding a result back to the type of the model.

A value is constant when it is an initializer that no caller can override, or the output of a Constant node. All
arithmetic on weights is done in float64 and rounded once; a result that does not fit the type is refused, so that
folding never turns a finite network into one with infinities or lost weights.
"""

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx_ir as ir

Array: TypeAlias = npt.NDArray[Any]
Float64: TypeAlias = npt.NDArray[np.float64]

MAX_SMALL_SIZE = 1024
"""Elements that a constant with a meaning (axes, a shape, pads) may have; real ones have a rank's worth."""

NEGLIGIBLE = 2.0**-120
"""An error that no network amplifies to anything. Trained ones hold dead channels of 1e-40, which float rounds off."""

_SMALLEST_STEP = {
    np.dtype(np.float64): 2.0**-52,
    np.dtype(np.float32): 2.0**-23,
    np.dtype(np.float16): 2.0**-10,
    np.dtype(ml_dtypes.bfloat16): 2.0**-7,
}


def constant_tensor(value: ir.Value | None) -> ir.TensorProtocol | None:
    """Returns the tensor that `value` always holds; None where it is not constant."""
    if value is None:
        return None
    if value.is_initializer():
        return value.const_value if not value.is_graph_input() else None
    producer = value.producer()
    if producer is None or producer.op_type != "Constant" or producer.domain != "":
        return None
    return constant_node_tensor(producer)


def constant_node_tensor(node: ir.Node) -> ir.TensorProtocol | None:
    """Returns what a Constant node holds; None for a sparse tensor.

    Source: ONNX Constant: exactly one of its `value` attributes is given.
    """
    if len(node.attributes) != 1:
        return None
    (attribute,) = node.attributes.values()
    match attribute.name:
        case "value":
            return attribute.as_tensor()
        case "value_int":
            return ir.tensor(np.array(attribute.as_int(), np.int64))
        case "value_ints":
            return ir.tensor(np.array(attribute.as_ints(), np.int64))
        case "value_float":
            return ir.tensor(np.array(attribute.as_float(), np.float32))
        case "value_floats":
            return ir.tensor(np.array(attribute.as_floats(), np.float32))
        case "value_string":
            return ir.StringTensor([attribute.as_string().encode()], shape=ir.Shape([]))
        case "value_strings":
            texts = [text.encode() for text in attribute.as_strings()]
            return ir.StringTensor(texts, shape=ir.Shape([len(texts)]))
    return None


def sizes_of(tensor: ir.TensorProtocol) -> tuple[int, ...]:
    """Returns the shape of a tensor, whose sizes are all numbers."""
    return tuple(size for size in tensor.shape if isinstance(size, int))


def constant_array(value: ir.Value | None) -> Array | None:
    """Returns the numbers that `value` always holds; None where it is not constant or holds text."""
    tensor = constant_tensor(value)
    return None if tensor is None or tensor.dtype == ir.DataType.STRING else tensor.numpy()


def constant_texts(value: ir.Value | None) -> list[str] | None:
    """Returns the texts that `value` always holds, in order; None where it is not constant, or holds no UTF-8."""
    tensor = constant_tensor(value)
    if tensor is None or tensor.dtype != ir.DataType.STRING:
        return None
    try:
        return [text.decode() if isinstance(text, bytes) else str(text) for text in tensor.numpy().reshape(-1).tolist()]
    except UnicodeDecodeError:
        return None


def constant_ints(value: ir.Value | None) -> tuple[int, ...] | None:
    """Returns a small constant list of integers (or one integer, as a list of one); None where it is not that."""
    tensor = constant_tensor(value)
    if tensor is None or tensor.size > MAX_SMALL_SIZE or tensor.dtype not in (ir.DataType.INT64, ir.DataType.INT32):
        return None
    return tuple(tensor.numpy().reshape(-1).tolist())


def constant_flag(value: ir.Value | None) -> bool | None:
    """Returns the truth that `value` always holds; None where it is not one constant boolean."""
    tensor = constant_tensor(value)
    if tensor is None or tensor.dtype != ir.DataType.BOOL or tensor.size != 1:
        return None
    return bool(tensor.numpy().reshape(-1)[0])


def constant_floats(value: ir.Value | None) -> Float64 | None:
    """Returns constant floating-point numbers in float64; None where `value` is not that."""
    array = constant_array(value)
    return array.astype(np.float64) if array is not None and array.dtype in _SMALLEST_STEP else None


def rounded(exact: Float64, like: np.dtype[Any], *, axis: int | None = None) -> Array | None:
    """Returns `exact` in the type `like`; None when that loses what it holds.

    Lost is: an infinity or NaN, or an error above two steps of the type, measured against the largest element, which
    is what counts in a sum. `axis` names the channels of factors: each is measured against its own largest element,
    since what follows may amplify it. (This catches weights that fall below the smallest numbers of float16.)
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        result = exact.astype(like)
        error = np.abs(result.astype(np.float64) - exact)
    others = None if axis is None else tuple(other for other in range(exact.ndim) if other != axis % exact.ndim)
    allowed = 2 * _SMALLEST_STEP[like] * np.max(np.abs(exact), axis=others, initial=0.0, keepdims=True)
    return result if np.isfinite(error).all() and (error <= np.maximum(allowed, NEGLIGIBLE)).all() else None


def per_channel(constant: Float64, num_channels: int, rank: int) -> Float64 | None:
    """Returns a constant that is broadcast against (N, C, ...) as one number for each channel, shape (C,).

    None when it differs along another axis, or would add axes or sizes to a tensor of `rank` dimensions.
    """
    if constant.ndim > rank:
        return None
    if constant.size == 1:
        return np.full(num_channels, constant.reshape(()))
    shape = (1,) * (rank - constant.ndim) + constant.shape
    if shape != tuple(num_channels if axis == 1 else 1 for axis in range(rank)):
        return None
    return constant.reshape(num_channels)
