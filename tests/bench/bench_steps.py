# SPDX-License-Identifier: Apache-2.0
"""What the kernel library's interpreter takes for a step: alone, and shared by two threads.

    python tests/bench/bench_steps.py [--steps N] [--rounds N] [--level x86-64-v4]

Two plans of steps that copy some floats, one of few and one of many steps, in interleaved rounds; the difference of
their times over that of their numbers is what a step takes. A step of one float is the interpreter and a call; those of
two threads copy two rows, one each, and wait for each other. Each plan's output is compared with its input.
"""

import argparse
import itertools
import os
import statistics
import sys
import time
from collections.abc import Sequence

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
from native_engines import machine_line
from nndeploy_native.steps.movement import JoinPlain
from nndeploy_native.tensors import Tensor
from plan_calls import BEST_LEVEL, Call, aligned, library_of, plan_call

FEW = 8
GOALS_NS = {1: 30.0, 2: 3000.0}


def main() -> None:
    """Prints a row for one thread and one for two."""
    parser = argparse.ArgumentParser(description="what the interpreter takes for a step")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--level", default=BEST_LEVEL)
    options = parser.parse_args()
    print(machine_line(), end="\n\n")
    print("| threads | ns a step | (rounds) | goal |")
    print("| ---: | ---: | :---: | ---: |")
    for threads, goal in GOALS_NS.items():
        calls = [_copies(options.level, number, threads) for number in (FEW, options.steps)]
        each = sorted((many - few) / (options.steps - FEW) for few, many in _raced(calls, options.rounds))
        tenth = len(each) // 10
        print(
            f"| {threads} | {statistics.median(each):.1f} | {each[tenth]:.1f} to {each[-1 - tenth]:.1f} | {goal:.0f} |"
        )


def _copies(level: str, number: int, threads: int) -> Call:
    shape = (threads, 1)
    tensors = [Tensor(f"t{place}", shape) for place in range(number + 1)]
    steps = [JoinPlain(to, (source,), threads) for source, to in itertools.pairwise(tensors)]
    given, made = aligned(np.arange(1.0, threads + 1, dtype=np.float32).reshape(shape)), aligned(np.zeros(shape, "f4"))
    call = plan_call(library_of(level), steps, tensors[:1], tensors[-1], [given], made, threads)
    call()
    if not np.array_equal(made, given):
        sys.exit("what was copied is something else")
    return call


def _raced(calls: Sequence[Call], rounds: int) -> list[list[float]]:
    """Returns nanoseconds of each call, a list a round."""
    found = []
    for _ in range(rounds):
        times = []
        for call in calls:
            call()
            begin = time.perf_counter_ns()
            call()
            times.append(float(time.perf_counter_ns() - begin))
        found.append(times)
    return found


if __name__ == "__main__":
    main()
