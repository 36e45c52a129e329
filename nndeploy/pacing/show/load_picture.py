# SPDX-License-Identifier: Apache-2.0
"""The load before and after over the time of a run as an SVG that can be read on light and on dark pages.

Above, a curve for each run; below, a strip for each: boxes are work, gaps are sleeps, with the same axis of time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10

import numpy as np

from nndeploy.files.page import escaped
from nndeploy.pacing.plan.load_curve import WINDOW_NS, Loads, Timeline
from nndeploy.pacing.run.planned import PlannedPoint
from nndeploy.values.amounts import ms_text

WIDTH, LEFT, RIGHT = 960.0, 76.0, 18.0
TOP, HEIGHT = 62.0, 210.0
STRIP, STRIP_STEP = 18.0, 27.0
MIN_BOX_NS = 2.0
"""What is shorter is rounding."""
_STYLE = """<style>
.load text { font: 12px system-ui, sans-serif; fill: #57606a; }
.load .strong { font-weight: 600; fill: #24292f; }
.load .axis { stroke: #8c959f; fill: none; }
.load .grid { stroke: #d8dee4; }
.load .budget { stroke: #c2255c; stroke-dasharray: 4 4; }
.load .curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke: var(--colour); }
.load .area { fill: var(--colour); opacity: .16; }
.load .dashed { stroke-dasharray: 5 3; }
.load .box { fill: var(--colour); }
.load .odd { opacity: .66; }
.load .box:hover { opacity: .4; }
.load .before { --colour: #8c959f; }
.load .expected { --colour: #d9730d; }
.load .measured { --colour: #2f6fde; }
@media (prefers-color-scheme: dark) {
  .load text { fill: #9198a1; }
  .load .strong { fill: #e6edf3; }
  .load .axis { stroke: #6e7681; }
  .load .grid { stroke: #30363d; }
  .load .budget { stroke: #ff6b95; }
  .load .before { --colour: #848d97; }
  .load .expected { --colour: #f0883e; }
  .load .measured { --colour: #6ea0ff; }
}
</style>"""


@dataclass(frozen=True)
class _Axis:
    """Nanoseconds from `first` to `last` over the width."""

    first: float
    last: float

    def at(self, nanoseconds: float) -> float:
        return LEFT + (nanoseconds - self.first) / (self.last - self.first) * (WIDTH - LEFT - RIGHT)


def load_svg(loads: Loads, budget_ns: float, title: str, points: Sequence[PlannedPoint] = ()) -> str:
    """Returns the picture; boxes tell of each operator where `points` of the plan are given, in order."""
    runs = loads.named()
    middles = np.concatenate([run.curve[0] for run in runs.values()])
    axis = _Axis(float(middles.min()), max(float(middles.max()), 1.03 * budget_ns))
    base = TOP + HEIGHT
    bottom = base + 16 + STRIP_STEP * len(runs)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="load" viewBox="0 0 {WIDTH:.0f} {bottom + 42:.0f}" role="img" '
        f'aria-label="{escaped(title)}">',
        _STYLE,
        _text(8, 18, title, "start", "strong"),
        _legend(runs),
        _grid(axis, bottom, is_short=any(run.end < WINDOW_NS for run in runs.values())),
        _text(8, TOP - 10, "load", "start"),
    ]
    for name, run in runs.items():
        parts.append(f'<g class="{name}">{_curve(axis, run, name)}</g>')
    x = axis.at(budget_ns)
    parts.append(f'<path class="budget" d="M{x:.1f} {TOP}V{bottom}"/>')
    parts.append(_text(x - 5, TOP + 12, f"budget: {ms_text(budget_ns / 1e6)}", "end"))
    for number, (name, run) in enumerate(runs.items()):
        top = base + 18 + number * STRIP_STEP
        boxes = _operators(axis, run, points, top) if points and name != "measured" else _work(axis, run, top)
        parts.append(_text(LEFT - 8, top + STRIP / 2 + 4, name, "end"))
        parts.append(f'<g class="{name}">{boxes}</g>')
    return "\n".join([*parts, "</svg>"])


def _legend(runs: dict[str, Timeline]) -> str:
    step, parts = (WIDTH - LEFT) / 3, []
    for number, (name, run) in enumerate(runs.items()):
        x = LEFT + number * step
        parts.append(f'<g class="{name}"><rect class="box" x="{x:.1f}" y="32" width="14" height="5" rx="2"/></g>')
        figures = f"{name}: mean {run.mean:.0%}, peak {run.peak:.0%}, {ms_text(run.end / 1e6)}"
        parts.append(_text(x + 20, 39, figures, "start"))
    return "\n".join(parts)


def _grid(axis: _Axis, bottom: float, *, is_short: bool) -> str:
    parts = []
    for percent in range(0, 101, 25):
        y = TOP + HEIGHT * (1 - percent / 100)
        parts.append(f'<path class="grid" d="M{LEFT:.1f} {y:.1f}H{WIDTH - RIGHT:.1f}"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{percent}%", "end"))
    for tick in _ticks(axis.last / 1e6):
        x = axis.at(tick * 1e6)
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{bottom:.1f}"/>')
        parts.append(_text(x, bottom + 16, f"{tick:g}", "middle"))
    parts.append(f'<path class="axis" d="M{LEFT:.1f} {TOP + HEIGHT}H{WIDTH - RIGHT:.1f}"/>')
    window = f"{WINDOW_NS / 1e6:g} ms" + ", of a shorter run its own length," * is_short
    label = f"ms since the run began; load: of the {window} around each moment. Boxes: work, gaps: sleep"
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, bottom + 34, label, "middle"))
    return "\n".join(parts)


def _curve(axis: _Axis, run: Timeline, name: str) -> str:
    middles, load = run.curve
    places = [
        f"{axis.at(middle):.1f} {TOP + HEIGHT * (1 - share):.1f}"
        for middle, share in zip(middles.tolist(), load.tolist(), strict=True)
    ]
    line = "M" + "L".join(places)
    area = "" if name == "expected" else f'<path class="area" d="{line}Z"/>'
    return f'{area}<path class="curve{" dashed" * (name == "expected")}" d="{line}"/>'


def _work(axis: _Axis, run: Timeline, top: float) -> str:
    edges = np.concatenate((np.zeros(1), run.sleeps.ravel(), [run.end]))
    return "".join(_box(axis, a, b, top, f"{ms_text((b - a) / 1e6)} of work") for a, b in edges.reshape(-1, 2).tolist())


def _operators(axis: _Axis, run: Timeline, points: Sequence[PlannedPoint], top: float) -> str:
    durations = np.array([point.amount_us for point in points]) * 1e3
    return "".join(
        _box(axis, since, until, top, _told(points[number]), number % 2 == 1)
        for number, since, until in run.pieces(durations)
        if until - since >= MIN_BOX_NS
    )


def _told(point: PlannedPoint) -> str:
    parts = f" in {point.parts} parts" if point.parts > 1 else ""
    return f"{point.name}: {point.amount_us:,.0f} us{parts}, delay {point.delay_us:,.0f} us"


def _box(axis: _Axis, since: float, until: float, top: float, told: str, is_odd: bool = False) -> str:
    x, width = axis.at(since), axis.at(until) - axis.at(since)
    return (
        f'<rect class="box{" odd" * is_odd}" x="{x:.2f}" y="{top:.1f}" width="{width:.2f}" height="{STRIP:.0f}">'
        f"<title>{escaped(told)}</title></rect>"
    )


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escaped(text)}</text>'


def _ticks(most: float) -> list[float]:
    """Returns round numbers from 0 up to `most`, about eight of them."""
    power = 10.0 ** floor(log10(most))
    step = next(power * part for part in (0.1, 0.2, 0.25, 0.5, 1, 2) if most / (power * part) <= 10)
    return [round(number * step, 10) for number in range(floor(most / step + 1e-9) + 1)]
