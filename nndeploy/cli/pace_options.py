# SPDX-License-Identifier: Apache-2.0
"""The options that say how much pacing is granted, and what they mean."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from nndeploy.errors import UsageError
from nndeploy.pacing.pacer import PaceGoal
from nndeploy.pacing.policy import PacePolicy

_Command = TypeVar("_Command", bound=Callable[..., Any])

_NS = {"us": 1e3, "ms": 1e6, "s": 1e9}
_PACE = click.option("--pace", is_flag=True, help="Sleep between operators: a lower and flatter load.")
_GOAL = (
    click.option("--max-latency", metavar="40ms", help="To pace by: how long a run of the bundle may take."),
    click.option("--cpu-limit", metavar="50%", help="To pace by: how much of its time a run's thread may work."),
    click.option(
        "--policy", type=click.Choice([policy.value for policy in PacePolicy]),
        help="How to share what is slept: the same behind each operator, proportional to how long it takes "
        "(the default), or that and in branches all that they have left.",
    ),
)  # fmt: skip


def goal_options(command: _Command) -> _Command:
    """Adds the options that say how much is granted."""
    for option in reversed(_GOAL):
        command = option(command)
    return command


def pace_options(command: _Command) -> _Command:
    """Adds those, and the one that asks for pacing."""
    return _PACE(goal_options(command))


def pace_goal(options: Mapping[str, Any]) -> PaceGoal | None:
    """Returns what the user of `nndeploy run` grants, None where nothing is paced.

    Raises:
        UsageError: the options contradict each other or have no meaning.
    """
    latency, limit = options["max_latency"], options["cpu_limit"]
    if options["pace"] and latency is None and limit is None:
        raise UsageError("--pace needs one of --max-latency and --cpu-limit", hint="for example --max-latency 40ms")
    for option in ("max_latency", "cpu_limit", "policy"):
        if options[option] is not None and not options["pace"]:
            raise UsageError(f"--{option.replace('_', '-')} is for --pace", hint="add --pace")
    return goal_of(options)


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
