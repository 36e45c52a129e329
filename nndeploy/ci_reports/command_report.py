# SPDX-License-Identifier: Apache-2.0
"""What one command found, for CI: its verdict, what it checked, figures and warnings, as JUnit XML and as Markdown."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from nndeploy.ci_reports.junit import Case, junit_xml
from nndeploy.ci_reports.markdown import LINE_BYTES, MAX_BYTES, Part, size_of, table_row
from nndeploy.errors import CheckError, NndeployError
from nndeploy.files.markdown_code import markdown_code


@dataclass(frozen=True, slots=True)
class Checked:
    """Something that was checked: its name, whether it is as it should be, and what was found."""

    name: str
    is_good: bool
    found: str = ""


@dataclass(slots=True, kw_only=True)
class CommandReport:
    """What `command` found of `subject`, a model or a bundle; `error` is what it ended with.

    `figures` are (name, value) for people.
    """

    command: str
    subject: str
    started: datetime
    seconds: float = 0.0
    checks: list[Checked] = field(default_factory=list)
    figures: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    error: NndeployError | None = None

    def junit(self) -> bytes:
        """Returns the report as JUnit XML: a case for the command itself, and one for each check."""
        name = f"nndeploy {self.command}"
        cases = [self._case(), *(_case_of(name, self.subject, one) for one in self.checks)]
        return junit_xml(name, cases, self.seconds, self.started.isoformat())

    def _case(self) -> Case:
        case = Case(f"nndeploy {self.command}", self.command, self.subject, self.seconds)
        case.output = "\n".join([*(f"{name}: {value}" for name, value in self.figures), *_warned(self.warnings)])
        if self.error is not None:
            case.kind = "failure" if isinstance(self.error, CheckError) else "error"
            case.type, case.message, case.details = self.error.code, self.error.what, str(self.error)
        return case

    def markdown(self, max_bytes: int = MAX_BYTES) -> bytes:
        """Returns the report as Markdown, of at most `max_bytes` where there is room for its head."""
        head = [f"## {self.command} {markdown_code(self.subject)}: {'FAILED' if self.error else 'PASSED'}", ""]
        left = max_bytes - size_of(head) - 4 * LINE_BYTES
        errors = [] if self.error is None else [f"- **{self.error.code}** {markdown_code(str(self.error))}"]
        table = [table_row(["check", "", "found"]), table_row(["---"] * 3)]
        parts: list[Part[str]] = [
            Part("### What failed", (), "failure", errors, str),
            Part("### Checks", table, "check", [_row(one) for one in sorted(self.checks, key=_is_good)], str),
            Part(
                "### Figures", _FIGURES, "figure", [table_row(map(markdown_code, pair)) for pair in self.figures], str
            ),
            Part("### Warnings", (), "warning", [f"- {markdown_code(text)}" for text in self.warnings], str),
        ]
        lines = head
        for part in parts:
            told = part.lines(left)
            left -= size_of(told)
            lines += told
        return "\n".join(lines).encode()


_FIGURES = (table_row(["figure", "value"]), table_row(["---"] * 2))


def _is_good(one: Checked) -> bool:
    return one.is_good


def _row(one: Checked) -> str:
    return table_row([markdown_code(one.name), "ok" if one.is_good else "**FAILED**", markdown_code(one.found)])


def _case_of(suite: str, subject: str, one: Checked) -> Case:
    kind = "" if one.is_good else "failure"
    return Case(suite, one.name, subject, 0.0, kind, "check-failed" if kind else "", one.found if kind else "")


def _warned(warnings: Iterable[str]) -> Iterable[str]:
    return (f"warning: {text}" for text in warnings)
