# SPDX-License-Identifier: Apache-2.0
"""What flows through a stream: an item goes in, an outcome comes out, one for one and in the same order."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nndeploy.errors import NndeployError, NotTakenError
from nndeploy.values.types import Value


@dataclass(frozen=True, slots=True)
class Item:
    """One input of a stream, not read yet.

    `origin` says where it comes from, for people ("faces/a.png", "stdin, line 3"); `stem` names its result.
    `load` reads it and raises a `NndeployError` where it cannot be read. `known` are fields of it that need no reading;
    `source` names where it comes from, if there are several.
    """

    index: int
    origin: str
    stem: str
    load: Callable[[], dict[str, Value]]
    known: Mapping[str, Value] = field(default_factory=dict)
    source: str = ""


def failing(error: NndeployError) -> Callable[[], dict[str, Value]]:
    """Returns the `load` of an item that cannot be read."""

    def load() -> dict[str, Value]:
        raise error

    return load


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an item: outputs, or the error that took their place.

    `non_finite` names the inputs that held NaN or an infinity. `run_ns` is the time that the programs took,
    `item_ns` that from when the item was let in to when its last stage was done. `stage` says where in a pipeline of
    several stages the error came up, `source` which of several sources the item is of: "" where it joins several.
    """

    index: int
    origin: str
    stem: str
    outputs: Mapping[str, Value] | None
    error: NndeployError | None = None
    non_finite: tuple[str, ...] = ()
    run_ns: int = 0
    stage: str = ""
    item_ns: int = 0
    source: str = ""

    @property
    def is_taken(self) -> bool:
        """Whether a pipeline of each level took the item, or would have: its error is not that none did."""
        return not isinstance(self.error, NotTakenError)

    @property
    def is_failed(self) -> bool:
        """Whether something went wrong."""
        return self.error is not None and self.is_taken
