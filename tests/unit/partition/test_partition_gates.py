# SPDX-License-Identifier: Apache-2.0
"""What the gates for CI say when they fail: who keeps a backend from more, and what it can take at most."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from nndeploy.errors import CheckError
from nndeploy.partition.cost import Costs
from nndeploy.partition.gates import check_gates

COSTS = Costs({"a": 1.0, "b": 1.0, "c": 1.0}, {}, {"a": 60, "b": 30, "c": 10})
ORDER = cast(Any, [SimpleNamespace(name="native", tier=3), SimpleNamespace(name="onnxruntime", tier=4)])
TAKEN = {"a": "native", "b": "onnxruntime", "c": "native"}


def failure(backend_of: dict[str, str], refused: dict[tuple[str, str], str], order: Any = ORDER, **gates: Any) -> str:
    asked = {"require": {}, "max_fallback": None, **gates}
    with pytest.raises(CheckError) as caught:
        check_gates(backend_of, COSTS, order, why_not=lambda node, name: refused.get((node, name), ""), **asked)
    return str(caught.value)


def test_a_share_that_is_missed_names_the_first_refusal_and_what_can_be_reached() -> None:
    told = failure(TAKEN, {("b", "native"): "sizes are open"}, require={"native": 0.95})
    assert "native takes 70.0%" in told
    assert "'b': sizes are open" in told
    assert "70.0% at most" in told


def test_a_share_that_another_backend_has_says_how_it_is_got() -> None:
    told = failure(TAKEN, {}, require={"native": 0.95})
    assert "--backends native" in told


def test_fallbacks_that_take_too_much_name_who_refused_what() -> None:
    assert "'b': native: sizes are open" in failure(TAKEN, {("b", "native"): "sizes are open"}, max_fallback=0.1)
    alone = dict.fromkeys(TAKEN, "onnxruntime")
    assert "--backends native,onnxruntime" in failure(alone, {}, ORDER[1:], max_fallback=0.1)
