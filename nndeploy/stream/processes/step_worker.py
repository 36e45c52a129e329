# SPDX-License-Identifier: Apache-2.0
"""The side of the child: makes the steps of a stage, then does them on the fields of one record after the other.

argument, argument      descriptors of the memory in which values come and go
a line of its input     what `SharedValues` tells of the values there: first the tables of the steps, then fields
a line of its output    {"bytes": n}, the same of the fields that the steps gave, or {"error": ...}
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nndeploy.errors import DataError, NndeployError, error_to_json, one_line
from nndeploy.processors.parameters import FilesBeside
from nndeploy.processors.registry import processor_from_table
from nndeploy.runtime.shared_values import SharedValues
from nndeploy.sandbox.child_process import die_with_parent
from nndeploy.stream.description import StageStep
from nndeploy.stream.processes.plain_values import arrays_of, fields_in
from nndeploy.values.types import Value

MODULE = __name__
OPEN = b'{"bytes": 0}\n'
"""The line that says that it is there."""
MAX_LINE_BYTES = 64


def main() -> None:
    """Does what comes, until the input ends."""
    die_with_parent()
    given, made = SharedValues(int(sys.argv[1])), SharedValues(int(sys.argv[2]))
    answers = os.dup(1)
    os.dup2(2, 1)  # what steps print is not an answer
    os.write(answers, OPEN)
    steps: Sequence[StageStep] | None = None
    while line := os.read(0, MAX_LINE_BYTES):  # one at a time: who asks waits for the answer
        try:
            fields = fields_in(given.read(int(line), is_trusted=True))
            if steps is None:
                steps = _steps_of(fields)
                os.write(answers, OPEN)
            else:
                os.write(answers, b'{"bytes": %d}\n' % made.write(arrays_of(_done(steps, fields))))
        except NndeployError as err:
            os.write(answers, _line(err))
        except Exception as err:  # a step fails in its own ways: the record is lost, not the process
            os.write(answers, _line(DataError(one_line(f"failed: {type(err).__name__}: {err}"))))


def _steps_of(said: Mapping[str, Any]) -> list[StageStep]:
    read, beside = said["contents"].__getitem__, said["beside"]
    if beside is not None:
        read = FilesBeside(read, **{**beside, "folder": Path(beside["folder"])})
    return [processor_from_table(table, where, read) for table, where in said["tables"]]


def _done(steps: Sequence[StageStep], fields: dict[str, Value]) -> dict[str, Value]:
    made: dict[str, Value] = {}
    for step in steps:
        made |= step({**fields, **made})
    return made


def _line(error: NndeployError) -> bytes:
    return json.dumps({"error": error_to_json(error)}).encode() + b"\n"
