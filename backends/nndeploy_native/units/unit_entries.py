# SPDX-License-Identifier: Apache-2.0
"""The units as `units.json` lists them, and whether such a list means what this nndeploy means by it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nndeploy.bundle.units_manifest import Unit, UnitsManifest
from nndeploy.errors import UnavailableError
from nndeploy_native.isa import Isa
from nndeploy_native.units.row_list import ALONG, ELEMENTWISE, RUN_FLOATS
from nndeploy_native.units.table import Tail
from nndeploy_native.units.unit_list import DOT, DOT_COLUMNS, NAMES, PACKING, limits_of

if TYPE_CHECKING:
    from nndeploy_native.units.runtime import UnitLibrary

_KINDS = 2  # of costs: weights in the cache, streamed


def unit_entries(isa: Isa, measured: "UnitLibrary | None" = None) -> list[dict[str, Any]]:
    """Returns the units of an instruction set as plain data, with the costs of a library that was measured."""
    products = [_entry(unit, isa, measured) for unit in sorted(NAMES)]
    elementwise = [
        _row_entry(unit, name, "elementwise", RUN_FLOATS, (Tail.NONE, Tail.OVERLAP, Tail.VARIABLE))
        for name, unit in ELEMENTWISE.items()
    ]
    along = [
        _row_entry(unit, name, "along-axis", 0, (Tail.NONE, Tail.VARIABLE, Tail.VARIABLE_TAIL))
        for name, unit in ALONG.items()
    ]
    return [*products, *elementwise, *along]


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


def _entry(unit: int, isa: Isa, measured: "UnitLibrary | None") -> dict[str, Any]:
    packs = unit in PACKING
    limits = None if packs else limits_of(unit, DOT_COLUMNS if unit == DOT else isa.panel * isa.lanes, isa)
    rows = limits.rows if limits else 0
    return {
        "id": unit,
        "name": NAMES[unit],
        "operator": "pack" if packs else "matmul",
        "rows": rows,
        "columns": limits.columns if limits else 0,
        "repeats_columns": bool(limits and limits.repeats_columns),
        "tails": [Tail.NONE.name.lower()] if packs else [Tail.NONE.name.lower(), Tail.VARIABLE.name.lower()],
        "costs": _costs(unit, rows, measured) if measured and rows else None,
    }


def _row_entry(unit: int, name: str, operator: str, most: int, tails: Sequence[Tail]) -> dict[str, Any]:
    return {
        "id": unit,
        "name": name.replace("_", "-"),
        "operator": operator,
        "rows": most,
        "columns": most,
        "repeats_columns": False,
        "tails": [tail.name.lower() for tail in tails],
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
