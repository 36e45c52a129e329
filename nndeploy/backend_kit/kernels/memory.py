# SPDX-License-Identifier: Apache-2.0
"""Where each value lies while a submodel runs: values that never live at the same time share memory.

Large values are placed first, each at the lowest place where nothing lies that lives at the same time. Law: two
values that overlap in memory do not overlap in time. Source: "greedy by size", Pisarchyk and Lee, 2020, section 5.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Bytes that a value needs, and the first and last moment at which it is needed, both included."""

    num_bytes: int
    first: int
    last: int

    def meets(self, other: "Lifetime") -> bool:
        """Whether there is a moment at which both are needed."""
        return self.first <= other.last and other.first <= self.last


def placed(lifetimes: Mapping[str, Lifetime], alignment: int) -> tuple[dict[str, int], int]:
    """Returns the offset of each value, a multiple of `alignment`, and the bytes of the whole."""
    needed = {name: aligned(lifetime.num_bytes, alignment) for name, lifetime in lifetimes.items()}
    offsets: dict[str, int] = {}
    for name, lifetime in sorted(lifetimes.items(), key=lambda item: (-item[1].num_bytes, item[1].first, item[0])):
        taken = sorted(
            (offsets[other], offsets[other] + needed[other]) for other in offsets if lifetimes[other].meets(lifetime)
        )
        offsets[name] = _lowest_gap(taken, needed[name])
    return offsets, max((offsets[name] + needed[name] for name in offsets), default=0)


def piled(lifetimes: Mapping[str, Lifetime], offsets: Mapping[str, int]) -> dict[str, list[str]]:
    """Returns, from the lowest value to the highest, those that each lies on: placed below it, needed when it is.

    Law: whatever the sizes, values each placed behind the ends of those that it lies on overlap only where `placed`
    lets them.
    """
    order = sorted(offsets, key=lambda name: (offsets[name], name))
    return {
        name: [other for other in order[:number] if lifetimes[other].meets(lifetimes[name])]
        for number, name in enumerate(order)
    }


def aligned(num_bytes: int, alignment: int) -> int:
    """Returns the bytes rounded up to `alignment`; a value without elements takes some too, and so has a place."""
    return max(1, -(-num_bytes // alignment)) * alignment


def _lowest_gap(taken: list[tuple[int, int]], num_bytes: int) -> int:
    at = 0
    for start, end in taken:
        if start - at >= num_bytes:
            return at
        at = max(at, end)
    return at
