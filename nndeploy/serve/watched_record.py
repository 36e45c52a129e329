# SPDX-License-Identifier: Apache-2.0
"""A record of which somebody is told what it has come to, round by round, while a loop writes its text."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from nndeploy.stream.records import Record
from nndeploy.values.types import Value

Watch: TypeAlias = Callable[[Mapping[str, Value]], bool]
"""Is called, by whichever thread did a round, with the fields so far; returns whether somebody still waits for them."""


@dataclass(slots=True, eq=False, kw_only=True)
class WatchedRecord(Record):
    """A record with who is told. Its fields are those of the pipeline's source, and not tensors that make them."""

    watch: Watch
