# SPDX-License-Identifier: Apache-2.0
"""Test cases as JUnit XML, in suites.

It keeps to the form that Jenkins checks (junit-10.xsd of its xUnit plugin), which has no properties of test cases; hits
are counted in each suite's properties. GitLab drops a case whose name came before, and refuses 30 MB: names are unique
in a class, and what is too much loses its logs first, then its last cases, which the suite's properties count.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

MAX_BYTES = 29_000_000
SUITE_BYTES = 1000
MAX_NAME = 200
MAX_MESSAGE = 1000
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Whatever XML 1.0 cannot hold, even escaped."""


@dataclass(slots=True)
class Case:
    """A test case of a class, `target`: `kind` is the element that says how it ended, "" where it passed.

    `kind` is "failure" for what was refused, "error" for what broke, "skipped" for what did not run. `is_hit`: it was
    taken from a cache.
    """

    suite: str
    name: str
    target: str
    seconds: float
    kind: str = ""
    type: str = ""
    message: str = ""
    details: str = ""
    output: str = ""
    is_hit: bool = False

    def xml(self, *, has_details: bool) -> str:
        names = {"classname": _text(self.target)[:MAX_NAME], "name": self.name, "time": f"{self.seconds:.3f}"}
        case = ET.Element("testcase", names)
        if self.kind:
            told = {"message": _text(self.message)[:MAX_MESSAGE], "type": _text(self.type)[:MAX_NAME]}
            ET.SubElement(case, self.kind, told).text = _text(self.details) if has_details else None
        if self.output and has_details:
            ET.SubElement(case, "system-out").text = _text(self.output)
        return ET.tostring(case, encoding="unicode")


def junit_xml(name: str, cases: Iterable[Case], seconds: float, started: str, max_bytes: int = MAX_BYTES) -> bytes:
    """Returns the XML of cases in their suites, of at most about `max_bytes`.

    `started` is a time as ISO 8601 has it.
    """
    cases = list(_unique(cases))
    members: dict[str, list[tuple[Case, str]]] = {suite: [] for suite in sorted({case.suite for case in cases})}
    texts = _within(cases, max_bytes - SUITE_BYTES * len(members))
    for case, text in zip(cases, texts, strict=True):
        members[case.suite].append((case, text))
    head = {"name": name, "time": f"{seconds:.3f}", **_counts(cases)}
    inner = "".join(_suite(suite, found, started) for suite, found in members.items())
    return f"<?xml version='1.0' encoding='utf-8'?>\n{_opened('testsuites', head)}\n{inner}</testsuites>\n".encode()


def _unique(cases: Iterable[Case]) -> Iterator[Case]:
    """Yields the cases, with names that XML can hold and no other one of their class has."""
    taken = set[tuple[str, str]]()
    for case in cases:
        name = case.name = _text(case.name)[:MAX_NAME]
        number = 1
        while (case.target, case.name) in taken:
            number += 1
            case.name = f"{name} ({number})"
        taken.add((case.target, case.name))
        yield case


def _within(cases: list[Case], max_bytes: int) -> list[str]:
    """Returns the XML of each case, "" for one that there is no room for; those that did not pass come first."""
    order = sorted(range(len(cases)), key=lambda i: not cases[i].kind)
    short = [case.xml(has_details=False) for case in cases]
    sizes = [len(text.encode()) + 1 for text in short]
    spare = max_bytes - sum(sizes)
    left = max_bytes
    texts = [""] * len(cases)
    for i in order:
        if (cases[i].details or cases[i].output) and spare > 0:
            whole = cases[i].xml(has_details=True)
            more = len(whole.encode()) + 1 - sizes[i]
            if more <= spare:
                spare -= more
                texts[i] = whole
                left -= sizes[i]
                continue
        if sizes[i] <= left:
            texts[i] = short[i]
            left -= sizes[i]
    return texts


def _suite(name: str, members: list[tuple[Case, str]], started: str) -> str:
    cases = [case for case, _ in members]
    seconds = sum(case.seconds for case in cases)
    head = {"name": _text(name)[:MAX_NAME], "time": f"{seconds:.3f}", "timestamp": _text(started), **_counts(cases)}
    head["skipped"] = str(sum(case.kind == "skipped" for case in cases))
    properties = {"hits": sum(case.is_hit for case in cases), "left-out": sum(not text for _, text in members)}
    listed = "".join(f'<property name="{key}" value="{value}" />' for key, value in properties.items())
    rows = "".join(f"{text}\n" for _, text in members if text)
    return f"{_opened('testsuite', head)}\n<properties>{listed}</properties>\n{rows}</testsuite>\n"


def _counts(cases: list[Case]) -> dict[str, str]:
    kinds = [case.kind for case in cases]
    counts = {"tests": len(kinds), "failures": kinds.count("failure"), "errors": kinds.count("error")}
    return {key: str(count) for key, count in counts.items()}


def _opened(tag: str, attributes: dict[str, str]) -> str:
    return ET.tostring(ET.Element(tag, attributes), encoding="unicode").removesuffix(" />") + ">"


def _text(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
