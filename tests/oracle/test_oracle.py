# SPDX-License-Identifier: Apache-2.0
"""The oracle has every operator, agrees with ONNX's own examples, and finds nothing wrong in the backend reference."""

import importlib
import pkgutil
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import defs, numpy_helper
from onnx.backend.test.case import node as node_cases

from oracle.cases import all_cases
from oracle.compare import difference
from oracle.engines import verdict_of
from oracle.evaluator import evaluate
from oracle.families import WITHOUT
from oracle.registry import MissingError, UnspecifiedError, known_operators

DOMAINS = ("", "ai.onnx.ml")
OPERATORS = sorted({s.name for s in defs.get_all_schemas_with_history() if s.domain in DOMAINS} - set(WITHOUT))


@pytest.mark.parametrize("operator", OPERATORS)
def test_reference_gives_what_the_specification_says(operator: str) -> None:
    cases = [case for case in all_cases().values() if case.operator == operator]
    assert cases, "no case"
    verdicts = {case.name: verdict_of(case, "reference") for case in cases}
    assert {name: (v.outcome, v.detail) for name, v in verdicts.items() if v.outcome != "right"} == {}


def test_oracle_has_every_operator_or_a_reason() -> None:
    every = {(s.domain, s.name) for s in defs.get_all_schemas_with_history() if s.domain in DOMAINS}
    assert {name for _, name in every - known_operators()} == set(WITHOUT)


def test_comparison_finds_what_differs() -> None:
    one, nan = np.ones(3, np.float32), np.array([1, np.nan, 1], np.float32)
    for got in (one + np.float32(1e-4), nan, one.astype(np.float64), one[:2], -one):
        assert difference({"y": one}, {"y": got})
        assert not difference({"y": got}, {"y": got.copy()})
    assert difference({"y": one * 0}, {"y": one * -0.0}, signed_zeros=True)
    assert not difference({"y": one * 0}, {"y": one * -0.0})


LARGE = 5e5  # elements times window: some pooling cases take seconds in loops over windows


def _examples(module: str) -> Iterator[Any]:
    """Yields ONNX's example cases of one of its modules."""
    before = len(node_cases._NodeTestCases)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they overflow on purpose while they make their data
        importlib.import_module(f"{node_cases.__name__}.{module}")
    yield from node_cases._NodeTestCases[before:]


MODULES = sorted(m.name for m in pkgutil.iter_modules(node_cases.__path__))


@pytest.mark.parametrize("module", [m for m in MODULES if m not in ("maxpool", "averagepool", "lppool")])
def test_oracle_gives_onnx_examples(module: str) -> None:
    for case in _examples(module):
        names = [info.name for info in case.model.graph.input]
        for inputs, outputs in case.data_sets:
            wanted = dict(zip([info.name for info in case.model.graph.output], map(_plain, outputs), strict=True))
            try:
                got = evaluate(case.model, dict(zip(names, map(_plain, inputs), strict=False)))
            except (MissingError, UnspecifiedError):
                continue
            assert difference(wanted, got, steps=100) == "", case.name


def _plain(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
