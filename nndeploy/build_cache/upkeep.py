# SPDX-License-Identifier: Apache-2.0
"""What a cache holds, whether it is what it was, and what goes when it is too large.

Law: an entry goes before the files that it alone names; what was used last stays longest; nothing that is being
written goes.
"""

import contextlib
import datetime as dt
import fcntl
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nndeploy.build_cache.entry import Blob, Entry
from nndeploy.build_cache.local_cache import BLOBS, ENTRIES, LOCKS, NEAR, TEMPORARY, LocalCache, is_key
from nndeploy.errors import NndeployError
from nndeploy.files.locked_file import locked_file
from nndeploy.files.whole_files import let_go

TOTAL = "total"
YOUNG_SECONDS = 3_600
"""What is younger may belong to a build that has not written its entry yet."""
_YOUNG = "files of the last hour, which a build may be about to name"
ENTRY_BYTES = 10_000
"""About so large is the text of an entry, of which most are the packages."""


@dataclass(frozen=True, slots=True)
class Stats:
    """How much a cache holds, in entries, files and bytes of both; `oldest` is when the oldest entry was last used."""

    entries: int
    files: int
    size: int
    oldest: str


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed, in entries, files and bytes of both, the bytes that are left, and why no more was removed."""

    entries: int
    files: int
    size: int
    left: int
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verified:
    """How many entries and files are whole, and a line for each that was not, and whether it is gone."""

    entries: int
    files: int
    damaged: tuple[str, ...]


def stats(cache: LocalCache) -> Stats:
    """Returns what a cache holds."""
    entries = [found.stat() for found in _files(cache.folder / ENTRIES)]
    files = [found.stat().st_size for found in _files(cache.folder / BLOBS)]
    oldest = min((found.st_mtime for found in entries), default=None)
    day = "" if oldest is None else dt.datetime.fromtimestamp(oldest, dt.UTC).date().isoformat()
    return Stats(len(entries), len(files), sum(files) + sum(found.st_size for found in entries), day)


def collect(cache: LocalCache, most_bytes: int) -> Removed:
    """Removes the entries that were not used for longest until `most_bytes` are left, and files that no entry names.

    Entries count whoever signed them: what another account built stays as long as it is used.

    Raises:
        CannotCreateError: the cache cannot be written.
    """
    cache.check_writable()
    return _Collection(cache).collected(most_bytes)


class _Collection:
    """The entries and files of a cache, of which some are removed."""

    def __init__(self, cache: LocalCache) -> None:
        self._cache, self._now = cache, time.time()
        self._blobs = {one.name: (Path(one.path), one.stat()) for one in _files(cache.folder / BLOBS)}
        found = ((Path(one.path), one.stat()) for one in _files(cache.folder / ENTRIES))
        self._entries = sorted(found, key=lambda one: one[1].st_mtime)
        self._left = sum(status.st_size for _, status in (*self._blobs.values(), *self._entries))
        self._names: dict[str, frozenset[str]] = {}  # of the files that each entry names
        self._used: Counter[str] = Counter()
        self._removed: Counter[str] = Counter()
        self._why: Counter[str] = Counter()
        self._youngest = 0.0

    def collected(self, most_bytes: int) -> Removed:
        before = self._left
        self._read()
        self._drop_unnamed()
        for path, status in self._entries:
            if self._left <= most_bytes:
                break
            if path.name in self._names:
                self._drop_entry(path, status)
        _sweep(self._cache.folder, self._now)
        _write_total(self._cache.folder, self._left)
        why = tuple(self._told(*item) for item in self._why.items() if self._left > most_bytes)
        return Removed(self._removed[ENTRIES], self._removed[BLOBS], before - self._left, self._left, why)

    def _read(self) -> None:
        """Learns which files each entry names; what is no entry goes."""
        for path, status in self._entries:
            try:
                entry = self._cache.named(path.name)
            except NndeployError as err:
                self._why[f"entries that cannot be read ({err.what})"] += 1
                continue
            if entry is None:
                self._drop(path, status, ENTRIES)
            else:
                self._names[path.name] = frozenset(blob.sha256 for blob in entry.outputs.values())
                self._used.update(self._names[path.name])

    def _drop_unnamed(self) -> None:
        if len(self._names) + self._removed[ENTRIES] < len(self._entries):
            return  # an entry that cannot be read may name them
        for name, (path, status) in self._blobs.items():
            if name in self._used:
                continue
            if self._now - status.st_mtime > YOUNG_SECONDS:
                self._drop(path, status, BLOBS)
            else:
                self._why[_YOUNG] += 1
                self._youngest = max(self._youngest, status.st_mtime)

    def _told(self, reason: str, number: int) -> str:
        if reason != _YOUNG:
            return f"{reason}: {number:,}"
        until = dt.datetime.fromtimestamp(self._youngest + YOUNG_SECONDS, dt.UTC).astimezone()
        return f"{reason}: {number:,}, until {until:%H:%M}"

    def _drop_entry(self, path: Path, status: os.stat_result) -> None:
        if not self._drop(path, status, ENTRIES):
            return
        for name in self._names[path.name]:
            self._used[name] -= 1
            if not self._used[name] and name in self._blobs:
                self._drop(*self._blobs[name], BLOBS)

    def _drop(self, path: Path, status: os.stat_result, kind: str) -> bool:
        """Removes a file; returns whether it is gone."""
        try:
            path.unlink(missing_ok=True)
        except OSError as err:
            self._why[f"files that cannot be removed ({err.strerror})"] += 1
            return False
        self._left -= status.st_size
        self._removed[kind] += 1
        return True


def verify(cache: LocalCache) -> Verified:
    """Reads every entry and every file; what is damaged goes where it can. Entries that no trusted key signed stay."""
    damaged: list[str] = []
    num_entries = num_files = 0

    def drop(what: str, found: "os.DirEntry[str]") -> None:
        try:
            Path(found.path).unlink(missing_ok=True)
            damaged.append(f"{what} {found.name}, removed")
        except OSError as err:
            damaged.append(f"{what} {found.name}, not removed: {err.strerror}")

    for found in list(_files(cache.folder / BLOBS)):
        is_readable = os.access(found.path, os.R_OK)
        if cache.copy(Blob(found.name, found.stat().st_size), lambda _chunk: None):
            num_files += 1
        elif is_readable:
            drop("file", found)
    for found in list(_files(cache.folder / ENTRIES)):
        is_used = cache.signed(found.name) is not None  # else it is told why not
        if not os.access(found.path, os.R_OK):
            continue
        entry = cache.named(found.name)
        if entry is not None and cache.has_all(entry):
            num_entries += is_used
        else:
            drop("entry", found)
    return Verified(num_entries, num_files, tuple(damaged))


def account(cache: LocalCache, entries: Iterable[Entry], most_bytes: int) -> None:
    """Adds entries to what the cache is known to hold, and collects where that is more than `most_bytes`."""
    num_bytes = sum(entry.size + ENTRY_BYTES for entry in entries)
    with locked_file(cache.folder / TOTAL) as descriptor:
        text = os.pread(descriptor, 32, 0).strip()
        total = (int(text) if text.isdigit() else stats(cache).size - num_bytes) + num_bytes
        os.pwrite(descriptor, b"%20d" % max(0, total), 0)
    if total > most_bytes:
        collect(cache, most_bytes * 9 // 10)  # not again with the next build


def _write_total(folder: Path, size: int) -> None:
    with contextlib.suppress(OSError):
        (folder / TOTAL).write_bytes(b"%20d" % size)


def _files(folder: Path) -> Iterator["os.DirEntry[str]"]:
    with contextlib.suppress(OSError):
        for inner in os.scandir(folder):
            if inner.is_dir(follow_symlinks=False):
                for found in os.scandir(inner):
                    if is_key(found.name) and found.is_file(follow_symlinks=False):
                        yield found


def _sweep(folder: Path, now: float) -> None:
    """Removes what killed processes left, locks that nobody holds, and lists of builds that were not asked for long."""
    for name, age in ((TEMPORARY, YOUNG_SECONDS), (LOCKS, YOUNG_SECONDS)):
        for found in os.scandir(folder / name):
            with contextlib.suppress(OSError):
                if now - found.stat().st_mtime > age and (name != LOCKS or _is_free(found.path)):
                    Path(found.path).unlink()
    for found in _files(folder / NEAR):
        with contextlib.suppress(OSError):
            if now - found.stat().st_mtime > 90 * 86_400:
                Path(found.path).unlink()


def _is_free(path: str) -> bool:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        let_go(descriptor)
