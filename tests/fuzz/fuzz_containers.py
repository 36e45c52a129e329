# SPDX-License-Identifier: Apache-2.0
"""Damaged bundles by the ten million: bytes, figures, runs and lengths of a container; none is taken for a bundle.

    python tests/fuzz/fuzz_containers.py [--count 10000000] [--seed 0] [--jobs 2] [--write]

The mutants are those of container_mutants.py: every byte with every other value, then random damage in blocks, each of
which its own seed gives again. They are read in children. Exit code 1 where one was taken, met an error that is not of
the reader, or ended a child. With --write the figures go to docs/figures.
"""

import argparse
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "bench")]

import figures  # noqa: E402
from container_mutants import BUNDLE, changed_bytes, damaged, is_taken  # noqa: E402

FORK = multiprocessing.get_context("fork")
BLOCK = 100_000

PAGE = """\
A bundle of {size:,} bytes with one submodel and a compressed member is damaged and read whole, as `nndeploy verify`
reads it. Every byte is given every other value; the rest are
[2 to 8 damages at once](../../tests/fuzz/container_mutants.py): other bytes and figures, runs that are filled, copied,
removed or put in. Hashes are not made right: bundles whose hashes are right have
[a section of their own](#damaged-members).

| mutants | how | taken | other errors | crashes |
| ---: | --- | ---: | ---: | ---: |
| {changed:,} | one byte changed, to each value | {changed_bad} | | |
| {count:,} | damage at random | {taken} | {errors} | {crashes} |
"""


def random_damage(seed: int, size: int) -> Iterator[tuple[str, bytes]]:
    rng = random.Random(seed)  # noqa: S311 - the same mutants each time
    for index in range(size):
        mutant = damaged(rng)
        if mutant != BUNDLE:
            yield f"seed {seed}, mutant {index}", mutant


def tally(mutants: Iterator[tuple[str, bytes]]) -> tuple[int, int, int]:
    """Returns how many were read, how many of them taken, and how many met an error that is not of the reader."""
    count = taken = errors = 0
    for what, mutant in mutants:
        count += 1
        try:
            is_bad = is_taken(mutant)
            taken += is_bad
        except Exception as err:  # what it is, is the finding
            errors += 1
            is_bad = True
            print(f"ERROR {what}: {type(err).__name__}: {err}"[:300], flush=True)
        if is_bad:
            print(f"WRONG {what}", flush=True)
    return count, taken, errors


def blocks(seeds: range, totals: "list[int]") -> None:
    for seed in seeds:
        for column, number in enumerate(tally(random_damage(seed, BLOCK))):
            totals[column] += number


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first block; the others follow")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write", action="store_true", help="write the section of docs/figures")
    options = parser.parse_args()
    began = time.monotonic()
    changed, *changed_bad = tally(changed_bytes(all_values=True))
    totals = [FORK.RawArray("q", 3) for _ in range(options.jobs)]
    seeds = range(options.seed, options.seed + -(-options.count // BLOCK))
    children = [
        FORK.Process(target=blocks, args=(seeds[job :: options.jobs], totals[job])) for job in range(options.jobs)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join()
    count, taken, errors = (sum(column) for column in zip(*totals, strict=True))
    crashes = sum(child.exitcode != 0 for child in children)
    text = PAGE.format(
        size=len(BUNDLE),
        changed=changed, changed_bad=sum(changed_bad), count=count, taken=taken, errors=errors, crashes=crashes,
    )  # fmt: skip
    print(text)
    print(f"{changed + count:,} mutants in {time.monotonic() - began:.0f} s")
    if options.write:
        figures.page_section("robustness.md", "Damaged containers", "fuzz-containers", text)
    return bool(taken or errors or crashes or any(changed_bad))


if __name__ == "__main__":
    sys.exit(main())
