# SPDX-License-Identifier: Apache-2.0
"""What the user grants to pace by: a latency, or a share of the processor."""

import math
from dataclasses import dataclass

from nndeploy.errors import UsageError
from nndeploy.options.described import described
from nndeploy.options.texts import nanoseconds_in, share_in
from nndeploy.pacing.policy import PacePolicy

_PACING = "Pacing"
LEAST_SLACK = 1.02
"""A budget is refused that is nearer to the baseline."""


@dataclass(frozen=True, slots=True)
class PaceGoal:
    """What the user grants: `max_latency_ns` for a run, or else the share 0..1 of its time that its thread may work.

    `is_of_item`: the latency is that of an item of several stages; until when each run may take, they say. With
    `only_times` nothing is slept: operators are timed, every one, nothing else.
    """

    max_latency_ns: int = described(
        0, "How long a run of the bundle may take, which it is paced by.",
        section=_PACING, flags=("--max-latency",), metavar="40ms", from_text=nanoseconds_in("--max-latency"),
    )  # fmt: skip
    cpu_limit: float = described(
        0.0, "What share of its time a run's thread may work, to be paced by.",
        section=_PACING, metavar="50%", from_text=share_in("--cpu-limit"),
    )  # fmt: skip
    policy: PacePolicy = described(
        PacePolicy.PROPORTIONAL,
        "How to share what is slept: the same behind each operator, proportional to how long it takes (the default), "
        "or solved: of a pipeline, that and in branches all that they have left.",
        section=_PACING, choices=tuple(policy.value for policy in PacePolicy), from_text=PacePolicy,
    )  # fmt: skip
    is_of_item: bool = False
    only_times: bool = False

    def __post_init__(self) -> None:
        if self.max_latency_ns and self.cpu_limit:
            raise UsageError("a latency and a CPU limit exclude each other: either follows from the other")
        if self.max_latency_ns <= 0 and not 0 < self.cpu_limit < 1 and not self.only_times:
            raise UsageError("a latency above 0 or a CPU limit between 0% and 100% is needed to pace by")

    def budget_ns(self, baseline_ns: float) -> int:
        """Returns how long a run may take that takes `baseline_ns` without delays."""
        return self.max_latency_ns or round(baseline_ns / self.cpu_limit)

    def check(self, baseline_ns: float) -> None:
        """Checks that a run which takes `baseline_ns` without delays can be done in time.

        Raises:
            UsageError: it cannot.
        """
        if not self.is_of_item:
            check_slack("a run", baseline_ns, self.budget_ns(baseline_ns))


def check_slack(what: str, baseline_ns: float, budget_ns: float) -> None:
    """Checks that `what`, which takes `baseline_ns` without delays, leaves time to sleep in within `budget_ns`.

    Raises:
        UsageError: it cannot.
    """
    least = baseline_ns * LEAST_SLACK
    if budget_ns < least:
        raise UsageError(
            f"{what} takes {baseline_ns / 1e6:.3g} ms without delays: {budget_ns / 1e6:g} ms leave nothing to sleep in",
            hint=f"--max-latency {math.ceil(least / 1e5) / 10:g}ms is the least that works",
        )


ONLY_TIMES = PaceGoal(only_times=True)
