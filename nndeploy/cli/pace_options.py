# SPDX-License-Identifier: Apache-2.0
"""The options that say how much pacing is granted, and what they mean."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from nndeploy.bundle.pace_plan_file import MAX_PLAN_BYTES, PacePlanFile, plan_file_from_json
from nndeploy.errors import DataError, UsageError
from nndeploy.pacing.goal import PaceGoal
from nndeploy.pacing.policy import PacePolicy

_Command = TypeVar("_Command", bound=Callable[..., Any])

_NS = {"us": 1e3, "ms": 1e6, "s": 1e9}
_GRANTS = {"max_latency": "--max-latency", "cpu_limit": "--cpu-limit", "pace_plan": "--pace-plan"}
_PACE = click.option("--pace", is_flag=True, help="Sleep between operators: a lower and flatter load.")
_GOAL = (
    click.option("--max-latency", metavar="40ms", help="How long a run of the bundle may take, which it is paced by."),
    click.option("--cpu-limit", metavar="50%", help="What share of its time a run's thread may work, to be paced by."),
    click.option(
        "--policy", type=click.Choice([policy.value for policy in PacePolicy]),
        help="How to share what is slept: the same behind each operator, proportional to how long it takes "
        "(the default), or solved: of a pipeline, that and in branches all that they have left.",
    ),
)  # fmt: skip
_PLAN = click.option(
    "--pace-plan", type=click.Path(path_type=Path), metavar="FILE.json",
    help="To pace by: a plan of `nndeploy pace -o`; nothing is timed first. A latency or limit goes before its goal.",
)  # fmt: skip


def goal_options(command: _Command) -> _Command:
    """Adds the options that say how much is granted."""
    for option in reversed(_GOAL):
        command = option(command)
    return command


def pace_options(command: _Command) -> _Command:
    """Adds those, the one that asks for pacing, and the one that names a plan."""
    return _PACE(goal_options(_PLAN(command)))


def pace_goal(options: Mapping[str, Any]) -> PaceGoal | PacePlanFile | None:
    """Returns what the user of `nndeploy run` grants, or the plan that was named; None where nothing is paced.

    Raises:
        UsageError: the options contradict each other or have no meaning.
        MissingInputError, DataError: the plan cannot be read.
    """
    if options["pace"] and all(options[name] is None for name in _GRANTS):
        raise UsageError(f"--pace needs one of {', '.join(_GRANTS.values())}", hint="for example --max-latency 40ms")
    for name in (*_GRANTS, "policy"):
        if options[name] is not None and not options["pace"]:
            raise UsageError(f"--{name.replace('_', '-')} is for --pace", hint="add --pace")
    goal = goal_of(options)
    if options["pace_plan"] is None:
        return goal
    if options["policy"] is not None:
        raise UsageError("--policy has no meaning with --pace-plan: the plan says how delays are shared")
    plan = _plan_at(options["pace_plan"])
    return plan if goal is None else replace(plan, goal=replace(goal, policy=plan.goal.policy))


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
    latency, limit = options["max_latency"], options["cpu_limit"]
    if latency is None and limit is None:
        return None
    if latency is not None and limit is not None:
        raise UsageError("--max-latency and --cpu-limit exclude each other: either follows from the other")
    policy = PacePolicy(options["policy"] or PacePolicy.PROPORTIONAL)
    if latency is not None:
        return PaceGoal(max_latency_ns=nanoseconds(latency), policy=policy)
    found = re.fullmatch(r"\s*([0-9]{1,3}(?:\.[0-9]{1,3})?)\s*%\s*", limit)
    if not found or not 0 < float(found[1]) < 100:
        raise UsageError(f"--cpu-limit: {limit!r:.80} is not a share between 0% and 100%", hint="for example 50%")
    return PaceGoal(cpu_limit=float(found[1]) / 100, policy=policy)


def nanoseconds(text: str) -> int:
    """Returns the time that a text means.

    Raises:
        UsageError: it is no time.
    """
    found = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(us|ms|s)\s*", text)
    if not found or float(found[1]) == 0:
        raise UsageError(f"--max-latency: {text!r:.80} is not a time", hint="for example 40ms, 500us or 0.2s")
    return round(float(found[1]) * _NS[found[2]])
