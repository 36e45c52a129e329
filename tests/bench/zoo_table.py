# SPDX-License-Identifier: Apache-2.0
"""The page of the zoo's results, docs/figures/zoo-results.md, from the results."""

from collections.abc import Sequence

from zoo_graphs import EXPORTED, REAL
from zoo_results import Result, Times, geometric_mean

NEEDS_LIBRARY = 77
"""The exit code of a model with operators that ONNX Runtime does not have either without a library of its own."""
SHORT_MS = 0.2
FLOORS = (0.97, 0.90)
"""What no bundle may fall below: of the faster engine, for calls above `SHORT_MS` and for shorter ones."""

_HEAD = """# The zoo: what people export, through a default `nndeploy compile`

Every row: `nndeploy compile MODEL -o BUNDLE` with no other option and no samples, in a child; then the bundle against
ONNX Runtime on inputs that the compile never saw, by the product's own comparison; then milliseconds of a call on one
thread and on two, the bundle (b) beside plain ONNX Runtime (o; all optimisations) and plain OpenVINO (v; float32,
latency), which are told the model alone as `compile` is and trade no more numbers for speed than in our bundles
([backends](../reference/backends.md)); one process each, the others stopped, medians of interleaved rounds. "times" is
the faster engine over the bundle: over 1 where the bundle is faster. An engine whose numbers are others has no time.

Graphs have random weights from seeds; `make zoo` exports them in an environment of its own, and `make bench-zoo`
measures and writes this page (`ARGS="NAME ..."` a part, and the newest result of every graph is shown).
"""
_COLUMNS = ("model", "what", "compile", "who runs it", "right")
_COLUMNS_OF_TIMES = ("b ms", "o ms", "v ms", "times")


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
    threads = _threads(rows)
    heads = [*_COLUMNS, *(f"{column}, {count}" for count in threads for column in _COLUMNS_OF_TIMES)]
    rules = ["---"] * len(_COLUMNS) + ["---:"] * (len(heads) - len(_COLUMNS))
    lines = [f"\n## {group.capitalize()}\n", *summary(rows), "", _line(heads), _line(rules)]
    lines += [_row(one, threads) for one in rows]
    notes = [f"* {one.name}: {text}" for one in rows for text in (one.said, *one.notes, _wrong(one)) if text]
    return "\n".join([*lines, "", *notes, ""])


def summary(rows: Sequence[Result]) -> list[str]:
    """Returns the figures of a table, as lines of a list."""
    lines = [
        f"* {len(rows)} models: {sum(one.exit_code == 0 for one in rows)} compile, "
        f"{sum(one.agrees is True for one in rows)} of these are right; "
        f"{sum(one.exit_code == NEEDS_LIBRARY for one in rows)} need a library of operators"
    ]
    for count in _threads(rows):
        timed = [(one.name, times) for one in rows for times in one.times if times.threads == count]
        ratios = [times.ratio for _, times in timed if times.ratio is not None]
        below = [name for name, times in timed if is_slow(times)]
        lines.append(
            f"* {count} thread{'s' * (count > 1)}: geometric mean {geometric_mean(ratios):.3f} of {len(ratios)}; "
            f"faster: {sum(one > 1 for one in ratios)}; below {FLOORS[0]:.2f} of the faster engine "
            f"({FLOORS[1]:.2f} where a call is shorter than {SHORT_MS} ms): "
            f"{len(below)}{': ' if below else ''}{', '.join(below)}"
        )
    return lines


def _threads(rows: Sequence[Result]) -> list[int]:
    return sorted({times.threads for one in rows for times in one.times})


def is_slow(times: Times) -> bool:
    """Returns whether a bundle is below the floor."""
    if times.ratio is None or not times.peers_ms:
        return False
    return times.ratio < FLOORS[min(times.peers_ms) < SHORT_MS]


def _row(one: Result, threads: Sequence[int]) -> str:
    ended = (
        f"{one.compile_seconds:.0f} s"
        if one.exit_code == 0
        else "no end"
        if one.exit_code is None
        else str(f"exit {one.exit_code}")
    )
    right = {True: "yes", False: "NO", None: ""}[one.agrees]
    by_threads = {times.threads: times for times in one.times}
    cells = [cell for count in threads for cell in _cells(by_threads.get(count, Times(count)))]
    return _line([one.name, one.about, ended, one.made_of, right, *cells])


def _cells(times: Times) -> list[str]:
    measured = (times.bundle_ms, times.onnxruntime_ms, times.openvino_ms)
    return [
        *("" if ms is None else f"{ms:.3g}" for ms in measured),
        "" if times.ratio is None else f"{times.ratio:.2f}",
    ]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _wrong(one: Result) -> str:
    return f"not right: {one.agreement}" if one.agrees is False else ""
