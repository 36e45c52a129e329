# SPDX-License-Identifier: Apache-2.0
"""The places of a machine that a chain may span, with the memory that it may take of each: `cuda:0=4GiB,cuda:1,cpu`.

A place is a GPU (`cuda:0`), the CPU (`cpu`), or a pool of its cores (`cpu:0`). They stand in the order in which a chain
goes through them. Comes in: the text of `--place`, or the tables `[[places]]` of a target file. Goes out: limits of
places. Law: `places_in` of `places_text` gives equal ones.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nndeploy.errors import DataError, UsageError, did_you_mean
from nndeploy.options.texts import UNITS, bytes_in

CPU = "cpu"
OPTION = "--place"
EXAMPLE = "for example cuda:0=4GiB,cuda:1=4GiB,cpu, or cpu:0,cpu:1 for two pools of cores"
MAX_PLACES = 16
MAX_POOLS = 64
MAX_BYTES = 1 << 62
_NAME = re.compile(r"cpu|(cpu|cuda):(0|[1-9][0-9]?)")


@dataclass(frozen=True, slots=True)
class PlaceLimit:
    """A place by its name, and how many bytes a chain may take of it; None: as many as it has."""

    name: str
    limit_bytes: int | None = None

    @property
    def is_gpu(self) -> bool:
        """Whether it is a GPU."""
        return is_gpu(self.name)


def is_place(name: str) -> bool:
    """Returns whether a place may be called so."""
    found = _NAME.fullmatch(name)
    return found is not None and (found[2] is None or int(found[2]) < MAX_POOLS)


def is_gpu(name: str) -> bool:
    """Returns whether a place is a GPU."""
    return name.startswith("cuda:")


def number_of(name: str) -> int:
    """Returns the number of a GPU or of a pool of cores."""
    return int(name.partition(":")[2])


def num_pools(names: Iterable[str]) -> int:
    """Returns into how many pools the places called `names` part the cores; 0 where none of them is a pool."""
    return max((number_of(name) + 1 for name in names if name.startswith(f"{CPU}:")), default=0)


def num_calls(places: Sequence[str]) -> int:
    """Returns how many calls keep `places` busy over which calls follow each other: one for each.

    One more waits for the first place where some are GPUs, on which a call needs no core. Over pools of cores alone it
    would take a core from those that compute.
    """
    return len(places) + any(map(is_gpu, places))


def places_in(text: str) -> tuple[PlaceLimit, ...]:
    """Returns the places that a text such as `cuda:0=4GiB,cpu` names.

    Raises:
        UsageError: it names none, an unknown one or one twice, or a limit is no size.
    """
    found = []
    for part in text.split(","):
        name, equals, limit = (piece.strip() for piece in part.partition("="))
        found.append(PlaceLimit(name, bytes_in(f"{OPTION} {name}")(limit) if equals else None))
    if reason := why_no_places(found):
        raise UsageError(f"{OPTION} {text!r:.80}: {reason}", hint=_hint(found))
    return tuple(found)


def places_text(places: Sequence[PlaceLimit]) -> str:
    """Returns the text that `places_in` reads."""
    return ",".join(one.name + (f"={one.limit_bytes}" if one.limit_bytes is not None else "") for one in places)


def places_from_tables(tables: Sequence[Any], where: str) -> tuple[PlaceLimit, ...]:
    """Returns the places that the tables `[[places]]` of a target file say: `name`, and `memory` as text (`"4GiB"`).

    Raises:
        DataError: they say none.
    """
    found = []
    for number, table in enumerate(tables):
        at = f"{where}: places[{number}]"
        if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
            raise DataError("a place is a table with a name", where=at, hint='for example name = "cuda:0"')
        if unknown := [key for key in table if key not in ("name", "memory")]:
            raise DataError(f"unknown key {unknown[0]!r}", where=at, hint=did_you_mean(unknown[0], ("name", "memory")))
        limit = table.get("memory")
        try:
            found.append(PlaceLimit(table["name"], None if limit is None else bytes_in("memory")(str(limit))))
        except UsageError as err:
            raise DataError(err.what, where=at, hint=err.hint) from err
    if reason := why_no_places(found):
        raise DataError(reason, where=f"{where}: places", hint=_hint(found))
    return tuple(found)


def why_no_places(places: Sequence[PlaceLimit]) -> str:
    """Returns why a chain cannot span these places, or ""."""
    names = [one.name for one in places]
    if not 0 < len(places) <= MAX_PLACES:
        return f"a chain spans 1 to {MAX_PLACES} places, not {len(places)}"
    if unknown := [name for name in names if not is_place(name)]:
        return f"there is no device {unknown[0]!r:.40}"
    if twice := [name for name in names if names.count(name) > 1]:
        return f"the place {twice[0]} stands twice"
    if CPU in names and num_pools(names):
        return "cpu is all cores, of which a pool has some: either cpu, or cpu:0, cpu:1, ..."
    if any(one.limit_bytes is not None and not 0 < one.limit_bytes <= MAX_BYTES for one in places):
        return "a limit is 1 byte or more"
    return ""


def binary_size(num_bytes: float) -> str:
    """Returns a size as limits are given, "1.5 MiB"; "no limit" for infinity."""
    if num_bytes == float("inf"):
        return "no limit"
    unit = "MiB" if num_bytes >= UNITS["MiB"] else "KiB" if num_bytes >= UNITS["KiB"] else "B"
    return f"{num_bytes / UNITS[unit]:,.{int(unit != 'B')}f} {unit}"


def _hint(places: Sequence[PlaceLimit]) -> str:
    """Returns the name that was meant, where an unknown one is that of a GPU as others write it; else an example."""
    for one in places:
        kind, _, number = one.name.partition(":")
        if kind in ("gpu", "cuda") and is_place(f"cuda:{number or 0}") and not is_place(one.name):
            return f"did you mean 'cuda:{number or 0}'?"
    return EXAMPLE
