# SPDX-License-Identifier: Apache-2.0
"""What was measured is drawn in proportion, its text stays text, and what is something else is refused."""

import re
from typing import Any

import pytest

from nndeploy.cli.pages.measured_part import measured_part
from nndeploy.errors import DataError

HOSTILE = "<img src=x onerror=alert(1)>\"'"
OPERATOR: dict[str, Any] = {
    "submodel": "s0", "operator": "Conv a", "us": 40.0, "share": 0.8, "roof_us": 10.0, "roof_share": 0.25,
    "bound": "float32",
}  # fmt: skip
UNKNOWN: dict[str, Any] = {
    "submodel": "s0",
    "operator": "If b",
    "us": 10.0,
    "share": 0.2,
    "roof_us": None,
    "roof_share": None,
    "bound": None,
}
OPERATORS: dict[str, Any] = {"run_us": 52.0, "roof_share": 0.2, "operators": [OPERATOR, UNKNOWN]}
STAGE: dict[str, Any] = {
    "stage": "a: runner", "workers": 2, "records": 1200, "busy_share": 0.5, "core_wait_seconds": 4.0,
    "worked_ms": {"p50": 2.5},
}  # fmt: skip
STREAM: dict[str, Any] = {
    "seconds": 10.0, "items": 1200, "items_per_second": 120.0, "stages": [STAGE, {**STAGE, "stage": "sink"}],
    "ideal": {"stage": "a: runner", "ms": 2.5, "share": 0.3},
}  # fmt: skip


def bars(text: str) -> list[tuple[str, float]]:
    """Returns the bars of a section, in order: class and percent of the width."""
    return [(kind, float(width)) for kind, width in re.findall(r'<i class="(\w+)" style="width:([\d.]+)%"', text)]


def cells(text: str) -> list[str]:
    return re.findall(r"<td[^>]*>([^<]*)</td>", text)


def test_operators_are_drawn_beside_their_roof() -> None:
    text = measured_part(OPERATORS, "o.json", {"s0"})
    assert bars(text) == [("time", 100.0), ("least", 25.0), ("time", 25.0), ("least", 0.0)]
    assert [one for one in cells(text) if one] == [
        "s0 Conv a", "40.0 us", "80.0%", "25%", "float32", "s0 If b", "10.0 us", "20.0%",
    ]  # fmt: skip
    assert "20%" in re.findall(r"<span>([^<]*)</span>", text)[0]


def test_stages_are_drawn_with_what_they_waited_and_the_ideal() -> None:
    text = measured_part(STREAM, "r.json", set())
    assert bars(text) == 2 * [("time", 50.0), ("wait", 20.0)]
    assert [one for one in cells(text) if one][:5] == ["a: runner (slowest)", "2", "50%", "1,200", "2.5 ms"]
    assert "30% of the ideal" in re.findall(r"<span>([^<]*)</span>", text)[0]
    uncounted = {key: value for key, value in STAGE.items() if key != "core_wait_seconds"}
    without = {key: value for key, value in STREAM.items() if key != "ideal"}
    assert bars(measured_part({**without, "stages": [uncounted]}, "r.json", set())) == [("time", 50.0), ("wait", 0.0)]


def test_no_text_becomes_part_of_the_page() -> None:
    for answer in (
        {**OPERATORS, "operators": [{**OPERATOR, "operator": HOSTILE, "bound": HOSTILE}]},
        {**STREAM, "stages": [{**STAGE, "stage": HOSTILE}], "ideal": {**STREAM["ideal"], "stage": HOSTILE}},
    ):
        assert "<img" not in measured_part(answer, "x.json", {"s0"})


@pytest.mark.parametrize("answer", [
    None, [], {}, 3, {"operators": []}, {"operators": [{}]}, {**OPERATORS, "operators": [{**OPERATOR, "us": "1"}]},
    {**OPERATORS, "operators": [{**OPERATOR, "us": 0.0}]}, {**STREAM, "seconds": 0}, {**STREAM, "stages": [3]},
    {**OPERATORS, "operators": [{**OPERATOR, "submodel": "s1"}]},
    {**OPERATORS, "operators": [{**OPERATOR, "bound": 3}]},
])  # fmt: skip
def test_something_else_is_refused(answer: object) -> None:
    with pytest.raises(DataError, match=r"x\.json"):
        measured_part(answer, "x.json", {"s0"})
