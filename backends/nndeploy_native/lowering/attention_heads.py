# SPDX-License-Identifier: Apache-2.0
"""What all operators of attention come to: heads read where they lie, keys and values behind those of a past, one step.

    queries (batch, heads, rows, size), keys (batch, shared, places, size), values (batch, shared, places, columns)

Each shared head is that of as many neighbouring heads of the queries.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.values.size import Dim, fixed, is_fixed, product
from nndeploy_native.expressions import Domain, Expression, const, substituted
from nndeploy_native.expressions import operand as nth
from nndeploy_native.lowering.context import Context
from nndeploy_native.lowering.grown_outputs import appended_to
from nndeploy_native.lowering.matrices import is_readable
from nndeploy_native.plan import MAX_RANK
from nndeploy_native.steps.attention import MAX_OTHERS, Attention
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.movement import Append, JoinPlain, StridedCopy, View
from nndeploy_native.steps.numbers import Arange, Sizes
from nndeploy_native.tensors import Layout, Shape, Tensor, may_be_same

LOWEST = float(np.finfo(np.float32).min)
"""What hides a score where ONNX Runtime puts the lowest number: a row of nothing else is a mean of all values."""


class Heads(NamedTuple):
    """Queries, keys and values, each (batch, heads, places, size)."""

    q: View
    k: View
    v: View


class Scores:
    """What becomes of the products of queries by keys: an expression, and the operands that it reads beside them."""

    def __init__(self, scale: float, hidden: float = LOWEST) -> None:
        """`hidden` is what stands for a score that is hidden: a row of nothing but -inf gives zeros."""
        self.expression: Expression = ("mul", nth(0), const(scale))
        self.others: list[Operand] = []
        self._hidden = hidden

    @property
    def gives_zeros(self) -> bool:
        """Whether a row all of whose scores are hidden gives zeros."""
        return self._hidden == -math.inf

    def operand(self, one: Operand) -> Expression:
        """Returns an operand that is broadcast to (batch, heads, rows, keys)."""
        self.others.append(one)
        return nth(len(self.others))

    def cap(self, number: float) -> None:
        """Lets no score be farther from 0 than a number that is not 0, smoothly."""
        if number:
            self.expression = ("mul", const(number), ("tanh", ("div", self.expression, const(number))))

    def add(self, one: Operand) -> None:
        """Adds an operand."""
        self.expression = ("add", self.expression, self.operand(one))

    def hide(self, where: Expression) -> None:
        """Hides the scores where an expression is true."""
        self.expression = ("where", where, const(self._hidden), self.expression)


def heads_of(rows: View, heads: int) -> View:
    """Returns rows (batch, places, heads * size) as (batch, heads, places, size).

    Raises:
        BuildRefusedError: they are no rows of so many heads.
    """
    if len(rows.sizes) != 3 or not is_fixed(rows.sizes[2:]):
        raise BuildRefusedError(f"heads of {rows.sizes}, not of (batch, places, size)")
    size = fixed(rows.sizes[2])
    if heads < 1 or size < heads or size % heads:
        raise BuildRefusedError(f"{heads} heads of rows of {size}")
    return rows.parted(2, heads, size // heads).transposed((0, 2, 1, 3))


def with_past(
    node: ir.Node, past: ir.Value | None, new: View, present: ir.Value | None, places: Tensor | None, context: Context
) -> View:
    """Returns `new` (batch, heads, places, size) behind a past, and makes it an output where the model wants that.

    `places` are where what is new begins in each element of the batch, None where that is behind the whole past.
    """
    is_wanted = present is not None and (present.is_graph_output() or any(present.uses()))
    if past is None:
        if is_wanted:
            assert present is not None
            context.emit(StridedCopy(context.output(present, Layout.PLAIN), new))
        return new
    before = context.sizes_of(past)
    if context.shape_of(past) and (len(before) != 4 or not may_be_same((*before[:2], before[3]), _without(new.sizes))):
        raise BuildRefusedError(f"a past of {before} before {new.sizes}")
    tensor = context.stored(new, "new")
    if is_wanted:
        assert present is not None
        grown = appended_to(node, past, tensor, present, 2, places, context)
        if grown is not None:
            return grown
    if places is not None:
        return _put(past, tensor, present, places, context)
    return _joined(past, tensor, present if is_wanted else None, context)


def _put(past: ir.Value, new: Tensor, present: ir.Value | None, places: Tensor, context: Context) -> View:
    """Returns a past with something new from places on, in as many places as the output has."""
    assert present is not None
    made = context.output(present, Layout.PLAIN)
    if not may_be_same(_without(made.shape), _without(new.shape)):
        raise BuildRefusedError(f"the model says a cache of {new.shape} is {made.shape}")
    context.emit(Append(made, context.plain(past), new, 2, places, made.shape[2]))
    return View.of(made)


def _joined(past: ir.Value, new: Tensor, present: ir.Value | None, context: Context) -> View:
    before = context.plain(past)
    whole: Shape = (*new.shape[:2], before.shape[2] + new.shape[2], new.shape[3])
    if present is None:
        made = context.temporary("present", whole, Layout.PLAIN)
    else:
        made = context.output(present, Layout.PLAIN)
        if not may_be_same(made.shape, whole):
            raise BuildRefusedError(f"the model says a cache of {whole} is {made.shape}")
    context.emit(JoinPlain(made, (before, new), product(new.shape[:2])))
    return View.of(replace(made, shape=whole))


def _without(sizes: Shape) -> Shape:
    return (*sizes[:2], sizes[3])


def places_along(start: Dim, count: Dim, context: Context) -> Tensor:
    """Returns `count` whole numbers from `start` on, which are made once."""
    return context.once(("places", start, count), lambda: _places_along(start, count, context))


def _places_along(start: Dim, count: Dim, context: Context) -> Tensor:
    if is_fixed((start, count)):
        return context.constant_of("places", np.arange(fixed(start), fixed(start) + fixed(count)))
    made = context.temporary("places", (count,), Layout.PLAIN, "int64")
    step = context.once("one", lambda: context.constant_of("one", np.ones(1, np.int64)))
    first = context.temporary("first", (1,), Layout.PLAIN, "int64")
    context.emit(Sizes(first, (start,)))
    context.emit(Arange(made, first, step))
    return made


def as_rows(tensor: Tensor, batch: Dim = 1) -> Operand:
    """Returns numbers of each row as an operand of scores."""
    shape = (batch, 1, tensor.shape[-1], 1)
    return Operand(shape, replace(tensor, shape=shape))


def as_keys(tensor: Tensor) -> Operand:
    """Returns numbers of each key as an operand of scores."""
    shape = (1, 1, 1, tensor.shape[-1])
    return Operand(shape, replace(tensor, shape=shape))


def hide_outside(
    scores: Scores,
    own: Operand,
    heads: Heads,
    context: Context,
    *,
    left: int = -1,
    right: int = -1,
    end: Operand | None = None,
) -> None:
    """Hides keys that lie farther to a side of a row's own place (batch, 1, rows, 1) than a number, or behind `end`.

    A side whose number is negative has no end.
    """
    rows, keys = heads.q.sizes[2], heads.k.sizes[2]
    operands = [own, as_keys(places_along(0, keys, context)), *([] if end is None else [end])]
    place, key = nth(0), nth(1)
    hidden: list[Expression] = []
    if right >= 0:
        hidden.append(("less", _moved(place, right), key))
    if left >= 0:
        hidden.append(("less", key, _moved(place, -left)))
    if end is not None:
        hidden.append(("less", nth(2), key))
    where = reduce(lambda one, other: ("or", one, other), hidden)
    if len(scores.others) + len(operands) > MAX_OTHERS:
        batch = own.shape[0]
        scores.hide(scores.operand(_compared(tuple(operands), where, (batch, 1, rows, keys), context)))
    else:
        scores.hide(substituted(where, {number: scores.operand(one) for number, one in enumerate(operands)}))


def _moved(place: Expression, by: int) -> Expression:
    return ("add", place, const(by)) if by else place


def _compared(operands: tuple[Operand, ...], where: Expression, shape: Shape, context: Context) -> Operand:
    """Returns which keys are hidden as one operand: scores have few."""

    def make() -> Tensor:
        made = context.temporary("hidden", shape, Layout.PLAIN, "bool")
        context.emit(Elementwise(made, operands, where, Domain.INT64))
        return made

    return Operand(shape, context.once(("hidden", where, *(one.tensor for one in operands)), make))


def attend(output: Tensor, heads: Heads, scores: Scores, context: Context, *, by_head: bool = False) -> None:
    """Emits attention; the output is (batch, rows, heads * size), or (batch, heads, rows, size) `by_head`.

    Raises:
        BuildRefusedError: sizes do not fit together, or scores have too many operands.
    """
    (batch, count, rows, size), (_, shared, keys, inner) = heads.q.sizes, heads.k.sizes
    columns = heads.v.sizes[3]
    of_values = (batch, shared, keys)
    is_alike = may_be_same(heads.v.sizes[:3], of_values) and may_be_same((batch, size), (heads.k.sizes[0], inner))
    each = _each(count, shared)
    if not is_alike or not each:
        raise BuildRefusedError(f"attention of {heads.q.sizes} to {heads.k.sizes} and {heads.v.sizes}")
    if len(scores.others) > MAX_OTHERS:
        raise BuildRefusedError(f"scores of more than {MAX_OTHERS} operands")
    if by_head:
        written = View.of(replace(output, shape=(batch, count, rows, columns)))
    else:
        whole = View.of(replace(output, shape=(batch, rows, fixed(count) * fixed(columns))))
        written = whole.parted(2, count, columns).transposed((0, 2, 1, 3))
    q, k, v = (_read(view, context) for view in heads)
    k, others = k.transposed((0, 1, 3, 2)), scores.others
    if each > 1:
        q, written = (view.parted(1, shared, each) for view in (q, written))
        k, v = (_repeated(view, each) for view in (k, v))
        others = [_parted(one, shared, each) for one in others]
    step = Attention(output, q, k, v, scores.expression, tuple(others), scores.gives_zeros, written.strides)
    context.emit(step)


def _each(heads: Dim, shared: Dim) -> int:
    """Returns how many heads share keys, 0 where that does not come out even."""
    if not is_fixed((heads, shared)) or fixed(heads) % fixed(shared):
        return 0
    return fixed(heads) // fixed(shared)


def _read(view: View, context: Context) -> View:
    return view if is_readable(view) else View.of(context.stored(view, "heads"))


def _repeated(view: View, each: int) -> View:
    sizes, strides = ((*of[:2], one, *of[2:]) for of, one in ((view.sizes, each), (view.strides, 0)))
    return replace(view, sizes=sizes, strides=strides)


def _parted(one: Operand, shared: Dim, each: int) -> Operand:
    """Returns an operand of scores with the axis of heads as two."""
    if len(one.shape) < 3:
        return one
    *batch, heads, rows, keys = one.shape
    parts: Shape = (1, 1) if heads == 1 else (shared, each)
    shape = (*batch, *parts, rows, keys)
    if len(shape) > MAX_RANK or (heads != 1 and fixed(heads) != fixed(shared) * each):
        raise BuildRefusedError(f"scores to which {one.shape} is added")
    array = None if one.array is None else one.array.reshape([fixed(size) for size in shape])
    return replace(one, shape=shape, tensor=one.tensor and replace(one.tensor, shape=shape), array=array)


def added_operand(value: ir.Value, sizes: Sequence[Dim], context: Context) -> Operand:
    """Returns what the model adds to scores (batch, heads, rows, keys), of which its axes are the last ones.

    Raises:
        BuildRefusedError: it cannot be broadcast to them.
    """
    shape = context.sizes_of(value)
    last = sizes[len(sizes) - len(shape) :]
    if len(shape) > len(sizes) or not all(
        one == 1 or may_be_same((one,), (other,)) for one, other in zip(shape, last, strict=True)
    ):
        raise BuildRefusedError(f"scores of {tuple(sizes)} to which {shape} is added")
    return Operand(shape, context.plain(value))
