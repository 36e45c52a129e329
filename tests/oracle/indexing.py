# SPDX-License-Identifier: Apache-2.0
"""Operators that read or write at places given as data.

An index out of range is an error; below 0 it counts from the end.
"""

from typing import Any

import numpy as np

from oracle.reductions import axis_of
from oracle.registry import Call, InvalidError, UnspecifiedError, operator


def checked_index(index: Any, size: int) -> int:
    """Returns an index counted from the front."""
    index = int(index)
    if not -size <= index < size:
        raise InvalidError(f"index {index} of {size}")
    return index % size


@operator("Gather")
def _gather(call: Call, x: Any, indices: Any) -> Any:
    if x.ndim == 0:
        raise InvalidError("rank 0")
    axis = axis_of(call.axis, x.ndim)
    found = np.empty(x.shape[:axis] + indices.shape + x.shape[axis + 1 :], x.dtype)
    for place in np.ndindex(indices.shape):
        index = checked_index(indices[place], x.shape[axis])
        found[(slice(None),) * axis + place] = x[(slice(None),) * axis + (index,)]
    return found


@operator("GatherElements")
def _gather_elements(call: Call, x: Any, indices: Any) -> Any:
    if x.ndim != indices.ndim or x.ndim == 0:
        raise InvalidError("ranks differ")
    axis = axis_of(call.axis, x.ndim)
    _check_within(indices.shape, x.shape, axis)
    found = np.empty(indices.shape, x.dtype)
    for place in np.ndindex(indices.shape):
        found[place] = x[_replaced(place, axis, checked_index(indices[place], x.shape[axis]))]
    return found


def _replaced(place: tuple[int, ...], axis: int, index: int) -> tuple[int, ...]:
    return (*place[:axis], index, *place[axis + 1 :])


def _check_within(inner: tuple[int, ...], outer: tuple[int, ...], axis: int) -> None:
    if any(i > o for k, (i, o) in enumerate(zip(inner, outer, strict=True)) if k != axis):
        raise InvalidError(f"{inner} reaches out of {outer}")


@operator("GatherND")
def _gather_nd(call: Call, x: Any, indices: Any) -> Any:
    b = call.batch_dims or 0
    depth = indices.shape[-1]
    if x.shape[:b] != indices.shape[:b] or not 1 <= depth <= x.ndim - b or b >= min(x.ndim, indices.ndim):
        raise InvalidError(f"{indices.shape} into {x.shape} with {b} axes of batches")
    found = np.empty(indices.shape[:-1] + x.shape[b + depth :], x.dtype)
    for place in np.ndindex(indices.shape[:-1]):
        index = [checked_index(value, x.shape[b + k]) for k, value in enumerate(indices[place])]
        found[place] = x[(*place[:b], *index)]
    return found


_REDUCE = {
    "none": lambda _, new: new, "add": lambda old, new: old + new, "mul": lambda old, new: old * new, "max": np.maximum,
    "min": np.minimum,
}  # fmt: skip


@operator("ScatterElements", "Scatter")
def _scatter_elements(call: Call, x: Any, indices: Any, updates: Any) -> Any:
    if not x.ndim == indices.ndim or indices.shape != updates.shape or x.ndim == 0:
        raise InvalidError(f"{indices.shape} and {updates.shape} into {x.shape}")
    axis = axis_of(call.axis, x.ndim)
    _check_within(indices.shape, x.shape, axis)
    places = [_replaced(p, axis, checked_index(indices[p], x.shape[axis])) for p in np.ndindex(indices.shape)]
    return _scattered(call, x, places, [updates[place] for place in np.ndindex(indices.shape)])


def _scattered(call: Call, x: Any, places: list[Any], updates: list[Any]) -> Any:
    reduction = call.reduction or "none"
    if reduction == "none" and len(set(places)) != len(places):
        raise UnspecifiedError("a place is written twice")
    found = x.copy()
    for place, update in zip(places, updates, strict=True):
        found[place] = _REDUCE[reduction](found[place], update)
    return found


@operator("ScatterND")
def _scatter_nd(call: Call, x: Any, indices: Any, updates: Any) -> Any:
    depth = indices.shape[-1]
    if depth > x.ndim or updates.shape != indices.shape[:-1] + x.shape[depth:]:
        raise InvalidError(f"{indices.shape} and {updates.shape} into {x.shape}")
    outer = list(np.ndindex(indices.shape[:-1]))
    places = [tuple(checked_index(value, x.shape[k]) for k, value in enumerate(indices[p])) for p in outer]
    return _scattered(call, x, places, [updates[place] for place in outer])


@operator("TensorScatter")
def _tensor_scatter(call: Call, past: Any, update: Any, write_indices: Any = None) -> Any:
    axis = axis_of(call.axis, past.ndim)
    size, length = past.shape[axis], update.shape[axis]
    starts = np.zeros(past.shape[0], np.int64) if write_indices is None else write_indices
    if axis == 0 or length > size or _replaced(past.shape, axis, length) != update.shape:
        raise InvalidError(f"{update.shape} into {past.shape} along axis {axis}")
    if call.mode == "linear" and ((starts < 0) | (starts + length > size)).any():
        raise InvalidError("written beyond the end")
    found = past.copy()
    for prefix in np.ndindex(past.shape[:axis]):
        for step in range(length):
            found[(*prefix, int(starts[prefix[0]] + step) % size)] = update[(*prefix, step)]
    return found


@operator("OneHot")
def _one_hot(call: Call, indices: Any, depth: Any, values: Any) -> Any:
    """Rows of off_value stand for what is out of range; version 9 knows no index below 0."""
    depth = int(depth.reshape(()).item())
    if depth < 0 or values.shape != (2,):
        raise InvalidError(f"depth {depth}, values {values.shape}")
    axis = axis_of(call.axis, indices.ndim + 1)
    found = np.full((*indices.shape[:axis], depth, *indices.shape[axis:]), values[0], values.dtype)
    for place in np.ndindex(indices.shape):
        index = indices[place]
        if not np.isfinite(float(index)):
            raise UnspecifiedError("an index that is no number")
        index = int(index)
        if (-depth if call.version >= 11 else 0) <= index < depth:
            found[(*place[:axis], index % depth, *place[axis:])] = values[1]
    return found


@operator("NonZero")
def _non_zero(_: Call, x: Any) -> Any:
    """A scalar has no axis: the result has none either, and as many columns as elements that are not zero."""
    places = [place for place in np.ndindex(x.shape) if x[place] != (type(x[place])() if x.dtype == object else 0)]
    return np.array(places, np.int64).reshape(len(places), x.ndim).T


@operator("Compress")
def _compress(call: Call, x: Any, condition: Any) -> Any:
    axis = call.axis
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = axis_of(axis, x.ndim)
    if condition.size > x.shape[axis] and condition[x.shape[axis] :].any():
        raise InvalidError("more conditions than elements")
    return np.take(x, [i for i, keep in enumerate(condition) if keep], axis)


@operator("ReverseSequence")
def _reverse_sequence(call: Call, x: Any, lengths: Any) -> Any:
    time, batch = call.time_axis, call.batch_axis
    if {time, batch} != {0, 1} or x.ndim < 2 or lengths.shape != (x.shape[batch],):
        raise InvalidError("time and batch are the first two axes, each batch has a length")
    found = x.copy()
    for i, length in enumerate(lengths.tolist()):
        if not 0 <= length <= x.shape[time]:
            raise InvalidError(f"length {length} of {x.shape[time]}")
        for step in range(length):
            to, of = ((step, i), (length - 1 - step, i)) if time == 0 else ((i, step), (i, length - 1 - step))
            found[to] = x[of]
    return found


@operator("Unique")
def _unique(call: Call, x: Any) -> Any:
    """Subtensors along an axis; NaN is as good as any other NaN only if it is the same element: left open."""
    if x.dtype.kind == "f" and np.isnan(x).any():
        raise UnspecifiedError("whether NaN equals NaN")
    axis = None if call.axis is None else axis_of(call.axis, x.ndim)
    parts = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
    keys = [tuple(part.ravel().tolist()) if isinstance(part, np.ndarray) else (part,) for part in parts]
    first: dict[Any, int] = {}
    for i, key in enumerate(keys):
        first.setdefault(key, i)
    chosen = sorted(first) if call.sorted else list(first)
    indices = np.array([first[key] for key in chosen], np.int64)
    inverse = np.array([chosen.index(key) for key in keys], np.int64)
    counts = np.array([keys.count(key) for key in chosen], np.int64)
    values = np.take(parts, indices, 0)
    return (values if axis is None else np.moveaxis(values, 0, axis)), indices, inverse, counts
