# SPDX-License-Identifier: Apache-2.0
"""Jobs for any other engine: a JSON object a line, the longest first."""

import json
from collections.abc import Sequence

from nndeploy.farm.emit.job_command import JobCommand

SCHEMA = "nndeploy.batch-job.1"


def json_lines(commands: Sequence[JobCommand]) -> str:
    """Returns a line for each job, which ends with a line feed and holds no other."""
    return "".join(f"{json.dumps(_data(one))}\n" for one in commands)


def _data(one: JobCommand) -> dict[str, object]:
    return {
        "schema": SCHEMA, "job": one.job, "command": one.words, "key": one.key, "output": one.output,
        "estimate_seconds": one.estimate, "time_limit_seconds": one.time_limit,
        "memory_limit_bytes": one.memory_limit, "needs": dict(one.needs),
    }  # fmt: skip
