# SPDX-License-Identifier: Apache-2.0
"""The load in a terminal and as plain data."""

import json

import numpy as np
import pytest

from nndeploy.cli import load_view
from nndeploy.cli.load_view import blocks, loads_to_json, print_loads
from nndeploy.pacing.load_curve import Loads, Timeline, baseline_timeline

MS = 1e6
HALF = Timeline(80 * MS, np.arange(1, 81).reshape(-1, 2) * MS)
LOADS = Loads(baseline_timeline(40 * MS), HALF, None)


def test_each_block_is_the_load_in_its_middle() -> None:
    assert blocks(baseline_timeline(40 * MS), 80 * MS, 8) == "████    "
    text = blocks(HALF, 80 * MS, 8)
    assert len(text) == 8
    assert set(text[1:-1]) == {"▄"}


def test_a_table_has_curves_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    print_loads(LOADS)
    said = capsys.readouterr().out
    assert not set(said) & set("▁▂▃▄▅▆▇█")
    assert [line.split() for line in said.splitlines()[-3:-1]] == [
        ["before", "40", "ms", "100%", "100%"],
        ["expected", "80", "ms", "50%", "50%"],
    ]
    monkeypatch.setattr(load_view, "columns_of_terminal", lambda: 100)
    print_loads(LOADS)
    assert "█" * 20 in capsys.readouterr().out


def test_a_narrow_terminal_has_no_curves(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(load_view, "columns_of_terminal", lambda: 50)
    print_loads(LOADS)
    assert "█" not in capsys.readouterr().out


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
