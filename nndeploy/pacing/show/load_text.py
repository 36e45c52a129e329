# SPDX-License-Identifier: Apache-2.0
"""The load before and after for people at a terminal and for programs."""

from typing import Any

import numpy as np

from nndeploy.pacing.plan.load_curve import WINDOW_NS, Loads, Timeline
from nndeploy.pacing.show.table import Table
from nndeploy.values.amounts import ms_text

BLOCKS = " ▁▂▃▄▅▆▇█"
COLUMNS_BESIDE = 40
"""How many columns of a terminal stand before the curve."""
LEAST_COLUMNS, MOST_COLUMNS = 20, 100


def loads_table(loads: Loads, columns_of_terminal: int) -> Table:
    """Returns a table of the load; each with its curve where the terminal is wide enough, 0: none."""
    runs = loads.named()
    columns, rows = ["", "takes", "mean", "peak"], [[name, *_figures(run)] for name, run in runs.items()]
    width = min(columns_of_terminal - COLUMNS_BESIDE, MOST_COLUMNS)
    if width >= LEAST_COLUMNS:
        longest = max(run.end for run in runs.values())
        columns.append(f"0 to {ms_text(longest / 1e6)}")
        for row, run in zip(rows, runs.values(), strict=True):
            row.append(blocks(run, longest, width))
    title = f"load of the run's thread, in windows of {WINDOW_NS / 1e6:g} ms"
    return Table(title, columns, rows, columns[1:4])


def _figures(run: Timeline) -> list[str]:
    return [ms_text(run.end / 1e6), f"{run.mean:.0%}", f"{run.peak:.0%}"]


def blocks(run: Timeline, longest: float, width: int) -> str:
    """Returns the load over `longest` nanoseconds as so many block characters, each the load in its middle."""
    moments = (np.arange(width) + 0.5) * longest / width
    load = np.interp(moments, *run.curve, left=0.0, right=0.0)
    return "".join(BLOCKS[round(share * (len(BLOCKS) - 1))] for share in load.tolist())


def loads_to_json(loads: Loads) -> dict[str, Any]:
    """Returns the load of each run as plain data."""
    return {"window_ms": WINDOW_NS / 1e6, **{name: _to_json(run) for name, run in loads.named().items()}}


def _to_json(run: Timeline) -> dict[str, Any]:
    middles, load = run.curve
    return {
        "ms": run.end / 1e6,
        "mean": run.mean,
        "peak": run.peak,
        "sleeps_ms": (run.sleeps / 1e6).tolist(),
        "curve_ms": (middles / 1e6).tolist(),
        "curve": load.tolist(),
    }
