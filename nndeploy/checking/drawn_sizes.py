# SPDX-License-Identifier: Apache-2.0
"""Declared ranges -> sizes to try: what a compile compares and measures at, instead of at one size and hoping.

First the sizes to tune for, then all smallest, all largest, primes (no kernel's block divides them), then any. Law:
every size is one that its range holds, no choice comes twice, and the same ranges give the same choices.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from nndeploy.checking.made_up_sizes import choices
from nndeploy.checking.open_sizes import OpenSizes, Sizes, open_sizes
from nndeploy.partition.cost import estimate_costs
from nndeploy.values.types import DimRange

NUM_DRAWN = 5
MAX_SECONDS = 0.5
"""Estimated compute of one sample: the reference and every backend run it, the slowest of them ten times as long."""

_TRIES = 1000
_HALVINGS = 12


@dataclass(frozen=True, slots=True)
class Drawn:
    """Choices of sizes, the estimated compute of the costliest in seconds, and what was too costly to be chosen.

    `unknown` are the open sizes of the inputs and `costs` tells what a choice of them costs; both where they are known.
    """

    sizes: tuple[Sizes, ...]
    seconds: float
    warnings: tuple[str, ...]
    unknown: OpenSizes | None = None
    costs: "Costs | None" = None


@dataclass(frozen=True, slots=True)
class Costs:
    """The estimated compute of a model in seconds, by sizes; those that were asked for are remembered.

    `unknown` are the open sizes of its inputs; those that are not given are usual ones.
    """

    model: ir.Model
    unknown: OpenSizes
    _known: dict[tuple[tuple[str, int], ...], float] = field(default_factory=dict)

    def __call__(self, sizes: Sizes) -> float:
        """Returns the seconds of one call at these sizes."""
        key = tuple(sorted(sizes.items()))
        if key not in self._known:
            shapes = self.unknown.shapes_of_values(sizes)
            self._known[key] = math.fsum(estimate_costs(self.model, shapes).seconds.values())
        return self._known[key]


def affordable_sizes(model: ir.Model, ranges: Mapping[str, DimRange]) -> Drawn:
    """Returns the sizes to check a model at; those that would take too long are made smaller, but for the first."""
    unknown = open_sizes(model)
    costs = Costs(model, unknown)
    if not ranges:
        likely = next(choices(unknown, {}, costs)) if unknown.kinds else {}
        return Drawn(({},), costs(likely), (), unknown, costs)
    first, *others = drawn_sizes(ranges, NUM_DRAWN)
    sizes = [first]
    for wanted in others:
        chosen = within(wanted, ranges, lambda asked: costs(asked) <= MAX_SECONDS)
        if chosen not in sizes:
            sizes.append(chosen)
    warnings = []
    if largest(ranges) not in sizes:
        used = ", ".join(text_of(chosen) for chosen in sizes)
        warnings.append(f"the largest sizes ({text_of(largest(ranges))}) take too long to compare; compared at {used}")
    return Drawn(tuple(sizes), max(map(costs, sizes)), tuple(warnings), unknown, costs)


def largest(ranges: Mapping[str, DimRange]) -> Sizes:
    """Returns the largest size of every range."""
    return {symbol: limits.max for symbol, limits in ranges.items()}


def text_of(sizes: Sizes) -> str:
    """Returns the sizes as "N = 1, H = 224"."""
    return ", ".join(f"{symbol} = {size}" for symbol, size in sizes.items())


def drawn_sizes(ranges: Mapping[str, DimRange], count: int, seed: int = 0) -> list[Sizes]:
    """Returns `count` choices of a size for every symbol, fewer where there are no more; without ranges one, empty."""
    found: list[Sizes] = []
    for sizes, _ in zip(_choices(ranges, np.random.default_rng(seed)), range(count + _TRIES), strict=False):
        if sizes not in found:
            found.append(sizes)
        if len(found) == count:
            break
    return found


def within(sizes: Sizes, ranges: Mapping[str, DimRange], is_affordable: Callable[[Sizes], bool]) -> Sizes:
    """Returns `sizes`, or where they are not affordable about the largest ones between the smallest and them."""
    if is_affordable(sizes):
        return sizes
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if is_affordable(_between(sizes, ranges, middle)):
            low = middle
        else:
            high = middle
    return _between(sizes, ranges, low)


def _between(sizes: Sizes, ranges: Mapping[str, DimRange], part: float) -> Sizes:
    return {symbol: _nearest(ranges[symbol], part * (size - ranges[symbol].min)) for symbol, size in sizes.items()}


def _nearest(limits: DimRange, above: float) -> int:
    """Returns the largest size of a range that is at most `above` over its smallest."""
    return limits.min + int(above) // limits.step * limits.step


def _choices(ranges: Mapping[str, DimRange], random: np.random.Generator) -> Iterator[Sizes]:
    yield {symbol: limits.best for symbol, limits in ranges.items()}
    yield {symbol: limits.min for symbol, limits in ranges.items()}
    yield largest(ranges)
    yield {symbol: _prime_near(_any_of(limits, random), limits) for symbol, limits in ranges.items()}
    while True:
        yield {symbol: _any_of(limits, random) for symbol, limits in ranges.items()}


def _any_of(limits: DimRange, random: np.random.Generator) -> int:
    return limits.min + limits.step * int(random.integers(0, (limits.max - limits.min) // limits.step + 1))


def _prime_near(size: int, limits: DimRange) -> int:
    """Returns a prime of the range, close above or below `size`; `size` itself where none is close."""
    for away in range(_TRIES):
        for candidate in (size + away * limits.step, size - away * limits.step):
            if limits.holds(candidate) and _is_prime(candidate):
                return candidate
    return size


def _is_prime(number: int) -> bool:
    if number < 4:
        return number > 1
    return all(number % factor for factor in (2, *range(3, int(number**0.5) + 1, 2)))
