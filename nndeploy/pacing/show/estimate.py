# SPDX-License-Identifier: Apache-2.0
"""The plan of `pace --estimate`, from what a bundle says of its operators; nothing is opened or run."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nndeploy.bundle.manifest import Submodel, Variant
from nndeploy.bundle.reader import Bundle, open_bundle
from nndeploy.bundle.steps import steps_of
from nndeploy.errors import BundleError, UnavailableError
from nndeploy.pacing.plan.data_flow import DataFlow
from nndeploy.pacing.plan.estimate import estimated_ns, has_rates
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.plan.node_names import node_names
from nndeploy.pacing.plan.operators import Amount, Operators
from nndeploy.pacing.plan.operators_file import HINT, counted_operators
from nndeploy.pacing.plan.pace_plan import PairShares, serial_plan
from nndeploy.pacing.plan.pairs import END, END_NAME, PointNames, chosen, num_sharing, presets_of
from nndeploy.pacing.plan.policy import PacePolicy
from nndeploy.pacing.show.plan_text import edge
from nndeploy.pacing.show.table import Table
from nndeploy.target.target import Target, unmet
from nndeploy.values.plan_steps import step_name


class Estimate(NamedTuple):
    """A plan as plain data, the time that was granted, 0 where none was, and the time of all work, in nanoseconds."""

    report: dict[str, Any]
    budget_ns: float
    work_ns: float


def estimated_plan(path: Path, goal: PaceGoal | None, target: Target) -> Estimate:
    """Returns the plan of the portable chain: in shares, or in times where the target says how fast it is.

    Raises:
        UnavailableError: the bundle does not say what its operators compute.
        BundleError: it does not say it of every submodel.
        UsageError: the time that was granted is less than the estimate without delays.
    """
    wanted = () if goal is None else goal.pairs
    with open_bundle(path) as bundle:
        counted = counted_operators(bundle)
        if not counted.submodels:
            raise UnavailableError("the bundle does not say what its operators compute", where=str(path), hint=HINT)
        for submodel in bundle.manifest.submodels:
            if submodel.id not in counted.submodels:
                where = f"{path}: {bundle.manifest.pace_operators}"
                raise BundleError(f"does not describe the submodel {submodel.id!r}", where=where, hint=HINT)
        found, flow = list[_Point](), DataFlow()
        for submodel in bundle.manifest.submodels:
            operators = counted.submodels[submodel.id]
            points = _points(bundle, submodel, operators, target)
            flow.add([(point.value,) for point in points], operators, submodel.inputs, submodel.outputs)
            found += points
        nodes = node_names(bundle) if wanted else {}
    names, amounts = [point.name for point in found], [point.amount for point in found]
    pairs = chosen(flow.pairs(), PointNames(names, flow.done, nodes), wanted)
    presets, sharing = presets_of(pairs, len(names)), num_sharing(pairs, len(names))
    work = estimated_ns(amounts, target)
    budget = 0.0
    if goal is not None and has_rates(target):
        goal.check(float(work.sum()), float(presets.sum()))
        budget = goal.budget_ns(float(work.sum()), float(presets.sum()))
    policy, is_chosen = (PacePolicy.PROPORTIONAL, False) if goal is None else (goal.policy, bool(goal.pairs))
    shares = PairShares(sharing, presets, is_chosen)
    plan = serial_plan(work, np.array([point.is_cut for point in found]), budget, 0.0, policy, shares)
    followed_by = [
        [END_NAME if b == END else names[b] for a, b, _ in pairs if a == number] for number in range(len(names))
    ]
    report = {
        "bundle": str(path),
        "target": target.name,
        "is_estimate": True,
        "shapes": {name: list(shape) for name, shape in counted.shapes.items()},
        "unit": "us" if has_rates(target) else "share",
        "points": [
            {
                "pair": edge(name, behind),
                "flops": amount.flops,
                "bytes": amount.bytes,
                "share": share,
                "amount_us": ns / 1e3 if has_rates(target) else None,
                "delay_share": weight,
                "delay_us": delay / 1e3 if budget else None,
            }
            for name, behind, amount, share, ns, weight, delay in zip(
                names, followed_by, amounts, (work / (plan.total or 1.0)).tolist(), work.tolist(),
                plan.weights.tolist(), plan.delays(budget).tolist(), strict=True,
            )
        ],
    }  # fmt: skip
    return Estimate(report, budget, plan.total)


class _Point(NamedTuple):
    """A point that a bundle would have: what is done before it, by name and amount, in parts or not, and its value."""

    name: str
    amount: Amount
    is_cut: bool
    value: str


def _points(bundle: Bundle, submodel: Submodel, operators: Operators, target: Target) -> list[_Point]:
    """Returns the operators of a submodel by name: the steps of the best variant for the target, if its backend tells.

    Whether they are done in parts: own kernels are, and these are those that tell their values.
    """
    fits = [variant for variant in submodel.variants if not unmet(variant.requires, target)]
    variant: Variant = (fits or list(submodel.variants))[0]
    steps = steps_of(bundle, variant)
    if not steps or not all("value" in step for step in steps):
        return [_Point(name, amount, False, value) for name, amount, value in operators.each()]
    amounts = operators.between([(str(step["value"]),) for step in steps])
    names = [step_name(step) for step in steps]
    values = [str(step["value"]) for step in steps]
    return [_Point(name, amount, True, value) for name, amount, value in zip(names, amounts, values, strict=True)]


def estimate_lines(found: Estimate) -> list[str]:
    """Returns what the estimate is of, as lines."""
    report, points = found.report, found.report["points"]
    shapes = ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in report["shapes"].items())
    flops = sum(point["flops"] for point in points)
    lines = [f"{len(points)} operators, {flops / 1e6:.4g} MFLOP at {shapes}: estimated, not measured"]
    if report["unit"] != "us":
        return [*lines, "shares of a run: the target file does not give its speed (flops_per_s, bytes_per_s)"]
    granted = f" in {found.budget_ns / 1e6:.3g} ms" if found.budget_ns else ""
    return [*lines, f"on {report['target']}: {found.work_ns / 1e6:.3g} ms of work{granted}"]


def estimate_table(found: Estimate, num_shown: int | None) -> Table:
    """Returns the longest operators with what they take and sleep; all of them, in order, where no number is said."""
    points = found.report["points"]
    longest = sorted(points, key=lambda point: -point["share"])[:num_shown] if num_shown else points
    columns = ["MFLOP", "kB", "work", "delay"]
    rows = (
        (
            point["pair"],
            f"{point['flops'] / 1e6:.3g}",
            f"{point['bytes'] / 1e3:.4g}",
            f"{point['share']:.1%}" if point["amount_us"] is None else f"{point['amount_us']:.0f} us",
            f"{point['delay_share']:.1%}" if point["delay_us"] is None else f"{point['delay_us']:.0f} us",
        )
        for point in longest
    )
    return Table(
        f"the {len(longest)} longest operators" if num_shown else "operators", ("edge", *columns), rows, columns
    )
