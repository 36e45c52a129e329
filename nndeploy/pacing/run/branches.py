# SPDX-License-Identifier: Apache-2.0
"""A program whose submodels run at once: until when each should be done, and how each sleeps until then.

Submodels are operators of the solver's graph: along a way their work and delays add up, where branches join the latest
counts. Comes in: what is planned of all points, and which submodel reads what which other one makes. Goes out: for each
submodel a plan of its own points, and its due time since the run began. Law: the last one is due at the total.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from nndeploy.pacing.plan.load_curve import Timeline
from nndeploy.pacing.plan.operator_graph import OperatorGraph
from nndeploy.pacing.plan.pace_plan import PacePlan
from nndeploy.pacing.plan.policy import PacePolicy
from nndeploy.pacing.plan.solving import solve
from nndeploy.pacing.run.item import ItemMemory, PlanMemory
from nndeploy.values.types import Array

_HANDED_OVER_NS = 1.0
"""The work that counts as following behind a submodel that others wait for: it may also sleep at its end."""


@dataclass(frozen=True)
class Branches:
    """The submodels of a program: the first point of each, and (a, b) where b reads what a makes."""

    firsts: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    num_points: int

    def points(self, submodel: int) -> slice:
        """Returns the points of a submodel."""
        ends = (*self.firsts[1:], self.num_points)
        return slice(self.firsts[submodel], ends[submodel])

    @property
    def is_row(self) -> bool:
        """Whether each submodel reads what the one before it makes, so that no two run at once."""
        return set(pairwise(range(len(self.firsts)))) <= set(self.edges)

    @cached_property
    def lasts(self) -> list[int]:
        """The submodels that none waits for."""
        return sorted(set(range(len(self.firsts))) - {a for a, _ in self.edges})

    def graph(self, times: Array) -> OperatorGraph:
        """Returns the submodels as operators, and one of no duration behind those that none waits for.

        `times` are those of all points.
        """
        end = len(self.firsts)
        work = [float(times[self.points(submodel)].sum()) for submodel in range(end)]
        return OperatorGraph([*work, 0.0], [*self.edges, *((last, end) for last in self.lasts)])

    def baseline_ns(self, durations: Array) -> float:
        """Returns how long the program takes whose points take so long, without delays."""
        return self.graph(durations).baseline_ns


@dataclass(frozen=True, eq=False)
class BranchPlans:
    """Of each submodel: the plan as kernels read it, when it is due in nanoseconds since the run began, and its plan.

    `points` are those of a submodel in the order in which they are passed; `room` is how long it sleeps.
    """

    memories: tuple[PlanMemory, ...]
    dues: tuple[int, ...]
    plans: tuple[PacePlan, ...]
    points: tuple[Array, ...]
    room: Array

    @property
    def delays(self) -> list[Array]:
        """How long each submodel sleeps behind each of its points."""
        return [plan.weights * room + plan.presets for plan, room in zip(self.plans, self.room.tolist(), strict=True)]

    @property
    def longest(self) -> tuple[PacePlan, float]:
        """The plan of the submodel that works longest, and the nanoseconds that it may take."""
        plan, room = max(zip(self.plans, self.room.tolist(), strict=True), key=lambda one: one[0].total)
        return plan, plan.total + float(plan.presets.sum()) + room


def branch_plans(branches: Branches, order: Array, plan: PacePlan, total_ns: float, policy: PacePolicy) -> BranchPlans:
    """Returns the plans of submodels that run at once and are all done after `total_ns`.

    `plan` is of all points in the order in which they are passed, one submodel after another, `order` the place of each
    point in it: durations, parts, presets and how delays inside of a submodel are shared are taken from there.
    """
    times = (plan.durations + plan.presets)[order]
    graph = branches.graph(times)
    delays = solve(graph, max(total_ns, graph.baseline_ns), policy)
    starts = graph.starts_ns(delays)
    room = np.full(len(branches.firsts), np.inf)
    np.minimum.at(room, graph.sources, delays)
    memories, dues, plans, points = [], [], [], []
    for submodel in range(len(branches.firsts)):
        numbers = np.arange(branches.num_points)[branches.points(submodel)]
        numbers = numbers[np.argsort(order[numbers])]
        one = _plan_of(plan, order[numbers], is_last=submodel in branches.lasts)
        places = np.zeros(branches.num_points, np.int64)
        places[numbers] = np.arange(len(numbers))
        memories.append(PlanMemory(one, places))
        dues.append(round(float(starts[submodel] + graph.durations[submodel] + room[submodel])))
        plans.append(one)
        points.append(numbers)
    return BranchPlans(tuple(memories), tuple(dues), tuple(plans), tuple(points), room)


def _plan_of(plan: PacePlan, places: Array, *, is_last: bool) -> PacePlan:
    """Returns the part of a plan that is of some points; it sleeps behind all of them only where others follow."""
    weights, parts = plan.weights[places], plan.parts[places]
    if is_last:
        weights[-1] *= 1.0 - 1.0 / parts[-1]
    weights = weights / (float(weights.sum()) or 1.0)
    following = 0.0 if is_last else _HANDED_OVER_NS
    return PacePlan(
        plan.durations[places], weights, parts, 0.0, plan.burst, presets=plan.presets[places],
        is_chosen=plan.is_chosen, following=following,
    )  # fmt: skip


class BranchedRun:
    """What the submodels of one run did, each on the thread that ran it; told like the item of a run on one thread."""

    def __init__(self, branches: Branches, items: Sequence[ItemMemory], begin_ns: int) -> None:
        """Takes an item for each submodel."""
        self.items, self.begin_ns = items, begin_ns
        self.end_ns = begin_ns
        self._branches = branches

    @property
    def latency(self) -> int:
        """Nanoseconds from begin to end."""
        return self.end_ns - self.begin_ns

    @property
    def times(self) -> Array:
        """Nanoseconds of work of each point."""
        times: Array = np.sum([item.times for item in self.items], axis=0)
        return times

    @property
    def order(self) -> Array:
        """As which one each point is passed where submodels run one after another."""
        order = np.zeros(self._branches.num_points, np.int64)
        for submodel, item in enumerate(self.items):
            points = self._branches.points(submodel)
            order[points] = item.order[points] + points.start
        return order

    @property
    def worked(self) -> int:
        """Nanoseconds of work of all submodels."""
        return sum(item.worked for item in self.items)

    @property
    def slept(self) -> int:
        """Nanoseconds of sleep of all submodels."""
        return sum(item.slept for item in self.items)

    @property
    def used(self) -> int:
        """Nanoseconds of processor time of the threads that ran the submodels."""
        return sum(item.used for item in self.items)

    @property
    def waited(self) -> int | None:
        """Nanoseconds for which the threads that ran the submodels waited for cores, None where nobody counts them."""
        waits = [item.waited for item in self.items if item.waited is not None]
        return sum(waits) if waits else None

    @property
    def waiting_used(self) -> int:
        """The part of it that sleeping took."""
        return sum(item.waiting_used for item in self.items)

    @property
    def longest_run(self) -> int:
        """The most nanoseconds of work of any thread between two sleeps."""
        return max(item.longest_run for item in self.items)

    @property
    def busiest(self) -> int:
        """The most nanoseconds of work of any thread in a window."""
        return max(item.busiest for item in self.items)

    @property
    def late(self) -> list[int]:
        """The nanoseconds by which sleeps ended later than planned, of all submodels."""
        return [late for item in self.items for late in item.late]

    def timeline(self) -> Timeline:
        """Returns when the submodel slept that worked longest."""
        return max(self.items, key=lambda item: item.worked).timeline()
