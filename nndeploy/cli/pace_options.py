# SPDX-License-Identifier: Apache-2.0
"""The options of `nndeploy run` that pace it, and what they mean."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from nndeploy.errors import UsageError
from nndeploy.pacing.pacer import PaceGoal

_Command = TypeVar("_Command", bound=Callable[..., Any])

_NS = {"us": 1e3, "ms": 1e6, "s": 1e9}
_OPTIONS = (
    click.option("--pace", is_flag=True, help="Sleep between operators: a lower and flatter load of the processor."),
    click.option("--max-latency", metavar="40ms", help="With --pace: how long a run of the bundle may take."),
    click.option("--cpu-limit", metavar="50%", help="With --pace: how much of its time a run's thread may work."),
)


def pace_options(command: _Command) -> _Command:
    """Adds the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def pace_goal(options: Mapping[str, Any]) -> PaceGoal | None:
    """Returns what the user grants, None where nothing is paced.

    Raises:
        UsageError: the options contradict each other or have no meaning.
    """
    latency, limit = options["max_latency"], options["cpu_limit"]
    if not options["pace"]:
        if latency is None and limit is None:
            return None
        raise UsageError(f"{'--cpu-limit' if latency is None else '--max-latency'} is for --pace", hint="add --pace")
    if (latency is None) == (limit is None):
        raise UsageError("--pace needs one of --max-latency and --cpu-limit", hint="for example --max-latency 40ms")
    if latency is not None:
        return PaceGoal(max_latency_ns=nanoseconds(latency))
    found = re.fullmatch(r"\s*([0-9]{1,3}(?:\.[0-9]{1,3})?)\s*%\s*", limit)
    if not found or not 0 < float(found[1]) < 100:
        raise UsageError(f"--cpu-limit: {limit!r:.80} is not a share between 0% and 100%", hint="for example 50%")
    return PaceGoal(cpu_limit=float(found[1]) / 100)


def nanoseconds(text: str) -> int:
    """Returns the time that a text means.

    Raises:
        UsageError: it is no time.
    """
    found = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(us|ms|s)\s*", text)
    if not found or float(found[1]) == 0:
        raise UsageError(f"--max-latency: {text!r:.80} is not a time", hint="for example 40ms, 500us or 0.2s")
    return round(float(found[1]) * _NS[found[2]])
