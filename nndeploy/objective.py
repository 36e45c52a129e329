# SPDX-License-Identifier: Apache-2.0
"""`--objective latency|throughput`: candidate placements are built and measured, and the fastest is taken.

Candidates: the split by priority; then each backend that takes some of the compute and is no last resort, put before
all others, so that it has all it takes, alone where that is the whole; then the best of them with one region at a time
handed to another backend that takes it. A candidate is measured as the bundle it would be, through the runtime: calls
of submodels, copies and conversions of layouts at their borders included. Each call is in a process of its own where
the workers are children, in interleaved rounds; who is hopelessly slow in the first is not measured again. The single
backends are among the candidates, so the result is never slower than the best of them but for noise: a split must win
by `MARGIN`. With ranges of sizes a candidate is measured at several shapes, and the geometric mean counts: no shape
weighs more because it is larger.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import onnx_ir as ir

from nndeploy.errors import ModelError, UsageError
from nndeploy.jobs.tasks import MeasureOptions
from nndeploy.lower import Setting, Settled, settle
from nndeploy.plugin.interface import Backend
from nndeploy.report import Candidate
from nndeploy.value_types import Value, shapes_text

ROUNDS = 5
SECONDS_A_SHAPE = 0.1
LEAST_SECONDS = 0.3
MARGIN = 0.03
MAX_REGIONS_TRIED = 4
MIN_SHARE = 0.1
"""Of the compute: who takes less cannot make the whole much faster by being asked first."""
LAST_RESORT = 5
"""The tier that is there so that every model runs; a call may take half a minute."""
MAX_SHAPES = 8
HOPELESS = 4.0
"""Times the fastest call of all."""

WriteTrial = Callable[[Settled, Path], None]
Pins = Sequence[tuple[str, str]]
"""(glob of node names, backend)."""


@dataclass(frozen=True, slots=True)
class _Trial:
    name: str
    settled: Settled
    path: Path


def fastest(
    setting: Setting,
    model: ir.Model,
    by_priority: Settled,
    order: Sequence[Backend],
    write_trial: WriteTrial,
    folder: Path,
    samples: Sequence[Mapping[str, Value]],
    options: MeasureOptions,
    pins: Pins,
) -> tuple[Settled, tuple[Candidate, ...]]:
    """Returns the fastest of the candidates, which all keep `pins`, and the table of all that were measured."""
    trials: list[_Trial] = []

    def add(name: str, settled: Settled) -> None:
        if any(_same_placement(settled, trial.settled) for trial in trials):
            return
        path = folder / f"{len(trials)}.nnd"
        write_trial(settled, path)
        trials.append(_Trial(name, settled, path))

    add(_name(by_priority, "priority"), by_priority)
    for name, settled in _each_first(setting, model, by_priority, order, pins):
        add(name, settled)
    times = _measure(setting, trials, samples, options)
    best = _best(trials, times)
    num_whole = len(trials)
    for name, settled in _with_one_region_elsewhere(setting, model, trials[best].settled, order):
        add(name, settled)
    if len(trials) > num_whole:
        times = _measure(setting, trials, samples, options)
        best = _best(trials, times)
    return trials[best].settled, tuple(
        Candidate(trial.name, round(_mean(times[i]), 4), i == best, tuple(round(ms, 4) for ms in times[i]))
        for i, trial in enumerate(trials)
    )


def _name(settled: Settled, otherwise: str) -> str:
    """Returns the backend that has the whole model, or what else to call a placement."""
    return settled.pieces[0].piece.backend if len(settled.pieces) == 1 else otherwise


def _each_first(
    setting: Setting, model: ir.Model, by_priority: Settled, order: Sequence[Backend], pins: Pins
) -> list[tuple[str, Settled]]:
    """Returns the model with each backend that takes some of the compute before all others."""
    found = []
    costs, answers = by_priority.plan.costs, by_priority.plan.placement.answers
    for backend in (other for other in order[1:] if other.tier < LAST_RESORT):
        if sum(costs.share(node) for node, answer in answers[backend.name].items() if answer.ok) < MIN_SHARE:
            continue
        others = [other for other in order if other is not backend]
        try:
            settled = settle(setting, model, [backend, *others], pins)
        except (ModelError, UsageError):
            continue  # no candidate: nobody builds what it leaves, or its transforms leave nothing to pin
        found.append((_name(settled, f"{backend.name} first"), settled))
    return found


def _with_one_region_elsewhere(
    setting: Setting, model: ir.Model, best: Settled, order: Sequence[Backend]
) -> list[tuple[str, Settled]]:
    """Returns variations of `best`: one of its heaviest regions given to another backend that takes it."""
    if len(best.pieces) < 2:
        return []
    costs, placement = best.plan.costs, best.plan.placement
    by_name = {backend.name: backend for backend in order}
    same_order = [by_name[name] for name in placement.answers]
    movable = [built.piece for built in best.pieces if not placement.pinned.intersection(built.piece.nodes)]
    heaviest = sorted(movable, key=lambda piece: -sum(costs.seconds[node] for node in piece.nodes))
    found = []
    for piece in heaviest[:MAX_REGIONS_TRIED]:
        for backend in order:
            if backend.name == piece.backend or not placement.takes_all(backend.name, piece.nodes):
                continue
            pins = [(_literal(node), other) for node, other in best.plan.backend_of.items()]
            pins += [(_literal(node), backend.name) for node in piece.nodes]
            try:
                found.append((f"{piece.id} on {backend.name}", settle(setting, model, same_order, pins)))
            except ModelError:
                continue
    return found


def _literal(name: str) -> str:
    """Returns a glob that matches exactly `name`."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _same_placement(one: Settled, other: Settled) -> bool:
    return one.plan.backend_of == other.plan.backend_of


def shapes_to_measure(samples: Sequence[Mapping[str, Value]]) -> dict[str, Mapping[str, Value]]:
    """Returns the first sample of each shape, at most `MAX_SHAPES`, by its shapes as text."""
    found: dict[str, Mapping[str, Value]] = {}
    for sample in samples:
        found.setdefault(shapes_text(sample), sample)
    return dict(islice(found.items(), MAX_SHAPES))


def _measure(
    setting: Setting, trials: Sequence[_Trial], samples: Sequence[Mapping[str, Value]], options: MeasureOptions
) -> list[list[float]]:
    """Returns for each candidate the median milliseconds on each sample."""
    rounds: list[list[list[float]]] = [[] for _ in trials]
    for number in range(ROUNDS):
        setting.events("measure", f"round {number + 1} of {ROUNDS}, {len(trials)} candidates")
        limit = HOPELESS * min((_mean(times) for done in rounds for times in done), default=math.inf)
        for done, trial in zip(rounds, trials, strict=True):
            if not done or min(map(_mean, done)) <= limit:
                done.append(setting.workers.measure(trial.path, samples, options))
    return [[statistics.median(times) for times in zip(*done, strict=True)] for done in rounds]


def _mean(times: Sequence[float]) -> float:
    return statistics.geometric_mean(times)


def _best(trials: Sequence[_Trial], times: Sequence[Sequence[float]]) -> int:
    """Returns the index of the fastest; a chain of several submodels must win by `MARGIN` over a single one."""
    penalised = [
        _mean(each) * (1 + MARGIN * (len(trial.settled.pieces) > 1)) for trial, each in zip(trials, times, strict=True)
    ]
    return penalised.index(min(penalised))
