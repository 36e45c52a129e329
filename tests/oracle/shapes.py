# SPDX-License-Identifier: Apache-2.0
"""Operators that move, repeat or make elements: reshape, transpose, concat, split, slice, pad, tile, constants."""

import math
from typing import Any

import ml_dtypes
import numpy as np
from onnx import helper

from oracle.elementwise import broadcasts
from oracle.reductions import axes_of, axis_of
from oracle.registry import Call, InvalidError, UnspecifiedError, as_type, is_float, operator

MOST_ELEMENTS = 1 << 24


def check_size(*sizes: float) -> None:
    """Raises UnspecifiedError where a tensor would have more elements than are computed here."""
    if math.prod(map(float, sizes)) > MOST_ELEMENTS:
        raise UnspecifiedError(f"a tensor of {sizes}")


@operator("Identity", on_values=True)
def _identity(_: Call, x: Any) -> Any:
    return x


@operator("Shape")
def _shape(call: Call, x: Any) -> Any:
    def clamped(axis: int) -> int:
        return min(max(axis + x.ndim if axis < 0 else axis, 0), x.ndim)

    start, end = clamped(call.start or 0), x.ndim if call.end is None else clamped(call.end)
    return np.array(x.shape[start:end], np.int64)


@operator("Size")
def _size(_: Call, x: Any) -> Any:
    return np.array(x.size, np.int64)


@operator("Reshape")
def _reshape(call: Call, x: Any, shape: Any = None) -> Any:
    wanted = list(call.shape or []) if shape is None else shape.tolist()
    if call.allowzero and 0 in wanted and -1 in wanted:
        raise InvalidError("a size of 0 and one to infer")
    if not call.allowzero:
        if any(size == 0 and i >= x.ndim for i, size in enumerate(wanted)):
            raise InvalidError("a size of an axis that the input does not have")
        wanted = [x.shape[i] if size == 0 else size for i, size in enumerate(wanted)]
    if wanted.count(-1) > 1 or any(size < -1 for size in wanted):
        raise InvalidError(f"no shape: {wanted}")
    if -1 in wanted:
        others = math.prod(size for size in wanted if size != -1)
        if others == 0 or x.size % others:
            raise InvalidError(f"{x.shape} as {wanted}")
        wanted[wanted.index(-1)] = x.size // others
    if math.prod(wanted) != x.size:
        raise InvalidError(f"{x.shape} as {wanted}")
    return x.reshape(wanted)


@operator("Flatten")
def _flatten(call: Call, x: Any) -> Any:
    axis = call.axis + x.ndim if call.axis < 0 else call.axis
    if not 0 <= axis <= x.ndim:
        raise InvalidError(f"axis {call.axis} of rank {x.ndim}")
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@operator("Squeeze")
def _squeeze(call: Call, x: Any, axes: Any = None) -> Any:
    axes = call.axes if axes is None else axes
    chosen = [i for i, size in enumerate(x.shape) if size == 1] if axes is None else axes_of(axes, x.ndim)
    if any(x.shape[axis] != 1 for axis in chosen):
        raise InvalidError("an axis that is not 1")
    return x.reshape([size for i, size in enumerate(x.shape) if i not in chosen])


@operator("Unsqueeze")
def _unsqueeze(call: Call, x: Any, axes: Any = None) -> Any:
    axes = np.asarray(call.axes if axes is None else axes).ravel().tolist()
    rank = x.ndim + len(axes)
    chosen = [axis_of(axis, rank) for axis in axes]
    if len(set(chosen)) != len(chosen):
        raise InvalidError("an axis twice")
    sizes = iter(x.shape)
    return x.reshape([1 if i in chosen else next(sizes) for i in range(rank)])


@operator("Transpose")
def _transpose(call: Call, x: Any) -> Any:
    order = list(range(x.ndim))[::-1] if call.perm is None else call.perm
    if sorted(order) != list(range(x.ndim)):
        raise InvalidError(f"{order} is no order of {x.ndim} axes")
    return np.transpose(x, order)


@operator("Expand")
def _expand(_: Call, x: Any, shape: Any) -> Any:
    check_size(*broadcasts(x.shape, tuple(shape.tolist())))
    return np.broadcast_to(x, broadcasts(x.shape, tuple(shape.tolist())))


@operator("Tile")
def _tile_along(_: Call, x: Any, tiles: Any, axis: Any) -> Any:
    check_size(x.size, tiles.item())
    return np.concatenate([x] * int(tiles.item()), axis_of(int(axis.item()), x.ndim))


@operator("Tile", since=6)
def _tile(_: Call, x: Any, repeats: Any) -> Any:
    if repeats.shape != (x.ndim,) or (repeats < 0).any():
        raise InvalidError(f"{repeats} times {x.ndim} axes")
    check_size(x.size, *repeats.tolist())
    return np.tile(x, repeats.tolist()) if x.ndim else x


@operator("Concat")
def _concat(call: Call, *xs: Any) -> Any:
    axis = axis_of(1 if call.axis is None else call.axis, xs[0].ndim)
    if len({(*x.shape[:axis], *x.shape[axis + 1 :]) for x in xs}) != 1 or len({x.ndim for x in xs}) != 1:
        raise InvalidError("inputs of different sizes")
    return np.concatenate(xs, axis)


@operator("Split")
def _split(call: Call, x: Any, split: Any = None) -> Any:
    axis = axis_of(call.axis or 0, x.ndim)
    size, count = x.shape[axis], call.attributes.get("num_outputs") or len(call.node.output)
    sizes = split.tolist() if split is not None else call.split
    if sizes is None:
        part = -(-size // count)
        sizes = [min(part, max(size - i * part, 0)) for i in range(count)]
        if call.version < 18 and size % count:
            raise InvalidError(f"{size} in {count} equal parts")
    sizes = [int(s) for s in sizes]
    if sum(sizes) != size or min(sizes, default=0) < 0 or len(sizes) != len(call.node.output):
        raise InvalidError(f"{size} in parts {sizes}")
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


@operator("Slice")
def _slice(call: Call, x: Any, starts: Any = None, ends: Any = None, axes: Any = None, steps: Any = None) -> Any:
    starts = list(call.starts if starts is None else starts.tolist())
    ends = list(call.ends if ends is None else ends.tolist())
    axes = call.axes if axes is None else axes.tolist()
    chosen = axes_of(range(len(starts)) if axes is None else axes, x.ndim)
    steps = [1] * len(starts) if steps is None else steps.tolist()
    if not len(starts) == len(ends) == len(chosen) == len(steps) or 0 in steps:
        raise InvalidError("starts, ends, axes and steps do not fit")
    for axis, start, end, step in zip(chosen, starts, ends, steps, strict=True):
        x = np.take(x, _sliced_places(x.shape[axis], start, end, step), axis)
    return x


def _sliced_places(size: int, start: int, end: int, step: int) -> list[int]:
    start, end = (value + size if value < 0 else value for value in (start, end))
    low, high = (0, size) if step > 0 else (0, size - 1)
    start = min(max(start, low), high)
    end = min(max(end, 0), size) if step > 0 else min(max(end, -1), size - 1)
    return [] if size == 0 else list(range(start, end, step))


@operator("Pad")
def _pad(call: Call, x: Any, pads: Any = None, value: Any = None, axes: Any = None) -> Any:
    if pads is None:
        pads = np.array(call.paddings if call.version < 2 else call.pads)
    filler = (call.value or 0) if value is None else value.reshape(-1)[0]
    if value is None and x.dtype == object:
        filler = ""
    chosen = axes_of(range(x.ndim) if axes is None else axes, x.ndim)
    if pads.shape != (2 * len(chosen),):
        raise InvalidError(f"{pads.size} pads of {len(chosen)} axes")
    for axis, begin, end in zip(chosen, pads[: len(chosen)].tolist(), pads[len(chosen) :].tolist(), strict=True):
        x = _padded(x, axis, begin, end, call.mode, filler)
    return x


def _padded(x: Any, axis: int, begin: int, end: int, mode: str, filler: Any) -> Any:
    size = x.shape[axis]
    check_size(x.size, (size + abs(begin) + abs(end)) / max(size, 1))
    if size + begin + end < 0:
        raise InvalidError("more is removed than there is")
    if (begin < 0 or end < 0) and mode != "constant":
        raise UnspecifiedError("what is mirrored where elements are removed is left open")
    parts = []
    for place in range(-begin, size + end):
        if 0 <= place < size:
            parts.append(np.take(x, [place], axis))
        elif mode == "constant":
            shape = list(x.shape)
            shape[axis] = 1
            parts.append(np.full(shape, filler, x.dtype))
        else:
            parts.append(np.take(x, [_source(place, size, mode)], axis))
    return np.concatenate(parts, axis) if parts else np.take(x, [], axis)


def _source(place: int, size: int, mode: str) -> int:
    """Returns which element stands at a place outside of an axis."""
    if size == 0:
        raise InvalidError("nothing to repeat")
    if mode == "edge":
        return min(max(place, 0), size - 1)
    if mode == "wrap":
        return place % size
    if size == 1 or not -size < place < 2 * size - 1:
        raise UnspecifiedError("a reflection that is longer than the axis")
    return abs(place) if place < size else 2 * (size - 1) - place


@operator("DepthToSpace")
def _depth_to_space(call: Call, x: Any) -> Any:
    b, (n, c, h, w) = call.blocksize, x.shape
    if b < 1 or c % (b * b):
        raise InvalidError(f"{c} channels in blocks of {b}")
    found = np.empty((n, c // (b * b), h * b, w * b), x.dtype)
    for out, row, column in np.ndindex(c // (b * b), b, b):
        is_crd = call.mode == "CRD"
        channel = out * b * b + row * b + column if is_crd else (row * b + column) * (c // (b * b)) + out
        found[:, out, row::b, column::b] = x[:, channel]
    return found


@operator("SpaceToDepth")
def _space_to_depth(call: Call, x: Any) -> Any:
    b, (n, c, h, w) = call.blocksize, x.shape
    if b < 1 or h % b or w % b:
        raise InvalidError(f"{h} x {w} in blocks of {b}")
    found = np.empty((n, c * b * b, h // b, w // b), x.dtype)
    for channel, row, column in np.ndindex(c, b, b):
        is_crd = call.mode == "CRD"
        place = channel * b * b + row * b + column if is_crd else (row * b + column) * c + channel
        found[:, place] = x[:, channel, row::b, column::b]
    return found


@operator("Constant")
def _constant(call: Call) -> Any:
    (name,) = call.attributes
    value = call.attributes[name]
    kinds = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    return value if name in ("value", "sparse_value") else np.array(value, kinds.get(name, object))


@operator("ConstantOfShape")
def _constant_of_shape(call: Call, shape: Any) -> Any:
    if (shape < 0).any():
        raise InvalidError(f"no shape: {shape}")
    check_size(*shape.tolist())
    value = np.zeros(1, np.float32) if call.value is None else call.value
    return np.full(shape.tolist(), value.reshape(-1)[0], value.dtype)


@operator("EyeLike")
def _eye_like(call: Call, x: Any) -> Any:
    if x.ndim != 2:
        raise InvalidError(f"rank {x.ndim}")
    dtype = call.dtypes[0] if call.dtype is None else helper.tensor_dtype_to_np_dtype(call.dtype)
    found = np.zeros(x.shape, np.float64)
    for row, column in np.ndindex(*x.shape):
        found[row, column] = column == row + call.k
    return as_type(found, dtype)


@operator("Range")
def _range(call: Call, start: Any, limit: Any, delta: Any) -> Any:
    """The number of elements follows from the formula; in 16 bits it is computed as `stash_type` says."""
    start, limit, delta = (value.reshape(()).item() for value in (start, limit, delta))
    if delta == 0:
        raise InvalidError("steps of 0")
    if not all(map(math.isfinite, (start, limit, delta))):
        raise UnspecifiedError("a range without end")
    check_size((limit - start) / delta)
    if is_float(call.dtypes[0]):
        count = max(math.ceil((limit - start) / delta), 0)
        if call.dtypes[0] == np.float32 or ml_dtypes.finfo(call.dtypes[0]).bits < 32:
            others = math.ceil(np.float32(np.float32(limit) - np.float32(start)) / np.float32(delta))
            if max(others, 0) != count:
                raise UnspecifiedError("a limit that rounding decides")
    else:
        count = max(-((start - limit) // delta), 0)
    return np.array([start + i * delta for i in range(count)], np.float64 if is_float(call.dtypes[0]) else None)


@operator("Trilu")
def _trilu(call: Call, x: Any, k: Any = None) -> Any:
    k = 0 if k is None else int(k.item())
    if x.ndim < 2:
        raise InvalidError(f"rank {x.ndim}")
    found = np.zeros_like(x)
    for row, column in np.ndindex(*x.shape[-2:]):
        if column - row >= k if call.upper else column - row <= k:
            found[..., row, column] = x[..., row, column]
    return found


@operator("CenterCropPad")
def _center_crop_pad(call: Call, x: Any, shape: Any) -> Any:
    """Crops or pads each axis to its size, both sides alike; the odd element is cut or added at the end."""
    axes = axes_of(range(x.ndim) if call.axes is None else call.axes, x.ndim)
    if shape.size != len(axes):
        raise InvalidError(f"{shape.size} sizes of {len(axes)} axes")
    for axis, wanted in zip(axes, shape.tolist(), strict=True):
        size = x.shape[axis]
        if wanted <= size:
            begin = (size - wanted) // 2
            x = np.take(x, range(begin, begin + wanted), axis)
        else:
            begin = (wanted - size) // 2
            x = _padded(x, axis, begin, wanted - size - begin, "constant", 0)
    return x


@operator("Dropout")
def _dropout(call: Call, x: Any, ratio: Any = None, training: Any = None) -> Any:
    """Off training the input; before version 7 training is what there is unless is_test says otherwise."""
    is_training = not call.is_test if call.version < 7 else training is not None and bool(training.item())
    share = (call.ratio if ratio is None else ratio.item()) if call.version < 12 or ratio is not None else 0.5
    if is_training and share != 0:
        raise UnspecifiedError("what is dropped is random")
    mask = np.ones(x.shape, bool)
    return (x, mask if call.version >= 10 else as_type(mask, x.dtype))
