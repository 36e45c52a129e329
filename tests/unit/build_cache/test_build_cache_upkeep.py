# SPDX-License-Identifier: Apache-2.0
"""A cache stays within its size, loses what was not used for longest, and finds what is damaged."""

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nndeploy.build_cache import upkeep
from nndeploy.build_cache.entry import Entry
from nndeploy.build_cache.local_cache import LocalCache
from nndeploy.trust.signers import new_key
from nndeploy.trust.trust_store import TrustStore

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
    texts = sum(path.stat().st_size for path in (cache.folder / "ac").rglob("*") if path.is_file())
    assert (found.entries, found.files, found.size) == (3, 2, 8 + texts)
    assert found.oldest.startswith("20")


def test_what_was_not_used_for_longest_goes_first(cache: LocalCache, build: Build) -> None:
    entries = [build(bytes([i]) * 100, model=str(i)) for i in range(5)]
    for i, entry in enumerate(entries):
        age(entry_file(cache, entry), 100 - i)
    assert cache.entry(entries[0].key) is not None  # is now the newest
    own = 100 + entry_file(cache, entries[0]).stat().st_size
    removed = upkeep.collect(cache, own * 5 // 2)
    assert (removed.entries, removed.files, removed.size, removed.left) == (3, 3, 3 * own, 2 * own)
    assert removed.why == ()
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
        entry = build(bytes([i]) * 10_000, model=str(i))
        upkeep.account(cache, [entry], 100_000)
        age(entry_file(cache, entry), 30 - i)
    assert upkeep.stats(cache).size <= 100_000
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


def stranger_of(cache: LocalCache, tmp_path: Path, said: list[str]) -> LocalCache:
    """Returns the same cache as an account opens it that trusts nobody."""
    return LocalCache(cache.folder, TrustStore(), new_key(tmp_path / "k.key"), said.append)


def test_what_others_built_is_kept_while_it_is_used_and_goes_like_the_rest(cache, build, tmp_path, said) -> None:
    entries = [build(bytes([i]) * 100, model=str(i)) for i in range(3)]
    stranger = stranger_of(cache, tmp_path, said)
    assert upkeep.verify(stranger) == upkeep.Verified(0, 3, ())
    stranger.tell_unused()
    assert len(said) == 1
    assert upkeep.collect(stranger, 1 << 30).entries == 0
    assert [cache.entry(entry.key) for entry in entries] == entries
    removed = upkeep.collect(stranger, 0)
    assert (removed.entries, removed.files, removed.left, removed.why) == (3, 3, 0, ())


def test_it_is_told_why_more_is_left_than_was_asked_for(cache, build, tmp_path, monkeypatch) -> None:
    (tmp_path / "x").write_bytes(b"being built")
    young = cache.place(cache.add_file(tmp_path / "x"))
    age(young, 0.5)
    until = time.strftime("%H:%M", time.localtime(young.stat().st_mtime + HOUR))
    stuck = entry_file(cache, build(model="m"))
    remove = Path.unlink

    def refuse(path: Path, **named: bool) -> None:
        if path == stuck:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        remove(path, **named)

    monkeypatch.setattr(Path, "unlink", refuse)
    removed = upkeep.collect(cache, 0)
    assert removed.left == upkeep.stats(cache).size > 0
    assert len(removed.why) == 2
    assert any(until in line for line in removed.why)
    assert upkeep.collect(cache, 1 << 20).why == ()
