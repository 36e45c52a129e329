# SPDX-License-Identifier: Apache-2.0
"""A plan by which a bundle is paced, as a file: what `nndeploy pace -o` writes and `run --pace-plan` reads.

A JSON object in any spelling, so that a person may change it; times are microseconds, points stand in the order in
which they are passed, pairs are two of them by their numbers. Law: `plan_file_from_json(plan_file_to_json(p))` is the
same plan. Whatever is not exactly of this form is refused; format 1, which has no pairs, is read too.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nndeploy.bundle.json_fields import MAX_INT, Fields, is_integers, minor_version
from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.manifest_json import encode_manifest
from nndeploy.errors import BundleError, DataError
from nndeploy.files.strict_json import parse_json
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.plan.learnt_shape import LearntShape
from nndeploy.pacing.plan.pairs import END, ChosenPair, Pair, pair_name
from nndeploy.pacing.plan.policy import PacePolicy
from nndeploy.values.types import Array

FORMAT_NAME = "nndeploy-pace-plan"
FORMAT = (2, 0)
FORMAT_WITHOUT_PAIRS = (1, 0)
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
        "goal": _data_of_goal(goal),
        "policy": goal.policy,
        "are_pairs_chosen": bool(goal.pairs),
        "shapes": shapes,
        "calm_us": learnt.baseline / 1e3,
        "reserve_us": learnt.reserve / 1e3,
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in head.items()]
    pairs = [_data_of_pair(plan, pair) for pair in learnt.pairs]
    for name, rows in (("points", points), ("pairs", pairs)):
        text = ",\n".join(f"  {json.dumps(row, allow_nan=False)}" for row in rows)
        lines.append(f' "{name}": [\n{text}\n ]')
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode("ascii")


def _data_of_goal(goal: PaceGoal) -> dict[str, float]:
    """Returns what was granted, nothing where all delays are set."""
    if goal.max_latency_ns:
        return {"max_latency_us": goal.max_latency_ns / 1e3}
    if goal.total_ns:
        return {"total_us": goal.total_ns / 1e3}
    return {"cpu_limit": goal.cpu_limit} if goal.cpu_limit else {}


def _data_of_pair(plan: PacePlanFile, pair: Pair) -> dict[str, str | int | float | None]:
    names = [name for _, name in plan.points]
    target = None if pair.target == END else pair.target
    preset = {"preset_us": pair.preset_ns / 1e3} if pair.preset_ns else {}
    return {"pair": pair_name(names, pair), "from": pair.source, "to": target, **preset}


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
    newest = FORMAT_WITHOUT_PAIRS if _is_without_pairs(data) else FORMAT
    minor = minor_version(data, FORMAT_NAME, newest)
    fields = Fields(data, "", ignore_unknown=minor > newest[1])
    fields.take("format")
    bundle, model_name = fields.sha256("bundle_sha256"), fields.text("model_name")
    policy = PacePolicy(fields.choice("policy", tuple(PacePolicy)))
    granted, are_chosen = fields.fields("goal"), newest is FORMAT and fields.boolean("are_pairs_chosen")
    shapes, baseline, reserve = _shapes(fields), _us(fields, "calm_us", least_ns=1), _us(fields, "reserve_us")
    rows = [_Point.read(item) for item in fields.list_of_fields("points", least=1)]
    pair_rows = [_Pair.read(item) for item in fields.list_of_fields("pairs")] if newest is FORMAT else []
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
    points = tuple((rows[place].submodel, rows[place].name) for place in order)
    pairs = _pairs(pair_rows, [name for _, name in points], order)
    chosen = tuple(ChosenPair(row.name, pair.preset_ns) for row, pair in zip(pair_rows, pairs, strict=True))
    goal = _goal(granted, policy, chosen if are_chosen else ())
    learnt = LearntShape(shapes, order, durations, weights, parts, baseline, reserve, pairs)
    return PacePlanFile(bundle, model_name, goal, points, learnt)


def _is_without_pairs(data: object) -> bool:
    """Returns whether the data are of the format before pairs; what is of none at all is refused elsewhere."""
    version = data.get("format") if isinstance(data, dict) else None
    return isinstance(version, dict) and version.get("major") == FORMAT_WITHOUT_PAIRS[0]


def _pairs(rows: "Sequence[_Pair]", names: Sequence[str], order: Array) -> tuple[Pair, ...]:
    """Returns the pairs of a plan, each there once, its first point passed before the second.

    Raises:
        BundleError: they are not.
    """
    found = dict[tuple[int, int], Pair]()
    for number, row in enumerate(rows):
        source, target = row.pair.source, row.pair.target
        where = f"pairs[{number}]"
        if max(source, target) >= len(names) or (target != END and order[source] >= order[target]):
            raise BundleError("is no point and a later one", where=where)
        if row.name != (told := pair_name(names, row.pair)):
            raise BundleError(f"its points are {told!r:.100}, not {row.name!r:.100}", where=where)
        if row.pair[:2] in found:
            raise BundleError(f"the pair {row.name!r:.100} is there twice", where=where)
        found[row.pair[:2]] = row.pair
    return tuple(found.values())


def _goal(fields: Fields, policy: PacePolicy, pairs: tuple[ChosenPair, ...]) -> PaceGoal:
    given = fields.plain()
    if "max_latency_us" in given:
        goal = PaceGoal(max_latency_ns=round(_us(fields, "max_latency_us", least_ns=1)), policy=policy, pairs=pairs)
    elif "total_us" in given:
        goal = PaceGoal(total_ns=round(_us(fields, "total_us", least_ns=1)), policy=policy, pairs=pairs)
    elif not given and pairs and all(pair.preset_ns for pair in pairs):
        goal = PaceGoal(policy=policy, pairs=pairs)
    else:
        limit = fields.number_from_zero("cpu_limit")
        if not 0 < limit < 1:
            raise fields.refuse("cpu_limit", "a share between 0 and 1")
        goal = PaceGoal(cpu_limit=limit, policy=policy, pairs=pairs)
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


@dataclass(frozen=True, slots=True)
class _Pair:
    name: str
    pair: Pair

    @staticmethod
    def read(fields: Fields) -> "_Pair":
        """Returns a pair of the file."""
        name, source = fields.text("pair"), fields.integer("from", most=MAX_POINTS)
        target = END if fields.is_null("to") else fields.integer("to", most=MAX_POINTS)
        preset = round(_us(fields, "preset_us", least_ns=1)) if "preset_us" in fields.plain() else 0
        fields.end()
        return _Pair(name, Pair(source, target, preset))
