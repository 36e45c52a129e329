# SPDX-License-Identifier: Apache-2.0
"""Thousands of random networks against float64, each array ending at a guard page: `make fuzz-native-networks`.

Prints a line for each network that is wrong, with the seed that makes it again, and at the end what was run; exit code
1 where one was wrong. A network that touches what is not its own ends its process, which is told as well.
"""

import argparse
import collections
import json
import multiprocessing
import os
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from kernel_library import LEVELS_HERE
from native_models import built
from nndeploy_native.plan import DOCUMENT_FILE
from random_networks import network_of, wrong_numbers

from nndeploy.errors import BuildRefusedError

EACH = 20
"""Networks of one process."""


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="networks of each level")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--level", choices=LEVELS_HERE, action="append", help="a level; all of them unless given")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes at once")
    given = parser.parse_args()
    found, operators, count = 0, collections.Counter[str](), 0
    tasks = [
        (level, range(first, min(first + EACH, given.first + given.count)))
        for level in given.level or LEVELS_HERE
        for first in range(given.first, given.first + given.count, EACH)
    ]
    for lines, used in _results(tasks, given.workers):
        found += len(lines)
        count += used.pop("networks", 0)
        operators.update(used)
        for line in lines:
            print(line, flush=True)
    print(f"{count} networks, {found} findings")
    print(", ".join(f"{operator} {times}" for operator, times in operators.most_common()))
    sys.exit(found > 0)


def _results(tasks: list[tuple[str, range]], workers: int) -> Iterator[tuple[list[str], collections.Counter[str]]]:
    """Yields what each task finds, each in a process of its own."""
    context, waiting = multiprocessing.get_context("fork"), list(reversed(tasks))
    running = []
    while waiting or running:
        while waiting and len(running) < workers:
            task = waiting.pop()
            receiving, sending = context.Pipe(duplex=False)
            process = context.Process(target=_check, args=(*task, sending))
            process.start()
            sending.close()
            running.append((task, process, receiving))
        (level, seeds), process, receiving = running.pop(0)
        last, used, lines = seeds[0], collections.Counter[str](), list[str]()
        try:
            while True:
                last, more, here = receiving.recv()
                used.update(more)
                lines += here
        except EOFError:
            process.join()
        if process.exitcode:
            lines.append(f"{level}: the process ended with {process.exitcode} at the seed behind {last}")
        yield lines, used


def _check(level: str, seeds: range, sending: "multiprocessing.connection.Connection") -> None:
    for seed in seeds:
        used = collections.Counter[str]()
        try:
            network = network_of(seed)
            wrong = wrong_numbers(network, level)
            steps = json.loads(built(network.model, network.ranges).files[DOCUMENT_FILE])["steps"]
            used.update(["networks", *(step["kernel"] for step in steps)])
        except BuildRefusedError:
            wrong = []
        sending.send((seed, used, wrong))


if __name__ == "__main__":
    main()
