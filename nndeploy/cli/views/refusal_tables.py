# SPDX-License-Identifier: Apache-2.0
"""The table of nodes that `compile -v` and `inspect -v` print: who runs each, and why nobody before took it."""

from collections.abc import Mapping

from nndeploy.bundle.report import Report
from nndeploy.cli.console import Cell, print_table

WHY_NOT = "why higher backends refused it"
"""The head of the column that `refusal_lines` fills."""


def refusal_lines(refusals: Mapping[str, str], max_reason: int | None = None) -> Cell:
    """Returns a line for each backend with its reason, cut to `max_reason` characters; "-" where there are none."""
    return [f"{backend}: {_cut(reason, max_reason)}" for backend, reason in refusals.items()] or "-"


def print_nodes(report: Report, title: str, max_reason: int | None = None) -> None:
    """Prints a line for each node of a chain."""
    rows = [
        (node.name, node.op, node.submodel, node.backend, f"{node.share:.2%}", refusal_lines(node.refusals, max_reason))
        for node in report.nodes
    ]
    print_table(title, ("node", "operator", "submodel", "backend", "compute", WHY_NOT), rows, right=("compute",))


def _cut(reason: str, most: int | None) -> str:
    return reason if most is None or len(reason) <= most else reason[: most - 3] + "..."
