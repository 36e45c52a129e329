# SPDX-License-Identifier: Apache-2.0
"""The page of `pace --html`: the load before and after, the operators with their delays, what was achieved.

In: the plan of a bundle and what runs of it did. Out: HTML without a script, in one file without a network. Names come
from a model, so from anybody: all of them are escaped.
"""

from collections.abc import Sequence

from nndeploy.files.page import escaped, filled
from nndeploy.pacing.plan.load_curve import Loads
from nndeploy.pacing.run.achieved import Achieved
from nndeploy.pacing.run.planned import PlannedPair, PlannedPoint
from nndeploy.pacing.show.load_picture import load_svg
from nndeploy.values.amounts import ms_text

WIDEST_BAR = 60.0
"""Pixels of the longest operator."""


def pace_page(
    model: str,
    points: Sequence[PlannedPoint],
    pairs: Sequence[PlannedPair],
    loads: Loads,
    found: Achieved,
    *,
    has_slice: bool,
) -> str:
    """Returns the page; `points` are in the order in which they are passed, `pairs` in that of their first one."""
    parts = {
        "title": escaped(model),
        "facts": _facts(points, loads, found, has_slice),
        "tiles": _tiles(loads, found),
        "picture": load_svg(loads, found.cap_ms * 1e6, _heading(loads, found), points),
        "rows": "\n".join(_rows(points)),
        "pairs": "\n".join(_pair_rows(pairs)),
    }
    return filled("nndeploy.pacing.show", "page.html", parts)


def _heading(loads: Loads, found: Achieved) -> str:
    return f"A run with a baseline of {ms_text(loads.before.end / 1e6)}, within {ms_text(found.cap_ms)}"


def _facts(points: Sequence[PlannedPoint], loads: Loads, found: Achieved, has_slice: bool) -> str:
    facts = (
        ("granted", ms_text(found.cap_ms)),
        ("baseline", ms_text(loads.before.end / 1e6)),
        ("points", f"{len(points):,}"),
        ("paced runs", f"{found.runs:,}"),
        ("sleeps per run", f"{found.sleeps_a_run:.1f}"),
        ("delay error", f"{found.p50_delay_error_us:.0f} us (p50), {found.p99_delay_error_us:.0f} us (p99)"),
        ("sleeping took", f"{found.waiting:.1%} of the processor time"),
        ("longer slices", "yes" if has_slice else "not in this kernel"),
    )
    return "".join(f"<span>{escaped(name)} <b>{escaped(value)}</b></span>" for name, value in facts)


def _tiles(loads: Loads, found: Achieved) -> str:
    expected = loads.expected
    tiles = (
        (f"{found.load:.0%}", f"mean load; expected {expected.mean:.0%}, before 100%"),
        (f"{found.p50_peak_load:.0%}", f"peak in 10 ms of the median run; expected {expected.peak:.0%}"),
        (f"{found.peak_load:.0%}", "peak in 10 ms of any run"),
        (ms_text(found.p50_ms), f"median latency of {ms_text(found.cap_ms)}; p99 {ms_text(found.p99_ms)}"),
        (f"{found.over_cap:.1%}", "of the runs exceeded the budget"),
        (ms_text(found.longest_run_ms), "longest work without a sleep, of any run"),
    )
    return "".join(f'<div class="card tile"><b>{big}</b><small>{small}</small></div>' for big, small in tiles)


def _rows(points: Sequence[PlannedPoint]) -> list[str]:
    total, most = (pick([point.amount_us for point in points]) or 1.0 for pick in (sum, max))
    return [
        f'<tr><td class="num">{number}</td><td>{escaped(point.name)}{_done(point)}</td>'
        f'<td class="more">{escaped(", ".join(point.followed_by))}</td>'
        f'<td class="num"><span class="length" style="width:{point.amount_us / most * WIDEST_BAR:.1f}px"></span>'
        f'{point.amount_us:,.0f}</td><td class="num more">{point.amount_us / total:.1%}</td>'
        f'<td class="num more">{point.parts}</td><td class="num">{point.delay_us:,.0f}</td></tr>'
        for number, point in enumerate(points, 1)
    ]


def _done(point: PlannedPoint) -> str:
    """Returns the operators of the model that a point stands for, where it does not say so itself."""
    if point.done in ((), (point.name,)):
        return ""
    return f'<br><small class="muted">{escaped(", ".join(point.done))}</small>'


def _pair_rows(pairs: Sequence[PlannedPair]) -> list[str]:
    return [
        f'<tr class="pair"><td>{escaped(one.pair)}</td><td class="num">{one.delay_us:,.0f}</td>'
        f"<td>{'set' if one.is_preset else '<span class=muted>planned</span>'}</td></tr>"
        for one in pairs
    ]
