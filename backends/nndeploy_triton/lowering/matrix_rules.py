# SPDX-License-Identifier: Apache-2.0
"""Rules for matrix products: MatMul with numpy's broadcasting, Gemm.

Source: ONNX MatMul, Gemm.
"""

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, int_attribute, operand
from nndeploy.values.size import product
from nndeploy_triton.lowering.context import Context
from nndeploy_triton.program import Program, ProgramBuilder
from nndeploy_triton.steps.matmul import Matmul
from nndeploy_triton.steps.step import PLAIN, Epilogue
from nndeploy_triton.views import Shape, View


def matmul(node: ir.Node, context: Context) -> None:
    """Lowers MatMul; leading axes that the right side lacks become rows of one product."""
    context.floats(node, 2)
    left, right, output = context.view(node.inputs[0]), context.view(node.inputs[1]), context.output(node.outputs[0])
    if not left.shape or not right.shape:
        raise BuildRefusedError("a MatMul of scalars")
    left = _with_axis(left, 0) if len(left.shape) == 1 else left
    right = _with_axis(right, 1) if len(right.shape) == 1 else right
    if left.shape[-1] != right.shape[-2]:
        raise BuildRefusedError("sides of MatMul that do not fit together")
    if product(right.shape[:-2]) == 1:
        sides = _matrix(context, left), _matrix(context, right)
    else:
        batch = _batch_shape(left, right)
        sides = _batched(context, left, batch), _batched(context, right, batch)
    if product((*sides[0].shape[:2], sides[1].shape[2])) != output.size:
        raise BuildRefusedError("the model says another shape")
    context.emit(Matmul(output, *sides))


def gemm(node: ir.Node, context: Context) -> None:
    """Lowers Gemm: alpha * A' B' + beta * C, as a product with an epilogue."""
    bias = operand(node, 2)
    context.floats(node, 3 if bias is not None else 2)
    left, right, output = context.view(node.inputs[0]), context.view(node.inputs[1]), context.output(node.outputs[0])
    if len(left.shape) != 2 or len(right.shape) != 2:
        raise BuildRefusedError("a Gemm of something else than matrices")
    left = left.transposed((1, 0)) if int_attribute(node, "transA", 0) else left
    right = right.transposed((1, 0)) if int_attribute(node, "transB", 0) else right
    if left.shape[1] != right.shape[0] or output.shape != (left.shape[0], right.shape[1]):
        raise BuildRefusedError("sides of Gemm that do not fit together")
    alpha, beta = float_attribute(node, "alpha", 1.0), float_attribute(node, "beta", 1.0)
    extras = () if bias is None else (context.broadcast(context.view(bias), output.shape),)
    epilogue = Epilogue(_scaled_sum(alpha, beta, len(extras)), extras) if extras or alpha != 1.0 else PLAIN
    context.emit(Matmul(output, _with_axis(left, 0), _with_axis(right, 0), epilogue))


def _scaled_sum(alpha: float, beta: float, num_extras: int) -> Program:
    builder = ProgramBuilder(1 + num_extras)
    result = 0 if alpha == 1.0 else builder.apply("mul", 0, builder.const(alpha))
    if num_extras:
        addend = 1 if beta == 1.0 else builder.apply("mul", 1, builder.const(beta))
        result = builder.apply("add", result, addend)
    return builder.program(result, "bias" if num_extras else "scale")


def _with_axis(view: View, axis: int) -> View:
    """Returns the view with an axis of size 1 more."""
    shape, strides = list(view.shape), list(view.strides)
    shape.insert(axis, 1)
    strides.insert(axis, 0)
    return View(view.name, view.dtype, tuple(shape), tuple(strides), view.offset)


def _matrix(context: Context, view: View) -> View:
    """Returns the view as (1, rows, columns): all leading axes are rows."""
    shape = (1, product(view.shape[:-1]), view.shape[-1])
    seen = view.reshaped(shape) or context.packed(view).reshaped(shape)
    assert seen is not None
    return seen


def _batched(context: Context, view: View, batch: Shape) -> View:
    """Returns the view as (batch, rows, columns), the batch stretched."""
    stretched = context.broadcast(view, (*batch, *view.shape[-2:]))
    shape = (product(batch), *view.shape[-2:])
    seen = stretched.reshaped(shape) or context.packed(stretched).reshaped(shape)
    assert seen is not None
    return seen


def _batch_shape(left: View, right: View) -> Shape:
    a, b = left.shape[:-2], right.shape[:-2]
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    if any(x != y and 1 not in (x, y) for x, y in zip(a, b, strict=True)):
        raise BuildRefusedError("batches of MatMul that do not fit together")
    return tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))
