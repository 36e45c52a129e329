# SPDX-License-Identifier: Apache-2.0
"""Damaged bundles through the C runtime under AddressSanitizer and UndefinedBehaviorSanitizer, by the million.

    python tests/fuzz/fuzz_c_runtime.py [--count 10000000] [--seed 1] [--processes 2] [--minutes 60] [--write]

Mutants are made and tried in one process (bundle_mutants.c), of the bundles of c_runtime_mutants.py; of several
processes each has a part of the count and a seed of its own, from --seed on. The same seed gives the same mutants. Exit
code 1 where one ended the program; it is kept as build/fuzz/SEED/finding.nnd, and `build/fuzz/bundle_mutants replay`
opens it again. With --write the figures go to docs/figures.
"""

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "build" / "fuzz"
sys.path += [str(HERE), str(HERE.parent / "bench")]

import figures  # noqa: E402
from c_runtime_mutants import Outcome, run_mutants, sanitized_program, seed_files  # noqa: E402
from sanitizer import FoundError, sanitizer_missing  # noqa: E402

PAGE = """\
Each mutant is opened from memory by the C runtime, which is built with AddressSanitizer, UndefinedBehaviorSanitizer and
each piece of memory alone. Its signature is checked; where it is taken it is run twice, given images and verified
([all of it](../../tests/fuzz/bundle_trial.h)). [What is changed](../../tests/fuzz/mutant_bundle.h): JSON by its tokens
and values, numbers of plans, values, compressed streams, whole members, all but one in 32 with right hashes; and bytes
of the container in one of 24. A mutant that reaches code as often as none did before is mutated further.

**{mutants:,} mutants of {seeds}, no finding: {ran:,} ran, {opened:,} were opened, the others were refused with a code
and a line.** They reached {reached:,} edges of the runtime, the {files} bundles alone {reached_by_seeds:,}.
{rate:,.0f} mutants a second of processor time.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1, help="of the first process")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)), help="side by side")
    parser.add_argument("--minutes", type=float, default=1e6, help="then it ends, with what was done by then")
    parser.add_argument("--write", action="store_true", help="write the section of docs/figures")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if reason := sanitizer_missing(FOLDER):
        sys.exit(reason)
    program, files = sanitized_program(FOLDER), seed_files(FOLDER)
    seeds = range(options.seed, options.seed + options.processes)

    def part(seed: int) -> Outcome:
        own = FOLDER / str(seed)
        own.mkdir(exist_ok=True)
        count = (options.count + seed - options.seed) // options.processes
        return run_mutants(program, files, own, seed=seed, count=count, seconds=60 * options.minutes)

    began = os.times()
    try:
        with ThreadPoolExecutor(options.processes) as pool:
            outcomes = list(pool.map(part, seeds))
    except FoundError as err:
        print(f"FOUND: {err}")
        return 1
    ended = os.times()
    spent = ended.children_user + ended.children_system - began.children_user - began.children_system
    mutants = sum(one.mutants for one in outcomes)
    said = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    text = PAGE.format(
        mutants=mutants, opened=sum(one.opened for one in outcomes), ran=sum(one.ran for one in outcomes),
        reached=max(one.reached for one in outcomes), reached_by_seeds=outcomes[0].reached_by_seeds,
        seeds=said, files=len(files), rate=mutants / spent,
    )  # fmt: skip
    print(text)
    if options.write:
        figures.page_section("robustness.md", "Damaged bundles without Python", "fuzz-c-runtime", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
