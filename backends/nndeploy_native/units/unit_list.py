# SPDX-License-Identifier: Apache-2.0
"""The units by the number that a table's row names them by, and what each accepts.

Law: c/units/units.h has the same numbers and limits; a test compiles it and compares.
"""

from dataclasses import dataclass

from nndeploy_native.isa import Isa

PACK_INPUT, PACK_WEIGHTS = 1, 2
WIDE_1, WIDE_2, WIDE_4, LANE, DOT, THIN = range(3, 9)
NAMES = {
    PACK_INPUT: "pack-input",
    PACK_WEIGHTS: "pack-weights",
    WIDE_1: "wide-1",
    WIDE_2: "wide-2",
    WIDE_4: "wide-4",
    LANE: "lane",
    DOT: "dot",
    THIN: "thin",
}
MEASURED = frozenset((WIDE_1, WIDE_2, WIDE_4))
"""Which have costs that blocks are chosen by."""
PACKING = frozenset((PACK_INPUT, PACK_WEIGHTS))
ACTIVATIONS = ("none", "relu", "sigmoid", "tanh", "silu", "hardswish", "gelu")
"""The activations, in the order of the numbers in a row's flags."""

_DOT_ROWS, DOT_COLUMNS, _THIN_ROWS, THIN_K = 4, 6, 24, 8


@dataclass(frozen=True, slots=True)
class UnitLimits:
    """A unit's second shape: a block has 1..`rows` rows and 1..`columns` columns.

    Where it `repeats_columns`, a row of a table may hold several blocks side by side.
    """

    rows: int
    columns: int
    repeats_columns: bool


def limits_of(unit: int, columns: int, isa: Isa) -> UnitLimits:
    """Returns the limits of a compute unit in a product of `columns` columns."""
    panel = isa.panel * isa.lanes
    if unit == THIN:
        return UnitLimits(_THIN_ROWS, panel, True)
    if unit == DOT:
        return UnitLimits(min(_DOT_ROWS, isa.accumulators // max(1, min(columns, DOT_COLUMNS))), DOT_COLUMNS, False)
    if unit == LANE:
        return UnitLimits(isa.accumulators // isa.panel, isa.lanes, False)
    panels = {WIDE_1: 1, WIDE_2: 2, WIDE_4: 4}[unit]
    return UnitLimits(isa.accumulators // (isa.panel * panels), panel * panels, True)
