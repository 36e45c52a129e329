# SPDX-License-Identifier: Apache-2.0
"""How long groups of nodes take that run beside each other, as far as they do not need each other.

Each device has lanes, one for each group that may run on it at once. A group runs on the lane of its device that is
free first, once the groups before it are done; of groups that could begin, the one that can begin first does.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import onnx_ir as ir


class Work(NamedTuple):
    """The device that a group runs on, and the seconds that it takes there."""

    device: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Lanes:
    """The devices of a chain, and what runs on them.

    `seconds(node, backend)` are those of a node, `call_seconds(backend)` those of a call. `devices` are those of
    backends where nodes have no places; `counts` says how many groups run on a device at once, by default one.
    """

    seconds: Callable[[ir.Node, str], float]
    call_seconds: Callable[[str], float]
    devices: Mapping[str, str]
    counts: Mapping[str, int] = field(default_factory=dict)

    def end_seconds(self, works: Mapping[int, Work], after: Mapping[int, Collection[int]]) -> float:
        """Returns when the last group ends; `after` are those that need each, and there is no cycle."""
        needs = dict.fromkeys(works, 0)
        for others in after.values():
            for other in others:
                needs[other] += 1
        since = dict.fromkeys(works, 0.0)
        free = {work.device: [0.0] * self.counts.get(work.device, 1) for work in works.values()}
        ready = {group for group, count in needs.items() if not count}
        while ready:
            begin, group = min((max(since[group], min(free[works[group].device])), group) for group in ready)
            ready.remove(group)
            lanes = free[works[group].device]
            end = lanes[lanes.index(min(lanes))] = begin + works[group].seconds
            for other in after[group]:
                since[other] = max(since[other], end)
                needs[other] -= 1
                ready |= set() if needs[other] else {other}
        return max(max(ends) for ends in free.values())
