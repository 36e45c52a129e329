# SPDX-License-Identifier: Apache-2.0
"""The cost table: seconds by backend, kind of operator and size, measured and written; --check: against whole models.

    python tests/bench/bench_costs.py [--level x86-64-v4] [--rounds N] [--seconds S] [--only KIND] [--out FOLDER]
    python tests/bench/bench_costs.py --check|--fit [PATTERN ...] [--table] [--zoo build/zoo] [--models FOLDER]

Small models of one kind of operator (cost_cases.py) run through each engine alone, on one thread, in one process, in
interleaved rounds. What counts is the time of the process on a core, so that others on the machine do not, over that of
a fixed product of the same round, times the least time of that product: a core that is slow in a round is slow for
both. Outputs are compared with ONNX Runtime's before anything is timed; who differs or refuses has no point there.

Each instruction set is measured in a process of its own, which limits the libraries: our kernels by the features they
are shown, OpenVINO by ONEDNN_MAX_CPU_ISA, which its products of floats disregard. ONNX Runtime has no such limit. What
cannot be measured so at a lesser level is what the widest one takes, times the ratio of our own kernels of that kind
between the two. With --check the page docs/figures/cost-results.md is written; with --fit what terms come to within
whole networks, from the same measurements, becomes part of the tables.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

from cost_check import check, fit
from cost_fit import table_of
from cost_table_file import with_ratios_of, write_table
from real_models import MODELS

from nndeploy.partition.cost_table import LEVELS

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "nndeploy" / "partition" / "costs"
ONEDNN_ISA = {"x86-64-v4": "DEFAULT", "x86-64-v3": "AVX2"}


def main() -> None:
    """Writes the tables of the levels that this machine has, or the page."""
    options = _options()
    if options.check:
        check(options)
    elif options.fit:
        fit(options)
    elif options.inside:
        from cost_measurements import measured

        found = measured(options.level, options.only, options.rounds, options.seconds)
        write_table(options.out / f"{options.level}.json", table_of(found, options.level))
    else:
        _write_levels(options)


def _write_levels(options: argparse.Namespace) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    levels = [options.level] if options.level else list(LEVELS)
    for level in levels:
        command = [sys.executable, __file__, "--inside", "--level", level, "--out", str(options.out)]
        command += ["--rounds", str(options.rounds), "--seconds", str(options.seconds), "--only", options.only]
        subprocess.run(command, check=True, env={**os.environ, "ONEDNN_MAX_CPU_ISA": ONEDNN_ISA[level]})
    if LEVELS[1] in levels:
        with_ratios_of(options.out / f"{LEVELS[0]}.json", options.out / f"{LEVELS[1]}.json")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="the cost table, and how well it predicts", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("patterns", nargs="*", help="models to check, with * and ?; none: all")
    parser.add_argument("--check", action="store_true", help="predict whole models and measure them")
    parser.add_argument("--fit", action="store_true", help="fit factors of whole networks, and write them")
    parser.add_argument("--level", default="", choices=["", *LEVELS], help="instruction set; none: all")
    parser.add_argument("--only", default="", help="kinds that hold this text")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.004, help="of an engine and round")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the tables")
    parser.add_argument("--inside", action="store_true", help="measure in this process; for this command itself")
    parser.add_argument("--zoo", type=Path, default=ROOT / "build" / "zoo", help="folder that `make zoo` wrote")
    parser.add_argument("--models", type=Path, default=MODELS, help="folder with index.json and samples/")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "cost-measurements.jsonl")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "figures" / "cost-results.md")
    parser.add_argument("--table", action="store_true", help="measure no whole model, predict those that have a result")
    parser.add_argument("--again", action="store_true", help="measure also whole models that have a result")
    return parser.parse_args()


if __name__ == "__main__":
    main()
