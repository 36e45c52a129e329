# SPDX-License-Identifier: Apache-2.0
"""Every operator, version, attribute, edge value and size of the oracle's tables on every level of this machine."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from kernel_library import LEVELS_HERE
from native_models import FLOAT_LEVELS, run
from oracle.cases import all_cases, wide
from oracle.cases.case import Case
from oracle.compare import difference
from oracle.engines import built_alone, verdict_of
from oracle.page import cell

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "operators.md"
OPERATORS = sorted({case.operator for case in all_cases().values()})
WIDE = list(wide.cases())
BF16_STEPS = 1500
"""How much more a product of bfloat16 may be apart."""


@cache
def promised() -> dict[str, str]:
    """Returns what the page says of native, by operator."""
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    header = next(row for row in rows if row[0] == "operator")
    return {row[0]: row[header.index("native")] for row in rows if len(row) == len(header)}


@pytest.mark.parametrize("operator", OPERATORS)
def test_each_operator_is_what_the_page_says(operator: str, tmp_path: Path) -> None:
    cases = [case for case in all_cases().values() if case.operator == operator]
    verdicts = {case.name: verdict_of(case, "native") for case in cases}
    assert cell(Counter(one.outcome for one in verdicts.values())) == promised()[operator], verdicts
    for case in cases:
        if verdicts[case.name].outcome == "right" and case.wanted is not None:
            assert wrong_levels(case, tmp_path) == {}, case.name


def wrong_levels(case: Case, folder: Path) -> dict[str, str]:
    """Returns how the numbers of a case differ, by level; nothing is read or written beside what it is given."""
    artifact = built_alone(case.model, "native", folder)
    found = {}
    for number, level in enumerate(FLOAT_LEVELS):
        got = run(artifact, case.inputs, level, threads=1 + number % 2)
        found[level] = difference(case.wanted or {}, got, signed_zeros=case.signed_zeros, steps=case.steps)
    return {level: text for level, text in found.items() if text}


@pytest.mark.parametrize("operator", sorted({case.operator for case in WIDE}))
def test_odd_and_large_sizes(operator: str, tmp_path: Path) -> None:
    """On one thread and two, bytes with what the processor has and with the instructions of the level alone."""
    for case in (one for one in WIDE if one.operator == operator):
        artifact, wanted = built_alone(case.model, "native", tmp_path), case.wanted
        assert wanted is not None, case.name
        for number, level in enumerate(LEVELS_HERE):
            steps = case.steps * (BF16_STEPS if level.endswith("bf16") else 1)
            for threads in (1, 2):
                plain = (number + threads) % 2 == 0
                got = run(artifact, case.inputs, level, threads=threads, plain_bytes=plain)
                assert difference(wanted, got, steps=steps) == "", (case.name, level, threads)
