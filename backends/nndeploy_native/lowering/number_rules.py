# SPDX-License-Identifier: Apache-2.0
"""Rules for numbers that follow from shapes: Shape and Size read no elements, only sizes that a table has.

Source: ONNX ConstantOfShape, Range, Shape, Size.
"""

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import int_attribute, operand
from nndeploy.values.size import product
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.elementwise_rules import emit_constant
from nndeploy_native.steps.numbers import Arange, Sizes
from nndeploy_native.tensors import Layout


def shape(node: ir.Node, context: Context) -> None:
    """Lowers Shape, whole or from `start` to `end`."""
    sizes = context.sizes_of(operand(node, 0))
    start, end = int_attribute(node, "start", 0), int_attribute(node, "end", len(sizes))
    context.emit(Sizes(context.output(node.outputs[0], Layout.PLAIN), sizes[slice(start, end)]))


def size(node: ir.Node, context: Context) -> None:
    """Lowers Size."""
    count = product(context.sizes_of(operand(node, 0)))
    context.emit(Sizes(context.output(node.outputs[0], Layout.PLAIN), (count,)))


def constant_of_shape(node: ir.Node, context: Context) -> None:
    """Lowers ConstantOfShape: the model says the shape."""
    value = node.attributes.get("value")
    number = 0 if value is None else value.as_tensor().numpy().reshape(-1)[0].item()
    emit_constant(node.outputs[0], context, number)


def range_(node: ir.Node, context: Context) -> None:
    """Lowers Range: the model says how many numbers there are."""
    start, step = (context.plain(operand(node, index)) for index in (0, 2))
    if start.element not in ("fp32", "int32", "int64"):
        raise BuildRefusedError(f"a Range of {start.element}")
    context.emit(Arange(context.output(node.outputs[0], Layout.PLAIN), start, step))
