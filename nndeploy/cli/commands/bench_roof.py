# SPDX-License-Identifier: Apache-2.0
"""What `bench --operators` tells beside times: the roof, which no operator can be faster than, and fused against apart.

The roof of an operator is what its operations take at the processor's peak, or its bytes where these take longer, from
the smallest memory that holds them. Peaks are measured here, with as many threads as run.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nndeploy.errors import UnavailableError
from nndeploy.pacing.plan.estimate import least_ns
from nndeploy.pacing.run.paced_program import ProgramPoint
from nndeploy.plugin.interface import FusedSession, MeasuresRoof, Roof
from nndeploy.plugin.registry import backends_in_order
from nndeploy.runtime.program import Program

FLOAT32, INT8, MEMORY = "float32", "int8", "memory"


def add_roof(
    rows: Sequence[dict[str, Any]], points: Sequence[ProgramPoint], program: Program, threads: int | None
) -> Roof | None:
    """Adds to each row `roof_us`, `roof_share` and `bound`, None where nothing is known; returns what was measured.

    An operator whose values have no name in the model counts with the next one of which it is known what it computes.
    """
    on_cpu = {one.submodel for one in program.choices if one.device == "cpu"}
    amounts = [point.amount if point.submodel in on_cpu else None for point in points]
    roof = _measured(threads, max((one.bytes for one in amounts if one is not None), default=0))
    us_before = dict.fromkeys((point.submodel for point in points), 0.0)
    for row, amount, point in zip(rows, amounts, points, strict=True):
        row |= {"roof_us": None, "roof_share": None, "bound": None}
        us = us_before[point.submodel] + row["us"]
        us_before[point.submodel] = us
        if amount is not None and any(amount) and roof is not None:
            computing, moving = least_ns(amount, roof, is_quantised=point.is_quantised)
            row["roof_us"] = max(computing, moving) / 1e3
            row["roof_share"] = row["roof_us"] / us if us else None
            row["bound"] = MEMORY if moving > computing else INT8 if point.is_quantised else FLOAT32
            us_before[point.submodel] = 0.0
    return roof


def _measured(threads: int | None, most_bytes: int) -> Roof | None:
    found = next((one for one in backends_in_order() if isinstance(one, MeasuresRoof)), None)
    try:
        return None if found is None else found.roof(threads, most_bytes)
    except UnavailableError:
        return None


def add_apart(rows: Sequence[dict[str, Any]], program: Program, run: Callable[[], object]) -> None:
    """Adds to each row `apart`: how many times its time the operator takes apart, None where it is not fused.

    `run` runs the program so often that each way has its turns.
    """
    sessions = {
        submodel: session
        for submodel, session in program.sessions.items()
        if isinstance(session, FusedSession) and session.has_fused_steps
    }
    for session in sessions.values():
        session.begin_apart()
    if sessions:
        run()
    times = {submodel: iter(session.end_apart()) for submodel, session in sessions.items()}
    for row in rows:
        found = next(times.get(row["submodel"], iter(())), None)
        row["apart"] = None if found is None or not found.fused_ns else found.apart_ns / found.fused_ns


def reached(rows: Sequence[Mapping[str, Any]], points: Sequence[ProgramPoint]) -> Mapping[str, Any]:
    """Returns `roof_us` and `roof_share` of all operators together, None where it is not known what one computes."""
    roof_us, us = sum(row["roof_us"] or 0.0 for row in rows), sum(row["us"] for row in rows)
    if not us or not roof_us or any(point.amount is None for point in points):
        return {"roof_us": None, "roof_share": None}
    return {"roof_us": roof_us, "roof_share": roof_us / us}


def roof_to_json(roof: Roof) -> Mapping[str, Any]:
    """Returns a roof as plain data: G operations a second, and GB/s by bytes."""
    return {
        "threads": roof.threads,
        "float32_gflops_per_s": roof.float32_per_s / 1e9,
        "int8_gops_per_s": roof.int8_per_s / 1e9,
        "memory": [{"bytes": size, "gbytes_per_s": rate / 1e9} for size, rate in roof.bytes_per_s.items()],
    }


def limit_text(row: Mapping[str, Any]) -> str:
    """Returns the rate that an operator cannot exceed, "" where none is known."""
    if not row["roof_us"]:
        return ""
    amount, unit = (row["bytes"], "GB/s") if row["bound"] == MEMORY else (row["flops"], "GFLOP/s")
    return f"{amount / row['roof_us'] / 1e3:.3g} {'int8 Gop/s' if row['bound'] == INT8 else unit}"
