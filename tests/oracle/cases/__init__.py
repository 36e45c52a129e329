# SPDX-License-Identifier: Apache-2.0
"""The table of cases: small models and inputs, made over attributes, versions, types, sizes and values."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from oracle.cases import (
    between,
    elementwise,
    graphs,
    normalisation,
    pooling,
    products,
    quantised,
    recurrent,
    reductions,
    tables,
    tensors,
    words_and_machines,
)
from oracle.cases.case import Case

_FAMILIES = (
    elementwise, reductions, tensors, products, pooling, normalisation, recurrent, quantised, between, graphs,
    words_and_machines, tables,
)  # fmt: skip


@cache
def all_cases() -> dict[str, Case]:
    """Returns every case by its name, in the order of the families."""
    found: dict[str, Case] = {}
    for case in _made():
        name, count = case.name, 2
        while name in found:
            name, count = f"{case.name} ({count})", count + 1
        found[name] = replace(case, name=name)
    return found


def _made() -> Iterator[Case]:
    for family in _FAMILIES:
        yield from family.cases()
