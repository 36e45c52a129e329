# SPDX-License-Identifier: Apache-2.0
"""Jobs as a job definition file of HyperQueue: a task for each, with what it may take, the longest first.

Source: HyperQueue 0.23, "Job Definition File", "Resource management"; the resource `mem` is in megabytes.
"""

import json
from collections.abc import Iterator, Sequence

from nndeploy.errors import UsageError
from nndeploy.farm.emit.job_command import JobCommand

SPARE_SECONDS = 60
"""Beside the limit of the compile: to begin, look in the cache and write the journal."""


def hyperqueue(commands: Sequence[JobCommand]) -> str:
    """Returns the file.

    Raises:
        UsageError: there is no job, which HyperQueue does not take.
    """
    if not commands:
        raise UsageError("no job is to be built, and HyperQueue takes no file without tasks")
    tasks = (line for number, one in enumerate(commands) for line in _task(one, len(commands) - number))
    return "\n".join(['name = "nndeploy-batch"', *tasks]) + "\n"


def _task(one: JobCommand, priority: int) -> Iterator[str]:
    resources = {"cpus": 1}
    if one.memory_limit is not None:
        resources["mem"] = -(-one.memory_limit // 1_000_000)
    if one.needs_gpu:
        resources["gpus/nvidia"] = 1
    yield "\n[[task]]"
    yield f"command = [{', '.join(map(_text, one.words))}]"
    yield f"priority = {priority}"
    yield "[[task.request]]"
    yield f"resources = {{ {', '.join(f'{_text(name)} = {amount}' for name, amount in resources.items())} }}"
    yield f'time_request = "{round(one.time_limit) + SPARE_SECONDS}s"'


def _text(text: str) -> str:
    """Returns a printable text as a string of TOML, whose escapes of these are those of JSON."""
    return json.dumps(text, ensure_ascii=False)
