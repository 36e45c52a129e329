# SPDX-License-Identifier: Apache-2.0
"""What the schedule learns of a station as the stream runs: how long its tasks take, and what of a core they need."""

SHORT_NS = 50_000
"""A task that usually takes less is over before a thread that is woken has begun."""

WEIGHT = 0.25
"""Weight of a new measurement in what is usual."""

FADING = 0.9
"""What is left of sums each time that they are looked at."""


class Habits:
    """What the tasks of a station usually take: their `share` of a core, 0 to 1, and their time.

    The share of one that `may_wait` for ever, a source, is 0: it keeps nobody from working meanwhile. For how much of a
    task it was given nothing, `waited_ns`, says who does the task, before it is over.
    """

    def __init__(self, num_workers: int, *, may_wait: bool = False) -> None:
        self.share = 0.0 if may_wait else 1.0
        self.wall_ns = float("inf")
        self.sum_busy_ns = self.sum_wall_ns = 0.0  # of all tasks, the older ones faded
        self.waited_ns = 0
        self._num_workers = num_workers
        self._may_wait = may_wait

    @property
    def is_short(self) -> bool:
        """Whether nobody else need be woken meanwhile."""
        return self.wall_ns < SHORT_NS

    def learn(self, busy_ns: int, wall_ns: int) -> None:
        """Takes note of one task; the first one is all we know."""
        self.sum_busy_ns += busy_ns
        self.sum_wall_ns += max(0, wall_ns - self.waited_ns)
        self.waited_ns = 0
        share = 0.0 if self._may_wait else min(1.0, busy_ns / max(1, wall_ns))
        if self.wall_ns == float("inf"):
            self.share, self.wall_ns = share, wall_ns
            return
        self.share += WEIGHT * (share - self.share)
        self.wall_ns += WEIGHT * (wall_ns - self.wall_ns)

    def stage_ns(self) -> float:
        """Returns the time of its tasks, without that in which it was given nothing, spread over its workers."""
        return self.sum_wall_ns / self._num_workers

    def fade(self) -> None:
        """Makes what was so far count less."""
        self.sum_busy_ns *= FADING
        self.sum_wall_ns *= FADING
