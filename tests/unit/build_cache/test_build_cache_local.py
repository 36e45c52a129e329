# SPDX-License-Identifier: Apache-2.0
"""What went into a cache comes out of it, or nothing does."""

import errno
import os
import random
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from byte_mutants import KINDS, mutant

from nndeploy.build_cache import upkeep
from nndeploy.build_cache.entry import Blob, Entry
from nndeploy.build_cache.local_cache import LocalCache
from nndeploy.errors import CannotCreateError
from nndeploy.trust.signers import FileSigner, new_key
from nndeploy.trust.trust_store import CODE, DATA, TrustedKey, TrustStore

Build = Callable[..., Entry]


def entry_file(cache: LocalCache, entry: Entry) -> Path:
    return cache.folder / "ac" / entry.key[:2] / entry.key


def test_what_went_in_comes_out(cache: LocalCache, build: Build) -> None:
    entry = build(b"content", model="m", option="1")
    assert cache.entry(entry.key) == entry
    assert cache.content(entry.outputs["bundle"]) == b"content"


def test_an_unknown_key_is_no_entry_and_no_word_is_said(cache: LocalCache, said: list[str]) -> None:
    assert cache.entry("0" * 64) is None
    assert said == []


def test_files_may_not_be_written_and_lie_where_bazel_remote_has_them(cache: LocalCache, build: Build) -> None:
    blob = build(b"content", model="m").outputs["bundle"]
    place = cache.folder / "cas" / blob.sha256[:2] / blob.sha256
    assert place.read_bytes() == b"content"
    assert stat.S_IMODE(place.stat().st_mode) == 0o444


def test_the_first_build_of_a_key_stays(cache: LocalCache, build: Build) -> None:
    first = build(b"first", model="m")
    build(b"second", model="m")
    kept = cache.entry(first.key)
    assert kept is not None
    assert cache.content(kept.outputs["bundle"]) == b"first"


def test_builds_of_one_model_are_known_with_the_newest_last(cache: LocalCache, build: Build) -> None:
    entries = [build(model=str(i)) for i in range(40)]
    build(near="other", model="x")
    assert [entry.key for entry in cache.near("model")] == [entry.key for entry in entries[-32:]]
    assert cache.near("nothing") == []


def test_no_mutant_of_an_entry_is_served(cache: LocalCache, build: Build, said: list[str]) -> None:
    entry = build(model="m", tool="t 1.0")
    path = entry_file(cache, entry)
    text, dice = path.read_bytes(), random.Random(20261126)  # noqa: S311 - no secret
    for number in range(1, 501):
        path.write_bytes(mutant(text, dice, number % KINDS))
        assert cache.entry(entry.key) is None
        cache.tell_unused()
        assert len(said) == number


def test_an_entry_under_another_key_is_not_served(cache: LocalCache, build: Build) -> None:
    one, other = build(model="1"), build(model="2")
    entry_file(cache, one).replace(entry_file(cache, other))
    assert cache.entry(other.key) is None


@pytest.mark.parametrize("case", ["unknown", "data alone", "revoked", "expired"])
def test_what_no_trusted_key_signed_is_not_served(tmp_path, cache, said, case) -> None:
    stranger = new_key(tmp_path / "stranger.key")
    key = TrustedKey(
        stranger.public, "s", frozenset((DATA if case == "data alone" else CODE,)),
        "2020-01-01" if case == "expired" else "",
    )  # fmt: skip
    trusting = TrustStore(
        {} if case == "unknown" else {stranger.public.id: key},
        frozenset({stranger.public.id} if case == "revoked" else ()),
    )
    (tmp_path / "x").write_bytes(b"planted")
    open_door = TrustStore({stranger.public.id: TrustedKey(stranger.public, "s", frozenset((CODE,)))})
    planting = LocalCache(cache.folder, open_door, stranger)
    entry = Entry({"model": "m"}, {"bundle": planting.add_file(tmp_path / "x")})
    planting.add(entry, "model")
    assert planting.entry(entry.key) == entry
    opened = LocalCache(cache.folder, trusting, stranger, said.append)
    assert opened.entry(entry.key) is None
    opened.tell_unused()
    assert len(said) == 1


@pytest.mark.parametrize("how", ["flipped", "cut", "longer", "another", "gone", "a folder"])
def test_a_file_that_is_not_what_it_was_is_not_served(cache: LocalCache, build: Build, how: str) -> None:
    blob = build(b"content" * 1000, model="m").outputs["bundle"]
    place = cache.place(blob)
    place.chmod(0o644)
    data = bytearray(place.read_bytes())
    match how:
        case "flipped":
            data[3000] ^= 1
            place.write_bytes(data)
        case "cut":
            place.write_bytes(data[:-1])
        case "longer":
            place.write_bytes(data + b"x")
        case "another":
            place.write_bytes(bytes(len(data)))
        case _:
            place.unlink()
            if how == "a folder":
                place.mkdir()
    assert cache.content(blob) is None


def test_a_damaged_file_is_replaced_by_the_next_build(cache: LocalCache, build: Build) -> None:
    blob = build(b"content", model="m").outputs["bundle"]
    cache.place(blob).chmod(0o644)
    cache.place(blob).write_bytes(b"CONTENT")
    assert cache.content(blob) is None
    build(b"content", model="m")
    assert cache.content(blob) == b"content"


def test_a_damaged_entry_is_replaced_by_the_next_build(cache: LocalCache, build: Build) -> None:
    entry = build(b"content", model="m")
    entry_file(cache, entry).write_bytes(b"")
    build(b"content", model="m")
    assert cache.entry(entry.key) == entry


def test_a_link_in_place_of_a_file_gives_its_content_only_if_it_is_the_same(cache, build, tmp_path) -> None:
    blob = build(b"content", model="m").outputs["bundle"]
    cache.place(blob).unlink()
    (tmp_path / "secret").write_bytes(b"secret!")
    cache.place(blob).symlink_to(tmp_path / "secret")
    assert cache.content(blob) is None
    assert (tmp_path / "secret").read_bytes() == b"secret!"


def test_one_process_builds_what_several_want(cache: LocalCache) -> None:
    order: list[str] = []
    inside = threading.Event()

    def second() -> None:
        inside.wait()
        with cache.held("k"):
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with cache.held("k"):
        inside.set()
        thread.join(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_cache_that_cannot_be_made_is_one_line(tmp_path: Path, store: TrustStore) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CannotCreateError, match="the cache"):
        LocalCache(tmp_path / "file" / "cache", store, new_key(tmp_path / "k.key"))


def test_no_file_of_a_size_it_has_not_is_there(cache: LocalCache, build: Build) -> None:
    blob = build(b"content", model="m").outputs["bundle"]
    assert cache.has(blob)
    assert not cache.has(Blob(blob.sha256, blob.size + 1))
    assert not cache.has(Blob("0" * 64, 0))


def test_a_damaged_file_that_may_not_be_removed_is_not_served_either(cache, build, said, monkeypatch) -> None:
    blob = build(b"content", model="m").outputs["bundle"]
    place = cache.place(blob)
    place.chmod(0o644)
    place.write_bytes(b"planted")

    def refuse(*_: object) -> None:
        raise PermissionError("another account's folder")

    monkeypatch.setattr(Path, "unlink", refuse)
    assert cache.content(blob) is None
    cache.tell_unused()
    assert len(said) == 1


def test_what_is_not_used_is_told_in_a_line_with_a_count(tmp_path, cache, build, said) -> None:
    for number in range(21):
        build(model=str(number))
    stranger = LocalCache(cache.folder, TrustStore(), new_key(tmp_path / "k.key"), said.append)
    assert stranger.near("model") == []
    entry_file(cache, build(model="0")).write_bytes(b"{}")
    assert stranger.near("model") == []
    stranger.tell_unused()
    assert len(said) == 2
    assert "and 40 more" in said[0]  # 21 + 20
    said.clear()
    stranger.tell_unused()
    assert said == []


@pytest.mark.parametrize("missing", ["", "locks", "near", "tmp"])
def test_a_cache_that_cannot_be_written_is_read(cache, build, store, signer, monkeypatch, missing) -> None:
    entry = build(b"content", model="m")
    if missing:
        shutil.rmtree(cache.folder / missing)
    make, opened = Path.mkdir, os.open

    def no_folder(path: Path, *arguments: Any, **named: Any) -> None:
        if not path.exists():
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        make(path, *arguments, **named)

    def no_file(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return opened(path, flags, *arguments, **named)

    def no_writing(_path: Any, mode: int) -> bool:
        return mode != os.W_OK

    monkeypatch.setattr(Path, "mkdir", no_folder)
    monkeypatch.setattr(os, "open", no_file)
    monkeypatch.setattr(os, "access", no_writing)
    read = LocalCache(cache.folder, store, signer)
    assert read.why_read_only
    with read.held(entry.key):
        assert read.entry(entry.key) == entry
    assert read.content(entry.outputs["bundle"]) == b"content"
    for change in (lambda: read.add(entry, "m"), lambda: upkeep.collect(read, 0)):
        with pytest.raises(CannotCreateError):
            change()
    assert upkeep.stats(read).entries == 1


def test_who_has_no_key_reads(cache: LocalCache, build: Build, store: TrustStore) -> None:
    entry = build(b"content", model="m")
    read = LocalCache(cache.folder, store, None)
    assert read.why_read_only
    assert read.entry(entry.key) == entry


def test_a_folder_that_others_may_enter_is_for_them_too(tmp_path: Path, store: TrustStore, signer: FileSigner) -> None:
    (tmp_path / "shared").mkdir(0o755)
    cache = LocalCache(tmp_path / "shared", store, signer)
    (tmp_path / "x").write_bytes(b"x")
    cache.add(Entry({"model": "m"}, {"bundle": cache.add_file(tmp_path / "x")}), "m")
    assert {path.stat().st_mode & 0o555 for path in cache.folder.rglob("*") if path.is_dir()} == {0o555}
    LocalCache(tmp_path / "own", store, signer)
    assert (tmp_path / "own").stat().st_mode & 0o777 == 0o700
