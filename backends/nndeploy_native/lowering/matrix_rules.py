# SPDX-License-Identifier: Apache-2.0
"""Rules for products of matrices. Source: ONNX Gemm, MatMul."""

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, int_attribute, operand
from nndeploy_native.lowering.context import Context
from nndeploy_native.steps.matmul import FullyConnected, Product
from nndeploy_native.tensors import Layout, fixed_shape


def gemm(node: ir.Node, context: Context) -> None:
    """Lowers Gemm with constant weights: a fully connected layer."""
    weights = context.floats(operand(node, 1), "weights")
    shape, out_shape = context.shape_of(operand(node, 0)), context.shape_of(node.outputs[0])
    if int_attribute(node, "transA", 0):
        raise BuildRefusedError("a Gemm whose first operand is transposed")
    matrix = weights.T if int_attribute(node, "transB", 0) else weights
    if len(shape) != 2 or matrix.ndim != 2 or (shape[1], out_shape[1]) != matrix.shape:
        raise BuildRefusedError("matrices that do not fit together")
    bias = None
    if operand(node, 2) is not None:
        bias = context.floats(operand(node, 2), "a bias")
        if bias.size not in (1, matrix.shape[1]) or bias.shape[-1:] not in ((), (1,), (matrix.shape[1],)):
            raise BuildRefusedError("a bias that is not one number for each column")
        row = bias.reshape(-1).astype(np.float64) * float_attribute(node, "beta", 1.0)
        bias = np.broadcast_to(row, fixed_shape(matrix.shape[1:])).astype(np.float32)
    alpha = float_attribute(node, "alpha", 1.0)
    x = context.plain(node.inputs[0])
    scaled = matrix if alpha == 1.0 else (matrix.astype(np.float64) * alpha).astype(np.float32)
    context.emit(FullyConnected(context.output(node.outputs[0], Layout.PLAIN), x, scaled, bias))


def matmul(node: ir.Node, context: Context) -> None:
    """Lowers MatMul by a constant matrix, or of two values with equal batches."""
    shape, other = context.shape_of(operand(node, 0)), context.shape_of(operand(node, 1))
    out_shape = context.shape_of(node.outputs[0])
    if len(shape) < 2 or len(other) < 2 or shape[-1] != other[-2]:
        raise BuildRefusedError("a MatMul with a vector")
    weights = context.constant(node.inputs[1])
    if weights is not None and weights.ndim == 2:
        x = context.plain(node.inputs[0])
        context.emit(FullyConnected(context.output(node.outputs[0], Layout.PLAIN), x, weights, None))
        return
    is_shared = len(other) == 2
    if not is_shared and shape[:-2] != other[:-2]:
        raise BuildRefusedError("a MatMul whose batches are broadcast")
    if out_shape[:-2] != shape[:-2]:
        raise BuildRefusedError("a MatMul of another shape than the model says")
    a, b = context.plain(node.inputs[0]), context.plain(node.inputs[1])
    context.emit(Product(context.output(node.outputs[0], Layout.PLAIN), a, b, is_shared))
