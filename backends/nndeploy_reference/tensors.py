# SPDX-License-Identifier: Apache-2.0
"""Operators that move, choose and write elements: old forms, and what ONNX's evaluator does not check.

An index out of range is an error, below 0 it counts from the end.

Source: ONNX operators GatherElements (11, 13), GatherND (11-13), Scatter (9, 11), ScatterElements (11-18), ScatterND
(11-18), OneHot (9-28), Unique (11, 28), Pad (1-25), and versions 1 of Concat, Reshape, Split, Tile and Constant.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from nndeploy_reference.operator_table import Array, Node, front_axis, operator


def _checked(node: Node, indices: Array, size: int) -> Array:
    """Returns indices counted from the front.

    Raises:
        IndexError: one is out of range.
    """
    indices = indices.astype(np.int64)
    if indices.size and not (-size <= indices.min() and indices.max() < size):
        wrong = indices[(indices < -size) | (indices >= size)][0]
        raise IndexError(f"an index out of range in {node.op_type}: {wrong} of {size}")
    return np.where(indices < 0, indices + size, indices)


def _element_places(node: Node, x: Array, indices: Array) -> tuple[Array, ...]:
    axis = front_axis(node.axis, x.ndim)
    places = list(np.ogrid[tuple(map(slice, indices.shape))])
    places[axis] = _checked(node, indices, x.shape[axis])
    return tuple(places)


@operator("GatherElements")
def _gather_elements(node: Node, x: Array, indices: Array) -> Array:
    return x[_element_places(node, x, indices)]


@operator("GatherND")
def _gather_nd(node: Node, x: Array, indices: Array) -> Array:
    batches = node.batch_dims or 0
    lead = [
        np.reshape(axis, axis.shape + (1,) * (indices.ndim - 1 - batches))
        for axis in np.ogrid[tuple(map(slice, x.shape[:batches]))]
    ]
    parts = [_checked(node, indices[..., k], x.shape[batches + k]) for k in range(indices.shape[-1])]
    return x[(*lead, *parts)]


def _written(node: Node, x: Array, places: tuple[Array, ...], updates: Array) -> Array:
    found = x.copy()
    reduction = node.reduction or "none"
    if reduction == "none":
        found[places] = updates
    elif found.dtype.kind == "V" or found.dtype == np.float16:  # ufunc.at has these types slowly or not
        wide = found.astype(np.float32)
        _ACCUMULATE[reduction](wide, places, updates.astype(np.float32))
        found = wide.astype(found.dtype)
    else:
        _ACCUMULATE[reduction](found, places, updates)
    return found


_ACCUMULATE = {"add": np.add.at, "mul": np.multiply.at, "max": np.maximum.at, "min": np.minimum.at}


@operator("Scatter", "ScatterElements")
def _scatter_elements(node: Node, x: Array, indices: Array, updates: Array) -> Array:
    return _written(node, x, _element_places(node, x, indices), updates)


@operator("ScatterND")
def _scatter_nd(node: Node, x: Array, indices: Array, updates: Array) -> Array:
    places = tuple(_checked(node, indices[..., k], x.shape[k]) for k in range(indices.shape[-1]))
    return _written(node, x, places, updates)


@operator("OneHot")
def _one_hot(node: Node, indices: Array, depth: Array, values: Array) -> Array:
    """Rows of off_value stand for indices out of range; before version 11 those below 0 are."""
    depth = int(depth.reshape(()))
    axis = front_axis(node.axis, indices.ndim + 1)
    whole = np.expand_dims(indices.astype(np.int64), axis)
    if node.version >= 11:
        whole = np.where(whole < 0, whole + depth, whole)
    classes = np.arange(depth).reshape([-1 if i == axis else 1 for i in range(whole.ndim)])
    return np.where(whole == classes, values[1], values[0])


@operator("Unique")
def _unique(node: Node, x: Array) -> tuple[Array, ...]:
    axis = None if node.axis is None else front_axis(node.axis, x.ndim)
    rows = (
        x.reshape(x.size, 1)
        if axis is None
        else np.moveaxis(x, axis, 0).reshape(x.shape[axis], x.size // max(x.shape[axis], 1))
    )
    _, first, inverse, counts = np.unique(
        _codes(rows), axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    if not node.sorted:
        order = np.argsort(first)
        first, counts, inverse = first[order], counts[order], np.argsort(order)[inverse.reshape(-1)]
    values = np.take(x if axis is not None else x.reshape(-1), first, axis or 0)
    return values, first, inverse.reshape(-1), counts


def _codes(rows: Array) -> Array:
    """Returns whole numbers in the order of elements, which numpy can compare row by row whatever the type."""
    if not rows.size:
        return np.zeros((len(rows), 1), np.int64)
    flat = rows.ravel().astype(np.float32) if rows.dtype.kind == "V" else rows.ravel()
    return np.unique(flat, return_inverse=True)[1].reshape(rows.shape)


@operator("Pad")
def _pad(node: Node, x: Array, pads: Array = None, value: Array = None, axes: Array = None) -> Array:
    pads = list(node.paddings if node.version == 1 else node.pads) if pads is None else pads.tolist()
    chosen = range(x.ndim) if axes is None else [front_axis(int(axis), x.ndim) for axis in axes]
    both = [(0, 0)] * x.ndim
    for axis, begin, end in zip(chosen, pads[: len(chosen)], pads[len(chosen) :], strict=True):
        both[axis] = (begin, end)
    x = x[tuple(slice(max(-b, 0), n - max(-e, 0)) for (b, e), n in zip(both, x.shape, strict=True))]
    wide = [(max(b, 0), max(e, 0)) for b, e in both]
    if node.mode != "constant":
        return np.pad(x, wide, mode=node.mode)
    filler = (node.value or 0) if value is None else value.reshape(-1)[0]
    found = np.full([n + b + e for n, (b, e) in zip(x.shape, wide, strict=True)], _filler(x, filler), x.dtype)
    found[tuple(slice(b, b + n) for n, (b, _) in zip(x.shape, wide, strict=True))] = x
    return found


def _filler(x: Array, given: Any) -> Any:
    return (given or "") if x.dtype == object else given


@operator("Flatten")
def _flatten(node: Node, x: Array) -> Array:
    axis = node.axis + x.ndim if node.axis < 0 else node.axis
    return x.reshape(prod(x.shape[:axis]), prod(x.shape[axis:]))


@operator("Concat", before=4)
def _old_concat(node: Node, *xs: Array) -> Array:
    return np.concatenate(xs, 1 if node.axis is None else node.axis)


@operator("Reshape", before=5)
def _old_reshape(node: Node, x: Array) -> Array:
    return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(node.shape)])


@operator("Split", before=2)
def _old_split(node: Node, x: Array, split: Array = None) -> tuple[Array, ...]:
    sizes: Sequence[int] = node.split if split is None else split.astype(np.int64).tolist()
    return tuple(np.split(x, np.cumsum(sizes)[:-1] if sizes else node.num_outputs, node.axis or 0))


@operator("Tile", before=6)
def _old_tile(_: Node, x: Array, tiles: Array, axis: Array) -> Array:
    return np.concatenate([x] * int(tiles.reshape(())), int(axis.reshape(())))


@operator("Constant")
def _constant(node: Node) -> Array:
    if node.value is not None:
        return node.value
    if node.sparse_value is not None:
        return dense(node.sparse_value.values, node.sparse_value.indices, node.sparse_value.shape)
    kinds = {"value_float": np.float32, "value_int": np.int64, "value_string": object}
    name = next(n for kind in kinds for n in (kind, f"{kind}s") if getattr(node, n) is not None)
    return np.array(getattr(node, name), kinds[name.removesuffix("s")])


def dense(values: Array, indices: Array, shape: Sequence[int]) -> Array:
    """Returns a sparse tensor with its zeros; indices are linear, or coordinates in rows."""
    found = np.zeros(shape, values.dtype)
    places = tuple(indices.T) if indices.ndim == 2 else np.unravel_index(indices, tuple(shape))
    found[places] = values
    return found
