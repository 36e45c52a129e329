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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nndeploy.build_cache.entry import Blob
from nndeploy.build_cache.local_cache import BLOBS, ENTRIES, LOCKS, NEAR, TEMPORARY, LocalCache, is_key
from nndeploy.files.locked_file import locked_file
from nndeploy.files.whole_files import let_go

TOTAL = "total"
YOUNG_SECONDS = 3_600
"""What is younger may belong to a build that has not written its entry yet."""


@dataclass(frozen=True, slots=True)
class Stats:
    """How much a cache holds, in entries, files and bytes; `oldest` is the day of the last use of the oldest entry."""

    entries: int
    files: int
    size: int
    oldest: str


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed, and the bytes that are left."""

    entries: int
    files: int
    size: int
    left: int


@dataclass(frozen=True, slots=True)
class Verified:
    """How many entries and files are whole, and a line for each that was not and is gone."""

    entries: int
    files: int
    damaged: tuple[str, ...]


def stats(cache: LocalCache) -> Stats:
    """Returns what a cache holds."""
    entries = [found.stat().st_mtime for found in _files(cache.folder / ENTRIES)]
    sizes = [found.stat().st_size for found in _files(cache.folder / BLOBS)]
    oldest = dt.datetime.fromtimestamp(min(entries), dt.UTC).date().isoformat() if entries else ""
    return Stats(len(entries), len(sizes), sum(sizes), oldest)


def collect(cache: LocalCache, most_bytes: int) -> Removed:
    """Removes the entries that were not used for longest until `most_bytes` are left, and files that no entry names."""
    now = time.time()
    blobs = {found.name: found.stat() for found in _files(cache.folder / BLOBS)}
    size = sum(found.st_size for found in blobs.values())
    kept: dict[str, tuple[Blob, ...]] = {}
    used: dict[str, int] = {}
    entries = sorted(_files(cache.folder / ENTRIES), key=lambda found: found.stat().st_mtime)
    num_removed, num_files, removed = 0, 0, 0
    for found in entries:
        entry = cache.entry(found.name, is_use=False)
        if entry is None:
            Path(found.path).unlink(missing_ok=True)
            num_removed += 1
            continue
        kept[found.name] = tuple(entry.outputs.values())
        for blob in kept[found.name]:
            used[blob.sha256] = used.get(blob.sha256, 0) + 1

    def drop(name: str) -> int:
        with contextlib.suppress(OSError):
            (cache.folder / BLOBS / name[:2] / name).unlink()
            return blobs[name].st_size
        return 0

    for name, found_ in blobs.items():
        if name not in used and now - found_.st_mtime > YOUNG_SECONDS:
            num_files, removed = num_files + 1, removed + drop(name)
    for found in entries:
        if size - removed <= most_bytes:
            break
        if found.name not in kept:
            continue
        Path(found.path).unlink(missing_ok=True)
        num_removed += 1
        for blob in kept[found.name]:
            used[blob.sha256] -= 1
            if not used[blob.sha256] and blob.sha256 in blobs:
                num_files, removed = num_files + 1, removed + drop(blob.sha256)
    _sweep(cache.folder, now)
    left = size - removed
    _write_total(cache.folder, left)
    return Removed(num_removed, num_files, removed, left)


def verify(cache: LocalCache) -> Verified:
    """Reads every entry and every file; what is damaged goes."""
    damaged: list[str] = []
    num_entries = num_files = 0
    for found in list(_files(cache.folder / BLOBS)):
        if cache.copy(Blob(found.name, found.stat().st_size), lambda _chunk: None):
            num_files += 1
        else:
            damaged.append(f"file {found.name}")
            Path(found.path).unlink(missing_ok=True)
    for found in list(_files(cache.folder / ENTRIES)):
        entry = cache.entry(found.name, is_use=False)
        if entry is not None and cache.has_all(entry):
            num_entries += 1
        else:
            damaged.append(f"entry {found.name}")
            Path(found.path).unlink(missing_ok=True)
    return Verified(num_entries, num_files, tuple(damaged))


def account(cache: LocalCache, num_bytes: int, most_bytes: int) -> None:
    """Adds to what the cache is known to hold, and collects where that is more than `most_bytes`."""
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
