# SPDX-License-Identifier: Apache-2.0
"""The JUnit file parses whatever jobs are called, tells each once, and stays below what servers take."""

from collections import Counter
from xml.etree import ElementTree as ET

import pytest
from batch_examples import HOSTILE, HOSTILE_NAMES, batch, every_status, finding, outcome

from nndeploy.ci_reports.junit import MAX_MESSAGE
from nndeploy.farm.outcome import BROKEN, GOOD, NOT_RUN, REFUSED, STATUSES
from nndeploy.farm.reports.batch import Batch
from nndeploy.farm.reports.junit import GATE_SUITE, junit

# The form that Jenkins' xUnit plugin checks: children and attributes of each element.
FORM = {
    "testsuites": ({"testsuite"}, {"name", "time", "tests", "failures", "errors"}),
    "testsuite": ({"properties", "testcase"}, {"name", "time", "timestamp", "tests", "failures", "errors", "skipped"}),
    "properties": ({"property"}, set[str]()),
    "property": (set[str](), {"name", "value"}),
    "testcase": ({"failure", "error", "skipped"}, {"classname", "name", "time"}),
    **dict.fromkeys(("failure", "error", "skipped"), (set[str](), {"message", "type"})),
}


def parsed(made: Batch, max_bytes: int | None = None) -> ET.Element:
    text = junit(made) if max_bytes is None else junit(made, max_bytes)
    root = ET.fromstring(text)  # noqa: S314 our own, without a DTD
    for element in root.iter():
        children, attributes = FORM[element.tag]
        assert {child.tag for child in element} <= children
        assert set(element.attrib) == attributes
    for suite in (root, *root.findall("testsuite")):
        cases = list(suite.iter("testcase"))
        told = {key: int(suite.get(key, "-1")) for key in ("tests", "failures", "errors")}
        left = sum(int(prop.get("value", "")) for prop in suite.iter("property") if prop.get("name") == "left-out")
        assert told["tests"] == len(cases) + left
        if not left:
            kinds = Counter(child.tag for case in cases for child in case)
            assert (told["failures"], told["errors"]) == (kinds["failure"], kinds["error"])
    return root


def cases_of(root: ET.Element) -> dict[tuple[str | None, str | None], ET.Element]:
    cases = list(root.iter("testcase"))
    found = {(case.get("classname"), case.get("name")): case for case in cases}
    assert len(found) == len(cases)
    return found


def test_each_status_is_an_error_a_failure_skipped_or_passed() -> None:
    cases = cases_of(parsed(every_status()))
    for number, status in enumerate(STATUSES):
        for target in ("box", "host"):
            case = cases[target, f"m{number}/v"]
            kinds = [child.tag for child in case]
            wanted = ["error"] if status in BROKEN else ["failure"] if status in REFUSED else ["skipped"]
            assert kinds == ([] if status in GOOD else wanted), status
    assert {status for status in STATUSES if status in NOT_RUN} == {"cancelled", "skipped"}


def test_a_suite_is_a_target_and_counts_its_hits() -> None:
    root = parsed(batch(outcome(status="hit"), outcome("b", status="hit"), outcome("a", "box", "skipped")))
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == ["box", "host"]
    hits = {name: suite.findtext("properties/property[@name='hits']") or "" for name, suite in suites.items()}
    assert hits.keys() == {"box", "host"}
    values = [prop.get("value") for prop in root.iter("property") if prop.get("name") == "hits"]
    assert values == ["0", "2"]
    assert [suites[name].get("skipped") for name in ("box", "host")] == ["1", "0"]
    assert suites["host"].get("time") == "3.000"


def test_a_failure_says_why_and_what_repeats_it() -> None:
    failure = parsed(batch(outcome(status="failed"))).find("testsuite/testcase/failure")
    assert failure is not None
    assert failure.get("type") == "failed"
    assert failure.get("message") == "models/a.onnx: node 'Conv_3' has no weights"
    assert failure.text is not None
    assert failure.text.splitlines() == [
        "error[bad-model]: models/a.onnx: node 'Conv_3' has no weights", "hint: export it again",
        "repeat: nndeploy compile a.onnx -o out.nnd", "log: logs/a.txt", "first", "last",
    ]  # fmt: skip


def test_regressions_are_failures_of_a_suite_of_their_own_and_notes_are_none() -> None:
    found = finding(), finding("size-growth"), finding("slowdown", "b"), finding("not-judged", "c")
    suite = parsed(batch(outcome(), findings=found)).find(f"testsuite[@name='{GATE_SUITE}']")
    assert suite is not None
    assert [(case.get("classname"), case.get("name")) for case in suite.findall("testcase")] == [
        ("host", "a: slowdown"), ("host", "a: size-growth"), ("host", "b: slowdown"),
    ]  # fmt: skip
    assert [one.get("message") for one in suite.iter("failure")] == ["latency grew from 2 ms to 3 ms"] * 3


def test_names_that_look_alike_are_told_apart() -> None:
    jobs = [
        outcome("a/b", job="1"), outcome("a", job="2", variant="b"), outcome("a\x00", job="3"),
        outcome("a\x01", job="4"),
    ]  # fmt: skip
    names = [name for _, name in cases_of(parsed(batch(*jobs)))]
    assert sorted(names) == ["a/b", "a/b (2)", "a\ufffd", "a\ufffd (2)"]
    long = [outcome("m" * 5000 + str(number), job=str(number)) for number in range(3)]
    assert len(cases_of(parsed(batch(*long)))) == 3


def test_whatever_names_hold_is_text() -> None:
    cases = cases_of(parsed(every_status(HOSTILE_NAMES)))
    assert len(cases) == 2 * len(STATUSES) + 1
    told = next(case for case in cases.values() if case.find("failure") is not None)
    assert "<script>alert(1)</script>" in str(told.get("name"))
    assert "\x1b" not in str(told.get("name"))


@pytest.mark.parametrize("char", ["\x00", "\x08", "\x0b", "\x1f", "\ufffe", "\uffff", "\ud800"])
def test_what_xml_cannot_hold_is_replaced(char: str) -> None:
    one = outcome(f"a{char}", status="crash", error=None, log_tail=(f"x{char}\ty",))
    error = next(iter(cases_of(parsed(batch(one))).values())).find("error")
    assert error is not None
    assert str(error.text).endswith("x\ufffd\ty")


@pytest.mark.parametrize("char", ["\t", "\n", "\r", "\x7f", "\x85", "\ud7ff", "\ue000", "\U0001f600", "\U0010ffff"])
def test_what_xml_can_hold_stays(char: str) -> None:
    assert ("host", f"a{char}b") in cases_of(parsed(batch(outcome(f"a{char}b"))))


def test_logs_go_first_where_there_is_too_much() -> None:
    tail = ("x" * 500,) * 20
    jobs = [outcome(f"m{number}", status="crash", log_tail=tail) for number in range(50)]
    made = batch(*jobs, *(outcome(f"good{number}") for number in range(50)))
    assert len(junit(made)) > 500_000
    text = junit(made, 100_000)
    assert len(text) <= 100_000
    cases = cases_of(parsed(made, 100_000))
    assert len(cases) == 100
    assert 0 < text.count(b"x" * 500) < 20 * 50
    assert all((case.find("error") is not None) == str(name).startswith("m") for (_, name), case in cases.items())


def test_the_last_that_passed_go_next_and_are_counted() -> None:
    jobs = [outcome(f"m{number}", status="crash") for number in range(50)]
    made = batch(*jobs, *(outcome(f"good{number}") for number in range(500)))
    assert len(junit(made, 20_000)) <= 20_000
    root = parsed(made, 20_000)
    kept = cases_of(root)
    assert sum(case.find("error") is not None for case in kept.values()) == 50
    assert 50 < len(kept) < 550


def test_a_long_message_is_cut() -> None:
    error = {"code": "bad-model", "exit_code": 65, "message": HOSTILE * 100, "where": "", "hint": ""}
    failure = parsed(batch(outcome(status="failed", error=error))).find("testsuite/testcase/failure")
    assert failure is not None
    assert len(str(failure.get("message"))) == MAX_MESSAGE
