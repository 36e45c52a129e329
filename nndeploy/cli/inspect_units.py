# SPDX-License-Identifier: Apache-2.0
"""What `nndeploy inspect` says of a library of units, and of tables wherever they are; nothing is run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nndeploy.bundle.manifest_check import all_submodels
from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.units_file import SUFFIX, UnitsFile, open_units
from nndeploy.bundle.units_manifest import TABLES_NAME, Unit, units_manifest_to_json
from nndeploy.cli.console import print_json, print_line, print_table, size_text
from nndeploy.errors import DataError, UnavailableError
from nndeploy.plugin.interface import UnitsMaker
from nndeploy.plugin.registry import backends_in_order

TABLES_SUFFIX = ".nnt"
MAX_TABLES_BYTES = 16 << 20


def is_units_file(path: Path) -> bool:
    """Returns whether a file is called like a library of units."""
    return path.suffix == SUFFIX


def units_maker() -> tuple[str, UnitsMaker]:
    """Returns the first backend that has units, with its name.

    Raises:
        UnavailableError: none has.
    """
    for plugin in backends_in_order():
        if isinstance(plugin, UnitsMaker):
            return plugin.name, plugin
    raise UnavailableError("no installed backend has static units", hint="nndeploy backends lists them")


def checked_tables(maker: UnitsMaker, data: bytes, where: str) -> list[tuple[dict[str, Any], str]]:
    """Returns the tables of a file as plain data and as pictures.

    Raises:
        DataError: it is no file of tables, or one of them cannot be run.
    """
    try:
        return maker.tables_to_show(data)
    except DataError as err:
        err.within(where)
        raise


def show_units(path: Path, as_json: bool) -> None:
    """Prints what a library of units holds; its hashes are compared."""
    file = open_units(path)
    file.verify()
    if as_json:
        manifest = units_manifest_to_json(file.manifest)
        print_json({"units": str(path), "size_bytes": file.size_bytes, "manifest": manifest})
    else:
        _print_units(file)


def show_tables(path: Path, as_json: bool) -> None:
    """Prints each table of a file of tables, of a library of units or of a bundle."""
    _, maker = units_maker()
    found = [(name, shown) for name, data in _tables_in(path) for shown in checked_tables(maker, data, f"{path}{name}")]
    if as_json:
        print_json({"file": str(path), "tables": [{"member": name.lstrip(": "), **data} for name, (data, _) in found]})
        return
    print_line(f"{path}: {len(found)} tables")
    for name, (_, picture) in found:
        print_line("")
        for line in (*([name.lstrip(": ")] if name else []), *picture.splitlines()):
            print_line(line)


def _tables_in(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yields the files of tables in a file, each with ": member" as its name, "" for the file itself."""
    from nndeploy.files.whole_files import read_regular

    if is_units_file(path):
        tables = open_units(path).tables
        if tables is not None:
            yield f": {TABLES_NAME}", bytes(tables)
    elif path.suffix == TABLES_SUFFIX:
        yield "", read_regular(path, MAX_TABLES_BYTES)
    else:
        with open_bundle(path) as bundle:
            variants = [one for submodel in all_submodels(bundle.manifest) for one in submodel.variants]
            members = {name for one in variants for file, name in one.files.items() if file.endswith(TABLES_SUFFIX)}
            for name in sorted(members):
                yield f": {name}", bytes(bundle.member(name))


def _print_units(file: UnitsFile) -> None:
    manifest = file.manifest
    print_line(f"{file.path}: {len(manifest.units)} units of {manifest.backend} for {manifest.isa}, "
               f"{size_text(file.size_bytes)}")  # fmt: skip
    print_line(f"needs {manifest.arch}: {', '.join(manifest.cpu_features)}")
    print_line(f"made by: {', '.join(f'{name} {version}' for name, version in manifest.tools.items())}")
    columns = ("id", "unit", "operator", "rows", "columns", "side by side", "tails", "ns for each k and panel")
    rows = [_cells(unit) for unit in manifest.units]
    print_table("units, by the number in a row of a table", columns, rows, right=("id",))
    members = [(name, size_text(one.size_bytes), one.sha256) for name, one in sorted(manifest.members.items())]
    print_table("members", ("member", "size", "sha256"), members, right=("size",))


def _cells(unit: Unit) -> tuple[str, ...]:
    return (
        str(unit.id),
        unit.name,
        unit.operator,
        f"1 to {unit.rows}" if unit.rows else "any",
        f"1 to {unit.columns}" if unit.columns else "any",
        "yes" if unit.repeats_columns else "no",
        ", ".join(unit.tails),
        _costs(unit),
    )


def _costs(unit: Unit) -> str:
    """Returns the costs of the largest block, as little of it as fits a table."""
    if not unit.costs:
        return "not measured"
    cached, streamed = (kind[-1] for kind in unit.costs)
    return f"{cached:.2f} cached, {streamed:.2f} streamed" if cached else "not measured"
