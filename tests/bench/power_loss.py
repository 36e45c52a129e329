# SPDX-License-Identifier: Apache-2.0
"""What may be on a disk after a loss of power: the states that a list of writes, names and syncs allows.

The method is that of ALICE (Pillai et al., OSDI 2014) under the weakest promises: bytes are on the disk once their file
was synced, names once their folder was, a rename is one step and counts as the new name, and all else may be there or
not, in any order, of bytes also half. So a file that was renamed and never synced may be empty, and a folder that was
never synced may lack names.
"""

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from file_faults import Operation

MOST_IN_FULL = 7
"""Of more operations that may be there or not, none, all, each alone and all but each are taken, and a sample."""
SAMPLES = 64

Disk = dict[str, bytes]
_Entry = tuple[int, str]
"""A name in the folder of a number."""


@dataclass(frozen=True, slots=True)
class _Event:
    """An operation on a file whose number is never used twice; `folders` are those whose names it changes."""

    kind: str
    file: int
    folders: tuple[int, ...] = ()
    name: "_Entry" = (0, "")
    other: "_Entry" = (0, "")
    at: int = 0
    data: bytes = b""


def states(before: Disk, operations: Sequence[Operation], folder: Path) -> Iterator[tuple[bool, Disk]]:
    """Yields what may be found below a folder where power was lost, each state once; and whether all had been done.

    `before` is what was there, all of it synced; names of folders end with a /.
    """
    events = _events(before, operations, folder)
    seen = set[tuple[bool, int]]()
    for end in range(len(events) + 1):
        pending = _not_durable(events[:end])
        for kept in _choices(pending, end):
            found = _disk(before, events[:end], set(pending) - kept.keys(), kept)
            key = (end == len(events), hash(tuple(sorted(found.items()))))
            if key not in seen:
                seen.add(key)
                yield end == len(events), found


def _events(before: Disk, operations: Sequence[Operation], folder: Path) -> list[_Event]:
    """Returns the operations, where the numbers of inodes, which systems give out again, became those of files."""
    names = _numbered(before)
    file_of: dict[int, int] = {}
    last, found = len(names), []

    def entry(path: str) -> _Entry:
        return names[str(Path(path).parent)], Path(path).name

    for one in operations:
        name = _local(one.path, folder)
        if one.kind in "cd":
            last += 1
            file_of[one.inode] = names[name] = last
            found.append(_Event(one.kind, last, (entry(name)[0],), entry(name)))
        elif one.kind == "o":
            file_of[one.inode] = names[name]
        elif one.kind in "rl":
            old, new = entry(name), entry(other := _local(one.more.decode(), folder))
            found.append(_Event(one.kind, names[name], (new[0],), old, new))
            if one.kind == "r":
                for path in [path for path in names if path == name or path.startswith(f"{name}/")]:
                    names[other + path.removeprefix(name)] = names.pop(path)
            else:
                names[other] = names[name]
        elif one.kind == "u":
            found.append(_Event("u", names[name], (entry(name)[0],), entry(name)))
            del names[name]
        else:
            found.append(_Event(one.kind, file_of[one.inode], at=one.number, data=one.more))
    return found


def _numbered(before: Disk) -> dict[str, int]:
    return {".": 0} | {name.rstrip("/"): number for number, name in enumerate(before, 1)}


def _local(path: str, folder: Path) -> str:
    return str(Path(path).relative_to(folder)) if path else ""


def _not_durable(events: Sequence[_Event]) -> list[int]:
    synced, found = set[int](), []
    for number, one in reversed(list(enumerate(events))):
        if one.kind == "s":
            synced.add(one.file)
        elif not {*(one.folders or (one.file,))} <= synced:
            found.append(number)
    return found[::-1]


def _choices(pending: Sequence[int], seed: int) -> Iterator[dict[int, bool]]:
    """Yields which of the pending events are on the disk, and which of these only by half."""
    whole = dict.fromkeys(pending, False)
    if len(pending) <= MOST_IN_FULL:
        for kept in itertools.product((None, False, True), repeat=len(pending)):
            yield {number: torn for number, torn in zip(pending, kept, strict=True) if torn is not None}
        return
    dice = random.Random(seed)  # noqa: S311 - no secret
    yield {}
    yield whole
    for number in pending:
        yield {number: False}
        yield {other: False for other in pending if other != number}
        yield {**whole, number: True}
    for _ in range(SAMPLES):
        yield {number: dice.random() < 0.2 for number in pending if dice.random() < 0.5}


def _disk(before: Disk, events: Sequence[_Event], dropped: set[int], kept: Mapping[int, bool]) -> Disk:
    names = _numbered(before)
    entries = {(names[str(Path(path).parent)], Path(path).name): file for path, file in names.items() if file}
    is_folder = {0} | {names[name.rstrip("/")] for name in before if name.endswith("/")}
    is_folder |= {one.file for one in events if one.kind == "d"}
    bytes_of = {names[name.rstrip("/")]: data for name, data in before.items()}
    for number, one in enumerate(events):
        if number in dropped:
            continue
        data = bytes_of.get(one.file, b"")
        if one.kind == "w":
            new = one.data[: len(one.data) // 2] if kept.get(number) else one.data
            bytes_of[one.file] = data[: one.at].ljust(one.at, b"\0") + new + data[one.at + len(new) :]
        elif one.kind == "t":
            bytes_of[one.file] = data[: one.at].ljust(one.at, b"\0")
        if one.kind in "ru" and entries.get(one.name) == one.file:
            del entries[one.name]
        if one.kind in "cd":
            entries[one.name] = one.file
        if one.kind in "rl":
            entries[one.other] = one.file
    inside: dict[int, list[tuple[str, int]]] = {}
    for (folder, name), file in entries.items():
        inside.setdefault(folder, []).append((name, file))
    return dict(_tree(inside, is_folder, bytes_of, 0, ""))


def _tree(
    inside: Mapping[int, list[tuple[str, int]]], is_folder: set[int], bytes_of: Mapping[int, bytes], at: int, path: str
) -> Iterator[tuple[str, bytes]]:
    """Yields what lies below a folder, whose path ends with a /, or is empty."""
    for name, file in inside.get(at, ()):
        if file in is_folder:
            yield f"{path}{name}/", b""
            yield from _tree(inside, is_folder, bytes_of, file, f"{path}{name}/")
        else:
            yield f"{path}{name}", bytes_of.get(file, b"")
