# SPDX-License-Identifier: Apache-2.0
"""Operators along axes: reductions, the place of an extreme, sums so far, the largest k, softmax and its relatives.

Reductions of nothing: sums 0, products 1, Max the least number of the type, Min the greatest, LogSum -inf, Mean NaN.
Integers wrap. NaN is greater than every number where values are sorted; ArgMax and ArgMin choose the first NaN.
"""

from functools import reduce
from typing import Any

import numpy as np

from oracle.registry import Call, InvalidError, UnspecifiedError, is_float, operator


def axis_of(axis: int, rank: int) -> int:
    """Returns an axis counted from the front."""
    axis = int(axis)
    if not -rank <= axis < rank:
        raise InvalidError(f"axis {axis} of rank {rank}")
    return axis % rank


def axes_of(axes: Any, rank: int) -> tuple[int, ...]:
    """Returns axes counted from the front, in their order, each at most once."""
    found = tuple(axis_of(axis, rank) for axis in np.asarray(axes).ravel().tolist())
    if len(set(found)) != len(found):
        raise UnspecifiedError("an axis is repeated")
    return found


def _sum(x: Any, axes: tuple[int, ...]) -> Any:
    return np.sum(x, axis=axes, keepdims=True, dtype=x.dtype)


def _log_sum_exp(x: Any, axes: tuple[int, ...]) -> Any:
    if not all(x.shape[axis] for axis in axes):
        return np.log(_sum(np.exp(x), axes))
    most = np.max(x, axis=axes, keepdims=True)
    most = np.where(np.isfinite(most), most, 0)
    return np.log(_sum(np.exp(x - most), axes)) + most


def _mean(x: Any, axes: tuple[int, ...]) -> Any:
    count = int(np.prod([x.shape[axis] for axis in axes]))
    if is_float(x.dtype):
        return _sum(x, axes) / np.float64(count)
    if count == 0:
        return _sum(x, axes)
    total = _sum(x.astype(object), axes)
    if (total != _sum(x.astype(np.int64 if x.dtype.kind == "i" else np.uint64), axes)).any():
        raise UnspecifiedError("a sum beyond the type")
    flat = [abs(value) // count * (1 if value >= 0 else -1) for value in np.asarray(total).ravel().tolist()]
    return np.array(flat, x.dtype).reshape(total.shape)


def _extreme(choose: Any, is_max: bool) -> Any:
    def compute(x: Any, axes: tuple[int, ...]) -> Any:
        if x.dtype == bool:
            start: Any = not is_max
        elif is_float(x.dtype):
            start = -np.inf if is_max else np.inf
        else:
            start = np.iinfo(x.dtype).min if is_max else np.iinfo(x.dtype).max
        return choose(x, axis=axes, keepdims=True, initial=start)

    return compute


def _of_integers(op: str, x: Any, axes: tuple[int, ...]) -> Any:
    """A function of floats for integers: computed exactly enough, then cut; what does not fit is left open."""
    wide, info = x.astype(np.float64), np.iinfo(x.dtype)
    found = np.trunc(_REDUCTIONS_BY_ROOT_OR_LOG[op](wide, axes))
    for part in (found, _sum(wide * wide if op == "ReduceL2" else wide, axes)):
        if not ((part >= info.min) & (part <= info.max)).all():
            raise UnspecifiedError("no integer of the type")
    return found.astype(x.dtype)


_REDUCTIONS = {
    "ReduceSum": _sum, "ReduceMean": _mean, "ReduceProd": lambda x,
    axes: np.prod(x, axis=axes, keepdims=True, dtype=x.dtype), "ReduceMax": _extreme(np.max, is_max=True),
    "ReduceMin": _extreme(np.min, is_max=False), "ReduceL1": lambda x, axes: _sum(np.abs(x), axes),
    "ReduceSumSquare": lambda x, axes: _sum(x * x, axes),
}  # fmt: skip
_REDUCTIONS_BY_ROOT_OR_LOG = {
    "ReduceL2": lambda x, axes: np.sqrt(_sum(x * x, axes)),
    "ReduceLogSum": lambda x, axes: np.log(_sum(x, axes)),
    "ReduceLogSumExp": _log_sum_exp,
}


@operator(*_REDUCTIONS, *_REDUCTIONS_BY_ROOT_OR_LOG)
def _reduce(call: Call, x: Any, axes: Any = None) -> Any:
    axes = call.axes if axes is None else axes.tolist()
    if not axes and call.noop_with_empty_axes:
        chosen: tuple[int, ...] = ()
    else:
        chosen = axes_of(axes, x.ndim) if axes else tuple(range(x.ndim))
    if call.op in _REDUCTIONS:
        found = _REDUCTIONS[call.op](x, chosen)
    else:
        function = _REDUCTIONS_BY_ROOT_OR_LOG[call.op]
        found = function(x, chosen) if is_float(x.dtype) else _of_integers(call.op, x, chosen)
    return found if call.keepdims else np.squeeze(found, chosen)


@operator("ArgMax", "ArgMin")
def _arg_extreme(call: Call, x: Any) -> Any:
    axis = axis_of(call.axis, x.ndim)
    if x.shape[axis] == 0:
        raise InvalidError("no element to choose from")
    choose = np.argmax if call.op == "ArgMax" else np.argmin  # both take NaN for what they look for
    found = choose(np.flip(x, axis) if call.select_last_index else x, axis)
    found = x.shape[axis] - 1 - found if call.select_last_index else found
    return np.expand_dims(found, axis) if call.keepdims else found


@operator("CumSum", "CumProd")
def _cumulate(call: Call, x: Any, axis: Any) -> Any:
    axis = axis_of(axis.item(), x.ndim)
    run, start = (np.cumsum, 0) if call.op == "CumSum" else (np.cumprod, 1)
    x = np.flip(x, axis) if call.reverse else x
    found = run(x, axis, dtype=x.dtype)
    if call.exclusive and x.shape[axis]:
        first = np.full_like(np.take(x, [0], axis), start)
        found = np.concatenate([first, np.delete(found, -1, axis)], axis)
    return np.flip(found, axis) if call.reverse else found


@operator("TopK")
def _top_k(call: Call, x: Any, k: Any = None) -> Any:
    axis = axis_of(-1 if call.axis is None else call.axis, x.ndim)
    count = call.k if k is None else int(k.item())
    if not 0 <= count <= x.shape[axis]:
        raise InvalidError(f"{count} of {x.shape[axis]}")
    if call.sorted == 0:
        raise UnspecifiedError("the order of results is open where sorted=0")
    order = sorted_order(x, axis, largest=call.largest != 0)
    chosen = np.take(order, range(count), axis)
    return np.take_along_axis(x, chosen, axis), chosen


def sorted_order(x: Any, axis: int, largest: bool) -> Any:
    """Returns indices along an axis in the order of values; of equals the lower index first, NaN the greatest."""

    def order(row: Any) -> Any:
        def key(i: int) -> tuple[Any, ...]:
            is_nan = bool(row[i] != row[i])
            value = 0 if is_nan else row[i].item()
            return (not is_nan, -value, i) if largest else (is_nan, value, i)

        return np.array(sorted(range(len(row)), key=key), np.int64)

    if x.size == 0:
        return np.zeros(x.shape, np.int64)
    return np.apply_along_axis(order, axis, x)


def _softmax(x: Any, axis: int) -> Any:
    if x.size == 0:
        return x
    most = np.max(x, axis=axis, keepdims=True)
    powers = np.exp(x - most)
    return powers / np.sum(powers, axis=axis, keepdims=True)


def _log_softmax(x: Any, axis: int) -> Any:
    if x.size == 0:
        return x
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _hardmax(x: Any, axis: int) -> Any:
    found = np.zeros_like(x)
    if x.size:
        np.put_along_axis(found, np.expand_dims(np.argmax(x, axis), axis), 1, axis)
    return found


_SOFT = {"Softmax": _softmax, "LogSoftmax": _log_softmax, "Hardmax": _hardmax}


@operator(*_SOFT)
def _soft(call: Call, x: Any) -> Any:
    if call.version >= 13:
        return _SOFT[call.op](x, axis_of(call.axis, x.ndim))
    axis = axis_of(call.axis, x.ndim)  # before version 13: all axes from this one on as one
    rows = x.reshape(reduce(int.__mul__, x.shape[:axis], 1), reduce(int.__mul__, x.shape[axis:], 1))
    return _SOFT[call.op](rows, 1).reshape(x.shape)
