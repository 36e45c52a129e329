# SPDX-License-Identifier: Apache-2.0
"""A cache stays within its size, loses what was not used for longest, and finds what is damaged."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nndeploy.build_cache import upkeep
from nndeploy.build_cache.entry import Entry
from nndeploy.build_cache.local_cache import LocalCache

Build = Callable[..., Entry]
HOUR = 3600


def age(path: Path, hours: float) -> None:
    then = time.time() - hours * HOUR
    os.utime(path, (then, then))


def entry_file(cache: LocalCache, entry: Entry) -> Path:
    return cache.folder / "ac" / entry.key[:2] / entry.key


def test_counts_what_is_there(cache: LocalCache, build: Build) -> None:
    assert upkeep.stats(cache) == upkeep.Stats(0, 0, 0, "")
    build(b"12345", model="1")
    build(b"123", model="2")
    build(b"123", model="3")  # the same file
    found = upkeep.stats(cache)
    assert (found.entries, found.files, found.size) == (3, 2, 8)
    assert found.oldest.startswith("20")


def test_what_was_not_used_for_longest_goes_first(cache: LocalCache, build: Build) -> None:
    entries = [build(bytes([i]) * 100, model=str(i)) for i in range(5)]
    for i, entry in enumerate(entries):
        age(entry_file(cache, entry), 100 - i)
    assert cache.entry(entries[0].key) is not None  # is now the newest
    removed = upkeep.collect(cache, 250)
    assert (removed.entries, removed.files, removed.size, removed.left) == (3, 3, 300, 200)
    assert [entry.parts["model"] for entry in entries if cache.entry(entry.key)] == ["0", "4"]


def test_a_file_that_another_entry_names_stays(cache: LocalCache, build: Build) -> None:
    old, new = build(b"same" * 100, model="1"), build(b"same" * 100, model="2")
    age(entry_file(cache, old), 50)
    build(b"x" * 400, model="3")
    upkeep.collect(cache, 500)
    assert cache.content(new.outputs["bundle"]) == b"same" * 100 or cache.entry(new.key) is None
    kept = [entry for entry in (old, new) if cache.entry(entry.key)]
    assert all(cache.content(entry.outputs["bundle"]) for entry in kept)


def test_files_that_no_entry_names_go_unless_they_are_young(cache: LocalCache, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"left behind")
    blob = cache.add_file(tmp_path / "x")
    assert upkeep.collect(cache, 1 << 30).files == 0
    age(cache.place(blob), 2)
    assert upkeep.collect(cache, 1 << 30).files == 1
    assert not cache.place(blob).exists()


def test_what_kills_left_goes(cache: LocalCache, build: Build) -> None:
    build(model="m")
    left = cache.folder / "tmp" / ".nndeploy-0.tmp"
    left.write_bytes(b"half")
    lock = cache.folder / "locks" / ("0" * 64)
    lock.touch()
    for path in (left, lock):
        age(path, 2)
    with cache.held("1" * 64):
        held = cache.folder / "locks" / ("1" * 64)
        age(held, 2)
        upkeep.collect(cache, 1 << 30)
        assert held.exists()
    assert not left.exists()
    assert not lock.exists()


def test_building_keeps_within_the_size(cache: LocalCache, build: Build) -> None:
    for i in range(30):
        entry = build(bytes([i]) * 1000, model=str(i))
        upkeep.account(cache, 1000, 10_000)
        age(entry_file(cache, entry), 30 - i)
    assert upkeep.stats(cache).size <= 10_000
    assert cache.entry(entry.key) is not None


@pytest.mark.parametrize("which", ["entry", "file", "missing file"])
def test_verify_finds_and_removes_what_is_damaged(cache: LocalCache, build: Build, which: str) -> None:
    whole, broken = build(b"whole", model="1"), build(b"broken", model="2")
    place = entry_file(cache, broken) if which == "entry" else cache.place(broken.outputs["bundle"])
    place.chmod(0o644)
    if which == "missing file":
        place.unlink()
    else:
        place.write_bytes(b"garbage")
    found = upkeep.verify(cache)
    assert len(found.damaged) == (2 if which == "file" else 1)
    assert cache.entry(whole.key) == whole
    assert cache.entry(broken.key) is None
    assert upkeep.verify(cache).damaged == ()
