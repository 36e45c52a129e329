# SPDX-License-Identifier: Apache-2.0
"""Spreads the steps of a chain over places: as fast as can be, with no place given more than its limit.

Comes in: steps in the order in which they run, what each needs, and places in their order. Goes out: the place of each
step. Each place gets a run of neighbouring steps, or none, in the order of the places. Of all such splits within the
limits the one that is returned has the least

    seconds on all places + bytes that cross / CROSSING_BYTES_PER_S

and of equal ones it gives most to the earlier places. A value crosses to a place once, however many steps read it
there; inputs and outputs of the chain are on the host, and cross to and from GPUs. All of that is a sum over runs of
what depends on the run and its place alone:

    run [i, j) on a place: bytes of values made before i and read first in it, and of outputs that a GPU makes in it

so the least sum over all splits is found by dynamic programming over the cuts, in O(steps^2 x places).

Calls follow each other over the places, at the pace of the slowest. For the most calls a second the longest of these
costs of a run is the least that any split has, found in the same way, and of such splits the sum is least.

What a run takes of a place's memory: its weights, each once, and the most bytes of values that are alive at once while
its steps run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nndeploy.target.place_limits import CPU, PlaceLimit, binary_size

CROSSING_BYTES_PER_S = 8e9
"""What PCI Express of most boxes does, and memory between two pools of cores at worst."""
GPU_SPEEDUP = 20.0
"""How many times faster a GPU computes than the core whose seconds a step has: it decides what is worth a crossing."""

ROUNDING = 1e-12

Numbers = np.ndarray[Any, np.dtype[np.float64]]
Together = Callable[[Numbers, float], Numbers]
"""How the cost of a run and that of the runs before it count together."""


@dataclass(frozen=True, slots=True)
class SpreadStep:
    """One step: the values that it reads and makes, the seconds of one core, and the bytes that it needs.

    `weights` are by name, so that one that several steps read counts once on a place. `peak_bytes` are those of all
    values that are alive while it runs. `needs_cpu`: it cannot run on a GPU; among the steps of one it runs on the CPU
    and takes nothing of the GPU's memory; what crosses is counted as if it did run there, for it crosses back and forth
    wherever the chain is cut. `needs_gpu`: it cannot run elsewhere.
    """

    name: str
    reads: tuple[str, ...]
    makes: tuple[str, ...]
    seconds: float = 0.0
    weights: Mapping[str, int] = field(default_factory=dict)
    peak_bytes: int = 0
    needs_cpu: bool = False
    needs_gpu: bool = False


@dataclass(frozen=True, slots=True)
class NoRoom:
    """Why no split is within the limits, in one line."""

    reason: str


def spread(
    steps: Sequence[SpreadStep],
    value_bytes: Mapping[str, int],
    outputs: Sequence[str],
    places: Sequence[PlaceLimit],
    *,
    for_rate: bool = False,
) -> tuple[str, ...] | NoRoom:
    """Returns the name of the place of each step, or why there is none; `outputs` are those of the chain.

    With `for_rate` no place takes longer than it must, so that most calls a second go through.
    """
    runs = _Runs(steps, value_bytes, outputs)
    longest = _least(runs, places, np.maximum)[0] * (1 + ROUNDING) if for_rate else np.inf
    least, begins = _least(runs, places, np.add, longest)
    if np.isinf(least):
        return NoRoom(_why_no_room(runs, places))
    found, end = list[str](), len(steps)
    for place, begin in zip(reversed(places), reversed(begins), strict=True):
        found[:0] = [CPU if place.is_gpu and step.needs_cpu else place.name for step in steps[begin[end] : end]]
        end = begin[end]
    return tuple(found)


def _least(
    runs: "_Runs", places: Sequence[PlaceLimit], together: Together, longest: float = np.inf
) -> tuple[float, list[list[int]]]:
    """Returns the least cost of all steps, infinity where they do not fit, and where the run of each place begins.

    The costs of runs count `together`, and none is above `longest`.
    """
    best = np.full(len(runs.steps) + 1, np.inf)
    best[0] = 0.0
    begins: list[list[int]] = []
    for place in places:
        best, begin = _with_place(runs, place, best, together, longest)
        begins.append(begin)
    return float(best[-1]), begins


def _with_place(
    runs: "_Runs", place: PlaceLimit, before: Numbers, together: Together, longest: float
) -> tuple[Numbers, list[int]]:
    """Returns the least cost of the first j steps, for each j, with one more place; and where its run begins then."""
    best, begin = before.copy(), list(range(len(before)))  # nothing on this place
    for first in range(len(before) - 2, -1, -1):  # later beginnings first: of equal splits they win
        if np.isinf(before[first]):
            continue
        own = runs.cost(first, place)
        cost = together(own, before[first])
        cost[(runs.needed(first, place) > _limit(place)) | (own > longest)] = np.inf
        better = np.flatnonzero(cost < best[first + 1 :] * (1 - ROUNDING))
        best[first + 1 + better] = cost[better]
        for end in (first + 1 + better).tolist():
            begin[end] = first
    return best, begin


def _limit(place: PlaceLimit) -> float:
    return np.inf if place.limit_bytes is None else float(place.limit_bytes)


class _Runs:
    """What runs of steps cost and need on a place: for a first step, a number for each step that may be the last."""

    def __init__(self, steps: Sequence[SpreadStep], value_bytes: Mapping[str, int], outputs: Sequence[str]) -> None:
        self.steps = steps
        maker = {name: i for i, step in enumerate(steps) for name in step.makes}
        read = [{name: value_bytes.get(name, 0) for name in step.reads} for step in steps]
        made_here = [{name: size for name, size in one.items() if name in maker} for one in read]
        weights = [step.weights for step in steps]
        on_gpu = [{} if step.needs_cpu else step.weights for step in steps]
        self._reads = {True: _Uses(read, maker), False: _Uses(made_here, maker)}
        self._weights = {True: _Uses(on_gpu, {}), False: _Uses(weights, {})}
        peaks = np.array([step.peak_bytes for step in steps], np.float64)
        is_on_gpu = np.array([not step.needs_cpu for step in steps], bool)
        self._peaks = {True: peaks * is_on_gpu, False: peaks}
        seconds = np.array([step.seconds for step in steps], np.float64)
        must = np.where([step.needs_gpu for step in steps], np.inf, seconds)
        self._seconds = {True: np.where(is_on_gpu, seconds / GPU_SPEEDUP, seconds), False: must}
        out = [sum(value_bytes.get(name, 0) for name in step.makes if name in outputs) for step in steps]
        self._out = {True: np.array(out, np.float64), False: np.zeros(len(steps))}

    def cost(self, first: int, place: PlaceLimit) -> Numbers:
        """Returns the seconds of the runs from `first` on: those of the steps, and of what crosses for them."""
        crossing = self._reads[place.is_gpu].total(first) + np.cumsum(self._out[place.is_gpu][first:])
        found: Numbers = np.cumsum(self._seconds[place.is_gpu][first:]) + crossing / CROSSING_BYTES_PER_S
        return found

    def needed(self, first: int, place: PlaceLimit) -> Numbers:
        """Returns the bytes that the runs from `first` on take of a place."""
        peak = np.maximum.accumulate(self._peaks[place.is_gpu][first:])
        found: Numbers = self._weights[place.is_gpu].total(first) + peak
        return found


class _Uses:
    """Sizes by name that steps use, each of which counts once in a run, however many of its steps use it.

    What is used counts at its first use in the run: where it was used or made last lies before the run.
    """

    def __init__(self, used: Sequence[Mapping[str, int]], maker: Mapping[str, int]) -> None:
        last = dict(maker)
        found = []
        for i, sizes in enumerate(used):
            for name, size in sizes.items():
                found.append((last.get(name, -1), i, size))
                last[name] = i
        table = np.array(found, np.float64).reshape(-1, 3)
        self._before, self._at, self._sizes = table[:, 0], table[:, 1].astype(np.int64), table[:, 2]
        self._num_steps = len(used)

    def total(self, first: int) -> Numbers:
        """Returns the bytes that the runs from `first` on use."""
        counts = (self._before < first) & (self._at >= first)
        at, sizes = self._at[counts] - first, self._sizes[counts]
        found: Numbers = np.cumsum(np.bincount(at, sizes, self._num_steps - first))
        return found


def _why_no_room(runs: _Runs, places: Sequence[PlaceLimit]) -> str:
    """Says what is too much for the places: a single step, or what is left when each has as many steps as it takes."""
    first, limits = 0, ", ".join(f"{one.name} has {binary_size(_limit(one))}" for one in places)
    for place in places:
        fits = (runs.needed(first, place) <= _limit(place)) & np.isfinite(runs.cost(first, place))
        first += int(fits.argmin()) if not fits.all() else len(fits)
    step = runs.steps[first]
    largest = max(places, key=_limit)
    alone = float(runs.needed(first, largest)[0])
    if step.needs_gpu and not any(place.is_gpu for place in places):
        return f"{step.name} needs a GPU, and none is among the places"
    if alone > _limit(largest):
        has = binary_size(_limit(largest))
        return f"{step.name} needs {binary_size(alone)}, the largest place, {largest.name}, has {has}"
    whole = float(runs.needed(0, places[0])[-1])
    return (
        f"the chain needs {binary_size(whole)} on one place, and does not fit the places from {step.name} on: {limits}"
    )
