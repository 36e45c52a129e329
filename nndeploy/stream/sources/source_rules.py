# SPDX-License-Identifier: Apache-2.0
"""How a source is read and how several become one stream, as frozen values; a pipeline's TOML gives them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

DropRule: TypeAlias = Literal["none", "oldest"]
"""What happens to items that nobody takes in time: the source waits, or the oldest of them goes."""
JoinKind: TypeAlias = Literal["index", "key", "time"]
MissingRule: TypeAlias = Literal["error", "drop", "wait"]

DEFAULT_BUFFER = 8
DEFAULT_JOIN_BUFFER = 64


@dataclass(frozen=True, slots=True)
class ReadRules:
    """How one source is read.

    At most `buffer` items that were read wait to be let in. With `drop` "oldest" the source never waits: the oldest of
    them goes, and so does one that waited for longer than `max_age_ns` (0: no limit). A connection that ends is
    opened again, up to `reconnect` times in a row without an item between them, after waits that double from
    `backoff_ns` to `backoff_most_ns`. At most `rate_hz` items a second are read (0: no limit).
    """

    buffer: int = DEFAULT_BUFFER
    drop: DropRule = "none"
    max_age_ns: int = 0
    reconnect: int = 0
    backoff_ns: int = 100_000_000
    backoff_most_ns: int = 10_000_000_000
    rate_hz: float = 0.0

    @property
    def needs_thread(self) -> bool:
        """Whether items may be dropped, or are waited for, so that the source needs a thread of its own."""
        return self.drop != "none" or self.rate_hz > 0


@dataclass(frozen=True, slots=True)
class JoinRules:
    """How items of several sources become one record.

    `by` index: the n-th of each; key: those whose fields, one of each source, are equal; time: those whose fields, in
    seconds, lie within `tolerance` seconds. Without `fields` the time is when an item was read. An item that finds no
    partner is an error record or is dropped, as `missing` says; with "wait" the other sources are held back for it.
    At most `buffer` items of each source wait for partners, each for at most `wait_ns` (0: no limit).
    """

    by: JoinKind
    fields: Mapping[str, str] = field(default_factory=dict)
    tolerance: float = 0.0
    missing: MissingRule = "error"
    buffer: int = DEFAULT_JOIN_BUFFER
    wait_ns: int = 0
