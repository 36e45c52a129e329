# SPDX-License-Identifier: Apache-2.0
"""The page shows the load, every operator and what was achieved; its picture is an SVG; no name becomes part of it."""

import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from nndeploy.pacing.plan.load_curve import Loads, Timeline, baseline_timeline, expected_timeline
from nndeploy.pacing.plan.pace_plan import serial_plan
from nndeploy.pacing.run.achieved import Achieved
from nndeploy.pacing.run.planned import PlannedPair, PlannedPoint
from nndeploy.pacing.show.load_picture import load_svg
from nndeploy.pacing.show.page import pace_page

HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;@rows@@title@\x1b[31m\u2028"
MS = 1e6
SVG = "{http://www.w3.org/2000/svg}"


def paced(durations_ms: list[float], names: list[str] | None = None) -> tuple[list[PlannedPoint], Loads, Achieved]:
    durations = np.array(durations_ms) * MS
    budget = 2 * durations.sum()
    plan = serial_plan(durations, np.full(len(durations), False), budget, 0.0)
    names = names or [f"operator {number}" for number in range(len(durations))]
    points = [
        PlannedPoint(name, duration / 1e3, 1, weight * durations.sum() / 1e3, (after,), (f"Conv {name}",))
        for name, after, duration, weight in zip(
            names, [*names[1:], "end"], durations.tolist(), plan.weights.tolist(), strict=True
        )
    ]
    loads = Loads(
        baseline_timeline(durations.sum()), expected_timeline(plan, budget), expected_timeline(plan, 0.9 * budget)
    )
    return points, loads, Achieved(3, budget / MS, 31.5, 39.0, 0.125, 0.55, 0.61, 0.97, 0.02, 2.9, 3.4, 2.0, 57.0, 90.0)


def page(durations_ms: list[float], names: list[str] | None = None, model: str = "small") -> str:
    points, loads, found = paced(durations_ms, names)
    pairs = [
        PlannedPair(f"{point.name} -> {after}", point.delay_us, is_preset=number == 0)
        for number, point in enumerate(points)
        for after in point.followed_by
    ]
    return pace_page(model, points, pairs, loads, found, has_slice=True)


class Elements(HTMLParser):
    """Counts elements and their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts.update([tag, *(f"{tag} {name}" for name, _ in attrs)])


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)  # noqa: S314 our own, without a DTD


def picture(text: str) -> ET.Element:
    found = re.search(r"<svg.*</svg>", text, re.DOTALL)
    assert found is not None
    return parsed(found[0])


def test_it_shows_what_was_achieved_beside_what_was_expected() -> None:
    text = page([3.0, 2.0, 4.0])
    for part in (
        "55%", "61%", "97%", "31.5 ms", "median latency of 18 ms", "12.5%", "3.4 ms", "57 us (p50), 90 us (p99)",
    ):  # fmt: skip
        assert part in text
    _, loads, _ = paced([3.0, 2.0, 4.0])
    assert f"expected {loads.expected.mean:.0%}, before 100%" in text
    assert f"expected {loads.expected.peak:.0%}" in text


@pytest.mark.parametrize(("begin", "cells"), [
    ('<tr class="pair">', [
        ["first -&gt; second", "5,400", "set"], ["second -&gt; third", "3,600", "planned"],
        ["third -&gt; end", "0", "planned"],
    ]),
    ("<tr><td", [
        ["1", "firstConv first", "second", "3,000", "33.3%", "1", "5,400"],
        ["2", "secondConv second", "third", "2,000", "22.2%", "1", "3,600"],
        ["3", "thirdConv third", "end", "4,000", "44.4%", "1", "0"],
    ]),
], ids=["pairs", "operators"])  # fmt: skip
def test_every_pair_and_every_operator_is_a_row(begin, cells) -> None:
    rows = re.findall(f"{begin}.*?</tr>", page([3.0, 2.0, 4.0], ["first", "second", "third"]))
    assert [[re.sub("<.*?>", "", cell) for cell in re.findall(r"<td.*?</td>", row)] for row in rows] == cells


def test_boxes_are_the_work_and_gaps_the_sleeps() -> None:
    _, loads, _ = paced([3.0, 2.0, 4.0])
    root = picture(page([3.0, 2.0, 4.0]))
    boxes = {
        name: [box for group in root.findall(f"{SVG}g[@class='{name}']") for box in group.iter(f"{SVG}rect")][1:]
        for name in ("before", "expected", "measured")
    }
    assert [box.findtext(f"{SVG}title") for box in boxes["before"]] == [
        "operator 0: 3,000 us, delay 5,400 us",
        "operator 1: 2,000 us, delay 3,600 us",
        "operator 2: 4,000 us, delay 0 us",
    ]
    assert len(boxes["expected"]) == len(boxes["measured"]) == 3
    edges = [(float(box.get("x", "")), float(box.get("width", ""))) for box in boxes["expected"]]
    assert all(x + width < later for (x, width), (later, _) in pairwise(edges))
    work = sum(width for _, width in edges)
    gaps = edges[-1][0] + edges[-1][1] - edges[0][0] - work
    assert gaps / work == pytest.approx((loads.expected.end - loads.expected.work) / loads.expected.work, rel=0.01)


def test_the_curve_is_inside_its_frame() -> None:
    root = picture(page([3.0, 2.0, 4.0, 40.0]))
    curves = [path.get("d", "") for path in root.iter(f"{SVG}path") if "curve" in path.get("class", "")]
    assert len(curves) == 3
    for curve in curves:
        places = np.array(re.findall(r"([\d.]+) ([\d.]+)", curve), float)
        assert (np.diff(places[:, 0]) >= 0).all()
        assert places[:, 0].min() >= 75.9
        assert places[:, 0].max() <= 942.1
        assert ((places[:, 1] >= 62) & (places[:, 1] <= 272)).all()
    full = np.array(re.findall(r"([\d.]+) ([\d.]+)", curves[0]), float)
    assert full[:, 1].min() == 62  # a baseline run's load is 100%


def test_names_from_models_are_text_everywhere() -> None:
    plain = Elements(page([3.0, 2.0], ["a", "b"]))
    text = page([3.0, 2.0], [HOSTILE, HOSTILE], HOSTILE)
    assert Elements(text).counts == plain.counts
    assert "\x1b" not in text
    told = [title.text or "" for title in picture(text).iter(f"{SVG}title")]
    assert sum(one.startswith("</script><script>alert(1)") for one in told) >= 2
    assert text.count("&lt;script&gt;alert(1)") >= 6  # twice a title, rows, boxes
    root = parsed(load_svg(paced([3.0, 2.0])[1], 10 * MS, HOSTILE))
    assert root.get("aria-label", "").startswith("</script><script>alert(1)")


def test_the_page_has_no_script_and_needs_no_network() -> None:
    text = page([3.0, 2.0])
    assert "default-src 'none'; style-src 'unsafe-inline'\"" in text
    assert "<script" not in text
    assert set(re.findall(r"https?://[^\s\"']+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@[a-z]+@", text)


@pytest.mark.parametrize("count", [1, 900])
def test_any_number_of_operators_is_drawn(count: int) -> None:
    text = page([0.05] * count)
    assert len(re.findall(r"<tr><td", text)) == count
    assert len(text) < 1_500_000


def test_a_run_that_was_not_measured_is_not_drawn() -> None:
    _, loads, _ = paced([3.0, 2.0])
    root = parsed(load_svg(Loads(loads.before, loads.expected, None), 10 * MS, "two"))
    assert {group.get("class") for group in root.iter(f"{SVG}g")} == {"before", "expected"}


def test_windows_of_a_short_run_are_told() -> None:
    short = "of a shorter run its own length,"
    assert short in page([3.0, 2.0])
    assert short not in page([30.0, 20.0])


def test_what_a_run_took_beyond_what_was_granted_is_drawn_too() -> None:
    _, loads, _ = paced([3.0, 2.0])
    late = Timeline(80 * MS, np.zeros((0, 2)))
    root = parsed(load_svg(Loads(loads.before, loads.expected, late), 10 * MS, "late"))
    places = [float(box.get("x", "")) + float(box.get("width", "")) for box in root.iter(f"{SVG}rect")]
    assert max(places) < 942
