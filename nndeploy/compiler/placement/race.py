# SPDX-License-Identifier: Apache-2.0
"""Candidates raced as the bundles they would be, and whether what was measured can be believed.

Doubtful is a race in which one engine takes twice as long for a graph as for the same graph under other passes, at any
of the shapes, or in which all take `FAR` times what was predicted. It is run once more, and the least of both counts
where that is not doubtful, or both are alike. Otherwise nothing counts as measured: the prediction decides, and a
warning says so.
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


def raced_trials(
    setting: Setting, trials: list[Trial], race: Race, best: int | None = None
) -> tuple[list[Trial], tuple[str, ...]]:
    """Returns the trials with what they took, and warnings; as they are where there is nothing to compare.

    A second race begins with the trials of the first, whose bundles are there. Of these the `best` alone races against
    the new ones; the others stay as many times slower than it as they were.
    """
    racing = [i for i, trial in enumerate(trials) if i == best or best is None or not trial.shape_ms]
    if len(racing) < 2 or not race.samples:
        return trials, ()
    paths = [race.folder / f"{i}.nnd" for i in racing]
    for i, path in zip(racing, paths, strict=True):
        if not path.exists():
            race.write(trials[i].settled, trials[i].planned.recipe, path)
    setting.events("measure", f"{len(racing)} candidates")
    try:
        first = _measured(setting, race, paths)
        timed = _with_times(trials, racing, first.ms, best)
        if not _is_doubtful(timed):
            return timed, ()
        setting.events("measure", f"{len(racing)} candidates once more: the figures contradict each other")
        second = _measured(setting, race, paths)
    except (BuildRefusedError, DataError):
        return trials, ()
    fewest = [[*map(min, a, b)] for a, b in zip(first.ms, second.ms, strict=True)]
    least = _with_times(trials, racing, fewest, best)
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


def _with_times(
    trials: Sequence[Trial], racing: Sequence[int], times: Sequence[Sequence[float]], best: int | None
) -> list[Trial]:
    """Returns the trials with the times of those that raced; the others by how the time of the `best` has changed."""
    ms = dict(zip(racing, times, strict=True))
    if best is not None and trials[best].shape_ms:
        changes = [now / before for now, before in zip(ms[best], trials[best].shape_ms, strict=False)]
        for i in set(range(len(trials))) - set(racing):
            ms[i] = [before * change for before, change in zip(trials[i].shape_ms, changes, strict=False)]
    return [replace(trial, shape_ms=tuple(round(one, 5) for one in ms[i])) for i, trial in enumerate(trials)]


def _is_doubtful(trials: Sequence[Trial]) -> bool:
    engines: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.planned.is_whole:
            engines.setdefault(trial.planned.plan.regions[0].backend, []).append(trial)
    twins = (pair for same in engines.values() for pair in itertools.combinations(same, 2))
    times = (pair for one, other in twins for pair in zip(one.shape_ms, other.shape_ms, strict=False))
    if any(max(a, b) > TWINS_APART * min(a, b) for a, b in times):
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
