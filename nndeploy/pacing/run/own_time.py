# SPDX-License-Identifier: Apache-2.0
"""What a run or an item takes by itself, on a machine where others have the cores as well.

    own time = time on the clock - what this process's threads waited for cores

Threads that wait at once are counted apart, so that may be too much: the own time is no less than the processor time
of the thread that did the work, nor than that of the process spread over all cores.
"""

import time
from collections.abc import Iterable
from typing import NamedTuple

from nndeploy.target.run_delay import process_run_delay_ns
from nndeploy.target.target import num_cores

UNDISTURBED = 0.05
"""Share of the time on the clock: who waited no longer for cores was as good as alone."""
SURE = 0.5
"""Share of an own time that was measured while others had the cores which a run takes in any case: caches that others
fill and cores that two threads share make work longer."""


class Took(NamedTuple):
    """The nanoseconds that a run or an item took by itself, and on the clock without its sleeps."""

    own_ns: float
    clock_ns: float


def waited_share(took: Iterable[Took]) -> float:
    """Returns the share of the time that runs or items waited for cores; 0 where they were `UNDISTURBED`."""
    own_ns, clock_ns = map(sum, zip(*took, strict=True))
    share: float = 1.0 - own_ns / clock_ns if clock_ns else 0.0
    return share if share > UNDISTURBED else 0.0


def busy_text(share: float) -> str:
    """Returns in a line that plans were made of runs which waited for cores for that share of their time."""
    return (
        f"profiled on a busy machine: {share:.0%} of the time was spent waiting for a core, which is left out; later "
        "runs correct the plan"
    )


class Stopwatch:
    """Knows what the process worked, and waited for cores, since it was made."""

    def __init__(self) -> None:
        self._used_ns, self._waited_ns = time.process_time_ns(), process_run_delay_ns()

    def took(self, clock_ns: float, least_ns: float = 0.0) -> Took:
        """Returns how much of `clock_ns`, the time since it was made, is the process's own; at least `least_ns`."""
        waited_ns = process_run_delay_ns()
        if waited_ns is None or self._waited_ns is None:
            return Took(clock_ns, clock_ns)
        least_ns = max(least_ns, (time.process_time_ns() - self._used_ns) / num_cores())
        own_ns = max(clock_ns - max(0, waited_ns - self._waited_ns), least_ns)
        return Took(min(clock_ns, own_ns), clock_ns)
