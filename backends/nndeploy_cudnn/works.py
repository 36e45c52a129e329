# SPDX-License-Identifier: Apache-2.0
"""An operation, or a group of them, as cuDNN graphs: each way of saying it, the best first.

A draft is a list of graphs that run one after the other, the copies that they need included; nothing is asked of cuDNN
here. A matrix product is also a convolution, which has full float32 kernels on every GPU where cuDNN's matmul would
round to TF32:

    x[M, K] @ w[K, N]         image [1, K, M, 1], filters [N, K, 1, 1]               ->  [1, N, M, 1]
    x[B, M, K] @ w[B, K, N]   image [1, B K, N, 1], filters [B M, K, 1, 1], B groups ->  [1, B M, N, 1]
    sum over R of x[A, R, B]  image [A, R, B, 1], filter [1, R, 1, 1] of ones        ->  [A, 1, B, 1]

A sum is not cuDNN's reduction: that one adds into its result with atomic instructions, in another order each time, and
leaves it to others to set it first. A maximum is pooling over the whole axis for the same reason.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from nndeploy_cudnn.frames import (
    Frame,
    MisfitError,
    batch_frame,
    image_frame,
    merged_image_frame,
    pointwise_frame,
    rows_frame,
    stacked_frame,
)
from nndeploy_cudnn.graph_writer import GraphWriter, Work
from nndeploy_cudnn.groups import Group
from nndeploy_cudnn.memory import Memory, is_channels_last
from nndeploy_cudnn.operands import (
    by_ones,
    copied,
    copy_work,
    has_columns,
    has_order,
    in_full,
    is_dense,
    is_dense_in,
    mergeable,
    packed,
)
from nndeploy_cudnn.operations import (
    Convolution,
    Matmul,
    Normalization,
    Pointwise,
    Pool,
    Reduction,
    TransposedConvolution,
    Value,
    ZeroPad,
)
from nndeploy_cudnn.views import Dims, View, memory_order, row_major, strides_in_order

Draft = tuple[Work, ...]


def drafts_of(group: Group, memory: Memory) -> Iterator[Draft]:
    """Yields the ways to run a group, the best first.

    Raises:
        MisfitError: cuDNN has no form for the operation on values that lie like these.
    """
    head, rest = group[0], _pointwise_only(group[1:])
    match head:
        case Convolution():
            yield _convolution(head, rest, memory)
        case TransposedConvolution():
            yield _transposed_convolution(head, memory)
        case ZeroPad():
            yield (_zero_pad(head, memory),)
        case Matmul():
            yield from _matmul(head, rest, memory)
        case Pointwise():
            with contextlib.suppress(MisfitError):
                yield _pointwise((head, *rest), memory, has_columns)
            yield _pointwise((head, *rest), memory, is_dense_in)
        case Pool():
            yield _pool(head, memory)
        case Reduction():
            yield _reduction(head, memory)
        case Normalization():
            yield _normalization(head, memory)


def _zero_pad(pad: ZeroPad, memory: Memory) -> Work:
    x, y = memory.view_of(pad.x), memory.place(pad.y)
    frames = [image_frame(view.dims, is_channels_last(view)) for view in (x, y)]
    images = [frame.fit(view.dims, view.strides) for frame, view in zip(frames, (x, y), strict=True)]
    return by_ones(images[0], images[1], x, y, (_spatial(pad.before, 0), _spatial(pad.after, 0)), memory)


def _convolution(conv: Convolution, rest: Sequence[Pointwise], memory: Memory) -> Draft:
    made = rest[-1].y if rest else conv.y
    y, x = memory.place(made), memory.view_of(conv.x)
    w, copies = _filters(conv.w, is_channels_last(y), memory)
    frame = image_frame(y.dims, is_channels_last(y))
    writer = GraphWriter()
    ports = {
        "x": writer.bound(*image_frame(x.dims, is_channels_last(x)).fit(x.dims, x.strides), x),
        "w": writer.bound(*image_frame(w.dims, is_channels_last(y)).fit(w.dims, w.strides), w),
        "y": writer.result(conv.y, frame, (made, y)),
    }
    writer.operation("convolution", ports, **_windows(conv), alpha=conv.alpha)
    operations = _residual_first(conv.y, rest)
    writer.pointwise(operations, frame, {conv.y: ports["y"]}, _views(operations, frame, memory), (made, y))
    return (*copies, writer.work(y, exact=conv.x.dtype == "float32"))


def _transposed_convolution(conv: TransposedConvolution, memory: Memory) -> Draft:
    y, x = memory.place(conv.y), memory.view_of(conv.x)
    w, copies = _filters(conv.w, is_channels_last(y), memory)
    writer = GraphWriter()
    ports = {
        "x": writer.bound(*image_frame(x.dims, is_channels_last(x)).fit(x.dims, x.strides), x),
        "w": writer.bound(*image_frame(w.dims, is_channels_last(y)).fit(w.dims, w.strides), w),
        "y": writer.bound(*image_frame(y.dims, is_channels_last(y)).fit(y.dims, y.strides), y),
    }
    writer.operation("transposed convolution", ports, **_windows(conv))
    return (*copies, writer.work(y, exact=conv.x.dtype == "float32"))


def _matmul(matmul: Matmul, rest: Sequence[Pointwise], memory: Memory) -> Iterator[Draft]:
    is_exact, batch = matmul.x.dtype == "float32", matmul.w.dims[:-2]
    if math.prod(batch) == 1:
        yield _by_rows(matmul, rest, memory)
    if not is_exact:
        yield _by_matmul(matmul, rest, memory)
    if not rest and matmul.x.dims[:-2] == batch:
        yield _by_groups(matmul, memory)


def _by_rows(matmul: Matmul, rest: Sequence[Pointwise], memory: Memory) -> Draft:
    """Returns x @ w as a convolution of one image whose pixels are the rows of x."""
    made = rest[-1].y if rest else matmul.y
    y, (x, before) = memory.place(made, range(len(made.dims))), mergeable(matmul.x, rows_frame, memory)
    w, between = packed(matmul.w, _swapped(matmul.w), memory)
    inner, outer = len(w.dims) - 2, len(w.dims) - 1
    frame, filters = rows_frame(y.dims), Frame(w.dims, ((outer,), (inner,), (), ()), (0, 2, 3, 1))
    writer = GraphWriter()
    ports = {
        "x": writer.bound(*rows_frame(x.dims).fit(x.dims, x.strides), x),
        "w": writer.bound(*filters.fit(w.dims, w.strides), w),
        "y": writer.result(matmul.y, frame, (made, y)),
    }
    _one_by_one(writer, ports)
    operations = _residual_first(matmul.y, rest)
    writer.pointwise(operations, frame, {matmul.y: ports["y"]}, _views(operations, frame, memory), (made, y))
    return (*before, *between, writer.work(y, exact=matmul.x.dtype == "float32"))


def _by_matmul(matmul: Matmul, rest: Sequence[Pointwise], memory: Memory) -> Draft:
    """Returns x @ w as cuDNN's matmul, which has tensor-core engines only."""
    made = rest[-1].y if rest else matmul.y
    y = memory.place(made, range(len(made.dims)))
    (x, before), (w, between) = (mergeable(value, batch_frame, memory) for value in (matmul.x, matmul.w))
    frame, writer = batch_frame(y.dims), GraphWriter()
    ports = {
        "x": writer.bound(*batch_frame(x.dims).fit(x.dims, x.strides), x),
        "w": writer.bound(*batch_frame(w.dims).fit(w.dims, w.strides), w),
        "y": writer.result(matmul.y, frame, (made, y)),
    }
    writer.operation("matmul", ports)
    writer.pointwise(rest, frame, {matmul.y: ports["y"]}, _views(rest, frame, memory), (made, y))
    return (*before, *between, writer.work(y, exact=False))


def _by_groups(matmul: Matmul, memory: Memory) -> Draft:
    """Returns x @ w as a convolution with a group for each product: w is the image, x holds the filters."""
    y = memory.place(matmul.y, range(len(matmul.y.dims)))
    x, before = packed(matmul.x, range(len(matmul.x.dims)), memory)
    w, between = mergeable(matmul.w, stacked_frame, memory)
    last = len(x.dims) - 1
    filters = Frame(x.dims, (tuple(range(last)), (last,), (), ()), (0, 1, 2, 3))
    writer = GraphWriter()
    ports = {
        "x": writer.bound(*stacked_frame(w.dims).fit(w.dims, w.strides), w),
        "w": writer.bound(*filters.fit(x.dims, x.strides), x),
        "y": writer.bound(*stacked_frame(y.dims).fit(y.dims, y.strides), y),
    }
    _one_by_one(writer, ports)
    return (*before, *between, writer.work(y, exact=matmul.x.dtype == "float32"))


def _pointwise(group: Sequence[Pointwise], memory: Memory, fits: Callable[[View, Sequence[int]], bool]) -> Draft:
    """Returns element-wise operations as one graph; what does not fit the memory order of most is copied."""
    made = group[-1].y
    inside = {operation.y for operation in group}
    operands = list(dict.fromkeys(v for operation in group for v in operation.inputs if v not in inside))
    order = _common_order(made, operands, memory)
    y = memory.place(made, order)
    target = y if fits(y, order) else memory.temporary(made.dims, made.dtype, order)
    views, copies = dict[Value, View](), list[Work]()
    for value in operands:
        own = _order_of_last(order, len(value.dims))
        view = memory.view_of(value) if value.constant is None else memory.constant_in(value, own)
        if not fits(view, own):
            view, work = copied(view, own, memory)
            copies.append(work)
        views[value] = view
    frame = pointwise_frame(target, [(view.dims, view.strides) for view in views.values()])
    if any(frame.is_thin(value.dims) for value in inside):
        raise MisfitError("a value between two operations with one element for a row of every batch")
    if thin := [value for value in operands if frame.is_thin(value.dims)]:
        for value in thin:
            views[value], works = in_full(value, views[value], frame, memory)
            copies += works
        frame = pointwise_frame(target, [(view.dims, view.strides) for view in views.values()])
    writer = GraphWriter()
    writer.pointwise(group, frame, {}, views, (made, target))
    works = [*copies, writer.work(target, exact=False)]
    return tuple(works if target is y else [*works, copy_work(target, y, memory)])


def _pool(pool: Pool, memory: Memory) -> Draft:
    """Returns pooling on images with dense channels, or on each channel as an image of its own."""
    x, copies = memory.view_of(pool.x), list[Work]()
    if not (_is_dense_channel(x) or _is_planes(x)):
        x, work = copied(x, range(len(x.dims)), memory)
        copies.append(work)
    by_channels = _is_dense_channel(x)
    y = memory.place(pool.y, (0, *range(2, len(x.dims)), 1) if by_channels else range(len(x.dims)))
    target = y
    if not (_is_dense_channel(y) if by_channels else _is_planes(y)):
        target = memory.temporary(y.dims, y.dtype, memory_order(x.dims, x.strides))
    writer = GraphWriter()
    ports = {name: _pool_tensor(writer, view, by_channels) for name, view in (("x", x), ("y", target))}
    window, strides, before, after = (
        _spatial(sizes, fill)
        for sizes, fill in ((pool.window, 1), (pool.strides, 1), (pool.before, 0), (pool.after, 0))
    )
    writer.operation("pool", ports, mode=pool.mode, window=window, strides=strides, before=before, after=after)
    works = [*copies, writer.work(target, exact=False)]
    return tuple(works if target is y else [*works, copy_work(target, y, memory)])


def _reduction(reduction: Reduction, memory: Memory) -> Draft:
    """Returns a reduction of each run of neighbouring axes, the last run first."""
    x, works = memory.view_of(reduction.x), list[Work]()
    if not is_dense(x):
        x, work = copied(x, range(len(x.dims)), memory)
        works.append(work)
    order = memory_order(x.dims, x.strides)
    y = memory.place(reduction.y, order)
    target = y if is_dense_in(y, order) else memory.temporary(y.dims, y.dtype, order)
    runs = _reduced_runs(x.dims, order, reduction.axes)
    for run in reversed(runs):
        dims = tuple(1 if axis in run else size for axis, size in enumerate(x.dims))
        is_last = run is runs[0]
        result = target if is_last else memory.temporary(dims, y.dtype, order)
        works.append(_reduced(reduction.mode, x, order, run, result, reduction.alpha if is_last else 1.0, memory))
        x = result
    if not runs:
        works.append(copy_work(x, target, memory))
    return tuple(works if target is y else [*works, copy_work(target, y, memory)])


def _reduced(
    mode: str, x: View, order: Sequence[int], run: Sequence[int], y: View, alpha: float, memory: Memory
) -> Work:
    """Returns the reduction of one run of axes: x is [outer, run, inner] in memory."""
    first = order.index(run[0])
    outer = math.prod(x.dims[axis] for axis in order[:first])
    middle = math.prod(x.dims[axis] for axis in run)
    inner = math.prod(x.dims) // outer // middle
    writer = GraphWriter()
    if mode == "max":
        dims, window = ((outer, inner, middle, 1), (outer, inner, 1, 1)), (middle, 1)
        ports = {
            name: writer.bound(size, strides_in_order(size, (0, 2, 3, 1)), view)
            for name, size, view in (("x", dims[0], x), ("y", dims[1], y))
        }
        writer.operation("pool", ports, mode="max", window=window, strides=(1, 1), before=(0, 0), after=(0, 0))
        return writer.work(y, exact=False)
    if inner == 1:
        sizes, layout = ((1, middle, outer, 1), (1, 1, outer, 1)), (0, 2, 3, 1)
    else:
        sizes, layout = ((outer, middle, inner, 1), (outer, 1, inner, 1)), (0, 1, 2, 3)
    ones = memory.ones((1, middle, 1, 1), x.dtype)
    ports = {
        "x": writer.bound(sizes[0], strides_in_order(sizes[0], layout), x),
        "w": writer.bound(ones.dims, ones.strides, ones),
        "y": writer.bound(sizes[1], strides_in_order(sizes[1], layout), y),
    }
    _one_by_one(writer, ports, alpha)
    return writer.work(y, exact=x.dtype == "float32")


def _normalization(norm: Normalization, memory: Memory) -> Draft:
    x, copies = memory.view_of(norm.x), list[Work]()
    if not x.is_row_major:
        x, work = copied(x, range(len(x.dims)), memory)
        copies.append(work)
    y = memory.place(norm.y, range(len(norm.y.dims)))
    target = y if y.is_row_major else memory.temporary(y.dims, y.dtype, range(len(y.dims)))
    dims = (*x.dims, *(1,) * (4 - len(x.dims)))
    writer = GraphWriter()
    ports = {"x": writer.bound(dims, row_major(dims), x)}
    for name, value in (("scale", norm.scale), ("bias", norm.bias)):
        each = (1, dims[1], 1, 1)
        ports[name] = writer.bound(each, row_major(each), memory.view_of(value))
    ports["epsilon"] = writer.number(norm.epsilon, 4)
    ports["y"] = writer.bound(dims, row_major(dims), target)
    writer.operation("normalization", ports, mode=norm.mode)
    works = [*copies, writer.work(target, exact=False)]
    return tuple(works if target is y else [*works, copy_work(target, y, memory)])


def _pointwise_only(operations: Sequence[object]) -> tuple[Pointwise, ...]:
    return tuple(operation for operation in operations if isinstance(operation, Pointwise))


def _residual_first(made: Value, rest: Sequence[Pointwise]) -> tuple[Pointwise, ...]:
    """Returns the operations with (made + bias) + residual as (made + residual) + bias.

    That is the order in which cuDNN has a convolution with both precompiled, for every GPU and memory order.
    """
    if len(rest) < 2 or [operation.mode for operation in rest[:2]] != ["add", "add"]:
        return tuple(rest)
    first, second = rest[:2]
    bias = [value for value in first.inputs if value is not made]
    residual = [value for value in second.inputs if value is not first.y]
    is_read_again = any(first.y in operation.inputs for operation in rest[2:])
    if len(bias) != 1 or len(residual) != 1 or is_read_again:
        return tuple(rest)
    if bias[0].dims == made.dims or residual[0].dims != made.dims:
        return tuple(rest)
    return (
        Pointwise("add", (made, residual[0]), first.y),
        Pointwise("add", (first.y, bias[0]), second.y),
        *rest[2:],
    )


def _windows(conv: Convolution | TransposedConvolution) -> dict[str, Dims]:
    return {
        "strides": _spatial(conv.strides, 1),
        "before": _spatial(conv.before, 0),
        "after": _spatial(conv.after, 0),
        "dilations": _spatial(conv.dilations, 1),
    }


def _spatial(sizes: Dims, fill: int) -> Dims:
    """Returns one number for each spatial axis; a single axis becomes the second of two."""
    return (fill, *sizes) if len(sizes) == 1 else sizes


def _one_by_one(writer: GraphWriter, ports: Mapping[str, int], alpha: float = 1.0) -> None:
    none, one = (0, 0), (1, 1)
    writer.operation("convolution", ports, strides=one, before=none, after=none, dilations=one, alpha=alpha)


def _filters(w: Value, channels_last: bool, memory: Memory) -> tuple[View, list[Work]]:
    rank = len(w.dims)
    return packed(w, (0, *range(2, rank), 1) if channels_last else tuple(range(rank)), memory)


def _swapped(w: Value) -> tuple[int, ...]:
    rank = len(w.dims)
    return (*range(rank - 2), rank - 1, rank - 2)


def _views(operations: Sequence[Pointwise], frame: Frame, memory: Memory) -> dict[Value, View]:
    """Returns where the operands lie that the operations do not make themselves; constants in the frame's order."""
    inside = {operation.y for operation in operations}
    order = [axis for slot in frame.order for axis in frame.axes[slot]]
    order += [axis for axis in range(len(frame.full)) if axis not in order]
    found: dict[Value, View] = {}
    for value in (value for operation in operations for value in operation.inputs):
        if value not in inside and (value.constant is not None or value in memory.ready):
            own = _order_of_last(order, len(value.dims))
            found[value] = memory.view_of(value) if value.constant is None else memory.constant_in(value, own)
    return found


def _order_of_last(order: Sequence[int], rank: int) -> tuple[int, ...]:
    """Returns the order of the last `rank` axes, which are those of an operand that broadcasts."""
    missing = len(order) - rank
    return tuple(axis - missing for axis in order if axis >= missing)


def _common_order(made: Value, operands: Sequence[Value], memory: Memory) -> tuple[int, ...]:
    """Returns the memory order that most of the operands of full size have."""
    votes: dict[tuple[int, ...], int] = {}
    for value in operands:
        if value.dims == made.dims and value.constant is None:
            view = memory.view_of(value)
            order = memory_order(view.dims, view.strides)
            votes[order] = votes.get(order, 0) + 1
    return max(votes, key=lambda order: votes[order], default=tuple(range(len(made.dims))))


def _is_dense_channel(view: View) -> bool:
    return view.dims[1] > 1 and view.strides[1] == 1


def _is_planes(view: View) -> bool:
    """Returns whether images are row-major and one after the other."""
    if view.dims[-1] > 1 and view.strides[-1] != 1:
        return False
    try:
        merged_image_frame(view.dims).fit(view.dims, view.strides)
    except MisfitError:
        return False
    return has_order(view, range(len(view.dims)))


def _pool_tensor(writer: GraphWriter, view: View, by_channels: bool) -> int:
    frame = image_frame(view.dims, is_channels_last=True) if by_channels else merged_image_frame(view.dims)
    return writer.bound(*frame.fit(view.dims, view.strides), view)


def _reduced_runs(dims: Dims, order: Sequence[int], axes: Sequence[int]) -> list[list[int]]:
    """Returns the reduced axes larger than one, in memory order, neighbours together."""
    runs: list[list[int]] = []
    previous = None
    for axis in (axis for axis in order if dims[axis] > 1):
        if axis in axes:
            if previous in axes and runs:
                runs[-1].append(axis)
            else:
                runs.append([axis])
        previous = axis
    return runs
