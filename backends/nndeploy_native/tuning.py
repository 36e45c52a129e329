# SPDX-License-Identifier: Apache-2.0
"""Times other ways of doing the steps of a plan, while it runs, and says which are faster than the rule.

For the shapes of a call a `Race` says how each step is done in the next run, and is told how long each took:

    look      the rule, a few times: which steps take most of the time
    ways      convolutions by Winograd's products or by the direct sum, where last bits may change
    caches    the rule as it would be with a smaller or larger second cache
    windows   other buffers of sliding windows and other blocks, one by one
    stores    results past the caches or through them
    threads   how steps are cut and shared; with several threads alone
    proof     what won against the rule, run by run; what does not win again is the rule's
    whole     all that is left against the rule, by the time of whole runs

Each step goes through its own alternatives in turn, in a new order each time, and loses those that are far behind, so
that as many steps as there are measure at once. Where runs are long and the time is short, alternatives are left out.
Law: what is tried gives the bits of the rule, but for `ways`.
"""

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nndeploy_native.step_choices import BY_RULE, MAX_CHOICE_BYTES, WAYS, StepChoice, StepFacts

LOOKS = 7
"""Runs by the rule that tell which steps take most."""
LEAST_SAMPLES = 5
"""So often each side is timed before what won is taken for sure."""
PROVED = 0.6
"""At most this share of the time that is left is kept back for proofs."""
LEAST_TRIES = 2
"""So often each alternative is timed before one is preferred."""
MOST_SAMPLES = 41
"""A phase ends when each alternative was timed so often."""
COVERED = 0.97
"""Share of the time of a run whose steps are raced; the others take too little to gain from."""
FAR_BEHIND = 1.15
"""An alternative whose time is so many times the best one's is not tried again."""
RUNS_IN_MEMORY = 5
"""Whole runs of each side that follow each other in the same memory."""
LEAST_GAIN, NOISE = 0.01, 0.05
"""A step is done otherwise if that gains this share of its time, in each of two phases; with few samples, n, noise may
seem to gain NOISE / sqrt(n), and more than that is wanted."""
LEAST_GAIN_OF_RUNS, NOISE_OF_RUNS = 0.003, 0.02
"""The same of whole runs."""
ERRORS = 2.0
"""Whole runs must gain so many times what their median is uncertain by: the middle half of n ratios over sqrt(n)."""
SHARED_NS = 300_000
"""Steps that take less may be done by one thread alone."""
LARGE_BYTES = 1 << 19
"""Results from this size on may be stored past the caches."""
STREAM_FROM = 16 << 20
"""Results above this size are stored past them by the rule: NND_STREAM_FROM of `ops/windows.h`."""

WINDOWED = ("separable", "planar_separable", "stem", "inverted_residual")
BLOCKED = (
    "convolution", "volume_convolution", "transposed", "fully_connected", "bits_connected", "product",
    "int8_convolution", "int8_connected", "int8_padded",
)  # fmt: skip
"""Kernels with blocks that are counted with the second cache."""
STORING = ("separable", "planar_separable", "stem", "convolution", "volume_convolution", "transposed")
"""Kernels that may store past the caches."""

_SHARES = tuple(1 << power for power in (18, 20, 16, 21, 17, 19, 22, 15, 23, 14))
"""Bytes of buffers and caches that are tried: 16 KiB to 8 MiB, those in the middle first."""


FactsOf = Callable[[Sequence[StepChoice]], Sequence[StepFacts]]
"""What all steps are like with these choices."""


class RaceOptions(NamedTuple):
    """How a race is run: for how many seconds, with how many threads, and what the rule counts with.

    `buffer_bytes`: what the user set, 0 where he did not. `clock` tells the seconds that count. `is_fast`: ways that
    change last bits are tried too.
    """

    seconds: float
    threads: int
    l2_bytes: int
    buffer_bytes: int
    clock: Callable[[], float] = time.perf_counter
    is_fast: bool = False


class Tried(NamedTuple):
    """The result of a race: a choice for each step, and the microseconds of a run by the rule and with them."""

    choices: tuple[StepChoice, ...]
    rule_us: float
    tuned_us: float


class _Lane:
    """The alternatives of one step in one phase; the first is what was best before."""

    def __init__(self, alternatives: Sequence[StepChoice], dice: random.Random) -> None:
        self.alternatives, self._dice = list(alternatives), dice
        self.times: list[list[int]] = [[] for _ in alternatives]
        self._live = list(range(len(alternatives)))
        self._turn: list[int] = []
        self.now = 0

    def drawn(self) -> StepChoice:
        """Returns the alternative whose turn it is."""
        if not self._turn:
            self._drop()
            self._turn = list(self._live)
            self._dice.shuffle(self._turn)
        self.now = self._turn.pop()
        return self.alternatives[self.now]

    def told(self, ns: int) -> None:
        """Takes the time of the one that was drawn."""
        self.times[self.now].append(ns)

    @property
    def num_samples(self) -> int:
        """How often the least tried one that is left was tried."""
        return min(len(self.times[one]) for one in self._live)

    def _drop(self) -> None:
        if self.num_samples < 3:
            return
        best = min(_low(self.times[one]) for one in self._live)
        self._live = [one for one in self._live if one == 0 or _low(self.times[one]) <= FAR_BEHIND * best]

    def best(self) -> StepChoice:
        """Returns the fastest, the first where no other gains enough."""
        number = min(self._live, key=lambda one: _low(self.times[one]))
        num_samples = min(len(self.times[number]), len(self.times[0]))
        gain = max(LEAST_GAIN, NOISE / math.sqrt(max(1, num_samples)))
        wins = _low(self.times[number]) < (1 - gain) * _low(self.times[0])
        return self.alternatives[number if wins else 0]


class Race:
    """The race for one set of shapes; one caller at a time."""

    def __init__(self, facts_of: FactsOf, num_steps: int, how: RaceOptions) -> None:
        """Asks `facts_of` once for what the steps are by the rule."""
        self._facts_of, self._how = facts_of, how
        self._dice = random.Random(num_steps)  # noqa: S311 - no secret
        self._rule = (BY_RULE,) * num_steps
        self._best = list(self._rule)
        self._facts = facts_of(self._rule)
        self._began = how.clock()
        self._until, self._run_seconds = self._began + how.seconds, 0.0
        self._looks: list[Sequence[int]] = []
        self._lanes: dict[int, _Lane] = {}
        ways, threads = ["ways"] * how.is_fast, ["threads"] * (how.threads > 1)
        self._phases = [*ways, "caches", "windows", "stores", *threads, "proof", "whole"]
        self._ends_at = 0.0
        self._whole: tuple[list[int], list[int]] = ([], [])
        self.is_done = False
        self.memory = 0
        """Rises when runs are to go on in other memory: what wins in one may lose in another."""
        self._is_cold = False
        self._phase = "look"

    def next_choices(self) -> tuple[StepChoice, ...]:
        """Returns how the steps of the next run are done."""
        if self._phase == "whole":
            return tuple(self._best) if len(self._whole[0]) > len(self._whole[1]) else self._rule
        drawn = list(self._best)
        for step, lane in self._lanes.items():
            drawn[step] = lane.drawn()
        return tuple(drawn)

    def told(self, step_ns: Sequence[int]) -> None:
        """Takes the nanoseconds of each step of the run for which choices were asked last."""
        if self._is_cold:  # whose pages were touched first
            self._is_cold = False
        elif self._phase == "look":
            self._looks.append(list(step_ns))
            self._run_seconds = (self._how.clock() - self._began) / len(self._looks)
            is_long = len(self._looks) >= LEAST_TRIES and 10 * LOOKS * self._run_seconds > self._how.seconds
            if len(self._looks) >= LOOKS or is_long:
                self._next_phase()
        elif self._phase == "whole":
            rule, tuned = self._whole
            (tuned if len(rule) > len(tuned) else rule).append(sum(step_ns))
            is_enough = len(rule) >= 2 * MOST_SAMPLES or self._is_late(len(rule), LEAST_SAMPLES)
            if len(rule) == len(tuned) and is_enough:
                self.is_done = True
            elif len(rule) == len(tuned) and not len(rule) % RUNS_IN_MEMORY:
                self._move()
        else:
            for step, lane in self._lanes.items():
                lane.told(step_ns[step])
            least = min(lane.num_samples for lane in self._lanes.values())
            if least >= MOST_SAMPLES or self._is_late(least, LEAST_SAMPLES if self._phase == "proof" else LEAST_TRIES):
                self._next_phase()

    def _move(self) -> None:
        self.memory += 1
        self._is_cold = True

    def found(self) -> Tried:
        """Returns what won; all is the rule's where nothing did."""
        rule, tuned = (self._whole[0][: len(self._whole[1])], self._whole[1])
        if len(tuned) >= LEAST_SAMPLES:
            before, after = statistics.median(rule), statistics.median(tuned)
            ratios = [b / max(1, a) for a, b in zip(rule, tuned, strict=True)]
            low, ratio, high = statistics.quantiles(ratios, n=4, method="inclusive")
            noise = max(NOISE_OF_RUNS, ERRORS * (high - low)) / math.sqrt(len(ratios))
            gain = max(LEAST_GAIN_OF_RUNS, noise)
            if ratio < 1 - gain and _low(tuned) < _low(rule) and after < before:
                return Tried(tuple(self._best), before / 1e3, after / 1e3)
            return Tried(self._rule, before / 1e3, before / 1e3)
        looks = [sum(one) for one in self._looks] or [0]
        return Tried(self._rule, statistics.median(looks) / 1e3, statistics.median(looks) / 1e3)

    def _is_late(self, num_samples: int, least: int) -> bool:
        return num_samples >= least and self._how.clock() >= self._ends_at

    def _next_phase(self) -> None:
        """Takes over what won, and begins the next phase in which there is something to try."""
        for step, lane in self._lanes.items():
            self._best[step] = lane.best()
        while self._phases:
            self._phase = self._phases.pop(0)
            self._lanes = {}
            now = self._how.clock()
            self._ends_at = now + max(0.0, self._until - now) / (len(self._phases) + 1)
            if self._phase in ("proof", "whole"):
                self._move()
            if self._phase == "whole":
                self.is_done = tuple(self._best) == self._rule
                return
            every = [(step, self._alternatives(step)) for step in self._costly()]
            if self._phase in ("ways", "caches", "windows"):
                every = self._different(every)
            if self._phase != "proof":
                every = [(step, some[: 1 + self._most_tried(some)]) for step, some in every]
            self._lanes = {step: _Lane(some, self._dice) for step, some in every if len(some) > 1}
            if self._lanes:
                return
        self.is_done = True

    def _most_tried(self, some: Sequence[StepChoice]) -> int:
        """Returns how many alternatives there is time for, with what proves them kept back."""
        left = self._until - self._how.clock()
        left -= min(PROVED * left, 4 * LEAST_SAMPLES * self._run_seconds)
        fitting = int(left / max(1e-9, LEAST_TRIES * self._run_seconds)) - 1
        return max(0, min(len(some) - 1, fitting))

    def _costly(self) -> list[int]:
        """Returns the steps that take most of a run."""
        times = [statistics.median(column) for column in zip(*self._looks, strict=True)]
        order = sorted(range(len(times)), key=lambda step: -times[step])
        found, covered, total = [], 0.0, sum(times)
        for step in order:
            if covered >= COVERED * total:
                break
            found.append(step)
            covered += times[step]
        return found

    def _alternatives(self, step: int) -> list[StepChoice]:
        """Returns what is tried of a step in this phase, what was best before first."""
        best, facts = self._best[step], self._facts[step]
        if self._phase == "proof":
            return [BY_RULE, best] if best != BY_RULE else []
        found = [best]
        is_windowed = facts.kernel in WINDOWED
        if self._phase == "ways" and facts.kernel == "convolution":
            found += [best._replace(way=way) for way in WAYS]
        elif self._phase == "caches" and (is_windowed or facts.kernel in BLOCKED):
            found += [best._replace(cache_bytes=self._how.l2_bytes * part // 4) for part in (16, 1, 8, 2)]
        elif self._phase == "windows" and is_windowed and not self._how.buffer_bytes:
            found += [best._replace(buffer_bytes=size) for size in (*_SHARES, MAX_CHOICE_BYTES)]
        elif self._phase == "windows" and facts.kernel in BLOCKED:
            found += [best._replace(cache_bytes=size) for size in (*_SHARES, MAX_CHOICE_BYTES)]
        elif self._phase == "stores" and facts.kernel in STORING and facts.num_bytes >= LARGE_BYTES:
            found.append(best._replace(stores=1 if facts.num_bytes > STREAM_FROM else 2))
        elif self._phase == "threads":
            if statistics.median(look[step] for look in self._looks) < SHARED_NS:
                found += [best._replace(sharing=how) for how in (1, 2)]
            found += [best._replace(chunks=count) for count in (2, 8, 1, 16)]
        return found

    def _different(self, every: Sequence[tuple[int, list[StepChoice]]]) -> list[tuple[int, list[StepChoice]]]:
        """Leaves out alternatives that do as one before them; of a step that does not tell all but a few."""
        most = max((len(some) for _, some in every), default=0)
        seen: dict[int, dict[object, StepChoice]] = {step: {} for step, _ in every}
        for number in range(most):
            choices = list(self._best)
            for step, some in every:
                choices[step] = some[min(number, len(some) - 1)]
            facts = self._facts_of(choices)
            for step, some in every:
                if number < len(some):
                    one = some[number]
                    is_windowed = facts[step].kernel in WINDOWED  # how it fetches it does not tell
                    key = facts[step].shown, one.cache_bytes if is_windowed else 0
                    seen[step].setdefault(key, one)
        return [(step, list(seen[step].values())) for step, _ in every]


def _low(times: Sequence[int]) -> float:
    """Returns the lower quartile: a run is delayed by others, never hurried."""
    ordered = sorted(times)
    return float(ordered[len(ordered) // 4]) if ordered else float("inf")
