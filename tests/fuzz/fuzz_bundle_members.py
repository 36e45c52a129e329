# SPDX-License-Identifier: Apache-2.0
"""Whole bundles of which one member says something else, with all hashes made right, by the hundred thousand.

    python tests/fuzz/fuzz_bundle_members.py [--count 1000000] [--first 0] [--jobs 2] [--minutes 60] [--write]

The mutants are those of member_mutants.py, what must hold is in member_readers.py. They are opened in children, so
that a crash or a hang costs one of them and is counted; the number that is printed gives the same mutant again. Exit
code 1 where one was wrong. With --write the figures go to docs/figures.
"""

import argparse
import gc
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "bench")]

import figures  # noqa: E402
from member_mutants import Seed, kind_of, mutant, seeds_in  # noqa: E402
from member_readers import ALL_OF, READERS, WrongError, is_taken, surroundings  # noqa: E402

FORK = multiprocessing.get_context("fork")
KINDS = tuple(READERS)
REFUSED, TAKEN, WRONG, KILLED = range(4)
COLUMNS = 4
SECONDS_EACH = 60
CHILD_COUNT = 2_000
"""So many mutants a child opens: what a library might leak is gone with it."""

PAGE = """\
Each mutant is a whole bundle of which one member says something else, and in which sizes, hashes and checksums are
made right, as an attacker packs it. It is opened, and whatever reads the member reads it; a plan is loaded and run; of
one in {all_of}, and of each with another manifest, every member is read and the signature checked. A mutant is refused
by one typed line, or taken: then [all that is said of it is true](../../tests/fuzz/member_readers.py), one text for one
content, members as they are listed, no signature for another bundle, outputs of the names, types and sizes that are
said.

**{count} mutants: {wrong} taken that should not be or refused without a typed line, {killed} crashes or hangs.**

| what says something else | mutants | refused | taken | wrong | crashes and hangs |
| --- | ---: | ---: | ---: | ---: | ---: |
{rows}

Taken are such as say another thing that may be said: another label, another time in the report, other weights. Bytes of
whole containers, whose hashes are then wrong, are in
[test_bundle_mutations.py](../../tests/fuzz/test_bundle_mutations.py), plans of `native` under a sanitizer in
[test_native_plan_mutations.py](../../tests/fuzz/test_native_plan_mutations.py). An ONNX model is given to our own
reader alone: what ONNX Runtime does with a damaged one is ONNX Runtime's.
"""


def opened(seeds: Mapping[str, Seed], numbers: range, folder: Path, counts: "Counts", at: "Counts") -> None:
    """Opens mutants; `at[0]` is the one that it is at, which is known where this process is gone."""
    gc.freeze()
    here = surroundings(folder, f"{os.getpid()}.nnd")
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)  # libraries speak there
    for number in numbers:
        at[0] = number
        signal.alarm(SECONDS_EACH)
        found = mutant(seeds, number)
        kind = COLUMNS * KINDS.index(found.kind)
        try:
            counts[kind + (TAKEN if is_taken(found, here) else REFUSED)] += 1
        except WrongError as err:
            counts[kind + WRONG] += 1
            print(f"WRONG {number}, {found.kind}: {err}"[:500], flush=True)
    here.path.unlink(missing_ok=True)


Counts = list[int]


def watched(seeds: Mapping[str, Seed], numbers: range, folder: Path, counts: Counts, until: float) -> None:
    """Opens mutants in children, one after another; a child that is gone is followed by one that goes on after it."""
    at = FORK.RawArray("q", 1)
    while numbers and time.monotonic() < until:
        some, at[0] = numbers[:CHILD_COUNT], numbers[0]
        child = FORK.Process(target=opened, args=(seeds, some, folder, counts, at))
        child.start()
        child.join()
        if child.exitcode == 0:
            numbers = numbers[CHILD_COUNT:]
            continue
        kind = kind_of(at[0])
        counts[COLUMNS * KINDS.index(kind) + KILLED] += 1
        print(f"KILLED {at[0]}, {kind}: exit {child.exitcode}", flush=True)
        numbers = numbers[numbers.index(at[0]) + 1 :]


def tally(
    seeds: Mapping[str, Seed], folder: Path, numbers: range, jobs: int, seconds: float = float("inf")
) -> dict[str, Counts]:
    """Returns what came of mutants, as far as time allows: refused, taken, wrong, and such as killed us, by kind."""
    until = time.monotonic() + seconds
    counts = [FORK.RawArray("q", COLUMNS * len(KINDS)) for _ in range(jobs)]
    watchers = [
        FORK.Process(target=watched, args=(seeds, numbers[job::jobs], folder, counts[job], until))
        for job in range(jobs)
    ]
    for watcher in watchers:
        watcher.start()
    for watcher in watchers:
        watcher.join()
        assert watcher.exitcode == 0
    total = [sum(column) for column in zip(*counts, strict=True)]
    return {kind: total[COLUMNS * number : COLUMNS * (number + 1)] for number, kind in enumerate(KINDS)}


def table(found: Mapping[str, Counts]) -> str:
    rows = [*sorted(found.items()), ("**all**", [sum(column) for column in zip(*found.values(), strict=True)])]
    return "\n".join(f"| {kind} | {' | '.join(f'{n:,}' for n in (sum(some), *some))} |" for kind, some in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="then it ends, with what was done by then")
    parser.add_argument("--write", action="store_true", help="write the section of docs/figures")
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:  # noqa: S108
        numbers = range(options.first, options.first + options.count)
        found = tally(seeds_in(Path(name)), Path(name), numbers, options.jobs, 60 * options.minutes)
    count = sum(sum(some) for some in found.values())
    print(table(found))
    print(f"{count:,} mutants in {time.monotonic() - began:.0f} s")
    wrong, killed = (sum(some[column] for some in found.values()) for column in (WRONG, KILLED))
    if options.write:
        text = PAGE.format(count=f"{count:,}", wrong=wrong, killed=killed, rows=table(found), all_of=ALL_OF)
        figures.page_section("robustness.md", "Damaged members", "fuzz-bundle-members", text)
    return bool(wrong or killed)


if __name__ == "__main__":
    sys.exit(main())
