# SPDX-License-Identifier: Apache-2.0
"""The table of cases: small models and inputs, made by generators over attributes, versions, types, sizes and values."""

from collections.abc import Iterator
from functools import cache

from oracle.cases import elementwise, pooling, recurrent
from oracle.cases.case import Case

_FAMILIES = (elementwise, pooling, recurrent)


@cache
def all_cases() -> dict[str, Case]:
    """Returns every case by its name, in the order of the families."""
    found: dict[str, Case] = {}
    for case in _made():
        assert case.name not in found, case.name
        found[case.name] = case
    return found


def _made() -> Iterator[Case]:
    for family in _FAMILIES:
        yield from family.cases()
