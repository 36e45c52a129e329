# SPDX-License-Identifier: Apache-2.0
"""What a library of static units holds, as frozen values and as `units.json`; docs/internals/units.md has every field.

Law: `units_manifest_from_json(units_manifest_to_json(m)) == m`, and what has not exactly this form is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nndeploy.bundle.json_fields import Fields, member_from_json, minor_version
from nndeploy.bundle.manifest import Member
from nndeploy.errors import BundleError

UNITS_FORMAT = "nndeploy-units"
UNITS_MAJOR, UNITS_MINOR = 1, 0
CURRENT_FORMAT = {"name": UNITS_FORMAT, "major": UNITS_MAJOR, "minor": UNITS_MINOR}
LIBRARY_NAME, TABLES_NAME = "units.so", "tables.nnt"
MAX_UNITS = 1024
MAX_BLOCK = 1 << 16
_MOST_ID = (1 << 16) - 1


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit by the number `id` that rows of tables name it by; it computes 1..`rows` rows x 1..`columns` columns.

    0 rows and columns: it takes any. `repeats_columns`: a row of a table may hold several blocks side by side. `tails`
    are the marks of rows that it takes. `costs` are nanoseconds for each k and panel of columns, by rows from 1 on
    (0: not measured): of weights in the cache, and of streamed ones; () where nobody measured.
    """

    id: int
    name: str
    operator: str
    rows: int
    columns: int
    repeats_columns: bool
    tails: tuple[str, ...]
    costs: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class UnitsManifest:
    """A library of units for one instruction set; `tools` gives name -> version of what made it."""

    backend: str
    isa: str
    arch: str
    cpu_features: tuple[str, ...]
    units: tuple[Unit, ...]
    tools: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, Member] = field(default_factory=dict)


def units_manifest_to_json(manifest: UnitsManifest) -> dict[str, Any]:
    """Returns the manifest as plain data."""
    return {
        "format": CURRENT_FORMAT,
        "backend": manifest.backend,
        "isa": manifest.isa,
        "arch": manifest.arch,
        "cpu_features": list(manifest.cpu_features),
        "units": [_unit_to_json(unit) for unit in manifest.units],
        "tools": dict(manifest.tools),
        "members": {n: {"sha256": m.sha256, "size_bytes": m.size_bytes} for n, m in manifest.members.items()},
    }


def units_manifest_from_json(data: object) -> UnitsManifest:
    """Returns the manifest that plain data describe.

    Raises:
        BundleError: the data are of a newer format, or not of the form of such a manifest.
    """
    minor = minor_version(data, UNITS_FORMAT, (UNITS_MAJOR, UNITS_MINOR))
    fields = Fields(data, "", ignore_unknown=minor > UNITS_MINOR)
    fields.take("format")
    manifest = UnitsManifest(
        backend=fields.identifier("backend"),
        isa=fields.identifier("isa"),
        arch=fields.identifier("arch"),
        cpu_features=fields.names("cpu_features", least=1),
        units=tuple(_unit(item) for item in fields.list_of_fields("units", least=1)),
        tools=fields.names_by_name("tools"),
        members={name: member_from_json(name, item) for name, item in fields.named_fields("members")},
    )
    fields.end()
    _check(manifest)
    return manifest


def _unit_to_json(unit: Unit) -> dict[str, Any]:
    return {
        "id": unit.id,
        "name": unit.name,
        "operator": unit.operator,
        "rows": unit.rows,
        "columns": unit.columns,
        "repeats_columns": unit.repeats_columns,
        "tails": list(unit.tails),
        "costs": {"cached": list(unit.costs[0]), "streamed": list(unit.costs[1])} if unit.costs else None,
    }


def _unit(fields: Fields) -> Unit:
    unit = Unit(
        id=fields.integer("id", 1, _MOST_ID),
        name=fields.identifier("name"),
        operator=fields.identifier("operator"),
        rows=fields.integer("rows", 0, MAX_BLOCK),
        columns=fields.integer("columns", 0, MAX_BLOCK),
        repeats_columns=fields.boolean("repeats_columns"),
        tails=fields.names("tails", least=1),
        costs=() if fields.is_null("costs") else _costs(fields.fields("costs")),
    )
    fields.end()
    if (unit.rows == 0) != (unit.columns == 0):
        raise fields.refuse("columns", "rows and columns that are both 0 or both more")
    if any(len(costs) != unit.rows or min(costs, default=0) < 0 for costs in unit.costs):
        raise fields.refuse("costs", f"{unit.rows} costs of each kind, none negative")
    return unit


def _costs(fields: Fields) -> tuple[tuple[float, ...], ...]:
    costs = (fields.numbers("cached"), fields.numbers("streamed"))
    fields.end()
    return costs


def _check(manifest: UnitsManifest) -> None:
    numbers, names = [unit.id for unit in manifest.units], {unit.name for unit in manifest.units}
    if numbers != sorted(set(numbers)) or len(names) != len(numbers) or len(numbers) > MAX_UNITS:
        raise BundleError(f"1 to {MAX_UNITS} units by ascending id, each name once, are expected", where="units")
    if list(manifest.cpu_features) != sorted(set(manifest.cpu_features)):
        raise BundleError("the features are not sorted, or one stands twice", where="cpu_features")
    if not {LIBRARY_NAME} <= manifest.members.keys() <= {LIBRARY_NAME, TABLES_NAME}:
        raise BundleError(f"{LIBRARY_NAME}, and perhaps {TABLES_NAME}, are expected", where="members")
