# SPDX-License-Identifier: Apache-2.0
"""The rule for Einsum: sums over what one operand alone has, then products of two, the first two first.

    axes that both have, and what follows needs     batch axes of a product
    axes that both have, and nobody else            summed over: joined to one, copied in order where they are not
    axes of the first, of the second                rows, columns; those that cannot be joined are batch axes

An axis that an operand has twice is the diagonal. The output is a view of what was computed.
Source: ONNX Einsum, opset 12.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.einsum import parsed_equation
from nndeploy.graph.operators import text_attribute
from nndeploy.values.size import Dim, product
from nndeploy_native.lowering import matrices
from nndeploy_native.lowering.context import Context
from nndeploy_native.steps.movement import View
from nndeploy_native.steps.reduction import AlongAxis
from nndeploy_native.tensors import Array, Layout

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Term:
    """A view whose axes have labels, and its numbers where they are constant."""

    view: View
    labels: Labels
    array: Array | None = None

    def size(self, label: str) -> Dim:
        """The size along a label, 1 of one that the term has not."""
        return self.view.sizes[self.labels.index(label)] if label in self.labels else 1

    def ordered(self, labels: Labels) -> View:
        """Returns the view with its axes in the order of `labels`."""
        return self.view.transposed(tuple(self.labels.index(label) for label in labels))


def einsum(node: ir.Node, context: Context) -> None:
    """Lowers Einsum of any number of operands."""
    shapes = [context.shape_of(value) for value in node.inputs]
    text = text_attribute(node, "equation", "")
    equation = parsed_equation(text, [len(shape) for shape in shapes])
    if equation is None:
        raise BuildRefusedError(f"the equation {text!r:.40} for operands of {[len(shape) for shape in shapes]} axes")
    terms = [
        _diagonal(_Term(context.view(value), labels, context.constant(value)))
        for value, labels in zip(node.inputs, equation.operands, strict=True)
    ]
    while len(terms) > 1:
        first, second, *others = terms
        kept = {*equation.output, *(label for one in others for label in one.labels)}
        terms = [_multiplied(first, second, kept, equation.output, context), *others]
    last = _summed(terms[0], equation.output, context)
    context.define_view(node.outputs[0], last.ordered(equation.output))


def _diagonal(term: _Term) -> _Term:
    """Returns a term that has each label once: an axis goes on along all of its label at once."""
    labels = tuple(dict.fromkeys(term.labels))
    if len(labels) == len(term.labels):
        return term
    pairs = list(zip(term.labels, term.view.sizes, term.view.strides, strict=True))
    sizes, strides = list[Dim](), list[Dim]()
    for label in labels:
        of_label = [(size, by) for one, size, by in pairs if one == label]
        if len({size for size, _ in of_label}) > 1:
            raise BuildRefusedError(f"a diagonal of axes of different sizes: {[size for size, _ in of_label]}")
        sizes.append(of_label[0][0])
        strides.append(sum((by for _, by in of_label), start=0))
    return _Term(View(term.view.base, term.view.offset, tuple(sizes), tuple(strides)), labels)


def _summed(term: _Term, kept: Collection[str], context: Context) -> _Term:
    """Returns a term summed over all labels that are not kept."""
    rest = tuple(label for label in term.labels if label in kept)
    gone = tuple(label for label in term.labels if label not in kept)
    if not gone:
        return term
    whole = _copied(term, (*rest, *gone), context)
    sizes = tuple(term.size(label) for label in rest)
    output = context.temporary("sum", sizes, Layout.PLAIN)
    over = product(term.size(label) for label in gone)
    context.emit(AlongAxis(output, whole.view.base, "reduce_sum", product(sizes), over, 1))
    return _Term(View.of(output), rest)


def _copied(term: _Term, labels: Labels, context: Context) -> _Term:
    """Returns a term whose elements follow each other in the order of `labels`."""
    view = term.ordered(labels)
    return _Term(View.of(context.stored(view, "operand")), labels)


def _multiplied(a: _Term, b: _Term, kept: Collection[str], output: Labels, context: Context) -> _Term:
    """Returns the product of two terms, summed over what nobody else needs, in an order that suits the output."""
    a = _summed(a, {*kept, *b.labels}, context)
    b = _summed(b, {*kept, *a.labels}, context)
    if not set(b.labels) - set(a.labels) or (output and output[-1] in set(a.labels) - set(b.labels)):
        a, b = b, a
    order = (*(label for label in output if label in kept), *sorted(set(kept) - set(output)))
    both = [label for label in order if label in a.labels and label in b.labels]
    rows, columns = (
        [label for label in order if label in one.labels and label not in other.labels]
        for one, other in ((a, b), (b, a))
    )
    over = [label for label in a.labels if label in b.labels and label not in kept]
    a, b = (_with_neighbours(one, over, context) for one in (a, b))
    apart: list[str] = [] if b.array is not None else columns[: _num_apart(b, columns)]
    columns = columns[len(apart) :]
    batch = (*both, *apart, *rows[:-1])
    sizes = {label: _larger(a.size(label), b.size(label)) for label in (*batch, *rows, *columns, *over)}
    of_a = _matrices(a, batch, rows[-1:], over, sizes)
    if b.array is None:
        right: View | Array = _readable(_matrices(b, batch, over, columns, sizes), context)
    else:
        right = _weights(b, batch, over, columns)
    labels = (*both, *apart, *rows, *columns)
    made = context.temporary("einsum", tuple(sizes[label] for label in labels), Layout.PLAIN)
    context.emit(matrices.product(made, _readable(of_a, context), right))
    return _Term(View.of(made), labels)


def _larger(first: Dim, second: Dim) -> Dim:
    """Returns the size of two axes, one of which may be broadcast."""
    return second if first == 1 else first


def _with_neighbours(term: _Term, over: Sequence[str], context: Context) -> _Term:
    """Returns a term in which some axes are one, in this order: copied where they are not."""
    if term.array is not None or _joined(term, over) is not None:
        return term
    rest = (label for label in term.labels if label not in over)
    return _copied(term, (*rest, *over), context)


def _joined(term: _Term, labels: Iterable[str]) -> tuple[Dim, Dim] | None:
    """Returns the size and the stride of axes as one, None where they do not go on alike."""
    size: Dim = 1
    stride: Dim = 1
    for label in reversed(tuple(labels)):
        own, by = term.size(label), term.view.strides[term.labels.index(label)]
        if own == 1:
            continue
        if size == 1:
            stride = by
        elif by != size * stride:
            return None
        size = size * own
    return size, stride


def _num_apart(term: _Term, columns: Sequence[str]) -> int:
    """Returns how many of the columns cannot be joined with those behind them."""
    return next(first for first in range(len(columns) + 1) if _joined(term, columns[first:]) is not None)


def _matrices(
    term: _Term, batch: Iterable[str], first: Sequence[str], second: Sequence[str], sizes: dict[str, Dim]
) -> View:
    """Returns a term as a view of batch axes, which are broadcast, and two axes, each of several labels."""
    axes = []
    for label in batch:
        own = term.size(label)
        stride = term.view.strides[term.labels.index(label)] if label in term.labels else 0
        axes.append((sizes[label], stride if own == sizes[label] else 0))
    for labels in (first, second):
        joined = _joined(term, labels)
        assert joined is not None
        size = product(sizes[label] for label in labels)
        axes.append((size, joined[1] if joined[0] == size else 0))
    return View(term.view.base, term.view.offset, tuple(size for size, _ in axes), tuple(by for _, by in axes))


def _weights(term: _Term, batch: Labels, over: Sequence[str], columns: Sequence[str]) -> Array:
    """Returns the numbers of a constant as matrices, with the batch axes that it has."""
    assert term.array is not None
    own = [label for label in (*batch, *over, *columns) if label in term.labels]
    turned = np.transpose(term.array, [term.labels.index(label) for label in own])
    counts = [turned.shape[own.index(label)] if label in own else 1 for label in batch]
    rows, width = (int(np.prod([turned.shape[own.index(one)] for one in labels])) for labels in (over, columns))
    return np.ascontiguousarray(turned.reshape(*counts, rows, width))


def _readable(view: View, context: Context) -> View:
    """Returns a view that a product reads: copied where it does not go on along a row or a column."""
    return view if matrices.is_readable(view) else View.of(context.stored(view, "operand"))
