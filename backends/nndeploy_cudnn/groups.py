# SPDX-License-Identifier: Apache-2.0
"""What may share one cuDNN graph: an operation and the element-wise ones behind it.

    conv -> + bias -> + residual -> relu        matmul -> + bias -> gelu        x -> sigmoid -> * x

A group starts at an operation and grows by element-wise operations of the same size whose other inputs are there
already. It may end wherever exactly one of its values is still wanted outside. Law: of the groups that are offered
each is a part of the one before it, and the last is the operation alone.
"""

from collections.abc import Collection, Mapping, Sequence

from nndeploy_cudnn.operations import Convolution, Matmul, Operation, Pointwise, Value

MAX_OPERATIONS = 16
HEADS = (Convolution, Matmul, Pointwise)

Group = tuple[Operation, ...]


def groups_from(
    head: Operation,
    readers: Mapping[Value, Sequence[Operation]],
    ready: Collection[Value],
    done: Collection[Operation],
    wanted: Collection[Value],
) -> list[Group]:
    """Returns the groups that start at `head`, the largest first.

    `ready` are the values that exist, `done` the operations that ran, `wanted` the values that must be kept.
    """
    if not isinstance(head, HEADS):
        return [(head,)]
    group: list[Operation] = [head]
    ends, made = [tuple(group)], {head.y}
    while len(group) < MAX_OPERATIONS and (found := _next(group, made, readers, ready, done)) is not None:
        group.append(found)
        made.add(found.y)
        if _exits(group, readers, wanted) == [found.y]:
            ends.append(tuple(group))
    return list(reversed(ends))


def is_classic(group: Group) -> bool:
    """Returns whether it is a convolution with additions and relu, which cuDNN has precompiled for every GPU.

    Even its fallback is then one kernel, where two recommended ones would go through memory twice more.
    """
    head, *rest = group
    return isinstance(head, Convolution | Matmul) and all(
        isinstance(operation, Pointwise) and operation.mode in ("add", "relu") for operation in rest
    )


def _next(
    group: Sequence[Operation],
    made: Collection[Value],
    readers: Mapping[Value, Sequence[Operation]],
    ready: Collection[Value],
    done: Collection[Operation],
) -> Pointwise | None:
    """Returns the first element-wise operation that reads from the group and whose other inputs are there."""
    for member in group:
        for reader in readers.get(member.y, ()):
            if reader in group or reader in done or not isinstance(reader, Pointwise):
                continue
            if reader.y.dims == group[0].y.dims and all(_is_there(value, made, ready) for value in reader.inputs):
                return reader
    return None


def _is_there(value: Value, made: Collection[Value], ready: Collection[Value]) -> bool:
    return value in made or value in ready or value.constant is not None


def _exits(
    group: Sequence[Operation],
    readers: Mapping[Value, Sequence[Operation]],
    wanted: Collection[Value],
) -> list[Value]:
    """Returns the values of a group that somebody outside reads."""
    members = set(group)
    return [
        operation.y
        for operation in group
        if operation.y in wanted or any(reader not in members for reader in readers.get(operation.y, ()))
    ]
