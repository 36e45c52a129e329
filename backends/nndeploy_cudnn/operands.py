# SPDX-License-Identifier: Apache-2.0
"""Operands as cuDNN's kernels need them to lie: where they are, or in a copy that a graph makes.

Comes in: a value, or the view of it, and how it is to lie. Goes out: a view that lies so, and the copies that are to
run first. Law: the view has the value's elements, and is the one that was there wherever that lies as it should.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from nndeploy_cudnn.frames import Frame, MisfitError, columns_of, copy_runs
from nndeploy_cudnn.graph_writer import GraphWriter, Work
from nndeploy_cudnn.memory import Memory
from nndeploy_cudnn.operations import Value
from nndeploy_cudnn.views import Dims, View, aligned, filled, memory_order, same_strides, sliced, strides_in_order

FrameOf = Callable[[Dims], Frame]
MAX_SPREAD = 16
"""An operand is copied into so many places at most."""


def copy_work(source: View, target: View, memory: Memory) -> Work:
    """Returns a graph that copies a view to another of the same dims: a convolution of each channel by one.

    Raises:
        MisfitError: their axes cannot be seen as at most five.
    """
    runs = copy_runs(source, target)
    if len(runs) > 5:
        raise MisfitError(f"a copy over {len(runs)} axes")
    if len(runs) == 1:
        (size, step, other), columns = runs[0], columns_of(runs[0][0])
        runs = [(size // columns, step * columns, other * columns), (columns, step, other)]
        channels = (1, 1, 1)
    else:
        channels = min(runs, default=(1, 1, 1))
        runs = [run for run in runs if run is not channels]
    first = runs.pop(0) if len(runs) > 2 else (1, 1, 1)
    slots = [first, channels, *runs, *[(1, 1, 1)] * (2 - len(runs))]
    sizes, steps, others = (tuple(slot[i] for slot in slots) for i in range(3))
    order = tuple(range(len(slots)))
    none = (0,) * (len(slots) - 2)
    images = ((sizes, filled(sizes, steps, order)), (sizes, filled(sizes, others, order)))
    return replace(by_ones(*images, source, target, (none, none), memory), is_copy=True)


def by_ones(
    x: tuple[Dims, Dims], y: tuple[Dims, Dims], source: View, target: View, padding: tuple[Dims, Dims], memory: Memory
) -> Work:
    """Returns the convolution of each channel of x (dims, strides) by one."""
    channels, spatial = x[0][1], len(x[0]) - 2
    writer = GraphWriter()
    filters = memory.ones((channels, 1) + (1,) * spatial, source.dtype)
    ports = {
        "x": writer.bound(*x, source),
        "w": writer.bound(filters.dims, filters.strides, filters),
        "y": writer.bound(*y, target),
    }
    one, (before, after) = (1,) * spatial, padding
    writer.operation("convolution", ports, strides=one, before=before, after=after, dilations=one, alpha=1.0)
    return writer.work(target, exact=True)


def copied(view: View, order: Sequence[int], memory: Memory) -> tuple[View, Work]:
    """Returns a dense copy in an order of axes, and the graph that makes it."""
    target = memory.temporary(view.dims, view.dtype, order)
    return target, copy_work(view, target, memory)


def packed(filters: Value, order: Sequence[int], memory: Memory) -> tuple[View, list[Work]]:
    """Returns filters that are dense in an order of axes, copied where they do not lie so.

    cuDNN's float32 kernels read filters as if they were, whatever strides they were told (9.19 and 9.28 on an H200).
    """
    if filters.constant is not None:
        return memory.constant_in(filters, order), []
    view = memory.view_of(filters)
    if is_dense_in(view, order):
        return view, []
    copy, work = copied(view, order, memory)
    return copy, [work]


def in_full(value: Value, view: View, frame: Frame, memory: Memory) -> tuple[View, list[Work]]:
    """Returns an operand with its elements once for each batch of a frame: a constant, or copies.

    Raises:
        MisfitError: there would be too many copies.
    """
    dims, strides = aligned(view.dims, view.strides, len(frame.full))
    full = tuple(frame.full[axis] if axis in frame.axes[0] else size for axis, size in enumerate(dims))
    if value.constant is not None:
        spread = np.broadcast_to(value.constant.reshape(dims), full)
        return memory.constant_in(Value(value.name, full, value.dtype, spread), range(len(full))), []
    batches = [range(full[axis]) if axis in frame.axes[0] else (0,) for axis in range(len(full))]
    if math.prod(map(len, batches)) > MAX_SPREAD:
        raise MisfitError(f"an operand with one element for a row of each of more than {MAX_SPREAD} batches")
    target, works = memory.temporary(full, view.dtype, range(len(full))), list[Work]()
    for index in itertools.product(*batches):
        slot = target
        for axis in frame.axes[0]:
            slot = sliced(slot, axis, index[axis], 1)
        works.append(copy_work(replace(view, dims=dims, strides=strides), slot, memory))
    return target, works


def mergeable(value: Value, frame: FrameOf, memory: Memory) -> tuple[View, list[Work]]:
    """Returns where an operand lies, in a dense copy where it does not fit its frame."""
    view = memory.view_of(value)
    try:
        frame(view.dims).fit(view.dims, view.strides)
    except MisfitError:
        copy, work = copied(view, range(len(view.dims)), memory)
        return copy, [work]
    return view, []


def is_dense(view: View) -> bool:
    """Returns whether nothing is between the elements, in whatever order their axes lie."""
    return is_dense_in(view, memory_order(view.dims, view.strides))


def is_dense_in(view: View, order: Sequence[int]) -> bool:
    """Returns whether the elements lie one after the other in an order of axes."""
    return same_strides(view.dims, view.strides, strides_in_order(view.dims, order))


def has_order(view: View, order: Sequence[int]) -> bool:
    """Returns whether the axes lie in `order`, whatever is between the elements."""
    wide = [axis for axis in order if view.dims[axis] > 1]
    steps = [view.strides[axis] for axis in wide]
    return all(a >= b * view.dims[axis] for a, b, axis in zip(steps, steps[1:], wide[1:], strict=False))


def has_columns(view: View, order: Sequence[int]) -> bool:
    """Returns whether the axes lie in `order` and the elements along the fastest one after the other."""
    fastest = [axis for axis in order if view.dims[axis] > 1][-1:]
    return has_order(view, order) and all(view.strides[axis] == 1 for axis in fastest)
