# SPDX-License-Identifier: Apache-2.0
"""Planned jobs -> their commands, which work on any machine that sees the fleet file's folder.

Each may be run again, and beside others: it looks in the cache, writes the bundle whole or not at all, and has a
journal of its own. Exit codes: 0 there is a bundle; 75 a machine is to blame and it may be run again; else that is of
no use.
"""

from collections.abc import Iterable
from pathlib import Path

from nndeploy.errors import UsageError
from nndeploy.farm.emit.job_command import JobCommand
from nndeploy.farm.fleet import Fleet
from nndeploy.farm.job import command_of, limits_of
from nndeploy.farm.options import BatchOptions
from nndeploy.farm.planned import Planned


def commands_of(jobs: Iterable[Planned], fleet: Fleet, options: BatchOptions) -> list[JobCommand]:
    """Returns the commands of jobs, in their order.

    Raises:
        UsageError: a path holds what cannot be printed, such as the end of a line, which not every form can write.
    """
    path = str(fleet.folder / Path(fleet.where).name)
    more = [f"--journal={options.journal}"] if options.journal else []
    more += [
        flag for flag, is_asked in (("--fresh", options.fresh), ("--retry-failed", options.retry_failed)) if is_asked
    ]
    for text in (path, *more):
        if not text.isprintable():
            raise UsageError(f"{text!r:.200} holds a character that cannot be printed", hint="rename it")
    return [_command(one, command_of(path, one.job.id, *more)) for one in jobs]


def _command(one: Planned, words: tuple[str, ...]) -> JobCommand:
    job, limits = one.job, limits_of(one.job)
    return JobCommand(
        job.id, words, one.key, job.output, job.estimate, limits.total_time_limit, limits.memory_limit, job.needs
    )
