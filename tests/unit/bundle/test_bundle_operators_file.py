# SPDX-License-Identifier: Apache-2.0
"""The member that says what operators compute: what is written comes back, anything else is refused."""

import json
from typing import Any

import pytest

from nndeploy.errors import BundleError
from nndeploy.files.strict_json import canonical_json
from nndeploy.pacing.plan.operators import Operator, Operators
from nndeploy.pacing.plan.operators_file import CountedOperators, operators_from_json, operators_to_json

COUNTED = CountedOperators(
    {"x": (1, 3)},
    {"s0": Operators((("x", 12), ("y", 12)), (Operator("Neg", (0,), (1,), 3, 0),)), "s1": Operators((), ())},
)


def test_comes_back() -> None:
    found = operators_from_json(operators_to_json(COUNTED))
    assert found == COUNTED
    assert operators_to_json(found) == operators_to_json(COUNTED)


@pytest.mark.parametrize(("path", "wrong"), [
    (("shapes", "x"), [-1]), (("shapes", "x"), "3"), (("submodels", "s0", "values", 0), ["x", -1]),
    (("submodels", "s0", "values", 0), ["x", 1.5]), (("submodels", "s0", "operators", 0), ["Neg", [2], [1], 3, 0]),
    (("submodels", "s0", "operators", 0), ["Neg", [0], [-1], 3, 0]),
    (("submodels", "s0", "operators", 0), ["Neg", [0], [1], True, 0]),
    (("submodels", "s0", "operators", 0), ["Neg", [0], [1], 3]), (("submodels", "s0", "more"), 1),
])  # fmt: skip
def test_refuses_what_is_not_of_this_form(path: tuple[Any, ...], wrong: object) -> None:
    data = json.loads(operators_to_json(COUNTED))
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = wrong
    with pytest.raises(BundleError):
        operators_from_json(canonical_json(data))
