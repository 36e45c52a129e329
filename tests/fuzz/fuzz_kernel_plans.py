# SPDX-License-Identifier: Apache-2.0
"""Mutants of plans through the kernel library under AddressSanitizer, guided by the edges of the library that they
reach: `make fuzz-kernel-plans ARGS="--count 1000000"`.

Prints how many were opened and run, and how many edges were reached; a mutant that crashes, touches what is not its own
or does not end, ends the command with what the sanitizer says and how to run that mutant again.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from kernel_library import LEVELS_HERE
from plan_mutants import SanitizedLibrary, run_mutants, small_plans
from sanitizer import FoundError, sanitizer_missing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="mutants")
    parser.add_argument("--seed", type=int, default=1, help="other mutants")
    parser.add_argument("--plans", type=int, default=40, help="small random networks that they are made from")
    parser.add_argument("--level", choices=LEVELS_HERE, default=LEVELS_HERE[-1])
    parser.add_argument("--tiles-for-all", action="store_true", help="small products take tiles of AMX too")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"), help="where the driver and findings lie")
    given = parser.parse_args()
    folder = given.folder / f"{given.level}{'-tiles' if given.tiles_for_all else ''}"
    folder.mkdir(parents=True, exist_ok=True)
    if reason := sanitizer_missing(folder):
        sys.exit(reason)
    driver = SanitizedLibrary(folder.resolve(), given.level, has_tiles_for_all=given.tiles_for_all).driver()
    plans, begin = small_plans(given.plans), time.monotonic()
    try:
        outcome = run_mutants(driver, plans, folder, seed=given.seed, count=given.count)
    except FoundError as error:
        sys.exit(str(error))
    print(f"{given.level}: {outcome.said}; {given.count / (time.monotonic() - begin):.0f} mutants a second")


if __name__ == "__main__":
    main()
