# SPDX-License-Identifier: Apache-2.0
"""A row of the table, its statuses, and what all rows together mean: the exit status and the summary.

Law: `row_from_json(row_to_json(r)) == r`.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

GPU_TIERS = ("tensorrt", "cudnn", "triton")

OK = "ok"
WRONG = "WRONG"  # it ran, and the numbers are not the reference's
FAILED = "FAILED"  # an error that is no refusal
CRASHED = "CRASHED"
TIMED_OUT = "TIMED OUT"
REFUSED = "refused"  # with a reason; fine
NOT_RUN = "not run"  # no time was left, or something that it needs is not installed
DIFFERS = "differs"  # a peer (torch, ONNX Runtime on CUDA) is not near the reference; not our fault
BAD = (WRONG, FAILED, CRASHED, TIMED_OUT)


@dataclass(frozen=True, slots=True)
class Row:
    """One line: what was done, by whom, what came of it.

    `ratio` is the best peer's time over ours: above 1 is faster than `peer`. `facts` are further figures by name.
    """

    stage: str
    item: str
    backend: str = ""
    status: str = OK
    reason: str = ""
    max_abs: float | None = None
    ms: float | None = None
    ratio: float | None = None
    peer: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


def row_to_json(row: Row) -> dict[str, Any]:
    """Returns a row as plain data; figures that JSON does not have become None."""
    return {key: _plain(value) for key, value in dataclasses.asdict(row).items()}


def row_from_json(data: Mapping[str, Any]) -> Row:
    """Returns the row that `row_to_json` wrote; keys that it does not know are an error."""
    return Row(**data)


def row_of(stage: str, item: str, status: str, reason: str) -> Row:
    """Returns what became of an item whose stage cannot say it; "tier: x" and "x | tier" name the backend."""
    tier, colon, rest = item.partition(": ")
    if colon and tier in GPU_TIERS:
        return Row(stage, rest, tier, status, reason)
    name, bar, combination = item.partition(" | ")
    return Row(stage, name, combination if bar else "", status, reason)


def exit_status(rows: Sequence[Row]) -> int:
    """Returns 0 where something ran on a GPU tier and nothing was wrong, else 1."""
    checked = any(row.status == OK and row.backend in (*GPU_TIERS, "all", "cuda", "bundle") for row in rows)
    return 0 if checked and not any(row.status in BAD for row in rows) else 1


def summary(rows: Sequence[Row]) -> str:
    """Returns the count of each status in a line, the bad ones first."""
    counts = Counter(row.status for row in rows)
    order = (*BAD, OK, REFUSED, DIFFERS, NOT_RUN)
    return ", ".join(f"{counts[status]} {status}" for status in order if counts[status]) or "nothing was done"


def with_ratios(rows: Sequence[Row], peers: Mapping[str, float]) -> list[Row]:
    """Returns the rows that have a time with their ratio to the fastest of `peers` (name -> ms)."""
    if not peers:
        return list(rows)
    best = min(peers, key=lambda name: peers[name])
    return [
        dataclasses.replace(row, ratio=peers[best] / row.ms, peer=best) if row.ms and row.backend not in peers else row
        for row in rows
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return value
