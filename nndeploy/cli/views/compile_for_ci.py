# SPDX-License-Identifier: Apache-2.0
"""What CI is told of a compile: the error of each output, who took how much, and the warnings."""

from nndeploy.bundle.report import CheckReport, Report
from nndeploy.ci_reports.command_report import Checked, CommandReport
from nndeploy.values.amounts import size_text


def tell_ci(told: CommandReport, report: Report) -> None:
    """Fills a report for CI with that of a compile, whole or so far."""
    outputs: dict[str, list[CheckReport]] = {}
    for check in report.checks:
        if check.scope == "whole":
            outputs.setdefault(check.output, []).append(check)
    told.checks += [_checked(name, checks, report.samples_text) for name, checks in outputs.items()]
    told.figures += [
        (
            f"share of {target}" if target else "share",
            ", ".join(f"{name} {share:.1%}" for name, share in shares.items()),
        )
        for target, shares in report.shares().items()
    ]
    if report.bundle_bytes:
        told.figures += [("bundle", report.bundle), ("size", size_text(report.bundle_bytes))]
    told.warnings += report.all_warnings()


def _checked(output: str, checks: list[CheckReport], samples: str) -> Checked:
    errors = [check.max_abs for check in checks if check.max_abs is not None]
    found = f"max abs {max(errors):.3g} on {samples}" if errors else "; ".join(dict.fromkeys(c.note for c in checks))
    return Checked(f"output {output}", all(check.ok for check in checks), found)
