# SPDX-License-Identifier: Apache-2.0
"""The kernels that a GPU compiled for an engine, kept in a file so that the next start does not compile them again.

One file an engine, GPU and library version. The library checks a file against library, driver and GPU and ignores it
when something differs. What is in it is code, so a file is read only where nobody but this user could have
written it; writing is atomic, and where it cannot be done the cache is simply not kept.

Source: TensorRT-RTX 1.7, IRuntimeCache.
"""

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

MAX_BYTES = 1 << 30
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def cache_path(folder: str, engine: memoryview, version: str, capability: str) -> Path:
    """Returns where the cache of an engine lies in `folder`, for a library version and a compute capability."""
    digest = hashlib.sha256(engine)
    digest.update(f"\0{version}\0{capability}".encode())
    return Path(folder) / f"{digest.hexdigest()[:32]}.rtcache"


def read_cache(path: Path) -> bytes:
    """Returns what a cache file holds; b"" where there is none, or where someone else could have written it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return b""
    if not _is_ours(os.fstat(descriptor)) or not _is_ours_folder(path.parent):
        os.close(descriptor)
        return b""
    try:
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MAX_BYTES)
    except OSError:
        return b""


def write_cache(path: Path, data: bytes) -> bool:
    """Writes a cache file in one step; returns whether that could be done."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=".rtcache-", dir=path.parent)
    except OSError:
        return False
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(temporary).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        return False
    return True


def _is_ours(found: os.stat_result) -> bool:
    return (
        stat.S_ISREG(found.st_mode)
        and found.st_uid == os.getuid()
        and found.st_nlink == 1
        and not found.st_mode & _WRITABLE_BY_OTHERS
        and found.st_size <= MAX_BYTES
    )


def _is_ours_folder(folder: Path) -> bool:
    found = folder.stat()
    return found.st_uid in (os.getuid(), 0) and not found.st_mode & _WRITABLE_BY_OTHERS
