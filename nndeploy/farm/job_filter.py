# SPDX-License-Identifier: Apache-2.0
"""Which jobs of a batch a call is about: `--filter 'model=yolo* target=rtx*'`, `--shard 3/8`."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from nndeploy.errors import UsageError, did_you_mean
from nndeploy.farm.fleet import Match

One = TypeVar("One")

MAX_SHARDS = 10_000


@dataclass(frozen=True, slots=True)
class Shard:
    """The `number`-th, from 1, of `count` parts of a batch, for machines that do not know of each other."""

    number: int
    count: int

    def part_of(self, jobs: Sequence[One]) -> list[One]:
        """Returns this part: every `count`-th job, so that a model's targets and variants are spread over all parts."""
        return list(jobs[self.number - 1 :: self.count])


def filter_from_text(text: str, keys: Sequence[str]) -> Match:
    """Returns the filter that a text says: KEY=GLOB, several separated by spaces, quoted as in a shell.

    Raises:
        UsageError: it says none, or names a key that no job has.
    """
    globs: dict[str, tuple[str, ...]] = {}
    try:
        words = shlex.split(text)
    except ValueError as err:
        raise UsageError(f"--filter: a quotation in {text!r:.80} does not end") from err
    for word in words:
        key, equals, glob = word.partition("=")
        if not equals or not glob:
            raise UsageError(f"--filter: {word!r:.80} is not KEY=GLOB", hint="for example 'model=yolo* target=rtx*'")
        if key not in keys:
            raise UsageError(f"--filter: jobs have no {key!r:.60}", hint=did_you_mean(key, keys))
        globs[key] = (*globs.get(key, ()), glob)
    if not globs:
        raise UsageError("--filter names nothing", hint="for example 'model=yolo* target=rtx*'")
    return Match("--filter", globs)


def shard_from_text(text: str) -> Shard:
    """Returns the shard that K/N says.

    Raises:
        UsageError: it says none.
    """
    found = re.fullmatch(r"([0-9]{1,5})/([0-9]{1,5})", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]) <= MAX_SHARDS:
        raise UsageError(f"--shard: {text!r:.60} is not K/N, with K from 1 to N", hint="for example 3/8")
    return Shard(int(found[1]), int(found[2]))
