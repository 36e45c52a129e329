# SPDX-License-Identifier: Apache-2.0
"""The zoo's exported graphs and the real models through a default `nndeploy compile`: right? how fast?

Each bundle is compared with ONNX Runtime on inputs that the compile never saw, then raced against plain ONNX Runtime
(all optimisations) and plain OpenVINO (float32, latency). "times" is the faster engine over the bundle: over 1 where
the bundle is faster. An engine whose numbers are others has no time.

Each graph's result is a line of build/zoo-results.jsonl: the bench can be run in parts and go on where it was stopped;
what was measured on this very tree is not measured again unless `--again` is given. The table shows the newest result
of every graph that is there. Exit code 1 where one of those asked for does not compile, is wrong, or is slower than
the floor: 0.97 of the faster engine, 0.90 where a call is shorter than 0.2 ms.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from figures import ROOT, tree
from interleaved import Pace
from model_sets import EXPORTED, REAL, all_names, subject
from report import Report, add_models, add_race, bench_parser, geometric_mean, matching
from zoo_results import PEERS, Result, Times, keep, kept, measured

NEEDS_LIBRARY = 77
"""The exit code of a model with operators that ONNX Runtime does not have either without a library of its own."""
SHORT_MS, FLOORS = 0.2, (0.97, 0.90)


def main() -> None:
    parser = bench_parser(__doc__)
    parser.add_argument("patterns", nargs="*", help="names, with * and ?; none: all")
    add_models(parser, zoo=True)
    add_race(parser, seconds=0.05, rounds=31, threads="1,2")
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
    for name in [] if options.table else asked:
        known = kept(options.results).get(name)
        if known is None or known.tree != now or options.again:
            one = subject(name, options.zoo, options.models)
            keep(options.results, measured(one, now, pace, options.threads, options.time_limit))
            sys.stderr.write(f"{name}\n")
    found = kept(options.results)
    with Report(options, "speed.md", "Default compile") as report:
        report.text(f"Trees: {', '.join(sorted({found[name].tree for name in names if name in found}))}.")
        for group in (EXPORTED, REAL):
            if rows := [found[name] for name in names if name in found and found[name].group == group]:
                _print(report, group, rows)
    sys.exit(any(_is_bad(found[name]) for name in asked if name in found))


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
    heads = [f"{column}, {count}:" for count in threads for column in ("bundle ms", *PEERS, "times")]
    table = report.table("model", "what", "compile s:", "who runs it", "right", *heads)
    for one in rows:
        ended = f"{one.compile_seconds:.0f}" if one.exit_code == 0 else f"exit {one.exit_code}"
        right = {True: "yes", False: "NO", None: ""}[one.agrees]
        by_threads = {times.threads: times for times in one.times}
        cells = [cell for count in threads for cell in _cells(by_threads.get(count, Times(count, {}, None)))]
        table.row(one.name, one.about, ended, one.made_of, right, *cells)
    report.line()
    for one in rows:
        for note in one.notes:
            report.line(f"* {one.name}: {note}")


def _cells(times: Times) -> list[str]:
    figures = [times.ms.get(name) for name in ("bundle", *PEERS)]
    return [*("" if one is None else f"{one:.3g}" for one in figures), f"{times.ratio:.2f}" if times.ratio else ""]


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
            f"{count} threads: geometric mean {geometric_mean(ratios):.3f} of {len(ratios)}; faster: "
            f"{sum(one > 1 for one in ratios)}; below the floor: {len(below)}{': ' if below else ''}{', '.join(below)}"
        )
    return lines


if __name__ == "__main__":
    main()
