# SPDX-License-Identifier: Apache-2.0
"""A record of which somebody is told what it has come to, round by round, while a loop writes its text."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from nndeploy.stream.records import Record
from nndeploy.values.types import Value

OnText: TypeAlias = Callable[[Value], bool]
"""Is called, by whichever thread did a round, with the text so far; returns whether somebody still waits for it."""


@dataclass(slots=True, eq=False, kw_only=True)
class WatchedRecord(Record):
    """A record with who is told."""

    on_text: OnText
