# SPDX-License-Identifier: Apache-2.0
"""MatMul and Gemm -> a matrix product of two or more axes, and what is added to it.

    y = Gemm(a, b, c)   ->   t = a' @ (alpha * b'); y = t + beta * c

Source: ONNX MatMul (opset 13) and Gemm (opset 13).
"""

import onnx_ir as ir

from nndeploy_cudnn.operations import Matmul, Pointwise, Reshaped, Transposed, Value
from nndeploy_cudnn.patterns.translation import NotTakenError, Translation, attribute


def matmul(node: ir.Node, translation: Translation) -> None:
    """Writes a MatMul; an input of one axis gets a second of size 1."""
    a, b, y = translation.value(node.inputs[0]), translation.value(node.inputs[1]), translation.value(node.outputs[0])
    if not a.dims or not b.dims:
        raise NotTakenError("a matrix product with a scalar")
    left = _reshaped(translation, a, (1, *a.dims)) if len(a.dims) == 1 else a
    right = _reshaped(translation, b, (*b.dims, 1)) if len(b.dims) == 1 else b
    if left.dims[-1] != right.dims[-2]:
        raise NotTakenError(f"{list(a.dims)} @ {list(b.dims)} do not fit")
    if left is a and right is b:
        translation.add(Matmul(a, b, y))
        return
    lead = y.dims[: max(len(left.dims), len(right.dims)) - 2]
    made = translation.made((*lead, left.dims[-2], right.dims[-1]), y.dtype)
    translation.add(Matmul(left, right, made))
    translation.add(Reshaped(made, y))


def gemm(node: ir.Node, translation: Translation) -> None:
    """Writes a Gemm."""
    a, b, y = translation.value(node.inputs[0]), translation.value(node.inputs[1]), translation.value(node.outputs[0])
    c, beta = translation.optional(node, 2), attribute(node, "beta", 1.0)
    left = _transposed(translation, a) if attribute(node, "transA", 0) else a
    right = _transposed(translation, b) if attribute(node, "transB", 0) else b
    if left.dims[-1] != right.dims[-2]:
        raise NotTakenError(f"{list(left.dims)} @ {list(right.dims)} do not fit")
    right = _scaled(translation, right, attribute(node, "alpha", 1.0))
    if c is None or beta == 0.0:
        translation.add(Matmul(left, right, y))
        return
    made = translation.made(y.dims, y.dtype)
    translation.add(Matmul(left, right, made))
    translation.add(Pointwise("add", (made, _scaled(translation, c, beta)), y))


def _reshaped(translation: Translation, x: Value, dims: tuple[int, ...]) -> Value:
    if x.constant is not None:
        return translation.constant(x.constant.reshape(dims), x.dtype)
    y = translation.made(dims, x.dtype)
    translation.add(Reshaped(x, y))
    return y


def _transposed(translation: Translation, x: Value) -> Value:
    if x.constant is not None:
        return translation.constant(x.constant.T, x.dtype)
    y = translation.made(x.dims[::-1], x.dtype)
    translation.add(Transposed(x, y, (1, 0)))
    return y


def _scaled(translation: Translation, x: Value, factor: float) -> Value:
    if factor == 1.0:
        return x
    if x.constant is not None:
        return translation.constant(x.constant.astype("float64") * factor, x.dtype)
    y = translation.made(x.dims, x.dtype)
    translation.add(Pointwise("mul", (x, translation.scalar(factor)), y))
    return y


PATTERNS = {"MatMul": matmul, "Gemm": gemm}
