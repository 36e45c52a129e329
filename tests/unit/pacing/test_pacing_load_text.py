# SPDX-License-Identifier: Apache-2.0
"""The load in a terminal and as plain data."""

import json

import numpy as np

from nndeploy.pacing.plan.load_curve import Loads, Timeline, baseline_timeline
from nndeploy.pacing.show.load_text import blocks, loads_table, loads_to_json

MS = 1e6
HALF = Timeline(80 * MS, np.arange(1, 81).reshape(-1, 2) * MS)
LOADS = Loads(baseline_timeline(40 * MS), HALF, None)


def test_each_block_is_the_load_in_its_middle() -> None:
    assert blocks(baseline_timeline(40 * MS), 80 * MS, 8) == "████    "
    text = blocks(HALF, 80 * MS, 8)
    assert len(text) == 8
    assert set(text[1:-1]) == {"▄"}


def test_a_table_has_curves_on_a_terminal_alone() -> None:
    table = loads_table(LOADS, columns_of_terminal=0)
    assert list(table.rows) == [["before", "40 ms", "100%", "100%"], ["expected", "80 ms", "50%", "50%"]]
    drawn = loads_table(LOADS, columns_of_terminal=100)
    assert drawn.columns[-1] == "0 to 80 ms"
    assert "█" * 20 in next(iter(drawn.rows))[-1]


def test_a_narrow_terminal_has_no_curves() -> None:
    assert loads_table(LOADS, columns_of_terminal=50).columns == loads_table(LOADS, columns_of_terminal=0).columns


def test_plain_data_hold_all_of_it() -> None:
    data = json.loads(json.dumps(loads_to_json(LOADS), allow_nan=False))
    assert set(data) == {"window_ms", "before", "expected"}
    assert data["before"] == {
        "ms": 40, "mean": 1, "peak": 1, "sleeps_ms": [], "curve_ms": [-5, 5, 35, 45], "curve": [0, 1, 1, 0],
    }  # fmt: skip
    expected = data["expected"]
    assert expected["sleeps_ms"][0] == [1, 2]
    assert len(expected["curve_ms"]) == len(expected["curve"])
    assert max(expected["curve"]) == expected["peak"]
