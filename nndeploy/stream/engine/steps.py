# SPDX-License-Identifier: Apache-2.0
"""Steps done on a record, one after the other, until one of them fails."""

from collections.abc import Iterable

from nndeploy.errors import NndeployError
from nndeploy.stream.description import StageStep
from nndeploy.stream.records import Record


def do_steps(record: Record, steps: Iterable[StageStep], stage: str) -> None:
    """Does the steps on a record, until one of them fails.

    Raises:
        NndeployError: what would hit every record alike.
    """
    if record.error is not None:
        return
    for step in steps:
        try:
            record.add(step(record.fields))
        except NndeployError as err:
            record.fail(err, stage)
            return
