# SPDX-License-Identifier: Apache-2.0
"""Candidates raced as the bundles they would be, and whether what was measured can be believed.

Doubtful is a race in which one engine takes twice as long for a graph as for the same graph under other passes, or in
which all take `FAR` times what was predicted. It is run once more, and the least of both counts where that is not
doubtful, or both are alike. Otherwise nothing counts as measured: the prediction decides, and a warning says so.
"""

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nndeploy.compiler.chains.built_chain import Settled
from nndeploy.compiler.chains.chain_setting import Setting
from nndeploy.compiler.placement.candidates import Planned, Recipe
from nndeploy.errors import BuildRefusedError, DataError
from nndeploy.jobs.measuring import Measured
from nndeploy.jobs.tasks import MeasureOptions
from nndeploy.values.types import Value

TWINS_APART = 2.0
"""One engine's times for a graph as exported and as optimised: passes seldom gain or lose more."""
FAR = 5.0
"""Times the prediction, which is of this processor."""
REPEATABLE = 1.5
"""Two races are alike whose times differ by no more."""

WriteTrial = Callable[[Settled, Recipe, Path], None]


@dataclass(frozen=True, slots=True)
class Trial:
    """A candidate that was built, and what it took: the geometric mean and the milliseconds at each shape."""

    planned: Planned
    settled: Settled
    shape_ms: tuple[float, ...] = ()

    @property
    def ms(self) -> float:
        """The measured milliseconds, or where nothing was measured the predicted ones."""
        return statistics.geometric_mean(self.shape_ms) if self.shape_ms else self.planned.seconds * 1e3


@dataclass(frozen=True, slots=True)
class Race:
    """How candidates are measured: `write` makes the bundle of one, in `folder`; no `samples`: not at all.

    `sizes_vary` says that the model's sizes are open, and nobody said which will come.
    """

    write: WriteTrial
    folder: Path
    samples: Sequence[Mapping[str, Value]]
    options: MeasureOptions
    sizes_vary: bool = False


def raced_trials(setting: Setting, trials: list[Trial], race: Race) -> tuple[list[Trial], tuple[str, ...]]:
    """Returns the trials with what they took, and warnings; as they are where there is nothing to compare.

    A second race begins with the trials of the first, whose bundles are there.
    """
    if len(trials) < 2 or not race.samples:
        return trials, ()
    paths = []
    for i, trial in enumerate(trials):
        paths.append(race.folder / f"{i}.nnd")
        if not paths[-1].exists():
            race.write(trial.settled, trial.planned.recipe, paths[-1])
    setting.events("measure", f"{len(trials)} candidates")
    try:
        first = _measured(setting, race, paths)
        timed = _with_times(trials, first.ms)
        if not _is_doubtful(timed):
            return timed, ()
        setting.events("measure", f"{len(trials)} candidates once more: the figures contradict each other")
        second = _measured(setting, race, paths)
    except (BuildRefusedError, DataError):
        return trials, ()
    least = _with_times(trials, [[*map(min, a, b)] for a, b in zip(first.ms, second.ms, strict=True)])
    if not _is_doubtful(least) or _are_alike(first, second):
        return least, ()
    untimed = [replace(trial, shape_ms=()) for trial in trials]
    return untimed, (_too_busy(max(first.waited, second.waited)),)


def _too_busy(waited: float) -> str:
    """Returns the warning that nothing could be measured; `waited` is that of `Measured`."""
    return (
        f"this machine is too busy to measure (calls waited {waited:.0%} of the time for a processor): the placement "
        "is the predicted one; compile again when the machine is quiet"
    )


def _with_times(trials: Sequence[Trial], times: Sequence[Sequence[float]]) -> list[Trial]:
    return [
        replace(trial, shape_ms=tuple(round(ms, 5) for ms in each)) for trial, each in zip(trials, times, strict=True)
    ]


def _is_doubtful(trials: Sequence[Trial]) -> bool:
    engines: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.planned.is_whole:
            engines.setdefault(trial.planned.plan.regions[0].backend, []).append(trial)
    twins = (pair for same in engines.values() for pair in itertools.combinations(same, 2))
    if any(max(one.ms, other.ms) > TWINS_APART * min(one.ms, other.ms) for one, other in twins):
        return True
    return all(trial.shape_ms[0] > FAR * trial.planned.seconds * 1e3 for trial in trials)


def _are_alike(first: Measured, second: Measured) -> bool:
    return all(
        max(a, b) <= REPEATABLE * min(a, b)
        for one, other in zip(first.ms, second.ms, strict=True)
        for a, b in zip(one, other, strict=False)  # the second may lack the other samples
    )


def _measured(setting: Setting, race: Race, paths: Sequence[Path]) -> Measured:
    """Returns the times of each bundle at each sample; at the first alone where one will not run the others."""
    try:
        return setting.workers.measure(paths, race.samples, race.options)
    except (BuildRefusedError, DataError):
        if len(race.samples) == 1:
            raise
        return setting.workers.measure(paths, race.samples[:1], race.options)
