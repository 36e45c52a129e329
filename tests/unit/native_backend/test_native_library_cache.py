# SPDX-License-Identifier: Apache-2.0
"""A library is compiled once: the next build of the same source takes what the account's cache folder holds, whole."""

import os
from pathlib import Path

import pytest
from nndeploy_native import library, library_cache
from nndeploy_native.isa import Isa, isa_for

from nndeploy.target.known_targets import target_of

SOURCE = "int one(void) { return 1; }"


@pytest.fixture(name="folder")
def folder_of_kept_libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where libraries are kept; empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "nndeploy" / library_cache.FOLDER


@pytest.fixture(name="compiled")
def sources_that_were_compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that a compiler got, which makes `library of <source>` of them."""
    compiled: list[str] = []

    def compile_sources(sources: list[str], _arguments: list[str], _workdir: Path) -> bytes:
        compiled.extend(sources)
        return f"library of {sources[0]}".encode()

    monkeypatch.setattr(library, "_compiled", compile_sources)
    monkeypatch.setattr(library, "zig_missing", lambda: "")
    return compiled


def isa(name: str = "x86-64-v3") -> Isa:
    found = isa_for(target_of(name))
    assert found is not None
    return found


def test_the_same_source_is_compiled_once(folder: Path, compiled: list[str], tmp_path: Path) -> None:
    made = [library.library_from_source(SOURCE, isa(), tmp_path) for _ in range(2)]
    assert made == [f"library of {SOURCE}".encode()] * 2
    assert compiled == [SOURCE]
    assert len(list(folder.iterdir())) == 1


@pytest.mark.usefixtures("folder")
def test_another_instruction_set_source_or_compiler_is_another_library(
    compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.library_from_source(SOURCE, isa(), tmp_path)
    library.library_from_source(SOURCE, isa("x86-64-v4"), tmp_path)
    library.library_from_source(SOURCE + " ", isa(), tmp_path)
    library.library_from_source([SOURCE, ""], isa(), tmp_path)
    monkeypatch.setattr(library, "zig_version", lambda: "another")
    library.library_from_source(SOURCE, isa(), tmp_path)
    assert compiled == [SOURCE, SOURCE, SOURCE + " ", SOURCE, "", SOURCE]


def test_headers_are_part_of_what_a_library_follows_from(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "program.h").write_text(f"/* {name} */")
    keys = {library_cache.library_key("zig", [], [SOURCE], tmp_path / name) for name in ("a", "b")}
    assert len(keys) == 2


@pytest.mark.parametrize("change", ["cut", "turned", "empty", "writable by others"])
def test_what_is_damaged_is_compiled_anew(folder: Path, compiled: list[str], tmp_path: Path, change: str) -> None:
    want = library.library_from_source(SOURCE, isa(), tmp_path)
    (path,) = folder.iterdir()
    data = path.read_bytes()
    changed = {"cut": data[:-1], "turned": data[:-1] + bytes([data[-1] ^ 1]), "empty": b""}
    path.write_bytes(changed.get(change, data))
    path.chmod(0o666 if change == "writable by others" else 0o600)
    assert library.library_from_source(SOURCE, isa(), tmp_path) == want
    assert compiled == [SOURCE] * 2


def test_the_libraries_that_were_used_last_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_cache, "MAX_BYTES", 3 * (100 + 32))
    for number, name in enumerate("abc"):
        library_cache.keep_library(name, bytes(100))
        os.utime(folder / f"{name}.so", (number, number))
    assert library_cache.kept_library("a") == bytes(100)
    library_cache.keep_library("d", bytes(100))
    assert sorted(path.name for path in folder.iterdir()) == ["a.so", "c.so", "d.so"]


def test_nothing_is_kept_where_the_cache_folder_cannot_be_made(
    folder: Path, compiled: list[str], tmp_path: Path
) -> None:
    folder.parents[1].write_text("a file")
    assert [library.library_from_source(SOURCE, isa(), tmp_path) for _ in range(2)]
    assert compiled == [SOURCE] * 2
