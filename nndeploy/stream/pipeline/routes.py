# SPDX-License-Identifier: Apache-2.0
"""What a pipeline's TOML says of which records a pipeline takes, and how a level shares them out.

[[level]] queue = "copy" | "basic" | "switch"    not-taken = "end" | "pass"    back-to = "PIPELINE"    until = "FIELD"
[[level.pipeline]] source = "NAME"    when = "CONDITION"    share = N    priority = N
"""

from collections.abc import Mapping, Sequence
from typing import get_args

from nndeploy.errors import DataError, did_you_mean
from nndeploy.files.toml_table import TomlTable
from nndeploy.stream.conditions.parsing import condition_from_text
from nndeploy.stream.description import LevelPlan, NotTaken, PipelinePlan, QueueKind, RoutePlan

MAX_SHARE = 1000
MAX_PRIORITY = 1000


def level_from_toml(table: TomlTable, numbers: Mapping[str, int]) -> LevelPlan:
    """Returns how a level shares its records out; `numbers` are those of the levels so far, by names of pipelines.

    Raises:
        DataError: a value is none that is known.
    """
    queue: QueueKind = table.word("queue", "copy", get_args(QueueKind))
    not_taken: NotTaken = table.word("not-taken", "end", get_args(NotTaken))
    name, until = table.text("back-to"), table.text("until")
    if bool(name) != bool(until):
        raise DataError('back-to and until go together: back-to = "listen", until = "done"', where=table.where)
    if name and name not in numbers:
        told = f"back-to names no pipeline of this level or one before it: {name!r:.60}"
        raise DataError(told, where=table.where, hint=did_you_mean(name, numbers))
    return LevelPlan(queue, not_taken, numbers.get(name, 0), until)


def route_from_toml(table: TomlTable) -> RoutePlan:
    """Returns which records a pipeline takes.

    Raises:
        DataError: the condition is none; the message names the column.
    """
    source, text = table.text("source"), table.text("when")
    when = None
    if "when" in table:
        try:
            when = condition_from_text(text)
        except DataError as err:
            err.within(f"{table.where}: when")
            raise
    return RoutePlan(
        source, when, table.whole("share", 0, 1, MAX_SHARE), table.whole("priority", 0, -MAX_PRIORITY, MAX_PRIORITY)
    )


def check_routes(where: str, level: Sequence[PipelinePlan], how: LevelPlan) -> None:
    """Checks that each pipeline of a level can be reached, and that what they say goes together.

    Raises:
        DataError: it does not.
    """
    shared = [plan for plan in level if plan.route.share]
    for plan in level:
        for key, value in (("share", plan.route.share), ("priority", plan.route.priority)):
            if value and how.queue != "basic":
                raise DataError(
                    f"{key} is for pipelines that share their records",
                    where=f"{where}, pipeline {plan.name!r}", hint='queue = "basic" in the level',
                )  # fmt: skip
        if shared and (not plan.route.share or plan.route.priority):
            what = "needs a share, as others have one" if not plan.route.share else "has a share and a priority"
            raise DataError(what, where=f"{where}, pipeline {plan.name!r}", hint="all have shares, or none")
    if how.queue == "switch":
        _check_reached(where, level)


def _check_reached(where: str, level: Sequence[PipelinePlan]) -> None:
    for number, plan in enumerate(level):
        for before in level[:number]:
            if before.route.when is None and before.route.source in ("", plan.route.source):
                raise DataError(
                    f"{before.name!r} takes every record before it",
                    where=f"{where}, pipeline {plan.name!r}", hint="put the one without when last",
                )  # fmt: skip
