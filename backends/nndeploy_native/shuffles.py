# SPDX-License-Identifier: Apache-2.0
"""Vectors whose lanes come from lanes of other vectors, and their C code: masks are constants, there are no tables.

A lane is (input, block, lane) of channel blocks, None where it may hold anything. Law: `c_shuffle(lanes)` has lane i
of each pixel from `lanes[i]`.
"""

from collections.abc import Sequence
from typing import TypeAlias

Lane: TypeAlias = "tuple[int, int, int] | None"


def c_shuffle(lanes: Sequence[Lane]) -> str:
    """Returns the C expression of a vector; NND_LINE(input, block) is a vector of a block."""
    sources = list(dict.fromkeys(lane[:2] for lane in lanes if lane is not None))
    first, *others = sources or [(0, 0)]
    made, seen = f"NND_LINE({first[0]}, {first[1]})", {first}
    mask = [_from(lane, first, 0) for lane in lanes]
    if not others:
        return made if _is_in_place(mask) else _shuffled(made, made, mask)
    for source in others:
        mask = [_from(lane, source, len(lanes)) if mask[i] < 0 else mask[i] for i, lane in enumerate(lanes)]
        made, seen = _shuffled(made, f"NND_LINE({source[0]}, {source[1]})", mask), seen | {source}
        mask = [i if lane is not None and lane[:2] in seen else -1 for i, lane in enumerate(lanes)]
    return made


def _from(lane: Lane, source: tuple[int, int], offset: int) -> int:
    """Returns where a lane stands in its vector, plus `offset`; -1 where it is of another one."""
    return offset + lane[2] if lane is not None and lane[:2] == source else -1


def _is_in_place(mask: Sequence[int]) -> bool:
    return all(place in (-1, i) for i, place in enumerate(mask))


def _shuffled(a: str, b: str, mask: Sequence[int]) -> str:
    return f"__builtin_shufflevector({a}, {b}, {', '.join(map(str, mask))})"
