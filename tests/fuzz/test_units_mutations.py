# SPDX-License-Identifier: Apache-2.0
"""Damaged and hostile libraries of units and files of tables: one error of the project, never a traceback."""

import copy
import math
import random
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nndeploy_native.isa import ISAS
from nndeploy_native.units.picture import tables_to_show
from nndeploy_native.units.table import GOES_ON, Row, Table, Tail
from nndeploy_native.units.tables_file import tables_from_bytes, tables_to_bytes
from nndeploy_native.units.unit_entries import unit_entries
from nndeploy_native.units.unit_list import LANE, PACK_INPUT, WIDE_1

from nndeploy.bundle.units_file import UnitsFile, write_units
from nndeploy.bundle.units_manifest import units_manifest_from_json, units_manifest_to_json
from nndeploy.errors import BundleError, DataError

NUM_MUTANTS = 3000
ISA = ISAS[0]
FACTS: dict[str, Any] = {
    "backend": "native", "isa": ISA.name, "arch": ISA.arch, "cpu_features": sorted(ISA.cpu_features),
    "units": unit_entries(ISA), "tools": {"ziglang": "0"},
}  # fmt: skip
PACK = Row(PACK_INPUT, 0, 0, 4, (0, 0, 0), (20, 0, 9))
TABLE = Table(
    (20, 40, 9), 0, 0,
    (
        PACK,
        Row(WIDE_1, 0, GOES_ON, 1, (0, 0, 0), (14, 32, 9)),
        Row(WIDE_1, Tail.VARIABLE, 0, 1, (14, 0, 0), (6, 32, 9)),
        Row(LANE, 0, GOES_ON, 1, (0, 32, 0), (14, 8, 9)), Row(LANE, Tail.VARIABLE, 0, 1, (14, 32, 0), (6, 8, 9)),
    ),
)  # fmt: skip
HEADER_BYTES = 64


@pytest.fixture(scope="module")
def units(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("units") / "a.nnu"
    write_units(path, FACTS, {"units.so": bytes(range(256)) * 20, "tables.nnt": tables_to_bytes(ISA, [TABLE])})
    return path.read_bytes()


def opened(data: bytes) -> None:
    file = UnitsFile(data, Path("a.nnu"))
    assert file.library
    assert file.tables


def mutants(data: bytes, dice: random.Random) -> Iterator[bytes]:
    """Yields other bytes: flipped, cut, longer, a piece moved, zeroed."""
    for _ in range(NUM_MUTANTS):
        at, other = dice.randrange(len(data)), dice.randrange(len(data))
        mutant = bytearray(data)
        match dice.randrange(5):
            case 0:
                mutant[at] ^= 1 << dice.randrange(8)
            case 1:
                del mutant[at:]
            case 2:
                mutant[at:at] = dice.randbytes(dice.randint(1, 40))
            case 3:
                mutant[at : at + 8] = data[other : other + 8]
            case _:
                mutant[at : at + 32] = bytes(len(data[at : at + 32]))
        if mutant != data:
            yield bytes(mutant)


def test_no_mutant_of_a_library_is_taken(units: bytes) -> None:
    opened(units)
    for mutant in mutants(units, random.Random(1)):  # noqa: S311 - no secret
        with pytest.raises(BundleError):
            opened(mutant)


def test_no_mutant_of_a_file_of_tables_is_taken() -> None:
    data = tables_to_bytes(ISA, [TABLE, TABLE])
    assert tables_from_bytes(data) == (ISA, [TABLE, TABLE])
    for mutant in mutants(data, random.Random(2)):  # noqa: S311 - no secret
        with pytest.raises(DataError):
            tables_from_bytes(mutant)


def test_reserved_bytes_are_zeros() -> None:
    data = bytearray(tables_to_bytes(ISA, [TABLE]))
    data[HEADER_BYTES - 1], data[12:16] = 1, bytes(4)
    data[12:16] = struct.pack("<I", zlib.crc32(data))
    with pytest.raises(DataError, match="reserved"):
        tables_from_bytes(bytes(data))


def test_tables_with_right_checksums_are_run_or_refused() -> None:
    """As after an attacker made the checksums anew: what is taken is another table that passes, and can be shown."""
    dice, taken = random.Random(3), 0  # noqa: S311 - no secret
    data = tables_to_bytes(ISA, [TABLE])
    for _ in range(NUM_MUTANTS):
        mutant = bytearray(data)
        at = dice.randrange(HEADER_BYTES, len(data))
        mutant[at] = dice.choice((0, 1, 2, 0x7F, 0x80, 0xFF, dice.randrange(256)))
        table = mutant[HEADER_BYTES:]
        table[28:32] = bytes(4)
        mutant[HEADER_BYTES + 28 : HEADER_BYTES + 32] = struct.pack("<I", zlib.crc32(table))
        mutant[12:16] = bytes(4)
        mutant[12:16] = struct.pack("<I", zlib.crc32(mutant))
        try:
            taken += bool(tables_to_show(bytes(mutant)))
        except DataError:
            continue
    assert taken < NUM_MUTANTS / 4


def test_manifests_of_another_form_are_refused() -> None:
    dice = random.Random(4)  # noqa: S311 - no secret
    member = {"sha256": "0" * 64, "size_bytes": 1}
    good = {"format": {"name": "nndeploy-units", "major": 1, "minor": 0}, **FACTS, "members": {"units.so": member}}
    assert units_manifest_to_json(units_manifest_from_json(good)) == good
    for _ in range(NUM_MUTANTS):
        data = copy.deepcopy(good)
        mutate(data, dice)
        try:
            manifest = units_manifest_from_json(data)
        except BundleError:
            continue
        assert units_manifest_from_json(units_manifest_to_json(manifest)) == manifest


def mutate(data: Any, dice: random.Random) -> None:
    """Changes one thing somewhere inside plain data."""
    while True:
        keys = list(data) if isinstance(data, dict) else list(range(len(data)))
        key = dice.choice(keys)
        if isinstance(data[key], dict | list) and data[key] and dice.random() < 0.7:
            data = data[key]
            continue
        if dice.random() < 0.3:
            del data[key]
        elif isinstance(data, dict) and dice.random() < 0.2:
            data["more"] = 1
        else:
            data[key] = dice.choice([None, True, -1, 0, 1.5, 1 << 70, "", "x", "\0", [], {}, [None], {"": 1}, math.nan])
        return
