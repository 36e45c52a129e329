# SPDX-License-Identifier: Apache-2.0
"""Processes that share a folder of kept tables, and are killed at random; what is left is looked at afterwards."""

import random
import subprocess
import sys
import time
from pathlib import Path

from nndeploy_native.isa import ISAS
from nndeploy_native.units.form import Form
from nndeploy_native.units.runtime import Product, UnitLibrary
from nndeploy_native.units.table import Table
from nndeploy_native.units.table_cache import MAX_BYTES, MAX_FILES, TableCache
from nndeploy_native.units.tables_file import SUFFIX, tables_from_bytes

FORM = Form()
NUM_KEYS = 40
_TABLES_AT_ONCE = 16


def key_of(number: int) -> bytes:
    return number.to_bytes(32, "little")


def composed(product: Product, seed: int, count: int) -> list[Table]:
    """Returns the tables of `count` random first shapes, as one process composes them."""
    dice = random.Random(seed)  # noqa: S311 - no secret
    return [product.table(*(dice.randint(1, 3000) for _ in range(3))) for _ in range(count)]


def fill(library_file: str, isa_name: str, folder: str, seed: int, count: int) -> None:
    """Composes, keeps and reads tables again, each read one compared with what is composed."""
    product = Product(UnitLibrary(Path(library_file).read_bytes()), FORM)
    isa = next(isa for isa in ISAS if isa.name == isa_name)
    for begin in range(0, count, _TABLES_AT_ONCE):
        tables = composed(product, seed + begin, _TABLES_AT_ONCE)
        cache = TableCache(Path(folder), key_of((seed + begin) % NUM_KEYS), isa, FORM, False)
        cache.store(tables)
        for table in cache.load():
            assert product.table(*table.first) == table


def fill_and_kill(library_file: Path, isa_name: str, folder: Path, processes: int, shapes: int, kills: int) -> int:
    """Lets processes fill a folder, kills at random `kills` of them, starts each again; returns how many died of it."""
    dice, killed, started = random.Random(6), 0, 0  # noqa: S311 - no secret

    def start() -> "subprocess.Popen[bytes]":
        nonlocal started
        started += 1
        arguments = [str(library_file), isa_name, str(folder), str(1000 * started), str(shapes // processes)]
        return subprocess.Popen([sys.executable, __file__, *arguments])

    running = [start() for _ in range(processes)]
    while running:
        time.sleep(0.3 * dice.random())
        at = dice.randrange(len(running))
        if killed < kills and running[at].poll() is None:
            running[at].kill()
            if running[at].wait() < 0:
                killed += 1
                running[at] = start()
        for one in [one for one in running if one.poll() is not None]:
            assert one.returncode == 0, "a process failed"
            running.remove(one)
    return killed


def check_folder(library_file: Path, folder: Path) -> int:
    """Checks every file and the bounds; returns the number of tables."""
    product = Product(UnitLibrary(library_file.read_bytes()), FORM)
    files, count = [path for path in folder.iterdir() if path.suffix == SUFFIX], 0
    for path in files:
        _, tables = tables_from_bytes(path.read_bytes())
        assert all(product.table(*table.first) == table for table in tables), f"{path}: a wrong table"
        count += len(tables)
    assert len(files) <= MAX_FILES
    assert sum(path.stat().st_size for path in files) <= MAX_BYTES
    assert len(list(folder.iterdir())) <= len(files) + 2, "more than the lock and what one kill left"
    return count


if __name__ == "__main__":
    fill(*sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5]))
