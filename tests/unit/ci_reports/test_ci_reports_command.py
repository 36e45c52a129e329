# SPDX-License-Identifier: Apache-2.0
"""What CI is told of one command: every check once, failures as such, and no name that becomes syntax."""

from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt

from nndeploy.ci_reports.annotations import annotation
from nndeploy.ci_reports.command_report import Checked, CommandReport
from nndeploy.errors import CheckError, DataError, NndeployError

HOSTILE = "a|b `c`\n::error::<img src=x> *d* \x00]]>"


def report(error: NndeployError | None = None, **given: object) -> CommandReport:
    made = CommandReport(command="verify", subject=HOSTILE, started=datetime(2026, 1, 2, tzinfo=UTC), error=error)
    for name, value in given.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("error", "kind"), [(None, None), (CheckError("no"), "failure"), (DataError("broken"), "error")]
)
def test_the_command_is_a_case_that_passed_failed_or_broke(error: NndeployError | None, kind: str | None) -> None:
    checks = [Checked(HOSTILE, True, "fine"), Checked(HOSTILE, False, "wrong")]
    root = ET.fromstring(report(error, checks=checks, warnings=[HOSTILE]).junit())  # noqa: S314 our own, without a DTD
    command, good, bad = root.iter("testcase")
    assert [child.tag for child in command if child.tag != "system-out"] == ([kind] if kind else [])
    assert "warning: " in (command.findtext("system-out") or "")
    assert len(good) == 0
    assert [child.get("message") for child in bad] == ["wrong"]
    assert good.get("name") != bad.get("name")


def test_names_become_no_syntax_of_markdown() -> None:
    made = report(
        CheckError(HOSTILE), checks=[Checked(HOSTILE, False, HOSTILE)], figures=[(HOSTILE, HOSTILE)], warnings=[HOSTILE]
    )
    text = made.markdown().decode()
    kinds = {token.type for token in MarkdownIt("gfm-like", {"linkify": False}).parse(text)}
    assert {"table_open", "bullet_list_open", "heading_open"} <= kinds
    assert "<img" not in text
    assert text.startswith("## verify ")
    assert "FAILED" in text.splitlines()[0]


def test_a_summary_without_room_leaves_out_whole_rows_and_says_so() -> None:
    made = report(checks=[Checked(f"output {number}", True, "fine") for number in range(1000)])
    text = made.markdown(4000)
    assert len(text) <= 4000
    assert "no room" in text.decode()


@pytest.mark.parametrize(("set_to", "told"), [("true", True), ("", False), ("false", False)])
def test_an_annotation_is_one_line_where_github_reads_it(set_to: str, told: bool) -> None:
    line = annotation("error", "50% of it\n::warning::x", {"GITHUB_ACTIONS": set_to})
    assert line == ("::error title=nndeploy::50%25 of it%0A::warning::x" if told else "")
