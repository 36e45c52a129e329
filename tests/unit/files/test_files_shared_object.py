# SPDX-License-Identifier: Apache-2.0
"""A library that is loaded from bytes: once for the same bytes, and from memory that nobody can change."""

import re
from pathlib import Path

import pytest
from c_library import library_from_source, zig_missing

from nndeploy.errors import UnavailableError
from nndeploy.files.shared_object import library_from_bytes

pytestmark = pytest.mark.skipif(bool(zig_missing()), reason=zig_missing())


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    source = '__attribute__((visibility("default"))) int seven(void) { return 7; }'
    return library_from_source([source], tmp_path_factory.mktemp("library")).read_bytes()


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
