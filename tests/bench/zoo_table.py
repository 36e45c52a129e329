# SPDX-License-Identifier: Apache-2.0
"""The page of the zoo's results, docs/figures/zoo-results.md, from the results."""

from collections.abc import Sequence

from zoo_graphs import EXPORTED, REAL
from zoo_results import Result, geometric_mean

NEEDS_LIBRARY = 77
"""The exit code of a model with operators that ONNX Runtime does not have either without a library of its own."""
SHORT_MS = 0.2
FLOORS = (0.95, 0.85)
"""What no bundle may fall below: of the faster engine, for calls above `SHORT_MS` and for shorter ones."""

_HEAD = """# The zoo: what people export, through a default `nndeploy compile`

Every row: `nndeploy compile MODEL -o BUNDLE` with no other option and no samples, in a child; then the bundle against
ONNX Runtime on inputs that the compile never saw, by the product's own comparison; then milliseconds of a call on one
thread, the bundle beside plain ONNX Runtime (all optimisations) and plain OpenVINO (float32, latency), which are told
the model alone as `compile` is and trade no more numbers for speed than in our bundles
([backends](../reference/backends.md)); one process each, the others stopped, medians of interleaved rounds. "times" is
the faster engine over the bundle: over 1 where the bundle is faster.

Graphs have random weights from seeds; `make zoo` exports them in an environment of its own, and `make bench-zoo`
measures and writes this page (`ARGS="NAME ..."` a part, and the newest result of every graph is shown).
"""
_COLUMNS = "| model | what | compile | who runs it | right | bundle ms | ONNX Runtime ms | OpenVINO ms | times |"


def page(results: Sequence[Result], machine: str) -> str:
    """Returns the page."""
    trees = ", ".join(sorted({one.tree for one in results}))
    parts = [_HEAD, f"{machine}; tree {trees}."]
    for group in (EXPORTED, REAL):
        rows = [one for one in results if one.group == group]
        if rows:
            parts.append(_section(group, rows))
    return "\n".join(parts)


def _section(group: str, rows: Sequence[Result]) -> str:
    lines = [f"\n## {group.capitalize()}\n", *summary(rows), "", _COLUMNS]
    lines.append("| --- | --- | --- | --- | --- | ---: | ---: | ---: | ---: |")
    lines += [_row(one) for one in rows]
    notes = [f"* {one.name}: {text}" for one in rows for text in (one.said, one.notes, _wrong(one)) if text]
    return "\n".join([*lines, "", *notes, ""])


def summary(rows: Sequence[Result]) -> list[str]:
    """Returns the figures of a table, as lines of a list."""
    timed = [one for one in rows if one.ratio is not None]
    ratios = [one.ratio for one in timed if one.ratio is not None]
    below = [one.name for one in timed if is_slow(one)]
    return [
        f"* {len(rows)} models: {sum(one.exit_code == 0 for one in rows)} compile, "
        f"{sum(one.agrees is True for one in rows)} of these are right; "
        f"{sum(one.exit_code == NEEDS_LIBRARY for one in rows)} need a library of operators",
        f"* geometric mean {geometric_mean(ratios):.3f} of {len(ratios)}; faster: {sum(one > 1 for one in ratios)}",
        f"* below {FLOORS[0]} of the faster engine ({FLOORS[1]} where a call is shorter than {SHORT_MS} ms): "
        f"{len(below)}{': ' if below else ''}{', '.join(below)}",
    ]


def is_slow(one: Result) -> bool:
    """Returns whether a bundle is below the floor."""
    engines = [time for time in (one.onnxruntime_ms, one.openvino_ms) if time is not None]
    if one.ratio is None or not engines:
        return False
    return one.ratio < FLOORS[min(engines) < SHORT_MS]


def _row(one: Result) -> str:
    ended = (
        f"{one.compile_seconds:.0f} s"
        if one.exit_code == 0
        else "no end"
        if one.exit_code is None
        else str(f"exit {one.exit_code}")
    )
    right = {True: "yes", False: "NO", None: ""}[one.agrees]
    times = " | ".join("" if ms is None else f"{ms:.3g}" for ms in (one.bundle_ms, one.onnxruntime_ms, one.openvino_ms))
    ratio = "" if one.ratio is None else f"{one.ratio:.2f}"
    return f"| {one.name} | {one.about} | {ended} | {one.made_of} | {right} | {times} | {ratio} |"


def _wrong(one: Result) -> str:
    return f"not right: {one.agreement}" if one.agrees is False else ""
