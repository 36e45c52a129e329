# SPDX-License-Identifier: Apache-2.0
"""What the user grants to pace by: a latency, or a share of the processor."""

import math
import re
from dataclasses import dataclass

from nndeploy.errors import UsageError
from nndeploy.options.described import described
from nndeploy.options.texts import nanoseconds_in, share_in
from nndeploy.pacing.plan.pairs import ChosenPair, pairs_in
from nndeploy.pacing.plan.policy import PacePolicy

_PACING = "Pacing"
PRESET_MARGIN = 1.1
"""How long the work of a run that has only delays which are set may take, in baselines: beyond, it is late."""
LEAST_SLACK = 1.02
"""A budget is refused that is nearer to the baseline."""
_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def group_name(text: str) -> str:
    """Returns the name of a group.

    Raises:
        UsageError: it is none.
    """
    if not _GROUP.fullmatch(text):
        raise UsageError(
            f"--pace-group: {text!r:.80} is no name",
            hint="at most 64 letters, digits, '_', '.' and '-', for example box",
        )
    return text


@dataclass(frozen=True, slots=True)
class PaceGoal:
    """What the user grants: a latency, a total of delays, or the share 0..1 of its time that a run's thread may work.

    Where `pairs` are chosen, delays lie between those alone; where all of these have one set, no more is needed.
    The `group` of that name has the share together, of one processor; "" for a run by itself.

    `is_of_item`: the latency is that of an item of several stages; until when each run may take, they say. With
    `only_times` nothing is slept: operators are timed, every one, nothing else.
    """

    max_latency_ns: int = described(
        0, "Latency budget of one run; pacing uses the time it leaves.",
        section=_PACING, flags=("--max-latency",), metavar="40ms", from_text=nanoseconds_in("--max-latency"),
    )  # fmt: skip
    cpu_limit: float = described(
        0.0, "Share of time that a run's thread may compute; pacing sleeps for the rest.",
        section=_PACING, metavar="50%", from_text=share_in("--cpu-limit"),
    )  # fmt: skip
    total_ns: int = described(
        0, "Total sleep time added to each run.",
        section=_PACING, flags=("--pace-total",), metavar="60ms", from_text=nanoseconds_in("--pace-total"),
    )  # fmt: skip
    pairs: tuple[ChosenPair, ...] = described(
        (),
        "Sleep only between operator A and operator B, which reads its output; with a time, for exactly that long "
        "(repeatable).",
        section=_PACING, flags=("--pace-pair",), metavar="'A->B[=2ms]'", from_texts=pairs_in,
    )  # fmt: skip
    policy: PacePolicy = described(
        PacePolicy.PROPORTIONAL,
        "How sleep time is distributed: equally, in proportion to operator time (default), or `solved`, which also "
        "uses the slack of parallel branches.",
        section=_PACING, choices=tuple(policy.value for policy in PacePolicy), from_text=PacePolicy,
    )  # fmt: skip
    group: str = described(
        "", "Share one --cpu-limit, as a share of one CPU core, among all runs of this user that name the same group.",
        section=_PACING, flags=("--pace-group",), metavar="NAME", from_text=group_name,
    )  # fmt: skip
    is_of_item: bool = False
    only_times: bool = False

    def __post_init__(self) -> None:
        granted = [bool(self.max_latency_ns), bool(self.cpu_limit), bool(self.total_ns)]
        if sum(granted) > 1:
            raise UsageError("latency budget, CPU limit and total sleep time exclude each other")
        if self.group and (not self.cpu_limit or self.pairs or self.policy is not PacePolicy.PROPORTIONAL):
            raise UsageError(
                "a group can only share a CPU limit",
                hint="--pace-group NAME --cpu-limit 60%, without the others",
            )
        if self.has_presets_only:
            return
        if self.max_latency_ns <= 0 and self.total_ns <= 0 and not 0 < self.cpu_limit < 1 and not self.only_times:
            raise UsageError(
                "a latency or a total of delays above 0 or a CPU limit between 0% and 100% is needed to pace by"
            )

    @property
    def has_presets_only(self) -> bool:
        """Whether runs sleep as long as pairs say and nothing else was granted."""
        is_granted = self.max_latency_ns or self.cpu_limit or self.total_ns
        return bool(self.pairs) and all(one.preset_ns for one in self.pairs) and not is_granted

    def budget_ns(self, baseline_ns: float, presets_ns: float = 0.0) -> int:
        """Returns how long a run may take that takes `baseline_ns` without delays; delays that are set take so long."""
        if self.has_presets_only:
            return round(baseline_ns * PRESET_MARGIN + presets_ns)
        if self.total_ns:
            return round(baseline_ns) + self.total_ns
        return self.max_latency_ns or round(baseline_ns / self.cpu_limit)

    def check(self, baseline_ns: float, presets_ns: float = 0.0, sure: float = 1.0) -> None:
        """Checks that a run which takes `baseline_ns` without delays, and sleeps `presets_ns`, can be done in time.

        `sure` is the share of the baseline that runs take in any case.

        Raises:
            UsageError: it cannot.
        """
        if self.is_of_item or self.has_presets_only:
            return
        budget_ns = self.budget_ns(baseline_ns)
        if presets_ns and sure * baseline_ns + presets_ns > budget_ns:
            left_ms = max(0.0, budget_ns - baseline_ns) / 1e6
            raise UsageError(
                f"the preset delays take {presets_ns / 1e6:.4g} ms, more than the {left_ms:.4g} ms "
                f"left beside {baseline_ns / 1e6:.4g} ms of work",
                hint="shorten them or raise the budget",
            )
        if not self.total_ns:  # which any length of is time to sleep in
            check_slack("a run", baseline_ns, budget_ns, sure)


def check_slack(what: str, baseline_ns: float, budget_ns: float, sure: float = 1.0) -> None:
    """Checks that `what`, which takes `baseline_ns` without delays, leaves time to sleep in within `budget_ns`.

    `sure` is the share of the baseline that it takes in any case.

    Raises:
        UsageError: it cannot.
    """
    least = baseline_ns * LEAST_SLACK
    if budget_ns < sure * least:
        raise UsageError(
            f"{what} takes {baseline_ns / 1e6:.3g} ms without delays: {budget_ns / 1e6:g} ms leave no time to sleep",
            hint=f"--max-latency {math.ceil(least / 1e5) / 10:g}ms is the minimum",
        )


def check_policy_of_row(goal: PaceGoal | None) -> None:
    """Checks that the policy means something where operators run one after another.

    Raises:
        UsageError: it is `solved`, which shares the time that branches have left; there are none.
    """
    if goal is not None and goal.policy is PacePolicy.SOLVED:
        raise UsageError(
            "--policy solved needs branches, but the operators of this bundle run one after another",
            hint="use --policy proportional, which is equivalent here",
        )


ONLY_TIMES = PaceGoal(only_times=True)
