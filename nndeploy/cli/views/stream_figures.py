# SPDX-License-Identifier: Apache-2.0
"""What `run` and `top` both tell of a stream: what limits it, and what became of what its sources read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from nndeploy.stream.engine.engine import CORES
from nndeploy.stream.engine.workers import StageFigures
from nndeploy.values.amounts import counted

SOURCE_COUNTS = {
    "num_read": "read",
    "num_dropped": "dropped",
    "num_unmatched": "without partner",
    "num_reconnects": "reconnects",
    "num_skipped": "skipped",
}
"""The counts of a source, and what people read of each."""
FULL = 0.9
"""Share of the time: cores that a stream keeps so busy are had by nobody else, and its threads wait for each other."""
TOLD = 0.05
"""Share of the time: shorter waits for cores are not worth a word."""


class Share(NamedTuple):
    """The share 0..1 of the time in which the workers of a stage were busy, and the part of it that waited for a core.

    Of the cores: in which they were busy, and in which threads of the stream waited for one. Two threads that wait at
    once count twice. `core_wait` is None where the system does not count it.
    """

    busy: float
    core_wait: float | None = None


def share_of(stage: StageFigures, seconds: float, before: StageFigures | None = None) -> Share:
    """Returns the shares of what a stage, or the cores, did in the `seconds` since `before`."""
    waited_ns, busy_ns = stage.core_wait_ns, stage.busy_ns
    if before is not None:
        busy_ns -= before.busy_ns
        waited_ns = None if waited_ns is None else waited_ns - (before.core_wait_ns or 0)
    passed_ns = max(1.0, seconds * 1e9)
    per_worker_ns = passed_ns * stage.num_workers
    may_wait_ns = passed_ns if stage.name == CORES else per_worker_ns
    waited = None if waited_ns is None else min(1.0, waited_ns / may_wait_ns)
    return Share(min(1.0, busy_ns / per_worker_ns), waited)


def limit_text(shares: Mapping[str, Share]) -> str:
    """Returns what limits a stream, by the shares of its stages and of the cores.

    The busiest of them, or that threads wait for cores which others have: for longer than anything is busy.
    """
    name, found = max(shares.items(), key=lambda item: item[1].busy)
    waited, own = shares[CORES].core_wait or 0.0, found.core_wait or 0.0
    if waited > found.busy and shares[CORES].busy < FULL:
        return f"waits for a core limit ({waited:.0%} of the time); busiest is {name} ({found.busy:.0%} busy)"
    of_it = f", {own:.0%} of the time waiting for a core" if name != CORES and own >= TOLD else ""
    busiest = f"{name} limit{'s' * (name != CORES)} ({found.busy:.0%} busy{of_it})"
    return busiest + (f"; threads waited for a core {waited:.0%} of the time" if waited >= TOLD else "")


def tuning_text(figures: Mapping[str, float]) -> str:
    """Returns what tuning did so far, by its numbers."""
    what = f"{counted(int(figures['tuned_shapes']), 'set')} of shapes tuned, {int(figures['faster_shapes'])} faster"
    return f"{what}, in {figures['tuning_seconds']:.1f} s of trials"


@dataclass(frozen=True, slots=True)
class Ideal:
    """The time of an item that the slowest stage alone would need, and the share of the time that items took.

    Waits for cores that others have are no part of it.
    """

    stage: str
    ms: float
    share: float


def ideal_of(shares: Mapping[str, Share], seconds: float, num_items: int) -> Ideal | None:
    """Returns the ideal of a stream that took `seconds` for so many items, by the shares of its stages and the cores.

    What limits in the ideal is the stage whose workers work longest, each beside the others, or all cores. None where
    no item was done.
    """
    if not num_items or not seconds:
        return None
    own = {name: one.busy - (one.core_wait or 0.0) * (name != CORES) for name, one in shares.items()}
    stage, share = max(own.items(), key=lambda item: item[1])
    return Ideal(stage, 1e3 * share * seconds / num_items, share)
