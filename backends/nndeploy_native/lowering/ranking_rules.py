# SPDX-License-Identifier: Apache-2.0
"""Rules for what finds the largest or smallest along an axis. Source: ONNX ArgMax, ArgMin, TopK."""

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import int_attribute, operand
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.reduction_rules import along_axis
from nndeploy_native.steps.indexed import Picked
from nndeploy_native.steps.reduction import AlongAxis
from nndeploy_native.tensors import Layout


def arg(node: ir.Node, context: Context) -> None:
    """Lowers ArgMax and ArgMin."""
    x, kind = context.plain(operand(node, 0)), "arg_max" if node.op_type == "ArgMax" else "arg_min"
    if x.element == "bool":
        raise BuildRefusedError(f"a {node.op_type} of bools")
    sizes = along_axis(x.shape, int_attribute(node, "axis", 0) % len(x.shape))
    numbers = {"is_last": int_attribute(node, "select_last_index", 0) != 0}
    context.emit(AlongAxis(context.output(node.outputs[0], Layout.PLAIN), x, kind, *sizes, numbers))


def top(node: ir.Node, context: Context) -> None:
    """Lowers TopK of a number that follows from sizes: places, in order asked for or not, and the values from there."""
    x, values, places = context.plain(operand(node, 0)), node.outputs[0], node.outputs[1]
    if x.element not in ("fp32", "fp64", "int32", "int64"):
        raise BuildRefusedError(f"a TopK of {x.element}")
    axis = int_attribute(node, "axis", -1) % len(x.shape)
    shape = context.sizes_of(values if values.name else places)
    if context.opset >= 10 and context.constant(operand(node, 1)) is None and isinstance(shape[axis], int):
        raise BuildRefusedError("a TopK of a number that is not constant, nor follows from sizes")
    found = (
        context.output(places, Layout.PLAIN)
        if places.name
        else context.temporary("places", shape, Layout.PLAIN, "int64")
    )
    numbers = {"is_smallest": int_attribute(node, "largest", 1) == 0}
    context.emit(AlongAxis(found, x, "top_places", *along_axis(x.shape, axis), numbers))
    if values.name:
        context.emit(Picked("gather_elements", context.output(values, Layout.PLAIN), x, found, axis))
