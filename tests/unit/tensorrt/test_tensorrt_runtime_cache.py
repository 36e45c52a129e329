# SPDX-License-Identifier: Apache-2.0
"""The file of compiled kernels: read only where nobody else could have written it, written in one step."""

import os
from pathlib import Path

import pytest
from nndeploy_tensorrt.runtime_cache import MAX_BYTES, PREFIX, cache_path

from nndeploy.plugin.cache_file import read_cache, write_cache

ENGINE = memoryview(b"engine")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A cache file that may be read."""
    tmp_path.chmod(0o700)
    path = tmp_path / "x.rtcache"
    assert write_cache(path, b"kernels", PREFIX)
    return path


def test_what_was_written_is_read(kept: Path) -> None:
    assert read_cache(kept, MAX_BYTES) == b"kernels"
    assert kept.stat().st_mode & 0o077 == 0


def test_folder_is_made_for_this_user_alone(tmp_path: Path) -> None:
    assert write_cache(tmp_path / "deep" / "er" / "x", b"kernels", PREFIX)
    assert (tmp_path / "deep" / "er").stat().st_mode & 0o077 == 0


def test_path_differs_with_engine_version_and_gpu() -> None:
    paths = {
        cache_path("c", memoryview(engine), version, capability)
        for engine in (b"a", b"b")
        for version in ("1", "2")
        for capability in ("8.9", "8.6")
    }
    assert len(paths) == 8
    assert cache_path("c", ENGINE, "1", "8.9") == cache_path("c", ENGINE, "1", "8.9")


def test_missing_file_holds_nothing(tmp_path: Path) -> None:
    assert read_cache(tmp_path / "none", MAX_BYTES) == b""


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_file_that_others_may_write_is_not_read(kept: Path, mode: int) -> None:
    kept.chmod(mode)
    assert read_cache(kept, MAX_BYTES) == b""


@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_file_in_a_folder_that_others_may_write_is_not_read(kept: Path, mode: int) -> None:
    kept.parent.chmod(mode)
    assert read_cache(kept, MAX_BYTES) == b""


def test_file_of_another_user_is_not_read(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = kept.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert read_cache(kept, MAX_BYTES) == b""


def test_links_and_pipes_are_not_read(kept: Path) -> None:
    symbolic, hard, pipe = (kept.with_name(name) for name in ("symbolic", "hard", "pipe"))
    symbolic.symlink_to(kept)
    os.mkfifo(pipe)
    assert read_cache(symbolic, MAX_BYTES) == b""
    assert read_cache(pipe, MAX_BYTES) == b""
    hard.hardlink_to(kept)
    assert read_cache(hard, MAX_BYTES) == b""


def test_folder_is_not_read(tmp_path: Path) -> None:
    assert read_cache(tmp_path, MAX_BYTES) == b""


def test_file_that_is_too_large_is_not_read(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_cache(kept, 6) == b""


def test_cache_that_cannot_be_written_is_not_kept(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    assert not write_cache(blocked / "x", b"kernels", PREFIX)


def test_failed_write_leaves_the_old_file_and_nothing_else(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert not write_cache(kept, b"newer", PREFIX)
    monkeypatch.undo()
    assert read_cache(kept, MAX_BYTES) == b"kernels"
    assert list(kept.parent.iterdir()) == [kept]
