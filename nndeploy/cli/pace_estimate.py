# SPDX-License-Identifier: Apache-2.0
"""`nndeploy pace --estimate`: a plan from what a bundle says of its operators; nothing is opened or run."""

from pathlib import Path
from typing import Any

import numpy as np

from nndeploy.bundle.manifest import Submodel, Variant
from nndeploy.bundle.reader import Bundle, open_bundle
from nndeploy.bundle.steps import step_name, steps_of
from nndeploy.cli.console import print_json, print_line, print_table
from nndeploy.cli.pace_edges import row_edges
from nndeploy.errors import BundleError, UnavailableError
from nndeploy.pacing.estimate import estimated_ns, has_rates
from nndeploy.pacing.goal import PaceGoal
from nndeploy.pacing.operators import Amount, Operators
from nndeploy.pacing.plan import serial_plan
from nndeploy.pacing.policy import PacePolicy
from nndeploy.runtime.paced import HINT, counted_operators
from nndeploy.target.target import Target, unmet


def pace_estimate(path: Path, goal: PaceGoal | None, target: Target, num_shown: int | None, *, as_json: bool) -> None:
    """Prints the plan of the portable chain: in shares, or in times where the target says how fast it is.

    Raises:
        UnavailableError: the bundle does not say what its operators compute.
        BundleError: it does not say it of every submodel.
        UsageError: the time that was granted is less than the estimate without delays.
    """
    with open_bundle(path) as bundle:
        counted = counted_operators(bundle)
        if not counted.submodels:
            raise UnavailableError("the bundle does not say what its operators compute", where=str(path), hint=HINT)
        for submodel in bundle.manifest.submodels:
            if submodel.id not in counted.submodels:
                where = f"{path}: {bundle.manifest.pace_operators}"
                raise BundleError(f"says nothing of the submodel {submodel.id!r}", where=where, hint=HINT)
        found = [
            (name, amount, is_cut)
            for submodel in bundle.manifest.submodels
            for name, amount, is_cut in _points(bundle, submodel, counted.submodels[submodel.id], target)
        ]
    names, amounts = [name for name, _, _ in found], [amount for _, amount, _ in found]
    work = estimated_ns(amounts, target)
    budget = 0.0
    if goal is not None and has_rates(target):
        goal.check(float(work.sum()))
        budget = goal.budget_ns(float(work.sum()))
    policy = PacePolicy.PROPORTIONAL if goal is None else goal.policy
    plan = serial_plan(work, np.array([is_cut for _, _, is_cut in found]), budget, 0.0, policy)
    report = {
        "bundle": str(path),
        "target": target.name,
        "is_estimate": True,
        "shapes": {name: list(shape) for name, shape in counted.shapes.items()},
        "unit": "us" if has_rates(target) else "share",
        "points": [
            {
                "pair": edge,
                "flops": amount.flops,
                "bytes": amount.bytes,
                "share": share,
                "amount_us": ns / 1e3 if has_rates(target) else None,
                "delay_share": weight,
                "delay_us": weight * (budget - plan.total) / 1e3 if budget else None,
            }
            for edge, amount, share, ns, weight in zip(
                row_edges(names), amounts, (work / (plan.total or 1.0)).tolist(), work.tolist(), plan.weights.tolist(),
                strict=True,
            )
        ],
    }  # fmt: skip
    if as_json:
        print_json(report)
    else:
        _print(report, budget, plan.total, num_shown)


def _points(bundle: Bundle, submodel: Submodel, operators: Operators, target: Target) -> list[tuple[str, Amount, bool]]:
    """Returns the operators of a submodel by name: the steps of the best variant for the target, if its backend tells.

    Whether they are done in parts: own kernels are, and these are those that tell their values.
    """
    fits = [variant for variant in submodel.variants if not unmet(variant.requires, target)]
    variant: Variant = (fits or list(submodel.variants))[0]
    steps = steps_of(bundle, variant)
    if not steps or not all("value" in step for step in steps):
        return [(name, amount, False) for name, amount in operators.each()]
    amounts = operators.between([(str(step["value"]),) for step in steps])
    names = [step_name(step) for step in steps]
    return [(name, amount, True) for name, amount in zip(names, amounts, strict=True)]


def _print(report: dict[str, Any], budget: float, total: float, num_shown: int | None) -> None:
    points = report["points"]
    shapes = ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in report["shapes"].items())
    flops = sum(point["flops"] for point in points)
    print_line(f"{len(points)} operators, {flops / 1e6:.4g} MFLOP at {shapes}: estimated, not measured")
    if report["unit"] == "us":
        granted = f" in {budget / 1e6:.3g} ms" if budget else ""
        print_line(f"on {report['target']}: {total / 1e6:.3g} ms of work{granted}")
    else:
        print_line("shares of a run, for how fast the target is nobody says (flops_per_s, bytes_per_s)")
    longest = sorted(points, key=lambda point: -point["share"])[:num_shown] if num_shown else points
    columns = ["MFLOP", "kB", "work", "delay"]
    print_table(
        f"the {len(longest)} longest operators" if num_shown else "operators",
        ("edge", *columns),
        (
            (
                point["pair"],
                f"{point['flops'] / 1e6:.3g}",
                f"{point['bytes'] / 1e3:.4g}",
                f"{point['share']:.1%}" if point["amount_us"] is None else f"{point['amount_us']:.0f} us",
                f"{point['delay_share']:.1%}" if point["delay_us"] is None else f"{point['delay_us']:.0f} us",
            )
            for point in longest
        ),
        right=columns,
    )
