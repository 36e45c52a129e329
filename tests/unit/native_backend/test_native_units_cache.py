# SPDX-License-Identifier: Apache-2.0
"""Tables on the disk: what comes back is what was kept or nothing, whoever writes, dies or damages."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from native_models import needs_zig, runnable_isas
from nndeploy_native.units import table_cache
from nndeploy_native.units.compile_units import build_units
from nndeploy_native.units.form import Form
from nndeploy_native.units.runtime import Product, UnitLibrary
from nndeploy_native.units.table_cache import TableCache, cache_key
from nndeploy_native.units.tables_file import MAX_TABLES
from nndeploy_native.units.unit_list import PACK_WEIGHTS
from units_cache_kills import FORM, check_folder, composed, fill_and_kill, key_of

from nndeploy.target import host_target


@pytest.fixture(scope="module")
def library_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs_zig()
    folder = tmp_path_factory.mktemp("units")
    path = folder / "units.so"
    path.write_bytes(build_units(runnable_isas()[0], folder))
    return path


@pytest.fixture
def product(library_file: Path) -> Product:
    return Product(UnitLibrary(library_file.read_bytes()), FORM)


def cache_in(folder: Path, number: int = 1, form: Form = FORM, constant: bool = False) -> TableCache:
    return TableCache(folder / "cache", key_of(number), runnable_isas()[0], form, constant)


def test_what_was_kept_comes_back_and_is_added_to(tmp_path: Path, product: Product) -> None:
    tables = list({table.first: table for table in composed(product, 1, 30)}.values())
    assert cache_in(tmp_path).load() == []
    assert cache_in(tmp_path).store(tables[:20])
    assert cache_in(tmp_path).store(tables[20:])
    assert cache_in(tmp_path).load() == tables
    assert cache_in(tmp_path, 2).load() == []


def test_anything_wrong_in_a_file_drops_it(tmp_path: Path, product: Product) -> None:
    cache = cache_in(tmp_path)
    for number in range(0, 300, 7):
        cache.store(composed(product, 2, 3))
        data = bytearray(cache.path.read_bytes())
        data[number % len(data)] ^= 1 + number % 255
        cache.path.write_bytes(data)
        assert cache.load() == []
        assert not cache.path.exists()


def test_tables_of_another_product_are_dropped(tmp_path: Path, product: Product) -> None:
    table = product.table(40, 96, 50)
    assert any(row.unit == PACK_WEIGHTS for row in table.rows)
    fitting: list[tuple[Form, bool]] = [(FORM, False), (Form(50, 96), False)]
    others = [(Form(50, 97), False), (Form(51, 96), False), (Form(50, 96, "relu"), False), (Form(50, 96), True)]
    for form, constant in (*fitting, *others):
        assert cache_in(tmp_path).store([table])
        found = cache_in(tmp_path, 1, form, constant).load()
        assert found == ([table] if (form, constant) in fitting else []), form


def test_the_key_knows_all_that_tables_depend_on() -> None:
    host = host_target()
    keys = {
        cache_key(b"so", b"costs", Form(3, 4), True, host),
        cache_key(b"so2", b"costs", Form(3, 4), True, host),
        cache_key(b"so", b"costs2", Form(3, 4), True, host),
        cache_key(b"so", b"costs", Form(3, 4), False, host),
        cache_key(b"so", b"costs", Form(4, 3), True, host),
        cache_key(b"so", b"costs", Form(3, 4, "relu"), True, host),
        cache_key(b"so", b"costs", Form(3, 4, "none", True), True, host),
        cache_key(b"so", b"costs", Form(3, 4), True, replace(host, cpu_features=("sse",))),
    }
    assert len(keys) == 8


def test_files_tables_and_bytes_are_bounded(tmp_path: Path, product: Product, monkeypatch: Any) -> None:
    monkeypatch.setattr(table_cache, "MAX_FILES", 3)
    for number in range(8):
        assert cache_in(tmp_path, number).store(composed(product, number, 4))
        assert len(list((tmp_path / "cache").glob("*.nnt"))) <= 3
    assert cache_in(tmp_path, 7).load()
    monkeypatch.setattr(table_cache, "MAX_BYTES", 2000)
    assert cache_in(tmp_path, 8).store(composed(product, 8, 4))
    assert sum(path.stat().st_size for path in (tmp_path / "cache").glob("*.nnt")) <= 2000
    for begin in range(0, MAX_TABLES + 200, 200):
        cache_in(tmp_path, 9).store(composed(product, begin, 200))
    assert len(cache_in(tmp_path, 9).load()) <= MAX_TABLES


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path, product: Product) -> None:
    (tmp_path / "cache").write_bytes(b"a file")
    assert not cache_in(tmp_path).store(composed(product, 1, 1))
    assert cache_in(tmp_path).load() == []


def test_processes_that_are_killed_leave_nothing_wrong(tmp_path: Path, library_file: Path) -> None:
    isa = runnable_isas()[0].name
    assert fill_and_kill(library_file, isa, tmp_path / "cache", processes=3, shapes=600, kills=4) == 4
    assert check_folder(library_file, tmp_path / "cache")
