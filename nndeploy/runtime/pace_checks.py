# SPDX-License-Identifier: Apache-2.0
"""Whether pacing means anything for a bundle that runs alone."""

from pathlib import Path

from nndeploy.errors import UnavailableError, UsageError
from nndeploy.pacing.goal import PaceGoal
from nndeploy.pacing.policy import PacePolicy
from nndeploy.runtime.program import Program


def check_pace(program: Program, bundle: Path) -> None:
    """Checks that runs of a bundle that was loaded to be paced can sleep inside, and by its policy.

    Raises:
        UnavailableError: they cannot.
        UsageError: the policy has no meaning for the bundle.
    """
    if program.pacer is None:
        return
    if program.pacer.points.branches is None:
        check_policy_of_row(program.pacer.goal)
    if program.pacer.points.can_sleep:
        return
    backends = ", ".join(dict.fromkeys(choice.backend for choice in program.choices))
    raise UnavailableError(
        f"cannot be paced here: it runs as one piece ({backends}), without points to sleep at",
        where=str(bundle),
        hint="compile it with --pace and without --backends: own kernels and ONNX Runtime have points",
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
