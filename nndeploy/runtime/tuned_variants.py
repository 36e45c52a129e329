# SPDX-License-Identifier: Apache-2.0
"""Times the other variants of the submodels of a loaded program on this machine, whole runs in turn.

In: a program, samples of its inputs. Out: the variants that make its runs faster, as a table that is kept for later
loads (`kept_variants.py`).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nndeploy.bundle.manifest import PORTABLE
from nndeploy.errors import NndeployError
from nndeploy.runtime.kept_variants import may_be_chosen, variants_table
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import Program, load_bundle
from nndeploy.runtime.select import why_not
from nndeploy.target.target import host_target
from nndeploy.values.types import Value

LEAST_ROUNDS, MOST_ROUNDS = 7, 101
FAR_BEHIND = 1.5
"""A variant whose first calls take so many times as long is not timed any further."""
LEAST_GAIN = 0.03
"""Another variant is taken if it saves this share of the time, by the median of rounds."""

Run = Callable[[Mapping[str, Value]], object]


def other_variants(program: Program, options: LoadOptions) -> list[tuple[str, str]]:
    """Returns what may be taken instead of the variants that a program runs: pairs of submodel and variant."""
    choices = {choice.submodel: choice for choice in program.choices}
    if program.chain.id != PORTABLE or program.stages or any(choice.is_isolated for choice in program.choices):
        return []
    host = host_target()
    return [
        (one.id, variant.id)
        for one in program.manifest.submodels
        for variant in one.variants
        if variant.id != choices[one.id].variant and may_be_chosen(variant) and not why_not(variant, options, host)
    ]


def fastest_variants(
    program: Program,
    options: LoadOptions,
    others: Sequence[tuple[str, str]],
    samples: Sequence[Mapping[str, Value]],
    seconds: float,
) -> list[dict[str, Any]]:
    """Returns a table of those of `others` that make whole runs of a program faster; empty where there are none."""
    found = {choice.submodel: choice.variant for choice in program.choices}
    rule_us = tuned_us = 0.0
    for submodel, variant in others:
        try:
            with load_bundle(program.path, options, variants={**found, submodel: variant}) as other:
                mine, its = _raced(program.run, other.run, samples, seconds / len(others), options.threads == 1)
        except NndeployError:  # it does not open here, or does not take these values
            continue
        rule_us = rule_us or mine
        if its < (1 - LEAST_GAIN) * (tuned_us or mine):
            found[submodel], tuned_us = variant, its
    return [variants_table(program.manifest, options, found, rule_us, tuned_us or rule_us)] if rule_us else []


def _raced(
    run: Run, other: Run, samples: Sequence[Mapping[str, Value]], seconds: float, is_alone: bool
) -> tuple[float, float]:
    """Returns the microseconds of a run of each sample by one and by the other, called in turn; medians.

    Of processor time where one thread does it all, else of the clock.
    """
    clock = time.process_time if is_alone else time.perf_counter
    times: tuple[list[float], list[float]] = ([], [])
    until = time.perf_counter() + seconds

    def timed(way: Run) -> float:
        began = clock()
        for sample in samples:
            way(sample)
        return 1e6 * (clock() - began)

    for way in (run, other):
        timed(way)  # which also makes pages
    for number in range(MOST_ROUNDS):
        for one in (0, 1) if number % 2 else (1, 0):
            times[one].append(timed((run, other)[one]))
        is_slow = number >= 2 and min(times[1]) > FAR_BEHIND * min(times[0])
        if is_slow or (number + 1 >= LEAST_ROUNDS and time.perf_counter() > until):
            break
    mine, others = np.array(times)
    return float(np.median(mine)), float(np.median(mine) * np.median(others / np.maximum(1e-9, mine)))
