# SPDX-License-Identifier: Apache-2.0
"""Compiled libraries, kept in the account's cache folder: the same source for the same instruction set compiles once.

A compile takes seconds; a model compiled again, or for one more box, asks for most of the same libraries. Laws: a
library is found only by all that its bytes follow from; what is read has its checksum, else it is compiled anew; the
folder never holds more than `MAX_BYTES`, those that were used last.
"""

import contextlib
import hashlib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from nndeploy.files.account_cache import own_cache_folder
from nndeploy.files.strict_json import canonical_json
from nndeploy.plugin.cache_file import read_cache, write_cache

FOLDER = "native-libraries"
SUFFIX = ".so"
MAX_BYTES = 256 << 20
_TEMPORARY = ".library-"
_DIGEST_BYTES = 32


def library_key(compiler: str, arguments: Sequence[str], sources: Sequence[str], headers: Path) -> str:
    """Returns what the bytes of a library follow from, in 64 hexadecimal digits; no path is among the arguments."""
    said = [compiler, list(arguments), list(sources), _digest_of_headers(headers)]
    return hashlib.sha256(canonical_json(said)).hexdigest()


def kept_library(key: str) -> bytes:
    """Returns the library that was kept, b"" where there is none."""
    folder = own_cache_folder(FOLDER)
    if folder is None:
        return b""
    path = folder / f"{key}{SUFFIX}"
    data = read_cache(path, MAX_BYTES)
    digest, library = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if not library or hashlib.sha256(library).digest() != digest:
        return b""
    with contextlib.suppress(OSError):
        os.utime(path)  # it was used
    return library


def keep_library(key: str, library: bytes) -> None:
    """Keeps a library where the account's cache folder can be used."""
    folder = own_cache_folder(FOLDER)
    if folder is None:
        return
    write_cache(folder / f"{key}{SUFFIX}", hashlib.sha256(library).digest() + library, _TEMPORARY)
    with contextlib.suppress(OSError):
        _drop_the_oldest(folder)


def _drop_the_oldest(folder: Path) -> None:
    found = [(entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in os.scandir(folder)]
    left = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if left <= MAX_BYTES:
            return
        with contextlib.suppress(OSError):  # another process dropped it
            Path(path).unlink()
        left -= size


@cache
def _digest_of_headers(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.[ch]")):
        text = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(text)}\n".encode() + text)
    return digest.hexdigest()
