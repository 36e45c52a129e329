# SPDX-License-Identifier: Apache-2.0
"""Measured costs of units on the disk, so that the next process composes by them without measuring: one file each.

Tables themselves are not kept: composing one takes less than reading a file. Laws: what is read has passed every
check, else the file is dropped; a kill at any moment leaves whole files; the folder never holds more than `MAX_FILES`
of them.
"""

import contextlib
import hashlib
import math
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

from nndeploy.files.strict_json import canonical_json
from nndeploy.plugin.cache_file import read_cache, write_cache
from nndeploy.target.target import Target

MAX_FILES = 16
SUFFIX = ".costs"
_MAGIC, _VERSION = b"NNUC", 1
_HEADER = struct.Struct("<4sHHI32s")  # magic, version, number of floats, CRC-32 of key and floats, key
_TEMPORARY = ".costs-"


def costs_key(library: bytes, host: Target) -> bytes:
    """Returns what costs depend on, in 32 bytes: the library's SHA-256 and the CPU."""
    cpu = [host.name, host.arch, list(host.cpu_features), [list(pair) for pair in host.caches]]
    return hashlib.sha256(canonical_json({"library": library.hex(), "cpu": cpu})).digest()


class CostCache:
    """The costs of one library on one CPU in a folder; processes and threads may share the folder."""

    def __init__(self, folder: Path, key: bytes, count: int) -> None:
        """`key` is `costs_key`'s; there are `count` costs."""
        self.path = folder / f"{key.hex()[:32]}{SUFFIX}"
        self._key, self._count = key, count

    def load(self) -> tuple[float, ...]:
        """Returns the costs that are kept, none where the file is missing or anything in it is wrong."""
        data = read_cache(self.path, _HEADER.size + 4 * self._count + 1)
        if not data:
            return ()
        costs = self._costs(data)
        if not costs:
            with contextlib.suppress(OSError):
                self.path.unlink()
        return costs

    def store(self, costs: Sequence[float]) -> bool:
        """Keeps costs in place of those that are kept; returns whether that could be done."""
        body = struct.pack(f"<{self._count}f", *costs)
        head = _HEADER.pack(_MAGIC, _VERSION, self._count, zlib.crc32(self._key + body), self._key)
        with contextlib.suppress(OSError):
            _make_room(self.path)
        return write_cache(self.path, head + body, _TEMPORARY)

    def _costs(self, data: bytes) -> tuple[float, ...]:
        if len(data) != _HEADER.size + 4 * self._count:
            return ()
        magic, version, count, checksum, key = _HEADER.unpack_from(data)
        body = data[_HEADER.size :]
        if (magic, version, count, key) != (_MAGIC, _VERSION, self._count, self._key):
            return ()
        costs = struct.unpack(f"<{count}f", body)
        is_right = zlib.crc32(key + body) == checksum and any(costs)
        return costs if is_right and all(math.isfinite(cost) and cost >= 0 for cost in costs) else ()


def _make_room(path: Path) -> None:
    """Removes what killed writers left, and the oldest files but `path` until one more may come."""
    found = []
    for one in path.parent.iterdir() if path.parent.is_dir() else ():
        if one.name.startswith(_TEMPORARY):
            one.unlink(missing_ok=True)
        elif one.suffix == SUFFIX and one != path:
            found.append((one.lstat().st_mtime, one))
    for _, one in sorted(found)[: max(0, len(found) + 1 - MAX_FILES)]:
        one.unlink(missing_ok=True)
