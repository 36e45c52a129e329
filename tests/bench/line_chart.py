# SPDX-License-Identifier: Apache-2.0
"""Panels of lines over a logarithmic axis of bytes (in KiB), as an SVG that can be read on light and on dark pages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log2, log10

WIDTH, HEIGHT = 460, 300
LEFT, TOP, GAP, BOTTOM = 62, 34, 30, 52
COLOURS = ("#3b82d6", "#d9662b", "#2f9e62", "#a259c4", "#c99a1e", "#d1477a", "#5a7d8c")
"""Of middling lightness: a contrast of 3 or more on white and on black."""
Place = Callable[[int, float], tuple[float, float]]
_STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #24292f; }
.title { font-weight: 600; }
.axis { stroke: #57606a; fill: none; }
.grid { stroke: #d0d7de; }
.curve { fill: none; stroke-width: 2; }
.dashed { stroke-dasharray: 5 4; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .axis { stroke: #9198a1; }
  .grid { stroke: #3d444d; }
}
</style>"""


@dataclass(frozen=True)
class Line:
    """A line by its name in the legend, its points (bytes, value), and a level drawn dashed in the same colour."""

    name: str
    points: Sequence[tuple[int, float]]
    level: float | None = None


@dataclass(frozen=True)
class Panel:
    """Lines with a title and what the axes count, in which unit; `mark` is a value with a line of its own."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line] = field(default_factory=tuple)
    mark: float | None = None


def svg(panels: Sequence[Panel], note: str) -> str:
    """Returns the picture: panels side by side, below them a legend of the lines' names and a note."""
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(names)}
    width = len(panels) * (LEFT + WIDTH + GAP)
    base = TOP + HEIGHT + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {base + 48}" width="{width}" role="img">',
        _STYLE,
        *(_panel(panel, number * (LEFT + WIDTH + GAP) + LEFT, colours) for number, panel in enumerate(panels)),
        _legend(names, colours, base + 14, width),
        _text(LEFT, base + 38, note, "start"),
        "</svg>\n",
    ]
    return "\n".join(parts)


def _panel(panel: Panel, left: float, colours: dict[str, str]) -> str:
    xs = sorted({x for line in panel.lines for x, _ in line.points})
    values = [y for line in panel.lines for _, y in line.points]
    values += [line.level for line in panel.lines if line.level is not None]
    values += [] if panel.mark is None else [panel.mark]
    ticks = _ticks(max(values))
    low, span = log2(xs[0]), max(1.0, log2(xs[-1]) - log2(xs[0]))

    def at(x: int, y: float) -> tuple[float, float]:
        return left + (log2(x) - low) / span * WIDTH, TOP + HEIGHT * (1 - y / ticks[-1])

    parts = [_text(left, TOP - 14, panel.title, "start", "title")]
    for tick in ticks:
        _, y = at(xs[0], tick)
        parts.append(f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{left + WIDTH}" y2="{y:.1f}"/>')
        parts.append(_text(left - 6, y + 4, f"{tick:g}", "end"))
    parts += [_text(at(x, 0)[0], TOP + HEIGHT + 18, f"{x / 1024:g}", "middle") for x in xs]
    if panel.mark is not None:
        _, y = at(xs[0], panel.mark)
        parts.append(f'<line class="axis dashed" x1="{left}" y1="{y:.1f}" x2="{left + WIDTH}" y2="{y:.1f}"/>')
    for line in panel.lines:
        parts += _line(line, colours[line.name], at, xs)
    parts.append(f'<path class="axis" d="M{left} {TOP}V{TOP + HEIGHT}H{left + WIDTH}"/>')
    parts.append(_text(left + WIDTH / 2, TOP + HEIGHT + 38, panel.x_label, "middle"))
    turned = f"translate({left - 44} {TOP + HEIGHT / 2}) rotate(-90)"
    parts.append(f'<text text-anchor="middle" transform="{turned}">{escape(panel.y_label)}</text>')
    return "\n".join(parts)


def _line(line: Line, colour: str, at: Place, xs: Sequence[int]) -> list[str]:
    places = [at(x, y) for x, y in line.points]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts = [f'<polyline class="curve" stroke="{colour}" points="{points}"/>']
    parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
    if line.level is not None:
        (x1, y), (x2, _) = at(xs[0], line.level), at(xs[-1], line.level)
        parts.append(
            f'<line class="curve dashed" stroke="{colour}" x1="{x1:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y:.1f}"/>'
        )
    return parts


def _legend(names: Sequence[str], colours: dict[str, str], top: float, width: float) -> str:
    step = (width - LEFT) / max(1, len(names))
    parts = []
    for number, name in enumerate(names):
        left = LEFT + number * step
        parts.append(f'<rect x="{left:.1f}" y="{top - 9}" width="14" height="4" fill="{colours[name]}"/>')
        parts.append(_text(left + 20, top - 2, name, "start"))
    return "\n".join(parts)


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escape(text)}</text>'


def _ticks(most: float) -> list[float]:
    """Returns round numbers from 0 to the first that is not below `most`."""
    most = most or 1.0
    power = 10 ** floor(log10(most))
    step = next(power * part for part in (0.2, 0.25, 0.5, 1, 2) if most / (power * part) <= 8)
    return [round(number * step, 10) for number in range(ceil(most / step - 1e-9) + 1)]
