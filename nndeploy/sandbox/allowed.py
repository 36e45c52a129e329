# SPDX-License-Identifier: Apache-2.0
"""What a process in a sandbox may touch beyond the programs and libraries that every one may read."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Files and folders, with all that is below them, that may be read, or read and written.

    `hidden` are folders that no program or package makes readable, wherever they lie: those of signing keys.
    `starts_sessions` lets the process start others in sessions of their own, of which nobody knows how to end them but
    the process itself.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    starts_sessions: bool = False
    hidden: tuple[str, ...] = ()

    def to_text(self) -> str:
        """Returns the value as an argument of a command."""
        return json.dumps(asdict(self))

    def covers(self, reads: Iterable[str]) -> bool:
        """Returns whether all of `reads` may be read already."""
        return set(reads) <= {*self.reads, *self.writes}


def sandbox_from_text(text: str) -> Sandbox:
    """Returns the value that `to_text` wrote."""
    data = json.loads(text)
    return Sandbox(tuple(data["reads"]), tuple(data["writes"]), data["starts_sessions"], tuple(data["hidden"]))
