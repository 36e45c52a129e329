# SPDX-License-Identifier: Apache-2.0
"""Bytes of files: mapped where they are many, let go without a loss, hashed once."""

import hashlib
import mmap
import time
from pathlib import Path

import numpy as np
import pytest

from nndeploy.files import file_content
from nndeploy.files.file_content import (
    MIN_MAPPED_BYTES,
    KnownHashes,
    content_of,
    let_go_of_pages,
    letting_go_of_pages,
    write_content,
)


@pytest.mark.parametrize("size", [1, MIN_MAPPED_BYTES - 1, MIN_MAPPED_BYTES + 1])
def test_a_file_is_read_and_stays_when_it_is_removed_and_let_go(size: int, tmp_path: Path) -> None:
    data = bytes(i % 251 for i in range(size))
    (tmp_path / "file").write_bytes(data)
    content = content_of(tmp_path / "file")
    (tmp_path / "file").unlink()
    let_go_of_pages(content)
    assert bytes(content) == data


def test_pages_of_a_mapped_file_are_given_back_while_a_library_copies_it(tmp_path: Path) -> None:
    data = np.arange(MIN_MAPPED_BYTES // 4).tobytes()
    (tmp_path / "weights").write_bytes(data)
    content = content_of(tmp_path / "weights")
    assert bytes(content) == data
    assert _resident_bytes(tmp_path / "weights") == len(data)
    with letting_go_of_pages():
        deadline = time.monotonic() + 30.0
        while _resident_bytes(tmp_path / "weights"):
            assert time.monotonic() < deadline
            time.sleep(0.001)
    assert bytes(content) == data
    assert _resident_bytes(tmp_path / "weights") == len(data)


def _resident_bytes(path: Path) -> int:
    """Returns the bytes of a mapped file that are this process's now."""
    lines = iter(Path("/proc/self/smaps").read_text().splitlines())
    assert any(line.endswith(f" {path}") for line in lines)
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Rss:"))


@pytest.mark.parametrize("is_read_only", [True, False])
def test_memory_that_no_file_has_is_not_let_go(is_read_only: bool) -> None:
    memory = mmap.mmap(-1, 4 * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(b"data" * mmap.PAGESIZE)
    view = memoryview(memory)
    hashes = KnownHashes()
    assert hashes.of(view.toreadonly() if is_read_only else view) == hashlib.sha256(b"data" * mmap.PAGESIZE).hexdigest()
    assert bytes(view) == b"data" * mmap.PAGESIZE


def test_a_content_is_hashed_once_and_another_of_the_same_place_is_not_taken_for_it() -> None:
    hashes = KnownHashes()
    found = {hashes.of(bytes(str(number), "ascii") * 100) for number in range(100)}  # each is freed, if it is not kept
    assert len(found) == 100
    data = bytearray(b"first")
    assert hashes.of(memoryview(data)) != hashes.of(b"other")


@pytest.mark.parametrize("size", [0, 3, MIN_MAPPED_BYTES, 3 * MIN_MAPPED_BYTES + 1])
def test_what_is_written_in_parts_is_the_same(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_content, "_WRITTEN_BYTES", MIN_MAPPED_BYTES)
    data = np.random.default_rng(size).bytes(size)
    (tmp_path / "file").write_bytes(data)
    write_content(tmp_path / "copy", content_of(tmp_path / "file"))
    assert (tmp_path / "copy").read_bytes() == data
