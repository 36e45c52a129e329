# SPDX-License-Identifier: Apache-2.0
"""If, Loop and Scan, and values that are sequences or optional.

What a loop scans is stacked along a new axis; one that never runs gives an axis of 0 before the declared sizes.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from onnx import helper

from oracle.indexing import checked_index
from oracle.reductions import axis_of
from oracle.registry import Call, InvalidError, UnspecifiedError, operator

MOST_ITERATIONS = 10_000


@operator("If", on_values=True)
def _if(call: Call, condition: Any) -> Any:
    if condition.size != 1:
        raise InvalidError("one condition")
    return tuple(call.run(call.then_branch if condition.reshape(()).item() else call.else_branch, []))


@operator("Loop", on_values=True)
def _loop(call: Call, count: Any = None, condition: Any = None, *carried: Any) -> Any:
    limit = None if count is None else int(count.reshape(()).item())
    going = True if condition is None else bool(condition.reshape(()).item())
    state, i = list(carried), 0
    scanned: list[list[Any]] = [[] for _ in call.body.output[1 + len(carried) :]]
    while (limit is None or i < limit) and going:
        if i == MOST_ITERATIONS:
            raise UnspecifiedError("a loop without end")
        outputs = call.run(call.body, [np.array(i, np.int64), np.array(going), *state])
        if condition is not None:  # without one the body's is passed over
            going = bool(outputs[0].reshape(()).item())
        state = outputs[1 : 1 + len(carried)]
        for values, value in zip(scanned, outputs[1 + len(carried) :], strict=True):
            values.append(value)
        i += 1
    infos = call.body.output[1 + len(carried) :]
    return (*state, *(_stacked(values, info) for values, info in zip(scanned, infos, strict=True)))


def _stacked(values: list[Any], info: Any, axis: int = 0) -> Any:
    if values:
        if len({np.asarray(value).shape for value in values}) > 1:
            raise InvalidError("scan outputs of different sizes")
        return np.stack(values, axis)
    tensor = info.type.tensor_type
    if any(not dim.HasField("dim_value") for dim in tensor.shape.dim) or not tensor.HasField("shape"):
        raise UnspecifiedError("the sizes of what was never computed")
    sizes = [dim.dim_value for dim in tensor.shape.dim]
    sizes.insert(axis, 0)
    return np.empty(sizes, helper.tensor_dtype_to_np_dtype(tensor.elem_type))


@operator("Scan", on_values=True)
def _scan_batches(call: Call, lengths: Any, *inputs: Any) -> Any:
    """Version 8: axis 0 is the batch, axis 1 what is scanned; each batch ends at its length, and is filled with 0."""
    if any(call.directions or []):
        raise UnspecifiedError("which part of a padded sequence is read backwards")
    m = call.num_scan_inputs
    states, xs = inputs[: len(inputs) - m], inputs[len(inputs) - m :]
    length = xs[0].shape[1]
    found = []
    for b in range(xs[0].shape[0]):
        steps = length if lengths is None else int(lengths[b])
        parts = [np.take(x[b], range(steps), 0) for x in xs]
        last, scanned = _scan(call, [s[b] for s in states], parts, [0] * m, [0] * m)
        stacked = [np.stack(values) if values else np.zeros((0,)) for values in scanned]
        padded = [np.concatenate([s, np.zeros((length - steps, *s.shape[1:]), s.dtype)]) for s in stacked]
        found.append([*last, *padded])
    return tuple(np.stack(values) for values in zip(*found, strict=True))


@operator("Scan", since=9, on_values=True)
def _scan_axes(call: Call, *inputs: Any) -> Any:
    m = call.num_scan_inputs
    states, xs = inputs[: len(inputs) - m], inputs[len(inputs) - m :]
    axes = [axis_of(axis, x.ndim) for axis, x in zip(call.scan_input_axes or [0] * m, xs, strict=True)]
    last, scanned = _scan(call, list(states), list(xs), axes, call.scan_input_directions or [0] * m)
    infos = call.body.output[len(states) :]
    out_axes = call.scan_output_axes or [0] * len(infos)
    directions = call.scan_output_directions or [0] * len(infos)
    found = []
    for values, info, axis, is_backward in zip(scanned, infos, out_axes, directions, strict=True):
        rank = (np.asarray(values[0]).ndim if values else len(info.type.tensor_type.shape.dim)) + 1
        found.append(_stacked(values[::-1] if is_backward else values, info, axis_of(axis, rank)))
    return (*last, *found)


def _scan(call: Call, states: list[Any], xs: list[Any], axes: list[int], backward: list[int]) -> Any:
    lengths = {x.shape[axis] for x, axis in zip(xs, axes, strict=True)}
    if len(lengths) != 1:
        raise InvalidError("sequences of different lengths")
    (length,) = lengths
    scanned: list[list[Any]] = [[] for _ in call.body.output[len(states) :]]
    for t in range(length):
        items = [
            np.take(x, length - 1 - t if back else t, axis) for x, axis, back in zip(xs, axes, backward, strict=True)
        ]
        outputs = call.run(call.body, [*states, *items])
        states = outputs[: len(states)]
        for values, value in zip(scanned, outputs[len(states) :], strict=True):
            values.append(value)
    return states, scanned


@operator("SequenceConstruct", on_values=True)
def _sequence(_: Call, *items: Any) -> Any:
    return list(items)


@operator("SequenceEmpty", on_values=True)
def _empty_sequence(_: Call) -> Any:
    return []


@operator("SequenceAt", on_values=True)
def _at(_: Call, items: Any, position: Any) -> Any:
    return items[checked_index(position.item(), len(items))]


@operator("SequenceErase", on_values=True)
def _erase(_: Call, items: Any, position: Any = None) -> Any:
    place = checked_index(-1 if position is None else position.item(), len(items))
    return items[:place] + items[place + 1 :]


@operator("SequenceInsert", on_values=True)
def _insert(_: Call, items: Any, item: Any, position: Any = None) -> Any:
    place = len(items) if position is None else int(position.item())
    if not -len(items) <= place <= len(items):
        raise InvalidError(f"position {place} of {len(items)}")
    place = place + len(items) if place < 0 else place
    return [*items[:place], item, *items[place:]]


@operator("SequenceLength", on_values=True)
def _length(_: Call, items: Any) -> Any:
    return np.array(len(items), np.int64)


@operator("SequenceMap", on_values=True)
def _map(call: Call, items: Any, *others: Any) -> Any:
    if any(isinstance(other, list) and len(other) != len(items) for other in others):
        raise InvalidError("sequences of different lengths")
    rows = [
        call.run(call.body, [item, *(other[i] if isinstance(other, list) else other for other in others)])
        for i, item in enumerate(items)
    ]
    return tuple([row[k] for row in rows] for k in range(len(call.body.output)))


@operator("ConcatFromSequence", on_values=True)
def _concat(call: Call, items: Any) -> Any:
    if not items:
        raise UnspecifiedError("a tensor of an empty sequence")
    if call.new_axis:
        return np.stack(items, axis_of(call.axis, items[0].ndim + 1))
    return np.concatenate(items, axis_of(call.axis, items[0].ndim))


@operator("SplitToSequence", on_values=True)
def _split(call: Call, x: Any, split: Any = None) -> Any:
    axis = axis_of(call.axis, x.ndim)
    size = x.shape[axis]
    if split is not None and split.ndim:
        sizes = split.tolist()
    else:
        part = 1 if split is None else int(split)
        if part <= 0:
            raise InvalidError(f"parts of {part}")
        sizes = [min(part, size - begin) for begin in range(0, size, part)]
    if min(sizes, default=0) < 0 or sum(sizes) != size:
        raise InvalidError(f"{size} in parts {sizes}")
    ends = np.cumsum([0, *sizes]).tolist()
    parts = [np.take(x, range(a, b), axis) for a, b in pairwise(ends)]
    return [np.squeeze(part, axis) for part in parts] if split is None and not call.keepdims else parts


@operator("Optional", on_values=True)
def _optional(_: Call, value: Any = None) -> Any:
    return value


@operator("OptionalGetElement", on_values=True)
def _element(_: Call, value: Any) -> Any:
    if value is None:
        raise InvalidError("an absent optional has no element")
    return value


@operator("OptionalHasElement", on_values=True)
def _has_element(_: Call, value: Any = None) -> Any:
    return np.array(value is not None)
