# SPDX-License-Identifier: Apache-2.0
"""A million mutants of plans through the kernel library under AddressSanitizer: `make fuzz-kernel-plans ARGS="..."`.

Prints how many were opened and run; a mutant that crashes, touches what is not its own or does not end ends the command
with what the sanitizer says.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from kernel_library import LEVELS_HERE
from plan_mutants import run_mutants, sanitized_driver, sanitizer_missing, small_plans


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="mutants")
    parser.add_argument("--seed", type=int, default=1, help="other mutants")
    parser.add_argument("--plans", type=int, default=40, help="small random networks that they are made from")
    parser.add_argument("--level", choices=LEVELS_HERE, default=LEVELS_HERE[-1])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if reason := sanitizer_missing(Path(folder)):
            sys.exit(reason)
        driver = sanitized_driver(Path(folder), given.level)
        print(run_mutants(driver, small_plans(given.plans), Path(folder), seed=given.seed, count=given.count))


if __name__ == "__main__":
    main()
