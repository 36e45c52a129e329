# SPDX-License-Identifier: Apache-2.0
"""What makes an input longer and gives it back as an output: a cache of keys or values, which is not copied.

    present = Concat(past, new)     =>  new is appended to the memory of past, where the caller gives the same

So do the operators of attention that have a past. The memory has room behind what is there, as many places along the
axis as the symbol of `Lowered.capacity`; whoever reads the output sees a strided view of it. Conditions: nobody else
reads elements of the input, its size along the axis is open, and what is new is one number of places or a symbol.
"""

import onnx_ir as ir

from nndeploy.values.size import Dim, Symbol
from nndeploy_native.lowering.context import Context
from nndeploy_native.steps.movement import Append, View, contiguous
from nndeploy_native.tensors import Layout, Tensor

_READ_SIZES_ALONE = ("Shape", "Size")


def appended(node: ir.Node, axis: int, context: Context) -> bool:
    """Emits a Concat as what appends to an input; False where it is another."""
    if len(node.inputs) != 2 or not node.outputs[0].is_graph_output():
        return False
    past, new = node.inputs
    if past is None or new is None or not _grows(node, past, context.sizes_of(new)[axis], axis, context):
        return False
    return appended_to(node, past, context.plain(new), node.outputs[0], axis, None, context) is not None


def appended_to(
    node: ir.Node,
    past: ir.Value,
    new: Tensor,
    present: ir.Value,
    axis: int,
    places: Tensor | None,
    context: Context,
) -> View | None:
    """Emits the output of a node that is an input with `new` behind it, and returns it; None where it cannot grow."""
    if places is not None:  # what is new may begin earlier
        return None
    added = _number_of(new.shape[axis])
    if added is None or not present.is_graph_output() or not _grows(node, past, new.shape[axis], axis, context):
        return None
    shape, capacity = context.sizes_of(present), context.capacity()
    whole = (*shape[:axis], capacity, *shape[axis + 1 :])
    before = context.plain(past)
    tensor = context.temporary("cache", whole, Layout.PLAIN, before.element)
    context.emit(Append(tensor, before, new, axis))
    view = View(tensor, 0, shape, contiguous(whole))
    context.define_view(present, view)
    context.define_grown(present, tensor, past, axis, added)
    return view


def _grows(node: ir.Node, past: ir.Value, added: Dim, axis: int, context: Context) -> bool:
    """Whether a node may make a value longer by so much where it lies."""
    if not past.is_graph_input() or past.is_graph_output():
        return False
    if past.dtype == ir.DataType.FLOAT16:  # what is read of it is a copy, of float32
        return False
    readers = [use.node for use in past.uses() if use.node.op_type not in _READ_SIZES_ALONE]
    if readers != [node]:
        return False
    return not isinstance(context.sizes_of(past)[axis], int) and _number_of(added) is not None


def _number_of(size: Dim) -> int | Symbol | None:
    """Returns a size that is a number or a symbol; None for any other."""
    if isinstance(size, int):
        return size
    match size.terms:
        case (((Symbol() as one,), 1),):
            return one
    return None
