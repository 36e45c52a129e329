# SPDX-License-Identifier: Apache-2.0
"""Thousands of random networks against float64, each array watched: `make fuzz-native-networks ARGS="..."`.

Prints a line for each network that is wrong, with the seed that makes it again, and at the end what was run; exit code
1 where one was wrong.
"""

import argparse
import collections
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from network_programs import Library, Planned, Set, failures_of, sets
from random_networks import network_of

from nndeploy.errors import BuildRefusedError

EACH = 40
"""Networks of one library."""


def planned_networks(seeds: Iterable[int], chosen: Set) -> Iterator[Planned]:
    """Yields the networks of seeds as a build plans them, without those that the rules refuse."""
    for seed in seeds:
        try:
            yield Planned(seed, network_of(seed, chosen))
        except BuildRefusedError:
            continue


def wrong_networks(
    planned: Iterable[Planned], chosen: Set, folder: Path, *, sanitize: bool = False, as_built: bool = False
) -> Iterator[str]:
    """Yields what is wrong, in a line each; libraries are made in `folder`."""
    planned, number = iter(planned), 0
    while networks := list(islice(planned, EACH)):
        library = Library(chosen, networks, folder / f"{number}", sanitize=sanitize, as_built=as_built)
        for one in networks:
            yield from (f"{one.network.name}: {why}" for why in failures_of(library, one))
        library.remove()
        number += 1


def main() -> None:
    """Runs the command."""
    names = [one.isa.name for one in sets()]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="networks of each instruction set")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--set", choices=names, action="append", help="an instruction set; all of them unless given")
    parser.add_argument("--sanitize", action="store_true", help="under AddressSanitizer instead of guard pages")
    parser.add_argument("--as-built", action="store_true", help="kernels specialised for each step, as in a build")
    given = parser.parse_args()
    found, kernels, count = 0, collections.Counter[str](), 0
    for chosen in sets():
        if chosen.isa.name not in (given.set or names):
            continue
        for first in range(given.first, given.first + given.count, EACH):
            seeds = range(first, min(first + EACH, given.first + given.count))
            planned = list(planned_networks(seeds, chosen))
            kernels.update(kernel for one in planned for kernel in one.kernels)
            count += len(planned)
            with tempfile.TemporaryDirectory() as folder:
                for line in wrong_networks(
                    planned, chosen, Path(folder), sanitize=given.sanitize, as_built=given.as_built
                ):
                    found += 1
                    print(line, flush=True)
        print(f"{chosen.isa.name}: {count} networks so far, {found} findings", flush=True)
    print(", ".join(f"{kernel} {times}" for kernel, times in kernels.most_common()))
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
