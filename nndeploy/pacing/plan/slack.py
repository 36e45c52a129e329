# SPDX-License-Identifier: Apache-2.0
"""Delays on ways that have time left beside the longest ones, such that their load is the flattest.

While an edge waits d behind work a, its load is a / (a + d), and the mean square of the load over that time weighs
a^2 / (a + d). The sum of that over all edges is what is made least: of two delays the one that is shorter for its work
gains more. (The sum of the delays alone is the same for many plans, and fills one edge while the next stays empty.)

What is unknown is when operators start. A chain of edges counts as one, whose delay is shared in proportion, and an
operator on a longest way starts when it must: networks whose branches join again on the longest way, as those of
residual and inception blocks do, leave nothing to be solved. For all others HiGHS solves a linear program, in which the
worth of a delay falls in steps.
"""

import importlib
from types import ModuleType

import numpy as np

from nndeploy.errors import NndeployError, UnavailableError
from nndeploy.pacing.plan.operator_graph import Chains, OperatorGraph
from nndeploy.values.types import Array
from nndeploy.version import install_command

_STEPS = 8
_STEP = 1.5
"""Factor by which work and delay together grow from one step of the worth to the next; the last step has no end."""
_NO_END = 1e15
_ROUNDING = 1e-9
"""Rounding error that is allowed, as a share of the total."""


def with_slack(graph: OperatorGraph, delays: Array, level: float, total_ns: float) -> Array:
    """Returns delays that are no shorter than `delays`, which are `level` x durations or at their bounds.

    Raises:
        UnavailableError: HiGHS is needed, and not installed.
    """
    if not graph.edges:
        return delays
    chains, levels = graph.chains(), (1.0 + level) * _STEP ** np.arange(_STEPS) - 1.0
    steps = _steps(graph, levels)
    sizes = np.stack([np.bincount(chains.of, step) for step in steps.T], axis=1)
    before: Array = np.cumsum(np.pad(sizes[:, :-1], ((0, 0), (1, 0))), axis=1)  # the last one is nearly without end
    work = np.bincount(chains.of, graph.durations[graph.sources] + delays)
    earliest, latest = _windows(graph, delays, total_ns)
    room = latest[chains.last] - earliest[chains.first] - work
    room[room <= _ROUNDING * total_ns] = 0.0
    gains = np.clip(room[:, None] - before, 0.0, sizes)
    varies = latest - earliest > _ROUNDING * total_ns
    is_open, starts = varies[chains.first] | varies[chains.last], earliest
    if gains[is_open].any():
        starts = _solved_starts(
            Chains(chains.of, chains.first[is_open], chains.last[is_open]),
            work[is_open], gains[is_open], _worths(levels), (earliest, latest),
        )  # fmt: skip
    gained = np.minimum(_gained(chains, work, np.clip(starts, earliest, latest)), room)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.nan_to_num(np.clip((gained[:, None] - before) / sizes, 0.0, 1.0))
    more: Array = (steps * shares[chains.of]).sum(axis=1)
    return delays + more


def _steps(graph: OperatorGraph, levels: Array) -> Array:
    """Returns by how much the delay of each edge can grow from each of the levels to the next one."""
    durations, bounds = graph.durations[graph.sources], graph.bounds[graph.sources]
    reached = np.minimum(np.append(levels, levels[-1] + _NO_END), bounds[:, None])
    steps: Array = durations[:, None] * np.diff(reached, axis=1)
    return steps


def _worths(levels: Array) -> Array:
    """Returns what a delay is worth on each step: by how much the mean square falls, relative to the first step."""
    worths: Array = 1.0 / ((1.0 + levels) * (1.0 + levels) * _STEP)
    worths /= worths[0]
    return worths


def _windows(graph: OperatorGraph, delays: Array, total_ns: float) -> tuple[Array, Array]:
    """Returns from when until when each operator may start.

    What nothing is before starts at once, and what nothing follows as late as it may: that leaves most to sleep in.
    """
    earliest, latest = graph.starts_ns(delays), graph.latest_starts_ns(delays, total_ns)
    is_first, is_last = np.ones((2, len(earliest)), bool)
    is_first[graph.targets] = is_last[graph.sources] = False
    earliest = np.where(is_last, latest, earliest)
    return earliest, np.maximum(earliest, np.where(is_first, earliest, latest))


def _gained(chains: Chains, work: Array, starts: Array) -> Array:
    """Returns what is left of each chain's time; whoever would start before the work is done starts later."""
    late = starts.tolist()
    for first, last, done in zip(chains.first.tolist(), chains.last.tolist(), work.tolist(), strict=True):
        late[last] = max(late[last], late[first] + done)
    after: Array = np.array(late)
    gained: Array = np.maximum(0.0, after[chains.last] - after[chains.first] - work)
    return gained


def _solved_starts(chains: Chains, work: Array, gains: Array, worths: Array, windows: tuple[Array, Array]) -> Array:
    """Returns when each operator at an end of these chains starts, such that what is gained is worth the most.

    Of each chain: start of the last operator - start of the first one - gains on all steps >= work.

    Raises:
        UnavailableError: HiGHS is not installed.
    """
    highs, (earliest, latest) = _highs(), windows
    scale = float(latest.max())
    operators, ends = np.unique(np.concatenate((chains.last, chains.first)), return_inverse=True)
    chain, step = np.nonzero(gains)
    rows = np.concatenate((np.tile(np.arange(len(work)), 2), chain))
    columns = np.concatenate((ends, len(operators) + np.arange(len(chain))))
    by_row = np.argsort(rows, kind="stable")
    program = highs.HighsLp()
    program.num_row_, program.num_col_ = len(work), len(operators) + len(chain)
    program.sense_ = highs.ObjSense.kMaximize
    program.col_cost_ = np.concatenate((np.zeros(len(operators)), worths[step]))
    program.col_lower_ = np.concatenate((earliest[operators] / scale, np.zeros(len(chain))))
    program.col_upper_ = np.concatenate((latest[operators], gains[chain, step])) / scale
    program.row_lower_, program.row_upper_ = work / scale, np.full(len(work), highs.kHighsInf)
    program.a_matrix_.format_ = highs.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.concatenate(([0], np.cumsum(np.bincount(rows))))
    program.a_matrix_.index_ = columns[by_row]
    program.a_matrix_.value_ = np.where(by_row < len(work), 1.0, -1.0)
    solver = highs.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    solver.passModel(program)
    solver.run()
    if solver.getModelStatus() != highs.HighsModelStatus.kOptimal:
        raise NndeployError(f"HiGHS found no delays: {solver.modelStatusToString(solver.getModelStatus())}")
    starts = earliest.copy()
    starts[operators] = scale * np.array(solver.getSolution().col_value)[: len(operators)]
    return starts


def _highs() -> ModuleType:
    try:
        return importlib.import_module("highspy")
    except ImportError as err:
        raise UnavailableError(
            f"the policy solved needs HiGHS for a network with such branches: {err}",
            hint=f"{install_command('pacing')}, or take the policy proportional",
        ) from err
