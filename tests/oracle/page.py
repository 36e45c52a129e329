# SPDX-License-Identifier: Apache-2.0
"""Outcomes of all cases -> docs/reference/operators.md: a row for each operator, and every case that is not right."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from oracle.cases.case import Case
from oracle.families import WITHOUT

HEAD = """# Operators

What each engine makes of small models of one operator each, held against an implementation of ONNX's operators that was
written from the text of the specification alone (`tests/oracle/`). `make operators` writes this page.

- **reference**, **onnxruntime**, **openvino**, **native**: the backend alone, after the frontend and the passes;
  nothing checks what it computes. **default**: a whole compile, whose checks keep wrong backends out, and its bundle.
- A number is how many cases are right. *refused*: the backend does not take the model, and another one gets it.
  *error*: it takes the model, and a legal input becomes an error record. *wrong*: other numbers, sizes or types than
  the specification's. *ended*: the process ended.
- Cases go over versions of the operator, attributes, types, ranks, sizes 0 and 1, and edge values: NaN, infinities,
  -0, the least and greatest numbers, indices out of range.

"""
KINDS = ("right", "refused", "error", "wrong", "ended", "unspecified")


def written_page(cases: Mapping[str, Case], outcomes: Mapping[str, Mapping[str, tuple[str, str]]]) -> str:
    """Returns the page as Markdown."""
    engines = list(outcomes)
    rows = [
        f"| operator | versions | cases | {' | '.join(engines)} |",
        f"| --- | --- | ---: |{' --- |' * len(engines)}",
    ]
    for operator in sorted({case.operator for case in cases.values()}):
        names = [name for name, case in cases.items() if case.operator == operator]
        cells = [cell(Counter(outcomes[engine][name][0] for name in names)) for engine in engines]
        rows.append(f"| {operator} | {_versions(names)} | {len(names)} | {' | '.join(cells)} |")
    absent = [f"- {name}: {reason}" for name, reason in WITHOUT.items()]
    parts = [HEAD + summary(outcomes), "## By operator", "\n".join(rows), "## Not right", _not_right(cases, outcomes)]
    parts += ["## Without cases", "\n".join(absent)]
    return "\n\n".join(parts) + "\n"


def summary(outcomes: Mapping[str, Mapping[str, tuple[str, str]]]) -> str:
    """Returns how many cases came to what on each engine, as a table."""
    kinds = [kind for kind in KINDS if any(o == kind for of in outcomes.values() for o, _ in of.values())]
    lines = [f"| engine | {' | '.join(kinds)} |", f"| --- |{' ---: |' * len(kinds)}"]
    for engine, of_cases in outcomes.items():
        counts = Counter(outcome for outcome, _ in of_cases.values())
        lines.append(f"| {engine} | {' | '.join(str(counts[kind]) for kind in kinds)} |")
    return "\n".join(lines)


def cell(counts: Counter[str]) -> str:
    """Returns the outcomes of the cases of an operator on an engine, as the page has them."""
    parts = [str(counts["right"])] if counts["right"] else []
    return ", ".join(parts + [f"{counts[kind]} {kind}" for kind in KINDS[1:] if counts[kind]])


def _versions(names: list[str]) -> str:
    found = {int(m[1]) for name in names if (m := re.match(r"\S+?-(\d+)\b", name))}
    return ", ".join(map(str, sorted(found))) or "any"


def _not_right(cases: Mapping[str, Case], outcomes: Mapping[str, Mapping[str, tuple[str, str]]]) -> str:
    rows = ["| case | engine | outcome |", "| --- | --- | --- |"]
    for name in cases:
        for engine, of_cases in outcomes.items():
            outcome, detail = of_cases[name]
            if outcome in ("error", "wrong", "ended"):
                rows.append(f"| {_plain(name)} | {engine} | {outcome}: {_plain(detail)[:140]} |")
    return "\n".join(rows)


def _plain(text: Any) -> str:
    return re.sub(r"[|<>`*_\[\]]", lambda m: "\\" + m[0], str(text))
