# SPDX-License-Identifier: Apache-2.0
"""What makes an input longer and gives it back as an output: a cache of keys or values, which is not copied.

    present = Concat(past, new)     =>  new is appended to the memory of past, where the caller gives the same

So do the operators of attention that have a past. The memory has room behind what is there, as many places along the
axis as the symbol of `Lowered.capacity`; whoever reads the output sees a strided view of it. Where places are data, the
plan tells whether they are those behind the past: in a batch of several lengths they are not. A cache of float16 stays
so; attention reads it as it is, others what is widened of it. Conditions: nobody else
reads elements of the input, its size along the axis is open, and what is new is one number of places or a symbol.
"""

import onnx_ir as ir

from nndeploy.values.size import Dim, Symbol, most, of_atom
from nndeploy_native.expressions import Domain
from nndeploy_native.expressions import operand as nth
from nndeploy_native.lowering.context import Context, Grown
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.movement import Append, View, contiguous
from nndeploy_native.steps.numbers import Sizes
from nndeploy_native.tensors import Layout, Tensor

_READ_SIZES_ALONE = ("Shape", "Size")


def appended(node: ir.Node, axis: int, context: Context) -> bool:
    """Emits a Concat as what appends to an input; False where it is another."""
    past, new = node.inputs if len(node.inputs) == 2 else (None, None)
    if past is None or new is None:
        return False
    grown = _grown(node, past, context.sizes_of(new)[axis], node.outputs[0], axis, None, context)
    if grown is None:
        return False
    _append(past, context.plain(new), node.outputs[0], grown, None, context)
    return True


def appended_to(
    node: ir.Node, past: ir.Value, new: Tensor, present: ir.Value, axis: int, places: Tensor | None, context: Context
) -> View | None:
    """Emits the output of a node that is an input with `new` behind it, and returns it; None where it cannot grow.

    With `places` what is new begins there in each element of the batch, and the model says how long the output is.
    """
    grown = _grown(node, past, new.shape[axis], present, axis, places, context)
    return None if grown is None else _append(past, new, present, grown, places, context)


def _append(
    past: ir.Value, new: Tensor, present: ir.Value, grown: Grown, places: Tensor | None, context: Context
) -> View:
    shape, capacity, axis = context.sizes_of(present), context.capacity(), grown.axis
    whole = (*shape[:axis], capacity, *shape[axis + 1 :])
    before = context.as_it_is(past)
    tensor = context.temporary("cache", whole, Layout.PLAIN, before.element)
    new = context.narrowed(new) if before.element == "fp16" else new
    context.emit(Append(tensor, before, new, axis, places, 0 if places is None else shape[axis]))
    view = View(tensor, 0, shape, contiguous(whole))
    if before.element == "fp16":
        context.define_widened(present, view)
    else:
        context.define_view(present, view)
    context.define_grown(present, tensor, grown)
    return view


def _grown(
    node: ir.Node,
    past: ir.Value,
    added: Dim,
    present: ir.Value,
    axis: int,
    places: Tensor | None,
    context: Context,
) -> Grown | None:
    """Returns how a node makes an input longer; None where it may not do so where it lies."""
    if not present.is_graph_output() or not past.is_graph_input() or past.is_graph_output():
        return None
    readers = [use.node for use in past.uses() if use.node.op_type not in _READ_SIZES_ALONE]
    before, after = context.sizes_of(past)[axis], context.sizes_of(present)[axis]
    if readers != [node] or isinstance(before, int):
        return None
    if places is not None and not _tells_moved(places, before, context):
        return None
    number = _number_of(added)
    if number is not None and (places is None or after == before + added):
        return Grown(past.name or "", axis, number)
    symbols = after.symbols if places is not None and not isinstance(after, int) else ()
    total = next((one for one in symbols if after == most(before, of_atom(one))), None)
    return None if total is None else Grown(past.name or "", axis, total, is_total=True)


def _tells_moved(places: Tensor, before: Dim, context: Context) -> bool:
    """Whether the plan tells if places are other ones than those behind a past, as it does for those of one kind."""

    def make() -> Tensor:
        first = context.temporary("first", (1, 1), Layout.PLAIN, "int64")
        context.emit(Sizes(first, (before,)))
        moved = context.temporary("moved", places.shape, Layout.PLAIN, "bool")
        operands = (Operand(places.shape, places), Operand((1, 1), first))
        context.emit(Elementwise(moved, operands, ("not", ("equal", nth(0), nth(1))), Domain.INT64))
        return moved

    moved = context.once(("moved", places, before), make)
    if context.lowered.moved is None:
        context.lowered.moved = moved
    return context.lowered.moved == moved


def _number_of(size: Dim) -> int | Symbol | None:
    """Returns a size that is a number or a symbol; None for any other."""
    if isinstance(size, int):
        return size
    match size.terms:
        case (((Symbol() as one,), 1),):
            return one
    return None
