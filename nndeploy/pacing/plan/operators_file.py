# SPDX-License-Identifier: Apache-2.0
"""The member `pacing/operators.json`: what the operators of each submodel compute and move, at the shapes of a sample.

Law: `operators_from_json(operators_to_json(shapes, o)) == (shapes, o)`; whatever is not exactly this form is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nndeploy.bundle.json_fields import MAX_INT, Fields, is_integers
from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.reader import Bundle
from nndeploy.errors import BundleError
from nndeploy.files.strict_json import canonical_json, parse_json
from nndeploy.pacing.plan.operators import Operator, Operators

OPERATORS_NAME = "pacing/operators.json"
MAX_OPERATORS_BYTES = 32 << 20
HINT = "compile it with --pace"


@dataclass(frozen=True, slots=True)
class CountedOperators:
    """The operators of each submodel by its id; `shapes` are those of the program's inputs for which they count."""

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    submodels: Mapping[str, Operators] = field(default_factory=dict)


def has_points(manifest: Manifest) -> bool:
    """Returns whether a bundle was compiled to be paced; those of before brought a library of delays, too."""
    return bool(manifest.pace_operators or manifest.pace_libraries)


def counted_operators(bundle: Bundle) -> CountedOperators:
    """Returns what the operators of a bundle compute, none where it does not say.

    Raises:
        BundleError: it is damaged.
    """
    member = bundle.manifest.pace_operators
    if not member:
        return CountedOperators()
    try:
        return operators_from_json(bundle.member(member))
    except BundleError as err:
        err.within(member)
        raise


def operators_to_json(counted: CountedOperators) -> bytes:
    """Returns the text of the member."""
    return canonical_json({
        "shapes": {name: list(shape) for name, shape in counted.shapes.items()},
        "submodels": {
            name: {
                "values": [list(value) for value in found.values],
                "operators": [
                    [one.kind, list(one.reads), list(one.makes), one.flops, one.constant_bytes]
                    for one in found.operators
                ],
            }
            for name, found in counted.submodels.items()
        },
    })  # fmt: skip


def operators_from_json(text: bytes | memoryview) -> CountedOperators:
    """Returns what the member holds.

    Raises:
        BundleError: it is malformed.
    """
    fields = Fields(parse_json(text, MAX_OPERATORS_BYTES), "", ignore_unknown=False)
    shapes = {name: _shape(name, shape) for name, shape in fields.named("shapes")}
    submodels = {name: _operators(item) for name, item in fields.named_fields("submodels")}
    fields.end()
    return CountedOperators(shapes, submodels)


def _shape(name: str, data: Any) -> tuple[int, ...]:
    if not is_integers(data, MAX_INT):
        raise BundleError("expected a shape", where=f"shapes[{name!r:.80}]")
    return tuple(data)


def _operators(fields: Fields) -> Operators:
    values = tuple(_value(item, fields.at(f"values[{i}]")) for i, item in enumerate(fields.items("values")))
    last = len(values) - 1
    operators = tuple(
        _operator(item, last, fields.at(f"operators[{i}]")) for i, item in enumerate(fields.items("operators"))
    )
    fields.end()
    return Operators(values, operators)


def _value(data: Any, where: str) -> tuple[str, int]:
    if isinstance(data, list) and len(data) == 2 and isinstance(data[0], str) and is_integers(data[1:], MAX_INT):
        return data[0], data[1]
    raise BundleError("expected a name and its bytes", where=where)


def _operator(data: Any, last: int, where: str) -> Operator:
    if isinstance(data, list) and len(data) == 5:
        kind, reads, makes, flops, constant_bytes = data
        is_said = isinstance(kind, str) and is_integers([flops, constant_bytes], MAX_INT)
        if is_said and is_integers(reads, last) and is_integers(makes, last):
            return Operator(kind, tuple(reads), tuple(makes), flops, constant_bytes)
    raise BundleError("expected a kind, values that it reads and makes, flops, bytes of constants", where=where)
