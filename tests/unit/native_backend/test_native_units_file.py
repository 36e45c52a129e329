# SPDX-License-Identifier: Apache-2.0
"""`units build` and `inspect` on libraries of units and tables: one file, the same bytes, nothing mapped unchecked."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native_models import needs_zig, runnable_isas
from nndeploy_native.units import library_file
from nndeploy_native.units.form import Form
from nndeploy_native.units.library_file import load_units
from nndeploy_native.units.runtime import Product
from nndeploy_native.units.tables_file import tables_to_bytes

from nndeploy.bundle.units_file import open_units, write_units
from nndeploy.bundle.units_manifest import units_manifest_to_json
from nndeploy.cli.main import run_command
from nndeploy.errors import BundleError, MissingInputError, UnavailableError

MIB = 1 << 20


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs_zig()
    path = tmp_path_factory.mktemp("units") / "units.nnu"
    assert run_command(["units", "build", "-o", str(path), "--measure"]) == 0
    return path


def changed(source: Path, path: Path, **facts: Any) -> Path:
    file = open_units(source)
    data = {**units_manifest_to_json(file.manifest), **facts}
    write_units(path, data, {"units.so": bytes(file.library)})
    return path


def refuse_to_map(monkeypatch: pytest.MonkeyPatch) -> None:
    def mapped(_: bytes) -> None:
        raise AssertionError("the library was mapped")

    monkeypatch.setattr(library_file, "UnitLibrary", mapped)


def test_a_library_is_small_and_computes_with_its_measured_costs(built: Path) -> None:
    assert built.stat().st_size <= MIB
    library = load_units(built)
    assert sum(library.costs) > 0
    unit = next(unit for unit in open_units(built).manifest.units if unit.costs)
    assert unit.costs[0][0] in list(library.costs)
    x, w = np.ones((5, 7), np.float32), np.ones((7, 40), np.float32)
    assert (Product(library, Form(7, 40), w)(x) == 7).all()


@pytest.mark.parametrize("box", ["x86-64-v3", "raspberry-pi-5"])
def test_the_same_target_gives_the_same_bytes(box: str, tmp_path: Path, forget_libraries: Callable[[], None]) -> None:
    needs_zig()
    for name in ("a.nnu", "b.nnu"):
        forget_libraries()
        assert run_command(["units", "build", "-o", str(tmp_path / name), "--target", box]) == 0
    assert (tmp_path / "a.nnu").read_bytes() == (tmp_path / "b.nnu").read_bytes()
    assert (tmp_path / "a.nnu").stat().st_size <= MIB
    assert not any(unit.costs for unit in open_units(tmp_path / "a.nnu").manifest.units)


def test_a_library_for_another_machine_is_not_mapped(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_map(monkeypatch)
    monkeypatch.setattr(library_file, "unmet", lambda *_: "needs CPU features this machine lacks: avx999")
    with pytest.raises(UnavailableError, match="avx999"):
        load_units(built)
    monkeypatch.undo()
    refuse_to_map(monkeypatch)
    features = [*open_units(built).manifest.cpu_features, "zzz"]
    with pytest.raises(BundleError, match="instructions"):
        load_units(changed(built, tmp_path / "f.nnu", cpu_features=features))
    with pytest.raises(UnavailableError, match="unknown here"):
        load_units(changed(built, tmp_path / "g.nnu", isa="sparc"))
    units = units_manifest_to_json(open_units(built).manifest)["units"]
    for other in (units[:-1], [*units[:-1], {**units[-1], "rows": 1, "columns": 1, "costs": None}]):
        with pytest.raises(UnavailableError, match="other units"):
            load_units(changed(built, tmp_path / "h.nnu", units=other))


def test_a_damaged_library_is_not_mapped(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_to_map(monkeypatch)
    data = bytearray(built.read_bytes())
    data[data.index(b"\x7fELF") + 200] ^= 1
    (tmp_path / "bad.nnu").write_bytes(data)
    with pytest.raises(BundleError, match="damaged"):
        load_units(tmp_path / "bad.nnu")
    assert run_command(["inspect", str(tmp_path / "bad.nnu")]) == BundleError.exit_code
    with pytest.raises(MissingInputError):
        load_units(tmp_path / "none.nnu")


def test_inspect_lists_the_units(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run_command(["inspect", str(built)]) == 0
    text = capsys.readouterr().out
    for word in ("wide-1", "dot", runnable_isas()[0].name, "units.so", "streamed"):
        assert word in text
    assert run_command(["inspect", str(built), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["manifest"] == units_manifest_to_json(open_units(built).manifest)
    assert run_command(["inspect", str(built), "--here"]) == 2


def test_inspect_draws_tables_from_a_file_and_from_a_library(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = Product(load_units(built), Form(64, 100), np.zeros((64, 100), np.float32))
    tables = [product.table(33), product.table(1)]
    (tmp_path / "t.nnt").write_bytes(tables_to_bytes(runnable_isas()[0], tables))
    packed = tmp_path / "with.nnu"
    assert run_command(["units", "build", "-o", str(packed), "--tables", str(tmp_path / "t.nnt")]) == 0
    for path in (tmp_path / "t.nnt", packed):
        capsys.readouterr()
        assert run_command(["inspect", "--tables", str(path)]) == 0
        text = capsys.readouterr().out
        assert "2 tables" in text
        assert "AAAA" in text
        assert run_command(["inspect", "--tables", "--json", str(path)]) == 0
        shown = json.loads(capsys.readouterr().out)["tables"]
        assert [one["first"] for one in shown] == [list(table.first) for table in tables]
    (tmp_path / "t.nnt").write_bytes(b"NNTS" + bytes(60))
    assert run_command(["inspect", "--tables", str(tmp_path / "t.nnt")]) == 65
    assert run_command(["units", "build", "-o", str(packed), "--tables", str(tmp_path / "t.nnt")]) == 65


def test_a_command_line_that_does_not_fit_writes_nothing(tmp_path: Path) -> None:
    assert run_command(["units", "build", "-o", str(tmp_path / "x.so")]) == 2
    assert run_command(["units", "build", "-o", str(tmp_path / "none" / "x.nnu")]) == 73
    assert run_command(["units", "build", "-o", str(tmp_path / "x.nnu"), "--target", "nobox"]) == 2
    assert list(tmp_path.iterdir()) == []
