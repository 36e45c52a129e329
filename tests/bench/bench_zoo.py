# SPDX-License-Identifier: Apache-2.0
"""The exported graphs and the real models through a default compile: right? how fast? docs/figures/zoo-results.md.

    python tests/bench/bench_zoo.py [PATTERN ...] [--zoo build/zoo] [--models FOLDER] [--threads 1,2] [--again]

Each graph's result is a line of build/zoo-results.jsonl, so that the bench can be run in parts and go on where it was
stopped: what was measured on this very tree is not measured again unless `--again` is given. At the end the page is
written with the newest result of every graph that is there. Ends with 1 where one of those asked for does not
compile, is wrong, or is slower than the floor (zoo_table.py).
"""

import argparse
import fnmatch
import os
import sys
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

from figures import figure, header, tree
from interleaved import Pace
from native_engines import machine_line, machine_name
from real_models import MODELS
from zoo_graphs import all_names, subject
from zoo_results import Result, append, measured, newest
from zoo_table import NEEDS_LIBRARY, is_slow, page, summary

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Measures what is asked for and writes the page."""
    options = _options()
    names = all_names(options.zoo, options.models)
    asked = [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in options.patterns or ["*"])]
    if not asked:
        sys.exit("nothing to measure: `make zoo` exports the graphs")
    tree_now, threads = tree(), [int(one) for one in options.threads.split(",")]
    for name in [] if options.table else asked:
        known = newest(options.results).get(name)
        if known is None or known.tree != tree_now or options.again:
            pace = Pace(options.seconds, options.rounds, warm_seconds=0.3, enough_seconds=10.0)
            result = measured(subject(name, options.zoo, options.models), tree_now, pace, threads, options.time_limit)
            append(options.results, result)
            print(_line(result), flush=True)
    found = newest(options.results)
    if options.page:
        text = page([found[name] for name in names if name in found], machine_line())
        options.page.write_text(header(figure("zoo-results.md"), machine_name()) + text)
    rows = [found[name] for name in asked if name in found]
    print("\n".join(summary(rows)))
    sys.exit(any(one.exit_code not in (0, NEEDS_LIBRARY) or one.agrees is False or _is_slow(one) for one in rows))


def _is_slow(one: Result) -> bool:
    return any(is_slow(times) for times in one.times)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="default bundles of many graphs: right, and how fast",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("patterns", nargs="*", help="names, with * and ?; none: all")
    parser.add_argument("--zoo", type=Path, default=ROOT / "build" / "zoo", help="folder that `make zoo` wrote")
    parser.add_argument("--models", type=Path, default=MODELS, help="folder with index.json and samples/")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "zoo-results.jsonl")
    page = ROOT / "docs" / "figures" / "zoo-results.md"
    parser.add_argument("--page", type=Path, default=page, help="where the page is written")
    parser.add_argument("--again", action="store_true", help="measure also what this tree has a result of")
    parser.add_argument("--table", action="store_true", help="measure nothing, write the page")
    parser.add_argument("--time-limit", type=float, default=600.0, help="seconds for a compile")
    parser.add_argument("--threads", default="1,2", help="how many, with commas between them")
    parser.add_argument("--seconds", type=float, default=0.05, help="an engine and round")
    parser.add_argument("--rounds", type=int, default=31, help="fewer where calls are long")
    return parser.parse_args()


def _line(one: Result) -> str:
    right = {True: "right", False: "WRONG", None: ""}[one.agrees]
    failed = one.exit_code != 0 or not one.agrees
    said = (one.said or one.agreement) if failed else one.made_of
    times = "  ".join(
        f"[{t.threads}] "
        + " ".join("-" if ms is None else f"{ms:.3g}" for ms in (t.bundle_ms, t.onnxruntime_ms, t.openvino_ms))
        + f" x{t.ratio}"
        for t in one.times
    )
    head = f"{one.name:28} exit {one.exit_code} {one.compile_seconds:6.1f} s  {right}"
    return f"{head}  {times}  {said}  {'; '.join(one.notes)}"


if __name__ == "__main__":
    main()
