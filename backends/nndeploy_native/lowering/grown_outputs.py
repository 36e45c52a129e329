# SPDX-License-Identifier: Apache-2.0
"""A Concat that makes an input longer and gives it back as an output: a cache of keys or values, which is not copied.

    present = Concat(past, new)     =>  new is appended to the memory of past, where the caller gives the same

The memory has room behind what is there, as many places along the axis as the symbol of `Lowered.capacity`; whoever
reads the output sees a strided view of it. Conditions: nobody else reads elements of the input, its size along the
axis is open, and what is new is one number of places or a symbol.
"""

from typing import NamedTuple

import onnx_ir as ir

from nndeploy.values.size import Dim, Symbol
from nndeploy_native.lowering.context import Context
from nndeploy_native.steps.movement import Append, View, contiguous
from nndeploy_native.tensors import Layout

_READ_SIZES_ALONE = ("Shape", "Size")


class _Cache(NamedTuple):
    past: ir.Value
    new: ir.Value
    added: int | Symbol


def appended(node: ir.Node, axis: int, context: Context) -> bool:
    """Emits a Concat as what appends to an input; False where it is another."""
    found = _cache_of(node, axis, context)
    if found is None:
        return False
    output, shape = node.outputs[0], context.sizes_of(node.outputs[0])
    capacity = context.capacity()
    whole = (*shape[:axis], capacity, *shape[axis + 1 :])
    past, new = context.plain(found.past), context.plain(found.new)
    tensor = context.temporary("cache", whole, Layout.PLAIN, past.element)
    context.emit(Append(tensor, past, new, axis))
    context.define_view(output, View(tensor, 0, shape, contiguous(whole)))
    context.define_grown(output, tensor, found.past, axis, found.added)
    return True


def _cache_of(node: ir.Node, axis: int, context: Context) -> _Cache | None:
    """Returns what a Concat makes longer."""
    if len(node.inputs) != 2 or not node.outputs[0].is_graph_output():
        return None
    past, new = node.inputs
    if past is None or new is None or not past.is_graph_input() or past.is_graph_output():
        return None
    if past.dtype == ir.DataType.FLOAT16:  # what is read of it is a copy, of float32
        return None
    readers = [use.node for use in past.uses()]
    if any(reader is not node and reader.op_type not in _READ_SIZES_ALONE for reader in readers) or past is new:
        return None
    before, added = context.sizes_of(past)[axis], context.sizes_of(new)[axis]
    number = _number_of(added)
    return None if isinstance(before, int) or number is None else _Cache(past, new, number)


def _number_of(size: Dim) -> int | Symbol | None:
    """Returns a size that is a number or a symbol; None for any other."""
    if isinstance(size, int):
        return size
    match size.terms:
        case (((Symbol() as one,), 1),):
            return one
    return None
