# SPDX-License-Identifier: Apache-2.0
"""The units as `units.json` lists them, and whether such a list means what this nndeploy means by it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nndeploy.bundle.units_manifest import Unit, UnitsManifest
from nndeploy.errors import UnavailableError
from nndeploy_native.isa import Isa
from nndeploy_native.units.image_list import (
    BY_ROWS,
    COLUMNS,
    IMAGE_UNITS,
    TILES,
    block_rows,
    column_positions,
    tile_channels,
)
from nndeploy_native.units.row_list import ALONG, ELEMENTWISE, RUN_FLOATS
from nndeploy_native.units.table import Tail
from nndeploy_native.units.unit_list import DOT, DOT_COLUMNS, MEASURED, NAMES, PACKING, limits_of

if TYPE_CHECKING:
    from nndeploy_native.units.runtime import UnitLibrary

_KINDS = 2  # of costs: weights in the cache, streamed


def unit_entries(isa: Isa, measured: "UnitLibrary | None" = None) -> list[dict[str, Any]]:
    """Returns the units of an instruction set as plain data, with the costs of a library that was measured."""
    products = [_product_entry(unit, isa, measured) for unit in sorted(NAMES)]
    elementwise = [
        _entry(unit, name, "elementwise", (RUN_FLOATS, RUN_FLOATS), (Tail.NONE, Tail.OVERLAP, Tail.VARIABLE))
        for name, unit in ELEMENTWISE.items()
    ]
    along = [
        _entry(unit, name, "along-axis", (0, 0), (Tail.NONE, Tail.VARIABLE, Tail.VARIABLE_TAIL))
        for name, unit in ALONG.items()
    ]
    return [*products, *elementwise, *along, *(_image_entry(unit, isa) for unit in IMAGE_UNITS)]


def check_units(manifest: UnitsManifest, isa: Isa) -> None:
    """Passes a library whose units are, number by number, those that tables of this nndeploy name.

    Raises:
        UnavailableError: they differ.
    """
    expected = unit_entries(isa)
    for unit, entry in zip(manifest.units, expected, strict=False):
        if _without_costs(unit) != {**entry, "costs": None}:
            raise _other(f"unit {unit.id} is {unit.name}")
    if len(manifest.units) != len(expected):
        raise _other(f"{len(manifest.units)} units")


def costs_at(measured: "UnitLibrary", unit: int, kind: int, rows: int) -> int:
    """Returns the index among a library's costs of a unit's blocks of so many rows."""
    per_unit = len(measured.costs) // _KINDS // (max(NAMES) + 1)
    return (kind * (max(NAMES) + 1) + unit) * per_unit + rows


def set_costs(library: "UnitLibrary", units: Sequence[Unit]) -> None:
    """Gives a library the costs of a manifest, where there are any."""
    for unit in units:
        for kind, costs in enumerate(unit.costs):
            for rows, cost in enumerate(costs, 1):
                library.costs[costs_at(library, unit.id, kind, rows)] = cost


def _product_entry(unit: int, isa: Isa, measured: "UnitLibrary | None") -> dict[str, Any]:
    if unit in PACKING:
        return _entry(unit, NAMES[unit], "pack", (0, 0), (Tail.NONE,))
    limits = limits_of(unit, DOT_COLUMNS if unit == DOT else isa.panel * isa.lanes, isa)
    entry = _entry(unit, NAMES[unit], "matmul", (limits.rows, limits.columns), (Tail.NONE, Tail.VARIABLE))
    costs = _costs(unit, limits.rows, measured) if measured and unit in MEASURED else None
    return {**entry, "repeats_columns": limits.repeats_columns, "costs": costs}


def _entry(unit: int, name: str, operator: str, most: tuple[int, int], tails: Sequence[Tail]) -> dict[str, Any]:
    """Returns a unit whose blocks have at most `most` rows and columns."""
    return {
        "id": unit,
        "name": name.replace("_", "-"),
        "operator": operator,
        "rows": most[0],
        "columns": most[1],
        "repeats_columns": False,
        "tails": [tail.name.lower() for tail in tails],
        "costs": None,
    }


def _image_entry(unit: int, isa: Isa) -> dict[str, Any]:
    """Returns the entry of a unit of images: of a tile `rows` are output channels and `columns` pixels.

    Of `columns` it is the other way round; of others they are those of the output.
    """
    vectors, by_rows = unit - TILES.start + 1 if unit in TILES else 0, unit in BY_ROWS
    channels = tile_channels(isa) if vectors <= 2 else -(-tile_channels(isa) // 2)
    computes = by_rows or vectors > 0 or unit == COLUMNS
    rows = block_rows(isa) if by_rows else column_positions(isa) if unit == COLUMNS else channels if vectors else 0
    return {
        "id": unit,
        "name": IMAGE_UNITS[unit],
        "operator": ("pooling" if "pool" in IMAGE_UNITS[unit] else "convolution") if computes else "pack",
        "rows": rows,
        "columns": (4 if unit == COLUMNS else vectors or by_rows) * isa.lanes,
        "repeats_columns": computes,
        "tails": [tail.name.lower() for tail in ((Tail.NONE, Tail.VARIABLE) if computes else (Tail.NONE,))],
        "costs": None,
    }


def _costs(unit: int, rows: int, measured: "UnitLibrary") -> dict[str, list[float]]:
    cached, streamed = (
        [measured.costs[costs_at(measured, unit, kind, block)] for block in range(1, rows + 1)]
        for kind in range(_KINDS)
    )
    return {"cached": cached, "streamed": streamed}


def _without_costs(unit: Unit) -> dict[str, Any]:
    return {
        "id": unit.id, "name": unit.name, "operator": unit.operator, "rows": unit.rows, "columns": unit.columns,
        "repeats_columns": unit.repeats_columns, "tails": list(unit.tails), "costs": None,
    }  # fmt: skip


def _other(what: str) -> UnavailableError:
    return UnavailableError(
        f"a library of other units than this nndeploy's tables name: {what}", hint="make it again: nndeploy units build"
    )
