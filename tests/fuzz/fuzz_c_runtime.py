# SPDX-License-Identifier: Apache-2.0
"""Damaged bundles through the C runtime under AddressSanitizer and UndefinedBehaviorSanitizer, by the million.

    python tests/fuzz/fuzz_c_runtime.py [--count 1000000] [--first 0] [--minutes 60] [--write]

The mutants are those of c_runtime_mutants.py; what is done with each is in c_runtime_trials.c. Exit code 1 where one
ended the program, whose number is printed and gives the same mutant again. With --write the figures go to docs/figures.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "bench")]

import figures  # noqa: E402
from c_runtime_mutants import Seeds, all_seeds, any_mutant, sanitized_program, tried  # noqa: E402

BLOCK = 500
"""So many bundles one process opens."""

PAGE = """\
Each mutant is opened by the C runtime, built with AddressSanitizer and UndefinedBehaviorSanitizer; it is run twice,
verified and described [where it is taken](../../tests/fuzz/c_runtime_trials.c). A quarter each: members that say
something else, plans of other numbers and words, goldens with other bytes, all with hashes made right; images of other
sizes, and bits that are turned with hashes as they were. One in 16 is cut.

**{count:,} mutants, {findings} findings; {taken:,} ran, the others were refused with a code and a line.**
"""


def findings_in(program: Path, seeds: Seeds, numbers: range, folder: Path) -> tuple[int, int]:
    """Returns how many mutants ended the program, and how many of the others ran."""
    files = {number: folder / f"{number}.nnd" for number in numbers}
    for number, file in files.items():
        file.write_bytes(any_mutant(seeds, number))
    done = tried(program, [*files.values()])
    if done.returncode == 0:
        return 0, int(done.stdout.split(" of ")[0])
    ended = {number: tried(program, [file]) for number, file in files.items()}
    bad = [number for number, one in ended.items() if one.returncode]
    for number in bad:
        print(f"FOUND {number}: {ended[number].stderr[:2000]}", flush=True)
    return max(1, len(bad)), sum(one.stdout.startswith("1") for one in ended.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutant")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="then it ends, with what was done by then")
    parser.add_argument("--write", action="store_true", help="write the section of docs/figures")
    options = parser.parse_args()
    began, last = time.monotonic(), options.first + options.count
    count = findings = taken = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:  # noqa: S108
        folder = Path(name)
        seeds, program = all_seeds(folder), sanitized_program(folder)
        if program is None:
            sys.exit("no C compiler")
        for first in range(options.first, last, BLOCK):
            if time.monotonic() - began > 60 * options.minutes:
                break
            numbers = range(first, min(first + BLOCK, last))
            with tempfile.TemporaryDirectory(dir=name) as block:
                bad, ran = findings_in(program, seeds, numbers, Path(block))
            count, findings, taken = count + len(numbers), findings + bad, taken + ran
            print(
                f"{count:,} mutants, {findings} findings, {taken:,} ran, {time.monotonic() - began:.0f} s", flush=True
            )
    if options.write:
        text = PAGE.format(count=count, findings=findings, taken=taken)
        figures.page_section("robustness.md", "Damaged bundles without Python", "fuzz-c-runtime", text)
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
