# SPDX-License-Identifier: Apache-2.0
"""product -> [elementwise] -> softmax -> [zeros for NaN] -> product  =>  attention: scores are not written to memory.

    elementwise    any expression over the scores and operands that are broadcast to them: scales, masks, biases
    q, k           are read where they lie before they were copied in another order, or multiplied by a number,
                   which then multiplies the scores; k and v also as the float16 that they were widened from
    heads          that share keys, which were repeated for them, read them where they are

The scores may have one axis for batch and heads in products and two in between, or as many everywhere.
Operands may have another name than the keys for the same size, as the mask of an exporter does: the product by the
values runs only where both are one, or the operand is broadcast.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from nndeploy.backend_kit.kernels.dead_steps import without_dead_steps
from nndeploy.backend_kit.kernels.usage import only_writer, readers_of, writers_of
from nndeploy.values.size import Dim, product
from nndeploy_native.expressions import MAX_SIZE, Domain, Expression, const, operand, size_of, substituted
from nndeploy_native.plan import MAX_RANK
from nndeploy_native.steps.attention import MAX_OTHERS, Attention
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.matmul import Product
from nndeploy_native.steps.movement import StridedCopy, View, contiguous
from nndeploy_native.steps.reduction import AlongAxis
from nndeploy_native.steps.step import PLAIN, NativeStep
from nndeploy_native.tensors import Shape, Tensor, fixed_shape

_X = operand(0)
_IS_NAN: Expression = ("not", ("equal", _X, _X))
_GUARDS: tuple[Expression, ...] = (("where", _IS_NAN, const(0.0), _X), ("where", ("equal", _X, _X), _X, const(0.0)))


def fuse_attention(steps: list[NativeStep], kept: Set[str]) -> list[NativeStep]:
    """Returns the steps with every attention as one; `kept` names the roots that are read outside."""
    usage = _Usage(steps, kept)
    found = {number: one for number, step in enumerate(steps) if (one := _attention_at(usage, number, step))}
    if not found:
        return steps
    return without_dead_steps([found.get(number, step) for number, step in enumerate(steps)], kept)


class _Usage:
    """Who writes what among steps."""

    def __init__(self, steps: Sequence[NativeStep], kept: Set[str]) -> None:
        self._steps, self._kept = steps, kept
        self._readers, self._writers = readers_of(steps), writers_of(steps)

    def writer(self, name: str) -> NativeStep | None:
        """Returns the step that alone writes a value."""
        written_by = self._writers.get(name, [])
        return self._steps[written_by[0]] if len(written_by) == 1 else None

    def own_maker(self, name: str, reader: int) -> tuple[int, NativeStep] | None:
        """Returns the number of the step that alone writes a value, and it, if step `reader` alone reads it."""
        number = None if name in self._kept else only_writer(self._writers, self._readers, name, reader)
        return None if number is None else (number, self._steps[number])


@dataclass(frozen=True, slots=True)
class _Scores:
    """What goes into a softmax: a product, and what becomes of it, seen in `shape`."""

    maker: Product
    shape: Shape
    score: Expression
    others: tuple[Operand, ...]


def _attention_at(usage: _Usage, number: int, step: NativeStep) -> Attention | None:
    """Returns what a product of weights and values is as attention."""
    if not isinstance(step, Product) or not isinstance(step.b, View) or step.epilogue != PLAIN or step.bias is not None:
        return None
    found = usage.own_maker(step.a.base.name, number) if step.a.is_whole else None
    is_guarded = False
    if found is not None and isinstance(found[1], Elementwise) and found[1].expression in _GUARDS:
        is_guarded = True
        found = usage.own_maker(_only_operand(found[1]), found[0])
    if found is None or not isinstance(found[1], AlongAxis) or found[1].kind != "softmax" or found[1].inner != 1:
        return None
    scores = _scores_of(usage, found[0], found[1])
    if scores is None or found[1].size != step.a.sizes[-1] or scores.shape[-1] != step.b.sizes[-2]:
        return None
    k = scores.maker.b
    assert isinstance(k, View), "as _product_scores looks"
    written = View(step.output, 0, step.sizes, step.out_strides)
    views = [_batched(view, scores.shape[:-2]) for view in (scores.maker.a, k, step.b, written)]
    known = [view for view in views if view is not None]
    if len(known) < len(views) or step.sizes[-2:-1] != scores.shape[-2:-1]:
        return None
    (q, of_q), (k, of_k), (v, _) = (
        _source(usage, view, scales=view is not known[2], halves=view is not known[0]) for view in known[:3]
    )
    result = Attention(
        step.output,
        q,
        k,
        v,
        substituted(scores.score, {0: _times(_X, of_q * of_k), **{i: operand(i) for i in range(1, MAX_OTHERS + 1)}}),
        scores.others,
        is_guarded,
        known[3].strides,
    )
    return _with_shared_keys(usage, result)


def _with_shared_keys(usage: _Usage, step: Attention) -> Attention:
    """Returns attention whose keys and values were repeated for some heads each, that reads them where they were."""
    makers = [usage.writer(view.base.name) for view in (step.k, step.v)]
    of_k, of_v = (maker.view if isinstance(maker, StridedCopy) else None for maker in makers)
    if of_k is None or of_v is None or len(step.q.sizes) != 4 or len(of_k.sizes) != 5 or len(of_v.sizes) != 5:
        return step
    heads, (_, shared, each, *_) = step.q.sizes[1], of_k.sizes
    if of_k.strides[2] != 0 or of_v.strides[2] != 0 or of_v.sizes[1:3] != (shared, each) or shared * each != heads:
        return step
    q, k, v = (view.parted(1, shared, each) for view in (step.q, step.k, step.v))
    before = [_through_copy(k, of_k), _through_copy(v, of_v)]
    others = [_parted(one, heads, shared, each) for one in step.others]
    if None in before or None in others:
        return step
    written = View(step.output, 0, step.q.sizes, step.out_strides).parted(1, shared, each)
    (k, _), (v, _) = (_source(usage, view, scales=False, halves=True) for view in (k, v))
    return replace(step, q=q, k=k, v=v, others=tuple(one for one in others if one is not None), strides=written.strides)


def _parted(one: Operand, heads: Dim, shared: Dim, each: Dim) -> Operand | None:
    """Returns an operand broadcast to (batch, heads, rows, keys) with an axis of heads as two."""
    if len(one.shape) < 3:
        return one
    *batch, of_heads, rows, keys = one.shape
    if of_heads not in (1, heads):
        return None
    shape = (*batch, *((1, 1) if of_heads == 1 else (shared, each)), rows, keys)
    return replace(one, shape=shape, array=None if one.array is None else one.array.reshape(fixed_shape(shape)))


def _only_operand(step: Elementwise) -> str:
    """Returns the name of the only operand of a step, "" where it has others."""
    tensor = step.operands[0].tensor
    return tensor.name if tensor is not None and len(step.operands) == 1 and step.domain is Domain.FLOAT32 else ""


def _scores_of(usage: _Usage, number: int, softmax: AlongAxis) -> _Scores | None:
    """Returns what a softmax reads as scores."""
    found = usage.own_maker(softmax.x.name, number)
    if found is None:
        return None
    maker, step = found
    if isinstance(step, Product):
        return _product_scores(step, softmax.x.shape)
    if not isinstance(step, Elementwise) or step.domain is not Domain.FLOAT32 or step.output.element != "fp32":
        return None
    for place, one in enumerate(step.operands):
        has_rows = one.tensor is not None and one.shape[:-1] == step.output.shape[:-1]
        before = usage.own_maker(one.tensor.name, maker) if one.tensor is not None and has_rows else None
        if before is None or not isinstance(before[1], Product):
            continue
        scores = _product_scores(before[1], one.shape)
        if scores is None:
            continue
        others = list(scores.others)
        values = {place: scores.score}
        for at, other in enumerate(step.operands):
            if at != place:
                others.append(other)
                values[at] = operand(len(others))
        score = substituted(step.expression, values)
        if len(others) <= MAX_OTHERS and size_of(score) <= MAX_SIZE:
            return replace(scores, score=score, others=tuple(others))
    return None


def _product_scores(step: Product, shape: Shape) -> _Scores | None:
    """Returns a product of two values with its end, which is elementwise too, as scores of a shape."""
    if not isinstance(step.b, View) or step.strides is not None or len(shape) < 2 or step.sizes[-2:] != shape[-2:]:
        return None
    end, others = step.epilogue, list[Operand]()
    values = {0: _X}
    if step.bias is not None:
        return None
    if end.residual is not None:
        others.append(Operand(shape, end.residual))
        values[1] = operand(len(others))
    if end.channel is not None:
        others.append(Operand(shape[-1:], None, end.channel.reshape(-1)))
        values[2] = operand(len(others))
    return _Scores(step, shape, substituted(end.expression, values), tuple(others))


def _batched(view: View, batch: Shape) -> View | None:
    """Returns a view of matrices with the axes of a batch: as they are, or one axis as two or more."""
    if view.sizes[:-2] == batch:
        return view
    if len(view.sizes) == 3 and 2 <= len(batch) <= MAX_RANK - 2:
        (whole, *matrix), (by, *steps) = view.sizes, view.strides
        if product(batch) == whole:
            outer = contiguous(batch)
            return replace(view, sizes=(*batch, *matrix), strides=(*(one * by for one in outer), *steps))
    return None


def _source(usage: _Usage, view: View, *, scales: bool, halves: bool) -> tuple[View, float]:
    """Returns a view of what its base is a copy or a multiple of, and by how much it is to be multiplied.

    With `halves` also what was widened from float16.
    """
    scale = 1.0
    while True:
        maker = usage.writer(view.base.name)
        found = _multiple_of(maker) if isinstance(maker, Elementwise) else None
        if found is not None and (scales or found[1] == 1.0) and (halves or found[0].element == "fp32"):
            scale *= found[1]
            view = replace(view, base=found[0])
            continue
        before = _through_copy(view, maker.view) if isinstance(maker, StridedCopy) else None
        if before is None:
            return view, scale
        view = before


def _multiple_of(step: Elementwise) -> tuple[Tensor, float] | None:
    """Returns of which tensor of floats a step makes a multiple of the same shape, and by which number."""
    one, tensor = step.operands[0], step.operands[0].tensor
    if len(step.operands) != 1 or tensor is None or tensor.is_blocked or one.shape != step.output.shape:
        return None
    if tensor.element not in ("fp32", "fp16") or step.output.element != "fp32":
        return None
    match step.expression:
        case ("operand", 0):
            return tensor, 1.0
        case ("mul", ("operand", 0), ("const", float(by))) | ("mul", ("const", float(by)), ("operand", 0)):
            return tensor, by
        case ("div", ("operand", 0), ("const", float(by))) if by != 0.0:
            return tensor, 1.0 / by
    return None


def _through_copy(view: View, copied: View) -> View | None:
    """Returns a view of a copy as one of what was copied; None where their axes do not match."""
    if view.offset != 0:
        return None
    lines = zip(copied.sizes, contiguous(copied.sizes), copied.strides, strict=True)
    steps = {(size, of): step for size, of, step in lines if size != 1}
    strides = [
        0 if size == 1 or by == 0 else steps.get((size, by)) for size, by in zip(view.sizes, view.strides, strict=True)
    ]
    known = tuple(one for one in strides if one is not None)
    return replace(copied, sizes=view.sizes, strides=known) if len(known) == len(strides) else None


def _times(x: Expression, factor: float) -> Expression:
    return x if factor == 1.0 else ("mul", x, const(factor))
