# SPDX-License-Identifier: Apache-2.0
"""Rules for operators of com.microsoft that exporters and ONNX Runtime's optimiser write.

    BiasGelu(x, b)                      gelu(x + b)
    FastGelu(x, b)                      the same with the hyperbolic tangent; b may be left out
    QuickGelu(x)                        x * sigmoid(alpha * x)
    Skip[Simplified]LayerNormalization  the norm of x + skip + bias, which may be an output too
    FusedMatMul(a, b)                   alpha * a by b, each of them transposed where an attribute says so

Source: ONNX Runtime, docs/ContribOperators.md.
"""

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, int_attribute, operand
from nndeploy.values.size import product as size_of
from nndeploy_native.expressions import Expression, const
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.elementwise_rules import emit, emit_value
from nndeploy_native.lowering.matrices import factor, matrix, product
from nndeploy_native.steps.elementwise import Operand
from nndeploy_native.steps.movement import View
from nndeploy_native.steps.normalisation import Normalise
from nndeploy_native.tensors import Layout, may_be_same

QUICK_GELU_ALPHA = 1.702
_SUM_OUTPUT = 3
"""The output of SkipLayerNormalization that is what was normalised; two statistics stand before it."""


def gelu(node: ir.Node, context: Context) -> None:
    """Lowers Gelu, BiasGelu and FastGelu."""
    context.shape_of(node.outputs[0])
    operator = "gelu_tanh" if node.op_type == "FastGelu" else "gelu"
    given = [value for value in node.inputs if value is not None]
    emit(node, context, given, lambda x, *bias: (operator, ("add", x, *bias) if bias else x))


def quick_gelu(node: ir.Node, context: Context) -> None:
    """Lowers QuickGelu."""
    context.shape_of(node.outputs[0])
    alpha = const(float_attribute(node, "alpha", QUICK_GELU_ALPHA))
    emit(node, context, [operand(node, 0)], lambda x: ("mul", x, ("sigmoid", ("mul", x, alpha))))


def skip_layer_normalization(node: ir.Node, context: Context) -> None:
    """Lowers SkipLayerNormalization; what is normalised is made first, where nobody reads it too."""
    _normalise(node, context, "standard", operand(node, 2), operand(node, 3), operand(node, 4))


def skip_simplified_layer_normalization(node: ir.Node, context: Context) -> None:
    """Lowers SkipSimplifiedLayerNormalization, which divides by the root of mean squares."""
    _normalise(node, context, "rms", operand(node, 2), None, operand(node, 3))


def _normalise(
    node: ir.Node,
    context: Context,
    norm: str,
    scale: ir.Value | None,
    bias: ir.Value | None,
    added: ir.Value | None,
) -> None:
    if any(output.name and number != _SUM_OUTPUT for number, output in enumerate(node.outputs[1:], 1)):
        raise BuildRefusedError(f"the mean and deviation of a {node.op_type} as outputs")
    shape = context.shape_of(operand(node, 0))
    sums, terms = _sums_of(node, context), [operand(node, 0), operand(node, 1)]

    def total(x: Expression, skip: Expression, *more: Expression) -> Expression:
        return ("add", ("add", x, *more) if more else x, skip)

    emit_value(sums, context, [*terms, *([] if added is None else [added])], total)
    if not all(may_be_same(context.shape_of(one), shape[-1:]) for one in (scale, bias) if one is not None):
        raise BuildRefusedError(f"a {node.op_type} of rows of {shape[-1]} with other numbers of scales")
    x, output = context.plain(sums), context.output(node.outputs[0], Layout.PLAIN)
    rows, epsilon = size_of(shape[:-1]), float_attribute(node, "epsilon", 1e-12)
    of_scale, of_bias = (None if one is None else context.plain(one) for one in (scale, bias))
    context.emit(Normalise(output, x, norm, rows, shape[-1], 1, epsilon, of_scale, of_bias, parts=shape[-1]))


def _sums_of(node: ir.Node, context: Context) -> ir.Value:
    """Returns the value that a node normalises: an output of it, or one that the model does not have."""
    x, output = node.inputs[0], node.outputs[0]
    assert x is not None
    if len(node.outputs) > _SUM_OUTPUT and node.outputs[_SUM_OUTPUT].name:
        return node.outputs[_SUM_OUTPUT]
    name = context.temporary("sum", (), Layout.PLAIN).name
    context.lowered.copies[name] = output.name or ""
    return ir.Value(name=name, shape=x.shape, type=x.type)


def fused_matmul(node: ir.Node, context: Context) -> None:
    """Lowers FusedMatMul of two values or by constants, which are read in the order in which they lie."""
    shape = context.shape_of(node.outputs[0])
    a, b = matrix(node.inputs[0], context), factor(node.inputs[1], context)
    if any(int_attribute(node, f"transBatch{side}", 0) for side in "AB"):
        raise BuildRefusedError("a FusedMatMul of batches that are transposed")
    if min(len(a.sizes), len(b.sizes if isinstance(b, View) else b.shape)) < 2:
        raise BuildRefusedError("a FusedMatMul of vectors")
    if int_attribute(node, "transA", 0):
        a = _turned(a)
    if int_attribute(node, "transB", 0):
        b = _turned(b) if isinstance(b, View) else b.swapaxes(-1, -2)
    a, alpha = a.expanded((*shape[:-2], *a.sizes[-2:])), float_attribute(node, "alpha", 1.0)
    b = b.expanded((*shape[:-2], *b.sizes[-2:])) if isinstance(b, View) else b
    if alpha == 1.0:
        context.emit(product(context.output(node.outputs[0], Layout.PLAIN), a, b))
        return
    sums = context.temporary("product", shape, Layout.PLAIN)
    context.emit(product(sums, a, b))
    emit(node, context, [Operand(shape, sums)], lambda x: ("mul", x, const(alpha)))


def _turned(view: View) -> View:
    """Returns a view with its last two axes the other way round."""
    rank = len(view.sizes)
    return view.transposed((*range(rank - 2), rank - 1, rank - 2))
