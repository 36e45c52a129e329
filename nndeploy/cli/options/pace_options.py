# SPDX-License-Identifier: Apache-2.0
"""The options that say how much pacing is granted, and what they mean."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from nndeploy.cli.options.option_fields import Command, given, options_of
from nndeploy.cli.options.value_types import JSON_FILE
from nndeploy.errors import DataError, UsageError
from nndeploy.options.described import options_from
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.plan.plan_file import MAX_PLAN_BYTES, PacePlanFile, plan_file_from_json

_GRANTS = {
    "max_latency": "--max-latency", "cpu_limit": "--cpu-limit", "pace_total": "--pace-total",
    "pace_pair": "--pace-pair", "pace_plan": "--pace-plan",
}  # fmt: skip
GRANTS = ", ".join(flag for name, flag in _GRANTS.items() if name != "pace_plan")
"""What a plan can be made of."""
MORE = "grant more with --max-latency or --cpu-limit, or leave the cores more time"
"""What helps where runs exceed what was granted."""
_PACE = click.option("--pace", is_flag=True, help="Sleep between operators, for a lower and steadier load.")
_PLAN = click.option(
    "--pace-plan", type=JSON_FILE, metavar="FILE.json",
    help="Use a plan written by `nndeploy pace -o` instead of profiling. "
         "--max-latency and --cpu-limit override its goal.",
)  # fmt: skip


def pace_options(command: Command) -> Command:
    """Adds the options that ask for pacing, say how much is granted, and name a plan."""
    return _PACE(options_of(PaceGoal)(_PLAN(command)))


def pace_goal(options: Mapping[str, Any]) -> PaceGoal | PacePlanFile | None:
    """Returns what the user of `nndeploy run` grants, or the plan that was named; None where nothing is paced.

    Raises:
        UsageError: the options contradict each other or have no meaning.
        MissingInputError, DataError: the plan cannot be read.
    """
    if options["pace"] and not any(options[name] for name in _GRANTS):
        raise UsageError(f"--pace needs one of {', '.join(_GRANTS.values())}", hint="for example --max-latency 40ms")
    for name in (*_GRANTS, "policy", "pace_group"):
        if options[name] and not options["pace"]:
            raise UsageError(f"--{name.replace('_', '-')} requires --pace", hint="add --pace")
    if options["pace_plan"] is not None and options["pace_pair"]:
        raise UsageError("--pace-pair cannot be used with --pace-plan, which says where runs sleep")
    goal = goal_of(options)
    if options["pace_plan"] is None:
        return goal
    if options["policy"] is not None:
        raise UsageError("--policy cannot be used with --pace-plan, which says how sleep is distributed")
    plan = _plan_at(options["pace_plan"])
    if goal is None:
        return plan
    return replace(plan, goal=replace(goal, policy=plan.goal.policy, pairs=plan.goal.pairs))


def _plan_at(path: Path) -> PacePlanFile:
    from nndeploy.files.whole_files import read_regular

    try:
        return plan_file_from_json(read_regular(path, MAX_PLAN_BYTES))
    except DataError as err:
        raise err.about(str(path)) from err


def goal_of(options: Mapping[str, Any]) -> PaceGoal | None:
    """Returns what is granted, None where nothing is.

    Raises:
        UsageError: the options contradict each other or have no meaning.
    """
    granted = given(PaceGoal, options)
    return options_from(PaceGoal, granted) if granted.keys() - {"policy"} else None
