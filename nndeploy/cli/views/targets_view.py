# SPDX-License-Identifier: Apache-2.0
"""The table of what named targets take of a bundle, as `compile` and `inspect` print it."""

from nndeploy.bundle.report import Report
from nndeploy.cli.console import print_table


def print_targets(report: Report) -> None:
    """Prints what each named target without a GPU takes of each submodel, where some were."""
    if not report.targets:
        return
    rows = [
        (
            one.target,
            one.submodel,
            one.variant or "NONE",
            one.backend or "-",
            one.needs or ("nothing" if one.variant else "-"),
            "compared here" if one.compared else "built, not run here" if one.variant else one.reason,
        )
        for one in report.targets
    ]
    print_table("on the named targets", ("target", "submodel", "takes", "backend", "needs there", ""), rows)
