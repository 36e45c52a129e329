# SPDX-License-Identifier: Apache-2.0
"""Where the rows of a batch lie in each value of some operations, and the proof that none of them reads another's.

A call of 5 rows may run on plans for 8, filled up with any rows, only where every row's outputs follow from that row
alone. In the row-major order of a value's elements, element i belongs to row `(i // place) % rows`; a reshape leaves
that as it is, whatever axes it joins to the batch or parts from it.

Law: an operation that could let two rows meet, or that has not been thought of here, is a `NotTakenError`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from nndeploy_cudnn.operations import (
    Convolution,
    Join,
    Matmul,
    Normalization,
    Operation,
    Pointwise,
    Pool,
    Reduction,
    Reshaped,
    Sliced,
    Transposed,
    TransposedConvolution,
    Value,
    ZeroPad,
    values_read,
)
from nndeploy_cudnn.patterns.translation import NotTakenError
from nndeploy_cudnn.views import Dims


def places_of_rows(operations: Iterable[Operation], inputs: Mapping[Value, int], rows: int) -> dict[Value, int]:
    """Returns the place of the batch in each value that has one; `inputs` gives those of the inputs.

    Raises:
        NotTakenError: an operation may read several of the `rows` at once.
    """
    places = dict(inputs)
    for operation in operations:
        batched = [value for value in values_read(operation) if value in places]
        if not batched:
            continue
        if isinstance(operation, Reshaped):
            places[operation.y] = places[operation.x]
            continue
        axes = {value: _axis_of(value, places[value], rows) for value in batched}
        axis = _axis_after(operation, axes)
        first = batched[0]
        inner = places[first] // math.prod(first.dims[axes[first] + 1 :])
        if any(places[value] // math.prod(value.dims[at + 1 :]) != inner for value, at in axes.items()):
            raise NotTakenError(_mixed(operation))
        places[operation.y] = inner * math.prod(operation.y.dims[axis + 1 :])
    return places


def is_first_axis(dims: Dims, place: int, rows: int) -> bool:
    """Returns whether the first axis of a value has the rows, one after the other."""
    return bool(dims) and dims[0] == rows and place == math.prod(dims[1:])


def _axis_of(value: Value, place: int, rows: int) -> int:
    """Returns the axis that the rows lie along, which may have others inside or around them."""
    for axis, size in enumerate(value.dims):
        inner = math.prod(value.dims[axis + 1 :])
        if place % inner == 0 and size * inner % (place * rows) == 0:
            return axis
    raise NotTakenError(f"the rows of the batch lie across axes of {value.name!r}")


def _axis_after(operation: Operation, axes: Mapping[Value, int]) -> int:
    """Returns the axis of the rows in what an operation makes, for the axes that they have in what it reads."""
    match operation:
        case Convolution(x=x, w=w) | TransposedConvolution(x=x, w=w) if axes.get(x) == 0 and w not in axes:
            return 0
        case Pool(x=x) if axes[x] == 0:
            return 0
        case ZeroPad(x=x) if axes[x] < 2:
            return axes[x]
        case Normalization(x=x) if axes == {x: 0}:
            return 0
        case Reduction(x=x, axes=reduced) if axes[x] not in reduced:
            return axes[x]
        case Transposed(x=x, permutation=permutation):
            return permutation.index(axes[x])
        case Sliced(x=x, axis=cut) if axes[x] != cut:
            return axes[x]
        case Join(inputs=inputs, axis=joined) if len(set(axes.values())) == 1 and axes.keys() >= set(inputs):
            if (axis := next(iter(axes.values()))) != joined:
                return axis
        case Pointwise(inputs=inputs, y=y):
            return _broadcast_axis(operation, inputs, axes, len(y.dims))
        case Matmul(x=x, w=w, y=y):
            rank = len(y.dims)
            of_x, of_w = (None if one not in axes else axes[one] - len(one.dims) for one in (x, w))
            if of_x != -1 and of_w != -2:
                if w not in axes and of_x == -2:
                    return rank - 2
                if x not in axes and of_w == -1:
                    return rank - 1
                if of_x != -2 and of_w != -1:
                    return _broadcast_axis(operation, (x, w), axes, rank)
        case _:
            pass
    raise NotTakenError(_mixed(operation))


def _broadcast_axis(operation: Operation, inputs: Sequence[Value], axes: Mapping[Value, int], rank: int) -> int:
    """Returns the axis of the rows where values broadcast: all that have rows agree, and no other has any there."""
    found = {axes[value] - len(value.dims) for value in inputs if value in axes}
    if len(found) == 1:
        axis = found.pop()
        others = [value.dims[axis] for value in inputs if value not in axes and len(value.dims) >= -axis]
        if all(size == 1 for size in others):
            return rank + axis
    raise NotTakenError(_mixed(operation))


def _mixed(operation: Operation) -> str:
    name = "a value" if operation.y.name.startswith("#") else repr(operation.y.name)
    return f"{name} may depend on several rows of the batch, which must be fixed for that (see --shape)"


def check_alike(one: Sequence[Operation], other: Sequence[Operation]) -> None:
    """Checks that operations for two sizes of the batch are the same but for the sizes of what they read and make.

    Raises:
        NotTakenError: they are not.
    """
    if [_without_sizes(operation) for operation in one] != [_without_sizes(operation) for operation in other]:
        raise NotTakenError("what is computed depends on the size of the batch")


def _without_sizes(operation: Operation) -> tuple[Any, ...]:
    """Returns all that an operation is but for the sizes of what it reads and makes."""
    attributes = [getattr(operation, field.name) for field in fields(operation)]
    constants = [None if one.constant is None else (one.dims, one.constant.tobytes()) for one in values_read(operation)]
    return type(operation), [one for one in attributes if not _holds_values(one)], constants


def _holds_values(attribute: object) -> bool:
    return isinstance(attribute, Value) or (
        isinstance(attribute, tuple) and any(isinstance(item, Value) for item in attribute)
    )
