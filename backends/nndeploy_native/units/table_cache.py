# SPDX-License-Identifier: Apache-2.0
"""Tables of a product on the disk, so that the next process does not compose them again: one file of tables each.

The folder is that of `OpenOptions.cache_dir`. Laws: what is read has passed every check of a table and fits the
product, else the file is dropped; a kill at any moment leaves whole files; the folder never holds more than `MAX_FILES`
files of `MAX_BYTES` in all. One process writes at a time; who finds the folder taken for long keeps nothing.
"""

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from nndeploy.bundle.strict_json import canonical_json
from nndeploy.errors import DataError
from nndeploy.plugin.cache_file import read_cache, write_cache
from nndeploy.target import Target
from nndeploy_native.isa import Isa
from nndeploy_native.units.form import Form, check_form
from nndeploy_native.units.table import Table
from nndeploy_native.units.tables_file import MAX_TABLES, SUFFIX, tables_from_bytes, tables_to_bytes

MAX_FILES = 256
MAX_BYTES = 16 << 20
_MAX_FILE_BYTES = 1 << 20
_TEMPORARY = ".tables-"
_LOCK = ".tables.lock"
_TRIES, _WAIT_SECONDS = 100, 0.005


def cache_key(library: bytes, costs: bytes, form: Form, constant: bool, host: Target) -> bytes:
    """Returns what tables depend on, in 32 bytes: the library's hash, its costs, the product's form, the CPU."""
    facts = {
        "library": hashlib.sha256(library).hexdigest(),
        "costs": hashlib.sha256(costs).hexdigest(),
        "form": [form.k, form.n, form.activation, form.input_is_strided, form.weights_are_strided, constant],
        "cpu": [host.name, host.arch, list(host.cpu_features), [list(pair) for pair in host.caches]],
    }
    return hashlib.sha256(canonical_json(facts)).digest()


class TableCache:
    """The tables of one product in a folder; processes and threads may share the folder."""

    def __init__(self, folder: Path, key: bytes, isa: Isa, form: Form, constant: bool) -> None:
        """`constant` says that the weights are; `key` is `cache_key`'s."""
        self.path = folder / f"{key.hex()[:32]}{SUFFIX}"
        self._key, self._isa, self._form, self._constant = key, isa, form, constant

    def load(self) -> list[Table]:
        """Returns the tables that are kept, none where the file is missing or anything in it is wrong."""
        data = read_cache(self.path, _MAX_FILE_BYTES)
        if not data:
            return []
        try:
            isa, tables = tables_from_bytes(data, self._key)
            if isa is not self._isa:
                raise DataError("tables for another instruction set")
            for table in tables:
                check_form(table, self._form, constant_weights=self._constant, isa=isa)
        except DataError:
            with contextlib.suppress(OSError):
                self.path.unlink()
            return []
        return tables

    def store(self, tables: Iterable[Table]) -> bool:
        """Adds tables to those that are kept, the newest for each first shape; returns whether that could be done."""
        folder = self.path.parent
        with _only_writer(folder) as is_writer:
            if not is_writer:
                return False
            kept = {table.first: table for table in self.load()}
            for table in tables:
                kept.pop(table.first, None)
                kept[table.first] = table
            data = tables_to_bytes(self._isa, list(kept.values())[-MAX_TABLES:], self._key)
            _make_room(folder, self.path.name, len(data))
            return write_cache(self.path, data, _TEMPORARY)


@contextlib.contextmanager
def _only_writer(folder: Path) -> Iterator[bool]:
    """Gives whether this is the one writer of a folder; the system lets go of the lock of a process that is killed."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield False
        return
    try:
        yield _is_locked(lock)
    finally:
        os.close(lock)


def _is_locked(lock: int) -> bool:
    for _ in range(_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(_WAIT_SECONDS)
        else:
            return True
    return False


def _make_room(folder: Path, name: str, num_bytes: int) -> None:
    """Removes what a killed writer left, and the oldest files until `name` fits with so many bytes."""
    found: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.name.startswith(_TEMPORARY):
                path.unlink(missing_ok=True)
            elif path.suffix == SUFFIX and path.name != name:
                status = path.lstat()
                found.append((status.st_mtime, status.st_size, path))
    _remove_oldest(sorted(found), num_bytes)


def _remove_oldest(found: Sequence[tuple[float, int, Path]], num_bytes: int) -> None:
    count, total = len(found), sum(size for _, size, _ in found)
    for _, size, path in found:
        if count < MAX_FILES and total + num_bytes <= MAX_BYTES:
            return
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        count, total = count - 1, total - size
