# SPDX-License-Identifier: Apache-2.0
"""What the compiler needs for every source is kept in a folder of the account's, and only in one that is ours alone."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from nndeploy_native import library
from nndeploy_native.library import library_from_source, zig_missing

from nndeploy.errors import BuildRefusedError
from nndeploy.files.account_folders import own_cache_folder


@pytest.fixture(name="cache")
def cache_of_the_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def global_cache_of_a_build(monkeypatch: pytest.MonkeyPatch, workdir: Path) -> str | None:
    """Returns the folder that the compiler would be told to keep things in."""
    told: dict[str, str] = {}

    def run(_command: Any, *, env: dict[str, str], **_others: Any) -> subprocess.CompletedProcess[str]:
        told.update(env)
        (workdir / "library.so").write_bytes(b"library")
        return subprocess.CompletedProcess([], 0, "", "")

    monkeypatch.delenv("ZIG_GLOBAL_CACHE_DIR", raising=False)
    monkeypatch.setattr(subprocess, "run", run)
    assert library_from_source(["int one(void) { return 1; }"], "x86_64", workdir) == b"library"
    return told.get("ZIG_GLOBAL_CACHE_DIR")


def test_folder_is_made_for_this_account_alone(cache: Path) -> None:
    folder = own_cache_folder("zig")
    assert folder == cache / "nndeploy" / "zig"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert own_cache_folder("zig") == folder


def test_folder_that_others_may_write_to_or_that_is_a_link_is_not_used(cache: Path) -> None:
    folder = own_cache_folder("zig")
    assert folder is not None
    folder.chmod(0o777)
    assert own_cache_folder("zig") is None
    (cache / "nndeploy" / "other").symlink_to(cache)
    assert own_cache_folder("other") is None


def test_cache_that_cannot_be_made_is_none(cache: Path) -> None:
    cache.write_text("a file")
    assert own_cache_folder("zig") is None


@pytest.mark.skipif(bool(zig_missing()), reason="ziglang is not installed")
def test_compiler_keeps_what_every_source_needs(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = global_cache_of_a_build(monkeypatch, tmp_path)
    assert kept is not None
    assert Path(kept).parent == cache / "nndeploy"
    assert Path(kept).name.startswith("zig-")
    (cache / "nndeploy").rename(cache / "moved")
    (cache / "nndeploy").write_text("a file")
    assert global_cache_of_a_build(monkeypatch, tmp_path) is None


def test_missing_compiler_is_one_line_with_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(library, "find_spec", lambda _name: None)
    with pytest.raises(BuildRefusedError, match=r"^ziglang is not installed: .*nndeploy-toolchain\[pacing\]'$"):
        library_from_source([""], "x86_64", tmp_path)


def test_another_architecture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildRefusedError, match="nothing is known of riscv64"):
        library_from_source([""], "riscv64", tmp_path)
