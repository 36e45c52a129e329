# SPDX-License-Identifier: Apache-2.0
"""Where each value goes: inputs and outputs of the submodel, constants, and the arena that the rest shares.

Decided before any step is made: what a graph output holds is written where the caller will find it, and what a join
holds is written to its slot in the joined value, so neither is copied. Law: two values whose lifetimes meet never
share bytes of the arena.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from nndeploy_cudnn.operations import Join, Operation, Reshaped, Sliced, Transposed, Value, values_read
from nndeploy_cudnn.views import ITEM_BYTES, Dims

ALIGNMENT = 256
"""Bytes; what cudaMalloc gives. Source: CUDA C++ Programming Guide, device memory accesses."""

Kind = Literal["input", "output", "constant", "arena"]


@dataclass(slots=True)
class Buffer:
    """Dense memory of one kind; `index` is that of the input or output, `offset` is in constants or arena."""

    kind: Kind
    num_bytes: int
    index: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of a value inside a joined one: from `start` along the axis."""

    join: Join
    start: int


@dataclass(frozen=True, slots=True)
class Places:
    """`homes`: values that are written to an output, by index; `slots`: those written into a joined value."""

    homes: Mapping[Value, int]
    slots: Mapping[Value, Slot]


def places_of(operations: Sequence[Operation], outputs: Sequence[Value]) -> Places:
    """Returns what is written to an output or into a joined value."""
    makers = {operation.y: operation for operation in operations}
    homes: dict[Value, int] = {}
    for index, output in enumerate(outputs):
        value = output
        while isinstance(maker := makers.get(value), Reshaped):
            value = maker.x
        if _is_computed(makers.get(value)) and value not in homes:
            homes[value] = index
    slots: dict[Value, Slot] = {}
    for join in (operation for operation in operations if isinstance(operation, Join)):
        start = 0
        for value in join.inputs:
            if _is_computed(makers.get(value)) and value not in homes and value not in slots:
                slots[value] = Slot(join, start)
            start += value.dims[join.axis]
    return Places(homes, slots)


def _is_computed(maker: Operation | None) -> bool:
    return maker is not None and not isinstance(maker, Reshaped | Transposed | Sliced)


def readers_of(operations: Sequence[Operation]) -> dict[Value, list[Operation]]:
    """Returns for each value the operations that read it, in order."""
    readers: dict[Value, list[Operation]] = {}
    for operation in operations:
        for value in dict.fromkeys(values_read(operation)):
            readers.setdefault(value, []).append(operation)
    return readers


def num_bytes(dims: Dims, dtype: str) -> int:
    """Returns the bytes of a dense array."""
    return math.prod(dims) * ITEM_BYTES[dtype]


def lay_out(buffers: Sequence[Buffer], uses: Sequence[Iterable[int]]) -> tuple[int, int]:
    """Sets the offset of every constant and arena buffer in use; returns the bytes of constants and arena.

    `uses[i]` are the numbers of the buffers that step i reads or writes.
    """
    lifetimes, constants = _lifetimes(uses), 0
    for number, buffer in enumerate(buffers):
        if buffer.kind == "constant" and number in lifetimes:
            buffer.offset, constants = constants, constants + _rounded(buffer.num_bytes)
    return constants, _lay_out_arena(buffers, lifetimes)


def _lifetimes(uses: Sequence[Iterable[int]]) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for step, numbers in enumerate(uses):
        for number in numbers:
            first, _ = found.get(number, (step, step))
            found[number] = (first, step)
    return found


def _lay_out_arena(buffers: Sequence[Buffer], lifetimes: Mapping[int, tuple[int, int]]) -> int:
    """Puts the largest first, each at the lowest offset that nobody has during its life; returns the bytes used."""
    arena = [number for number, buffer in enumerate(buffers) if buffer.kind == "arena" and number in lifetimes]
    placed: list[int] = []
    for number in sorted(arena, key=lambda number: (-buffers[number].num_bytes, lifetimes[number], number)):
        first, last = lifetimes[number]
        meets = [buffers[n] for n in placed if lifetimes[n][0] <= last and first <= lifetimes[n][1]]
        buffers[number].offset = _lowest_gap(meets, _rounded(buffers[number].num_bytes))
        placed.append(number)
    return max((buffers[number].offset + _rounded(buffers[number].num_bytes) for number in placed), default=0)


def _lowest_gap(meets: Sequence[Buffer], size: int) -> int:
    offset = 0
    for buffer in sorted(meets, key=lambda buffer: buffer.offset):
        if offset + size <= buffer.offset:
            break
        offset = max(offset, buffer.offset + _rounded(buffer.num_bytes))
    return offset


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
