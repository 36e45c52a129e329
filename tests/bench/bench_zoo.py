# SPDX-License-Identifier: Apache-2.0
"""The zoo's exported graphs and the real models through a default `nndeploy compile`: right? how fast?

Each bundle is compared with ONNX Runtime on inputs that the compile never saw, then raced against plain ONNX Runtime
(all optimisations) and plain OpenVINO (float32, latency). "times" is the faster engine over the bundle: over 1 where
the bundle is faster. An engine whose numbers are others has no time.

Each graph's result is a line of build/zoo-results.jsonl: the bench can be run in parts and go on where it was stopped;
what was measured on this very tree is not measured again unless `--again` is given. The table shows the newest result
of every graph that is there. Exit code 1 where one of those asked for does not compile, is wrong, or is slower than
the floor: 1.00 of the faster engine, 0.97 where a call is shorter than 0.2 ms.

Times of one thread are processor time: other work does not change them. "roof" is what the processor takes at least
for the operators (roof_shares.py) over what the bundle takes, on one thread. With `--batch` the models whose batch is
open run with so many inputs at once.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from figures import ROOT, tree
from interleaved import Pace
from model_sets import EXPORTED, REAL, Subject, all_names, batch_text, of_batch, subject
from report import Report, add_models, add_race, bench_parser, geometric_mean, matching
from zoo_results import PEERS, Result, Times, keep, kept, measured

NEEDS_LIBRARY = 77
"""The exit code of a model with operators that ONNX Runtime does not have either without a library of its own."""
SHORT_MS, FLOORS = 0.2, (1.00, 0.97)
WELL_FASTER, AT_ROOF = 1.3, 0.8
"""Below the first a model is asked for its roof; from the second on nothing is left to gain."""


def main() -> None:
    parser = bench_parser(__doc__)
    parser.add_argument("patterns", nargs="*", help="names, with * and ?; none: all")
    add_models(parser, zoo=True)
    add_race(parser, seconds=0.05, rounds=31, threads="1,2")
    parser.add_argument("--batch", type=int, help="inputs at once, of models whose batch is open; none: as they are")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "zoo-results.jsonl")
    parser.add_argument("--again", action="store_true", help="measure also what this tree has a result of")
    parser.add_argument("--table", action="store_true", help="measure nothing, print the table")
    parser.add_argument("--time-limit", type=float, default=600.0, help="seconds for a compile")
    options = parser.parse_args()
    names, now = all_names(options.zoo, options.models), tree()
    asked = matching(names, options.patterns)
    if not asked:
        parser.error("nothing to measure: `make zoo` exports the graphs")
    pace = Pace(options.seconds, options.rounds, warm_seconds=0.3, enough_seconds=10.0)
    batch = "" if options.batch is None else batch_text(options.batch)
    for name in [] if options.table else asked:
        one, known = _subject(options, name), kept(options.results).get(f"{name}{batch}")
        if one is not None and (known is None or known.tree != now or options.again):
            keep(options.results, measured(one, now, pace, options.threads, options.time_limit))
            sys.stderr.write(f"{one.name}\n")
    results = kept(options.results)
    found = {name: results[f"{name}{batch}"] for name in names if f"{name}{batch}" in results}
    with Report(options, "speed.md", f"Default compile{batch}") as report:
        report.text(f"Trees: {', '.join(sorted({one.tree for one in found.values()}))}.")
        for group in (EXPORTED, REAL):
            if rows := [one for one in found.values() if one.group == group]:
                _print(report, group, rows)
    sys.exit(any(_is_bad(found[name]) for name in asked if name in found))


def _subject(options: argparse.Namespace, name: str) -> Subject | None:
    one = subject(name, options.zoo, options.models)
    return one if options.batch is None else of_batch(one, options.batch)


def _is_bad(one: Result) -> bool:
    return one.exit_code not in (0, NEEDS_LIBRARY) or one.agrees is False or any(map(is_slow, one.times))


def is_slow(times: Times) -> bool:
    if times.ratio is None:
        return False
    return times.ratio < FLOORS[min(ms for name, ms in times.ms.items() if name != "bundle") < SHORT_MS]


def _print(report: Report, group: str, rows: Sequence[Result]) -> None:
    threads = sorted({times.threads for one in rows for times in one.times})
    report.text(f"### {group.capitalize()}")
    for line in _summary(rows, threads):
        report.line(f"* {line}")
    columns = ("bundle ms", *(f"{peer} ms" for peer in PEERS), "times", "MB")
    heads = [f"{column}, {count}:" for count in threads for column in columns]
    table = report.table("model", "what", "compile s:", "who runs it", "right", "roof:", *heads)
    for one in rows:
        ended = f"{one.compile_seconds:.0f}" if one.exit_code == 0 else f"exit {one.exit_code}"
        right = {True: "yes", False: "NO", None: ""}[one.agrees]
        by_threads = {times.threads: times for times in one.times}
        cells = [cell for count in threads for cell in _cells(by_threads.get(count, Times(count, {}, None)))]
        roof = "" if one.roof is None else f"{one.roof:.0%}"
        table.row(one.name, one.about, ended, one.made_of, right, roof, *cells)
    report.line()
    for one in rows:
        for note in [*one.notes, *([f"far below the roof: {one.below_roof}"] if one.below_roof else [])]:
            report.line(f"* {one.name}: {note}")


def _cells(times: Times) -> list[str]:
    engines = ("bundle", *PEERS)
    figures = [times.ms.get(name) for name in engines]
    resident = " ".join(f"{times.resident[name] / 1e6:.0f}" if name in times.resident else "-" for name in engines)
    ratio = f"{times.ratio:.2f}" if times.ratio else ""
    return [*("" if one is None else f"{one:.3g}" for one in figures), ratio, resident if times.resident else ""]


def _summary(rows: Sequence[Result], threads: Sequence[int]) -> list[str]:
    lines = [
        f"{len(rows)} models: {sum(one.exit_code == 0 for one in rows)} compile, "
        f"{sum(one.agrees is True for one in rows)} of these are right; "
        f"{sum(one.exit_code == NEEDS_LIBRARY for one in rows)} need a library of operators"
    ]
    for count in threads:
        timed = [(one.name, times) for one in rows for times in one.times if times.threads == count]
        ratios = [times.ratio for _, times in timed if times.ratio is not None]
        below = [name for name, times in timed if is_slow(times)]
        lines.append(
            f"{count} thread{'s' * (count > 1)}: geometric mean {geometric_mean(ratios):.3f} of {len(ratios)}; faster: "
            f"{sum(one > 1 for one in ratios)}; below the floor: {len(below)}{': ' if below else ''}{', '.join(below)}"
        )
        if count == 1:
            lines.append(_to_gain([(one, times.ratio) for one in rows for times in one.times if times.threads == 1]))
    return lines


def _to_gain(rated: Sequence[tuple[Result, float | None]]) -> str:
    """Returns how many of the models below `WELL_FASTER` are at their roof, and the others, the farthest first."""
    below = [one for one, ratio in rated if ratio is not None and ratio < WELL_FASTER]
    left = [one for one in below if one.roof is None or one.roof < AT_ROOF]
    left.sort(key=lambda one: one.roof or 0.0)
    named = ", ".join(f"{one.name} {'?' if one.roof is None else f'{one.roof:.0%}'}" for one in left)
    return (
        f"below {WELL_FASTER}: {len(below)}, of which {len(below) - len(left)} are at {AT_ROOF:.0%} of their roof or "
        f"more; not: {named or 'none'}"
    )


if __name__ == "__main__":
    main()
