# SPDX-License-Identifier: Apache-2.0
"""A plan by which a bundle is paced, as a file: what `nndeploy pace -o` writes and `run --pace-plan` reads.

A JSON object in any spelling, so that a person may change it; times are microseconds, points stand in the order in
which they are passed. Law: `plan_file_from_json(plan_file_to_json(p))` is the same plan. Whatever is not exactly of
this form is refused.
"""

import hashlib
import json
from dataclasses import dataclass

import numpy as np

from nndeploy.bundle.json_fields import MAX_INT, Fields, is_integers, minor_version
from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.manifest_json import encode_manifest
from nndeploy.errors import BundleError, DataError
from nndeploy.files.strict_json import parse_json
from nndeploy.pacing.goal import PaceGoal
from nndeploy.pacing.paced_shape import LearntShape
from nndeploy.pacing.policy import PacePolicy

FORMAT_NAME = "nndeploy-pace-plan"
FORMAT = (1, 0)
MAX_PLAN_BYTES = 32 << 20
MAX_POINTS = 1 << 20
MAX_US = 1e12
AGAIN = "make it again: nndeploy pace BUNDLE -o PLAN.json"
WEIGHT_ERROR = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class PacePlanFile:
    """`bundle` is the SHA-256 of the manifest for which it was made, `points` the submodels and operators by point."""

    bundle: str
    model_name: str
    goal: PaceGoal
    points: tuple[tuple[str, str], ...]
    learnt: LearntShape


def identity_of(manifest: Manifest) -> str:
    """Returns what tells a bundle from every other one: the SHA-256 of its manifest, which has those of its members."""
    return hashlib.sha256(encode_manifest(manifest)).hexdigest()


def check_made_for(plan: PacePlanFile, manifest: Manifest) -> None:
    """Checks that a plan was made for a bundle.

    Raises:
        DataError: it was made for another one.
    """
    if (found := identity_of(manifest)) != plan.bundle:
        raise DataError(
            f"the plan was made for another bundle: {plan.bundle:.12} of {plan.model_name!r:.80}, this is {found:.12}",
            hint=AGAIN,
        )


def plan_file_to_json(plan: PacePlanFile) -> bytes:
    """Returns the text of the file, of one line a point."""
    learnt, goal = plan.learnt, plan.goal
    points = [
        {
            "point": number,
            "submodel": plan.points[number][0],
            "name": plan.points[number][1],
            "amount_us": float(learnt.durations[number]) / 1e3,
            "parts": int(learnt.parts[number]),
            "weight": float(learnt.weights[number]),
        }
        for number in np.argsort(learnt.order).tolist()
    ]
    shapes = [list(shape) for shape in learnt.shapes]
    head = {
        "format": {"name": FORMAT_NAME, "major": FORMAT[0], "minor": FORMAT[1]},
        "bundle_sha256": plan.bundle,
        "model_name": plan.model_name,
        "goal": {"max_latency_us": goal.max_latency_ns / 1e3} if goal.max_latency_ns else {"cpu_limit": goal.cpu_limit},
        "policy": goal.policy,
        "shapes": shapes,
        "calm_us": learnt.baseline / 1e3,
        "reserve_us": learnt.reserve / 1e3,
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in head.items()]
    rows = ",\n".join(f"  {json.dumps(point, allow_nan=False)}" for point in points)
    return ("{\n" + ",\n".join([*lines, f' "points": [\n{rows}\n ]']) + "\n}\n").encode("ascii")


def plan_file_from_json(text: bytes) -> PacePlanFile:
    """Returns the plan that a file holds.

    Raises:
        DataError: it is malformed, or of another version.
    """
    try:
        return _plan(parse_json(text, MAX_PLAN_BYTES, is_canonical=False))
    except BundleError as err:
        raise DataError(err.what, where=err.where, hint=err.hint or AGAIN) from err


def _plan(data: object) -> PacePlanFile:
    minor = minor_version(data, FORMAT_NAME, FORMAT)
    fields = Fields(data, "", ignore_unknown=minor > FORMAT[1])
    fields.take("format")
    bundle, model_name = fields.sha256("bundle_sha256"), fields.text("model_name")
    policy = PacePolicy(fields.choice("policy", tuple(PacePolicy)))
    goal = _goal(fields.fields("goal"), policy)
    shapes, baseline, reserve = _shapes(fields), _us(fields, "calm_us", least_ns=1), _us(fields, "reserve_us")
    rows = [_Point.read(item) for item in fields.list_of_fields("points", least=1)]
    fields.end()
    numbers = np.array([row.number for row in rows])
    if len(rows) > MAX_POINTS or (np.sort(numbers) != np.arange(len(rows))).any():
        raise BundleError(f"the points are not each of 0 to {len(rows) - 1} once", where="points")
    order = np.argsort(numbers)  # by point: in which place it is passed
    durations, weights = (np.array([getattr(row, name) for row in rows])[order] for name in ("duration", "weight"))
    total = float(weights.sum())
    if total and abs(total - 1) > WEIGHT_ERROR:
        raise BundleError(f"the weights are {total:.6g} together, not 1", where="points")
    parts = np.array([row.parts for row in rows])[order]
    learnt = LearntShape(shapes, order, durations, weights, parts, baseline, reserve)
    return PacePlanFile(
        bundle, model_name, goal, tuple((rows[place].submodel, rows[place].name) for place in order), learnt
    )


def _goal(fields: Fields, policy: PacePolicy) -> PaceGoal:
    if "max_latency_us" in fields.plain():
        goal = PaceGoal(max_latency_ns=round(_us(fields, "max_latency_us", least_ns=1)), policy=policy)
    else:
        limit = fields.number_from_zero("cpu_limit")
        if not 0 < limit < 1:
            raise fields.refuse("cpu_limit", "a share between 0 and 1")
        goal = PaceGoal(cpu_limit=limit, policy=policy)
    fields.end()
    return goal


def _shapes(fields: Fields) -> tuple[tuple[int, ...], ...]:
    items = fields.items("shapes")
    if not all(is_integers(item, MAX_INT) for item in items):
        raise fields.refuse("shapes", "a list of shapes")
    return tuple(tuple(item) for item in items)


def _us(fields: Fields, key: str, least_ns: int = 0) -> float:
    """Returns a time of the file in nanoseconds."""
    value = fields.number_from_zero(key)
    if value > MAX_US:
        raise fields.refuse(key, f"at most {MAX_US:g} microseconds")
    if value * 1e3 < least_ns:
        raise fields.refuse(key, "more than 0 microseconds")
    return value * 1e3


@dataclass(frozen=True, slots=True)
class _Point:
    number: int
    submodel: str
    name: str
    duration: float
    parts: int
    weight: float

    @staticmethod
    def read(fields: Fields) -> "_Point":
        """Returns a point of the file."""
        point = _Point(
            fields.integer("point", most=MAX_POINTS),
            fields.text("submodel"),
            fields.text("name"),
            _us(fields, "amount_us"),
            fields.integer("parts", least=1, most=MAX_POINTS),
            fields.number_from_zero("weight"),
        )
        fields.end()
        return point
