# SPDX-License-Identifier: Apache-2.0
"""A library that is loaded from bytes: once for the same bytes, and from memory that nobody can change."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from nndeploy.errors import UnavailableError
from nndeploy.files.shared_object import library_from_bytes

pytest.importorskip("ziglang", reason="ziglang is not installed")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("library")
    (folder / "seven.c").write_text("int seven(void) { return 7; }\n")
    command = [sys.executable, "-m", "ziglang", "cc", "-shared", "-fPIC", "-s", "seven.c", "-o", "seven.so"]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return (folder / "seven.so").read_bytes()


def test_equal_bytes_are_loaded_once(library: bytes) -> None:
    loaded = library_from_bytes(library)
    assert loaded.seven() == 7
    assert library_from_bytes(bytes(library)) is loaded


def test_what_is_loaded_cannot_be_changed(library: bytes) -> None:
    path = re.search(r"/proc/self/fd/\d+", library_from_bytes(library)._name)
    assert path is not None
    for mode in ("r+b", "wb"):
        with pytest.raises(OSError, match="Operation not permitted"), Path(path[0]).open(mode) as file:
            file.write(b"other")
    assert Path(path[0]).read_bytes() == library


def test_what_is_no_library_is_one_error() -> None:
    with pytest.raises(UnavailableError, match="cannot be loaded"):
        library_from_bytes(b"no library")
