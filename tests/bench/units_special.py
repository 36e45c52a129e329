# SPDX-License-Identifier: Apache-2.0
"""The rival that knows its shape: the same tiles as a table's, in C where every size is a constant.

No table, no interpreter, no call through a pointer: the compiler sees each loop's bounds and each stride.
"""

from functools import partial
from itertools import groupby

from nndeploy_native.units.table import Row, Table
from nndeploy_native.units.unit_list import LANE, PACK_INPUT, PACKING, WIDE_1

_PANELS = {WIDE_1: 1, WIDE_1 + 1: 2, WIDE_1 + 2: 4, LANE: 1}


def special_source(table: Table, relu: bool) -> str:
    """Returns C that exports `nnd_special(op)` for a product of constant weights and the table's first shape."""
    m, n, k = table.first
    rows = [row for row in table.rows if row.unit not in PACKING]
    zones = [list(zone) for _, zone in groupby(rows, key=lambda row: row.offset[1])]
    packs = [row for row in table.rows if row.unit == PACK_INPUT]
    blocks = sum(row.repeat for row in zones[0])
    groups = -(-blocks // packs[0].repeat) if packs else blocks
    lines = [
        '#include "units/library.h"',
        f"enum {{ M = {m}, N = {n}, K = {k}, BLOCKS = {blocks}, GROUPS = {groups} }};",
        "NND_EXPORT void nnd_special(const struct nnd_matmul *op) {",
        "  const struct nnd_bound in = {op->in.data, {K, 1}};",
        "  for (nnd_size group = 0; group < GROUPS; group++) {",
        "    const nnd_size first = BLOCKS * group / GROUPS, last = BLOCKS * (group + 1) / GROUPS;",
        *(["    float *to = op->scratch;", *_for_each_run(zones[0], _packing)] if packs else []),
    ]
    for zone in zones:
        lines += _zone(zone, relu, bool(packs))
    return "\n".join((*lines, "  }", "}", ""))


def _for_each_run(rows: list[Row], body: object) -> list[str]:
    lines, at = [], 0
    for row in rows:
        bounds = f"nnd_max(first, {at}); i < nnd_min(last, {at + row.repeat}); i++"
        lines += [f"    for (nnd_size i = {bounds}) {{", *body(row, at), "    }"]  # type: ignore[operator]
        at += row.repeat
    return lines


def _packing(row: Row, at: int) -> list[str]:
    rows = row.length[0]
    return [
        f"      nnd_pack_tile(&in, {row.offset[0]} + (i - {at}) * {rows}, {rows}, K, to);",
        f"      to += {rows} * nnd_packed_k(K);",
    ]


def _zone(zone: list[Row], relu: bool, packs: bool) -> list[str]:
    begin, length = zone[0].offset[1], zone[0].length[1]
    widest = max(_PANELS[row.unit] for row in zone)
    lane = zone[0].unit == LANE
    lines, column = [], begin
    while column < begin + length:
        while widest > 1 and widest * 32 > begin + length - column:
            widest //= 2
        steps = max(1, (begin + length - column) // (widest * 32))
        lines += [f"    for (nnd_size c = {column}; c < {column + steps * widest * 32}; c += {widest * 32}) {{"]
        lines += ["      to = op->scratch;"] if packs else []
        for panels in {min(widest, _PANELS[row.unit]) for row in zone}:
            assert panels == widest or len(zone) == 1 or widest % panels == 0
        calls = partial(_calls, widest=widest, end=begin + length, lane=lane, relu=relu, packs=packs)
        lines += _for_each_run(zone, calls)
        lines += ["    }"]
        column += steps * widest * 32
    return lines


def _calls(row: Row, at: int, *, widest: int, end: int, lane: bool, relu: bool, packs: bool) -> list[str]:
    rows, panels = row.length[0], min(widest, _PANELS[row.unit])
    vectors = "1" if lane else "NND_PANEL"
    first_row, unit = f"in.data + ({row.offset[0]} + (i - {at}) * {rows}) * K", "wide" if packs else "apart"
    lines = []
    for part in range(0, widest, panels):
        lines += [
            "      {",
            "        const struct nnd_tile_call call = {",
            f"            .in = {'to' if packs else first_row}, .in_row = K,",
            f"            .weights = op->packed + (c + {part * 32}) * K,",
            f"            .weight_step = {vectors} * NND_LANES, .weight_panel = K * 32,",
            f"            .bias = op->bias + c + {part * 32},",
            f"            .out = op->out.data + ({row.offset[0]} + (i - {at}) * {rows}) * N + c + {part * 32},",
            f"            .out_row = N, .k = K, .columns = nnd_min({panels * 32}, {end} - c - {part * 32}),",
            f"            .low = {'0.0f' if relu else '-__builtin_inff()'},",
            f"            .next = (const char *)(op->packed + (c + {panels * 32}) * K),",
            "            .next_step = K > NND_FETCHED_K ? 0 : 128 / (last - first)};",
            f"        nnd_{unit}_unit({rows}, {panels}, {vectors}, &call);",
            "      }",
        ]
    return [*lines, f"      to += {rows} * nnd_packed_k(K);"] if packs else lines
