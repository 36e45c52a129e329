# SPDX-License-Identifier: Apache-2.0
"""The container: a ZIP that every tool reads, with one encoding for a list of members, at any size.

What it refuses is in tests/fuzz/test_bundle_mutations.py.
"""

import io
import mmap
import shutil
import subprocess
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nndeploy.bundle.container import (
    LARGE_MEMBER_BYTES,
    MAX_MEMBERS,
    check_name,
    directory,
    encode_container,
    entry_at,
    local_header,
    parse_container,
)
from nndeploy.errors import BundleError

GIB = 1 << 30
SEGMENTS = st.from_regex(r"[a-z0-9_-][a-z0-9_.-]{0,5}", fullmatch=True)
NAMES = st.lists(SEGMENTS, min_size=1, max_size=5).map("/".join)


def no_file_is_a_folder(members: dict[str, bytes]) -> bool:
    return not any(other.startswith(name + "/") for name in members for other in members)


MEMBERS = st.dictionaries(NAMES, st.binary(max_size=200), min_size=1, max_size=6).filter(no_file_is_a_folder)


def encoded(members: dict[str, bytes]) -> bytes:
    return b"".join(encode_container(members))


@settings(max_examples=40)
@given(MEMBERS)
def test_members_come_back_and_pythons_zipfile_reads_them(members: dict[str, bytes]) -> None:
    data = encoded(members)
    entries = parse_container(memoryview(data))
    assert {name: data[entry.offset : entry.end] for name, entry in entries.items()} == members
    assert all(entry.crc32 == zlib.crc32(members[name]) for name, entry in entries.items())
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == members
        assert archive.namelist() == sorted(members)


@pytest.mark.parametrize(
    ("size", "boundary"), [(0, 64), (1, 64), (LARGE_MEMBER_BYTES - 1, 64), (LARGE_MEMBER_BYTES, 4096), (100_000, 4096)]
)
def test_data_begin_on_a_boundary_that_their_size_decides(size: int, boundary: int) -> None:
    members = {"a": b"x", "b/weights": bytes(size), "c": b"y"}
    entries = parse_container(memoryview(encoded(members)))
    assert entries["b/weights"].offset % boundary == 0
    assert entries["b/weights"].offset - entries["a"].end < boundary + 100


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "archive.nnd"
    path.write_bytes(encoded({"manifest.json": b"{}", "weights/w.bin": bytes(range(256)) * 40, "empty": b""}))
    return path


@pytest.mark.skipif(shutil.which("unzip") is None, reason="unzip is not installed")
def test_unzip_lists_tests_and_extracts_it(archive: Path, tmp_path: Path) -> None:
    listed = subprocess.run(["unzip", "-l", archive], capture_output=True, text=True, check=True)
    assert "10240  1980-01-01 00:00   weights/w.bin" in listed.stdout
    tested = subprocess.run(["unzip", "-t", archive], capture_output=True, text=True, check=True)
    assert "No errors detected" in tested.stdout
    assert not tested.stderr
    subprocess.run(["unzip", "-q", archive, "-d", tmp_path / "out"], capture_output=True, check=True)
    assert (tmp_path / "out" / "weights" / "w.bin").read_bytes() == bytes(range(256)) * 40


def test_the_data_of_a_member_are_not_copied() -> None:
    data = memoryview(bytes(1 << 20))
    pieces = list(encode_container({"a": data, "b": b"x"}))
    assert any(piece is data for piece in pieces)
    assert sum(len(piece) for piece in pieces if piece is not data) < 10_000


@pytest.mark.parametrize("size", [2 * GIB - 1, 2 * GIB + 1, 4 * GIB - 1, 4 * GIB, 4 * GIB + 1])
def test_members_around_two_and_four_gib_are_found_in_a_sparse_file(tmp_path: Path, size: int) -> None:
    """Headers are written for real, data stay holes: what lies past 32 bits is in the right place all the same."""
    large = entry_at(0, "large", size, 1)
    after = entry_at(large.end, "small", 3, zlib.crc32(b"end"))
    path = tmp_path / "sparse.nnd"
    with path.open("wb") as file:
        for entry in (large, after):
            file.seek(entry.header)
            file.write(local_header(entry))
        file.write(b"end" + directory([large, after]))
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        memoryview(mapped) as view,
    ):
        assert parse_container(view) == {"large": large, "small": after}
        assert bytes(view[after.offset : after.end]) == b"end"
    with zipfile.ZipFile(path) as archive:
        assert [(info.filename, info.file_size) for info in archive.infolist()] == [("large", size), ("small", 3)]
        assert archive.read("small") == b"end"
    if shutil.which("unzip"):
        listed = subprocess.run(["unzip", "-l", path], capture_output=True, text=True, check=True)
        assert f"{size}  1980" in listed.stdout
    path.unlink()


@pytest.mark.slow
def test_a_member_of_more_than_four_gib_is_encoded_without_holding_it() -> None:
    """The member is a mapping of nothing, so it takes no memory unless it is copied."""
    size = 4 * GIB + 1
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) as zeros, memoryview(zeros) as view:
        tracemalloc.start()
        sizes = [len(piece) for piece in encode_container({"large": view})]
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert size in sizes
    assert peak_bytes < 1 << 20


def test_the_most_members_that_are_allowed_come_back() -> None:
    members = {f"m{index:04}": b"" for index in range(MAX_MEMBERS)}
    assert list(parse_container(memoryview(encoded(members)))) == sorted(members)


def test_refuses_to_encode_too_many_or_no_members() -> None:
    with pytest.raises(BundleError, match="4097 members; at most 4096"):
        encoded({f"m{index}": b"" for index in range(MAX_MEMBERS + 1)})
    with pytest.raises(BundleError, match="a bundle without members"):
        encoded({})


@pytest.mark.parametrize("name", ["a", "a.b-c_9", "a/b/c/d/e", ".hidden", "...", "-rf", "x" * 255])
def test_takes_the_name(name: str) -> None:
    check_name(name)
    assert list(parse_container(memoryview(encoded({name: b""})))) == [name]


@pytest.mark.parametrize(("name", "message"), [
    ("", "is empty"), ("/etc/passwd", "is an absolute path"), ("c:/x", "is an absolute path"),
    ("..", "leaves its folder"), ("a/../b", "leaves its folder"), ("./a", "leaves its folder"),
    ("a/.", "leaves its folder"), ("a//b", "an empty segment"), ("a/", "an empty segment"), ("A", "other characters"),
    ("a b", "other characters"), ("a\\b", "other characters"), ("a\0", "other characters"), ("a\n", "other characters"),
    ("\N{LATIN SMALL LETTER E WITH ACUTE}", "other characters"), ("\ud800", "other characters"),
    ("a/b/c/d/e/f", "deeper than 4 folders"), ("x" * 256, "longer than 255 bytes"),
])  # fmt: skip
def test_refuses_the_name(name: str, message: str) -> None:
    with pytest.raises(BundleError, match=message):
        encoded({name: b""})


@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b/c/d", "a/b"), ("a", "a-b", "a/b")])
def test_refuses_a_file_that_is_also_a_folder(names: tuple[str, ...]) -> None:
    with pytest.raises(BundleError, match="is also the folder of"):
        encoded(dict.fromkeys(names, b""))
