# SPDX-License-Identifier: Apache-2.0
"""`--objective latency|throughput`: candidate placements are built and measured, and the fastest is taken.

Candidates: the split by priority, and every backend that can run the whole model alone; then the best of them with
one region at a time handed to another backend that takes it. A candidate is measured as the bundle it would be,
through the runtime, crossings included, each call in a process of its own where the workers are children, in
interleaved rounds. The single backends are among the candidates, so the result is never slower than the best of them
but for noise: a split must win by `MARGIN`.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from nndeploy.errors import ModelError
from nndeploy.jobs.tasks import MeasureOptions
from nndeploy.lower import Setting, Settled, settle
from nndeploy.plugin.interface import Backend
from nndeploy.report import Candidate
from nndeploy.value_types import Value

ROUNDS = 5
SECONDS_A_ROUND = 0.25
MARGIN = 0.03
MAX_REGIONS_TRIED = 4

WriteTrial = Callable[[Settled, Path], None]


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
    sample: Mapping[str, Value],
    options: MeasureOptions,
) -> tuple[Settled, tuple[Candidate, ...]]:
    """Returns the fastest of the candidates and the table of all that were measured."""
    trials: list[_Trial] = []

    def add(name: str, settled: Settled) -> None:
        if any(_same_placement(settled, trial.settled) for trial in trials):
            return
        path = folder / f"{len(trials)}.nnd"
        write_trial(settled, path)
        trials.append(_Trial(name, settled, path))

    for name, settled in _singles(setting, model, by_priority, order):
        add(name, settled)
    if len(by_priority.pieces) > 1 or not trials:
        add("priority", by_priority)
    times = _measure(setting, trials, sample, options)
    best = _best(trials, times)
    num_whole = len(trials)
    for name, settled in _with_one_region_elsewhere(setting, model, trials[best].settled, order):
        add(name, settled)
    if len(trials) > num_whole:
        times = _measure(setting, trials, sample, options)
        best = _best(trials, times)
    return trials[best].settled, tuple(
        Candidate(trial.name, round(times[i], 4), i == best) for i, trial in enumerate(trials)
    )


def _singles(
    setting: Setting, model: ir.Model, by_priority: Settled, order: Sequence[Backend]
) -> list[tuple[str, Settled]]:
    """Returns the model on each backend alone, where it takes the whole and gets it right."""
    found = []
    placement = by_priority.plan.placement
    for backend in order:
        if not placement.takes_all(backend.name, list(placement.backend_of)):
            continue
        try:
            settled = settle(setting, model, [backend])
        except ModelError:
            continue  # it will not build the whole, or gets it wrong: no candidate
        found.append((backend.name, settled))
    return found


def _with_one_region_elsewhere(
    setting: Setting, model: ir.Model, best: Settled, order: Sequence[Backend]
) -> list[tuple[str, Settled]]:
    """Returns variations of `best`: one of its heaviest regions pinned to another backend that takes it."""
    if len(best.pieces) < 2:
        return []
    costs, placement = best.plan.costs, best.plan.placement
    heaviest = sorted(best.pieces, key=lambda built: -sum(costs.seconds[node] for node in built.piece.nodes))
    found = []
    for built in heaviest[:MAX_REGIONS_TRIED]:
        for backend in order:
            piece = built.piece
            if backend.name == piece.backend or not placement.takes_all(backend.name, piece.nodes):
                continue
            pins = [(_literal(node), other) for node, other in best.plan.backend_of.items()]
            pins += [(_literal(node), backend.name) for node in piece.nodes]
            try:
                found.append((f"{piece.id} on {backend.name}", settle(setting, model, order, pins)))
            except ModelError:
                continue
    return found


def _literal(name: str) -> str:
    """Returns a glob that matches exactly `name`."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _same_placement(one: Settled, other: Settled) -> bool:
    return one.plan.backend_of == other.plan.backend_of


def _measure(
    setting: Setting, trials: Sequence[_Trial], sample: Mapping[str, Value], options: MeasureOptions
) -> list[float]:
    rounds: list[list[float]] = [[] for _ in trials]
    for number in range(ROUNDS):
        setting.events("measure", f"round {number + 1} of {ROUNDS}, {len(trials)} candidates")
        for i, trial in enumerate(trials):
            rounds[i].append(setting.workers.measure(trial.path, sample, options))
    return [statistics.median(times) for times in rounds]


def _best(trials: Sequence[_Trial], times: Sequence[float]) -> int:
    """Returns the index of the fastest; a chain of several submodels must win by `MARGIN` over a single one."""
    penalised = [
        time * (1 + MARGIN * (len(trial.settled.pieces) > 1)) for trial, time in zip(trials, times, strict=True)
    ]
    return penalised.index(min(penalised))
