# SPDX-License-Identifier: Apache-2.0
"""The bundles that this account compiled on this machine, known by the SHA-256 of their manifests.

A bundle of data is not signed, so that it has the same bytes wherever it was made; so this list says which ones are no
stranger's. It lies in the account's cache, where no process in a sandbox writes, and what it lost counts as a
stranger's. Law: a bundle is noted by the process that the user started, after the compile, and in no other way.
"""

import contextlib
import hashlib
import os
from pathlib import Path

from nndeploy.bundle.reader import Bundle
from nndeploy.errors import NndeployError
from nndeploy.files.own_cache import own_cache_folder
from nndeploy.files.whole_files import let_go, read_regular, write_file

MOST_BYTES = 1 << 20
"""The list is of some 16,000 bundles; beyond that, the older half is forgotten."""


def note_made_here(bundle: Bundle) -> None:
    """Notes a bundle; silently not where the account has no cache."""
    path = _list()
    if path is None or is_made_here(bundle):
        return
    with contextlib.suppress(OSError, NndeployError):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(descriptor, b"\n" + _digest(bundle) + b"\n")  # a line that power cut before it stays its own
        finally:
            let_go(descriptor)
        if path.stat().st_size > MOST_BYTES:
            lines = path.read_bytes().splitlines(keepends=True)
            write_file(path, lambda file: file.write(b"".join(lines[len(lines) // 2 :])))


def is_made_here(bundle: Bundle) -> bool:
    """Returns whether a bundle was noted."""
    path = _list()
    if path is None:
        return False
    try:
        return _digest(bundle) in read_regular(path, 2 * MOST_BYTES).split()
    except NndeployError:
        return False


def _list() -> Path | None:
    folder = own_cache_folder("")
    return None if folder is None else folder / "made-here"


def _digest(bundle: Bundle) -> bytes:
    return hashlib.sha256(bundle.manifest_text).hexdigest().encode()
