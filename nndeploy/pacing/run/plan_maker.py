# SPDX-License-Identifier: Apache-2.0
"""Makes the plans of runs: from what runs took, or from what a file says.

In: a `PacedShape` with the times of runs, or a `LearntShape`; out: the same shape with a plan that kernels read. What
was learnt lies in the shapes; this only knows the program's points and what the user grants.
"""

import statistics
import time
from dataclasses import replace

import numpy as np

from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.plan.learnt_shape import LearntShape, Shapes, num_elements, text_of
from nndeploy.pacing.plan.pace_plan import PacePlan, serial_plan
from nndeploy.pacing.run.branches import branch_plans
from nndeploy.pacing.run.item import PlanMemory
from nndeploy.pacing.run.own_time import busy_text, waited_share
from nndeploy.pacing.run.paced_points import PacedPoints
from nndeploy.pacing.run.paced_shape import LEAST_RESERVE_NS, MOST_RESERVE, PacedShape
from nndeploy.values.types import Array

FIRST_RESERVE = 0.03
"""Share of the budget that is kept in reserve before there were runs."""
FIRST_HELD_UP_NS = 1.5e6
"""What is kept at least, unless the budget is short: one turn of others that work for a millisecond at a time."""


class PlanMaker:
    """Makes plans for one program and one goal."""

    def __init__(self, points: PacedPoints, goal: PaceGoal) -> None:
        self._points, self._goal = points, goal
        self.given: LearntShape | None = None
        """What a file says of one shape: others are paced by it as well."""
        self.adapted = ""
        """How that was used for inputs of another shape, in a line; "" where that did not happen."""
        self.busy_note = ""
        """How much the first runs at a shape waited for cores, in a line; "" where they did not."""

    def by(self, learnt: LearntShape, *, is_guess: bool = False) -> PacedShape:
        """Returns a shape that is paced from the first run on."""
        shape = PacedShape(
            order=learnt.order, durations=learnt.durations, baseline=learnt.baseline, given=learnt, is_guess=is_guess
        )
        shape.budget = self._budget_ns(learnt.baseline)
        shape.assume(learnt.reserve)
        self.apply(shape)
        return shape

    def adapted_to(self, key: Shapes) -> PacedShape:
        """Returns inputs of another shape paced by the plan: as much longer as they are larger, until runs tell."""
        assert self.given is not None
        factor = num_elements(key) / num_elements(self.given.shapes)
        if not self.adapted:
            self.adapted = (
                f"the plan is of inputs of {text_of(self.given.shapes)}: its times were taken {factor:.3g} times as "
                f"long for {text_of(key)}, and for other shapes likewise, until runs told better"
            )
        shape = self.by(self.given.scaled(key, factor), is_guess=True)
        if shape.budget < shape.baseline:
            self.adapted += f"; the time granted leaves nothing to sleep in at {text_of(key)}"
        return shape

    def guessed(self, known: PacedShape, factor: float) -> PacedShape:
        """Returns a shape at which runs take `factor` times as long as at another one, until they tell themselves."""
        shape = PacedShape(
            order=known.order, durations=known.durations * factor, baseline=known.baseline * factor, is_guess=True
        )
        shape.budget = self._budget_ns(shape.baseline)
        shape.assume(self._first_reserve_ns(shape))
        self.apply(shape)
        return shape

    def make_anew(self, shape: PacedShape) -> None:
        """Makes the plan of a shape from the runs since the last one: first the baseline, then those that it made."""
        durations, waited = shape.own_durations(self._points.length_ns), waited_share(shape.took)
        if shape.memory is None:
            shape.durations, shape.baseline, shape.is_guess = durations, shape.own_ns, bool(waited)
            if waited and not self.busy_note:
                self.busy_note = busy_text(waited)
            shape.budget = self._budget_ns(shape.baseline)
            shape.assume(self._first_reserve_ns(shape))
        elif shape.is_guess:
            shape.is_guess = bool(waited)
            shape.baseline *= float(durations.sum()) / max(1.0, float(shape.durations.sum()))
            shape.durations, shape.budget = durations, self._budget_ns(shape.baseline)
        else:
            shape.durations = shape.durations + 0.15 * (durations - shape.durations)
            if in_time := [budget for budget in shape.budgets if budget > shape.baseline]:
                shape.budget = statistics.median_low(in_time)
        shape.times.clear()
        shape.took.clear()
        self.apply(shape)

    def apply(self, shape: PacedShape) -> None:
        """Lets the next runs at a shape go by what is known of it now."""
        shape.planned_at = time.monotonic()
        _, plan = self.in_order(shape)
        stretch = 1.0 if shape.memory is None else shape.memory.struct.stretch
        shape.memory = PlanMemory(plan, shape.order, stretch)
        if self._points.branches is not None:
            total = shape.budget - shape.reserve
            shape.branches = branch_plans(self._points.branches, shape.order, plan, total, self._goal.policy)

    def in_order(self, shape: PacedShape) -> tuple[Array, PacePlan]:
        """Returns the points of a shape in the order in which they are passed, and their plan."""
        passed = np.argsort(shape.order)
        durations, is_cut = shape.durations[passed], np.array(self._points.is_cut)[passed]
        beside = float(durations.sum()) - self._points.length_ns(shape.durations)  # work that other work hides
        budget = shape.budget + beside
        plan = serial_plan(
            durations,
            is_cut,
            budget,
            shape.reserve,
            self._goal.policy,
            self._points.shares(passed, is_chosen=bool(self._goal.pairs)),
        )
        if shape.given is not None:
            plan = replace(plan, weights=shape.given.weights[passed], parts=shape.given.parts[passed])
        return passed, plan

    def delays(self, shape: PacedShape, plan: PacePlan) -> Array:
        """Returns how long is slept behind each point, in the order in which they are passed."""
        if shape.branches is None:
            return plan.delays(shape.budget)
        delays = np.zeros(len(plan.durations))
        for points, found in zip(shape.branches.points, shape.branches.delays, strict=True):
            delays[shape.order[points]] = found
        return delays

    def _first_reserve_ns(self, shape: PacedShape) -> float:
        """Returns what is kept back before runs told; of the runs of items hardly any, for the items keep some back."""
        if self._goal.is_of_item:
            return LEAST_RESERVE_NS
        outside = max(0.0, shape.baseline - self._points.length_ns(shape.durations))
        first = LEAST_RESERVE_NS + outside + FIRST_RESERVE * shape.budget
        return max(first, min(FIRST_HELD_UP_NS, MOST_RESERVE * shape.budget))

    def _budget_ns(self, baseline: float) -> int:
        return self._goal.budget_ns(baseline, self._points.presets_ns)
