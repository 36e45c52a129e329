# SPDX-License-Identifier: Apache-2.0
"""The page of `inspect --html`: the graph coloured by backend, with the reasons, in one file without a network.

In: manifest and report of a bundle. Out: HTML. Every name comes from a model, so from anybody: all text is escaped
for the place where it stands, the script sets text alone, and the page's own policy forbids to load anything.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.report import NodeReport, Report
from nndeploy.cli.pages.graph_layout import Layout, Point, layered_layout
from nndeploy.errors import one_line
from nndeploy.files.page import escaped, filled
from nndeploy.values.amounts import counted, size_text

PALETTE = ("#2f6fde", "#e08a1e", "#3a9d5d", "#b04fc4", "#d1495b", "#2a9d9d", "#7a6ff0", "#8a8a2a")
BOX_HEIGHT = 40.0
MIN_BOX, MAX_BOX = 76.0, 190.0
MAX_LABEL = 26


@dataclass(frozen=True, slots=True)
class _Box:
    """What is drawn for a node, or for an input or output of the program (`node` None)."""

    title: str
    subtitle: str
    node: NodeReport | None = None

    @property
    def width(self) -> float:
        wanted = 26 + max(7.6 * len(self.title), 5.6 * len(self.subtitle))
        return min(max(wanted, MIN_BOX), MAX_BOX)


def inspect_page(
    manifest: Manifest, report: Report, size_bytes: int, fused: Mapping[str, Sequence[str]], measured: str = ""
) -> str:
    """Returns the page; `fused` maps a submodel to its fused steps, a line each, `measured` are sections of HTML."""
    boxes, edges = _graph(manifest, report)
    layout = layered_layout([box.width for box in boxes], edges)
    backends = list(dict.fromkeys((*report.backends, *(node.backend for node in report.nodes))))
    colours = {name: f"--b{i}" for i, name in enumerate(backends)}
    parts = {
        "title": escaped(manifest.model_name),
        "colours": "".join(f"--b{i}:{PALETTE[i % len(PALETTE)]};" for i in range(len(backends))),
        "facts": _facts(manifest, report, size_bytes),
        "graph": _svg(boxes, edges, layout, colours),
        "legend": "".join(_legend(report, name, colours[name]) for name in backends if _nodes_of(report, name)),
        "measured": measured,
        "submodels": _submodels(report, colours, fused),
        "rows": _rows(boxes, colours),
        "data": _data(boxes),
    }
    return filled("nndeploy.cli.pages", "inspect_page.html", parts)


def _cut(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= MAX_LABEL else "…" + text[1 - MAX_LABEL :]


def _graph(manifest: Manifest, report: Report) -> tuple[list[_Box], list[tuple[int, int]]]:
    """Returns inputs, nodes and outputs in this order, and the edges between them."""
    boxes = [_Box(_cut(item.name), str(item.type)[:MAX_LABEL]) for item in manifest.inputs]
    producer = {item.name: i for i, item in enumerate(manifest.inputs)}
    edges: list[tuple[int, int]] = []
    for node in report.nodes:
        edges += [(producer[name], len(boxes)) for name in dict.fromkeys(node.inputs) if name in producer]
        producer |= dict.fromkeys(node.outputs, len(boxes))
        boxes.append(_Box(_cut(node.op), _cut(node.name), node))
    for item in manifest.outputs:
        source = manifest.aliases.get(item.name, item.name)
        edges += [(producer[source], len(boxes))] if source in producer else []
        boxes.append(_Box(_cut(item.name), str(item.type)[:MAX_LABEL]))
    return boxes, edges


def _facts(manifest: Manifest, report: Report, size_bytes: int) -> str:
    made_by = manifest.provenance.get("tools", {})
    version = made_by.get("nndeploy", "?") if isinstance(made_by, dict) else "?"
    facts = (
        ("nodes", f"{len(report.nodes):,}"),
        ("submodels", str(len(report.submodels))),
        ("bundle", size_text(size_bytes)),
        ("objective", report.objective),
        ("made by nndeploy", str(version)),
        ("model sha256", manifest.model_sha256[:12]),
    )
    return "".join(f"<span>{escaped(name)} <b>{escaped(value)}</b></span>" for name, value in facts)


def _svg(boxes: Sequence[_Box], edges: Sequence[tuple[int, int]], layout: Layout, colours: dict[str, str]) -> str:
    most = max((box.node.share for box in boxes if box.node), default=0.0) or 1.0
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="graph" '
        f'data-width="{layout.width:.0f}" data-height="{layout.height:.0f}"><g>'
    ]
    for (a, b), route in zip(edges, layout.routes, strict=True):
        lines.append(f'<path class="{_edge_class(boxes[a], boxes[b])}" data-a="{a}" data-b="{b}" d="{_path(route)}"/>')
    for i, (box, centre) in enumerate(zip(boxes, layout.nodes, strict=True)):
        lines.append(_svg_box(i, box, centre, colours, most))
    return "\n".join([*lines, "</g></svg>"])


def _edge_class(a: _Box, b: _Box) -> str:
    crosses = a.node is not None and b.node is not None and a.node.submodel != b.node.submodel
    return "edge cross" if crosses else "edge"


def _path(route: Sequence[Point]) -> str:
    """Returns a curve from the bottom of the first box through the points to the top of the last."""
    (x, y), *others = route
    y += BOX_HEIGHT / 2
    parts = [f"M{x:.1f} {y:.1f}"]
    for number, (to_x, centre_y) in enumerate(others, 1):
        to_y = centre_y - BOX_HEIGHT / 2 if number == len(others) else centre_y
        middle = (y + to_y) / 2
        parts.append(f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}")
        x, y = to_x, to_y
    return "".join(parts)


def _svg_box(i: int, box: _Box, centre: Point, colours: dict[str, str], most: float) -> str:
    x, y, width = centre[0] - box.width / 2, centre[1] - BOX_HEIGHT / 2, box.width
    backend = box.node.backend if box.node else ""
    kind = "node" if box.node else "node port"
    colour = f"var({colours[backend]})" if box.node else "var(--edge)"
    share = (width - 10) * box.node.share / most if box.node else 0.0
    return (
        f'<g class="{kind}" data-i="{i}" data-b="{escaped(backend)}" data-x="{centre[0]:.0f}" data-y="{centre[1]:.0f}" '
        f'style="--c:{colour}" transform="translate({x:.1f} {y:.1f})"><title>{escaped(_tooltip(box))}</title>'
        f'<rect class="box" width="{width:.1f}" height="{BOX_HEIGHT:.0f}" rx="{8 if box.node else 20}"/>'
        + (f'<rect class="side" y="7" width="3.5" height="{BOX_HEIGHT - 14:.0f}" rx="1.7"/>' if box.node else "")
        + (
            f'<rect class="share" x="5" y="{BOX_HEIGHT - 4:.0f}" width="{share:.1f}" height="3" rx="1.5"/>'
            if share
            else ""
        )
        + f'<text x="{width / 2:.1f}" y="17" text-anchor="middle">{escaped(box.title)}</text>'
        f'<text class="name" x="{width / 2:.1f}" y="30" text-anchor="middle">{escaped(box.subtitle)}</text></g>'
    )


def _tooltip(box: _Box) -> str:
    if box.node is None:
        return f"{box.title} {box.subtitle}"
    reasons = "; ".join(f"not {backend}: {reason}" for backend, reason in box.node.refusals.items())
    return f"{box.node.op} {box.node.name}: {box.node.backend}, {box.node.share:.2%}" + (
        f"; {reasons}" if reasons else ""
    )


def _nodes_of(report: Report, backend: str) -> list[NodeReport]:
    return [node for node in report.nodes if node.backend == backend]


def _legend(report: Report, name: str, colour: str) -> str:
    nodes = _nodes_of(report, name)
    share = sum(node.share for node in nodes)
    return (
        f'<button class="legend" data-b="{escaped(name)}"><span class="swatch" style="background:var({colour})"></span>'
        f"<span>{escaped(name)}</span><small>{counted(len(nodes), 'node')}, {share:.1%} of the compute</small></button>"
    )


def _submodels(report: Report, colours: dict[str, str], fused: Mapping[str, Sequence[str]]) -> str:
    found = []
    for submodel in report.submodels:
        dot = f'<span class="dot" style="--c:var({colours.get(submodel.backend, "--edge")})"></span>'
        size = f'<span class="muted">{counted(submodel.num_nodes, "node")}, {submodel.share:.1%}</span>'
        lines = "".join(_reason(backend, reason) for backend, reason in submodel.refusals.items())
        lines += "".join(
            f'<div class="reason"><b>fused:</b> {escaped(step)}</div>' for step in fused.get(submodel.id, ())
        )
        found.append(f"<div>{dot}<b>{escaped(submodel.id)}</b> {escaped(submodel.backend)} {size}{lines}</div>")
    return "".join(found) or '<div class="muted">none</div>'


def _reason(backend: str, reason: str) -> str:
    return f'<div class="reason"><b>not {escaped(backend)}:</b> {escaped(reason)}</div>'


def _rows(boxes: Sequence[_Box], colours: dict[str, str]) -> str:
    return "\n".join(_row(i, box.node, colours) for i, box in enumerate(boxes) if box.node)


def _row(i: int, node: NodeReport, colours: dict[str, str]) -> str:
    reasons = "<br>".join(f"{escaped(backend)}: {escaped(reason)}" for backend, reason in node.refusals.items())
    return (
        f'<tr data-i="{i}"><td>{escaped(node.name)}</td><td>{escaped(node.op)}</td>'
        f'<td><span class="dot" style="--c:var({colours[node.backend]})"></span>{escaped(node.backend)}</td>'
        f'<td>{escaped(node.submodel)}</td><td class="num">{node.share:.2%}</td><td>{reasons}</td></tr>'
    )


def _data(boxes: Sequence[_Box]) -> str:
    """Returns what the script shows of each box, as JSON that can stand inside a script element."""
    text = json.dumps([_facts_of(box) for box in boxes], ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _facts_of(box: _Box) -> dict[str, Any]:
    node = box.node
    if node is None:
        return {"facts": [["name", box.title], ["type", box.subtitle]], "reasons": []}
    facts = [
        ["name", one_line(node.name)],
        ["operator", one_line(node.op)],
        ["backend", one_line(node.backend)],
        ["submodel", one_line(node.submodel)],
        ["compute", f"{node.share:.3%}"],
        ["reads", ", ".join(map(one_line, node.inputs)) or "-"],
        ["makes", ", ".join(map(one_line, node.outputs)) or "-"],
    ]
    return {"facts": facts, "reasons": [[one_line(b), one_line(r)] for b, r in node.refusals.items()]}
