# SPDX-License-Identifier: Apache-2.0
"""`nndeploy backends`: which plugins are installed and what each can do on this machine."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from nndeploy.cli.console import print_json, print_table
from nndeploy.cli.options.value_types import BOX
from nndeploy.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nndeploy.target.target import Target

BUILDS_FOR_OTHERS = "builds here for other targets"

EXAMPLES = """\b
Examples:
  nndeploy backends
  nndeploy backends --target rtx4090
  nndeploy backends --json
"""


@click.command("backends", epilog=EXAMPLES)
@click.option(
    "--target",
    type=BOX,
    metavar="TARGET",
    help="Show support on this target, by name (rtx4090) or target file. Default: this machine.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON on standard output.")
def backends(target: str | None, as_json: bool) -> None:
    """List the backends and what they support on this machine.

    They are listed by tier, the order in which `compile` offers them the nodes of a model.
    """
    from nndeploy.plugin.registry import backend_names
    from nndeploy.target.known_targets import known_targets, target_of
    from nndeploy.target.target import host_target

    box = host_target() if target is None else target_of(target)
    known = [target_of(str(path)) for path in known_targets().values()]
    rows = (_row(name, box, known) for name in backend_names())
    found = sorted(rows, key=lambda row: (row["tier"] or 99, row["name"]))
    if as_json:
        print_json({"backends": found})
        return
    columns = ("backend", "tier", "version", "build here", "run here", "reason, and what to do")
    print_table("backends", columns, map(_cells, found), right=("tier",))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Returns the row of the table; a backend that cannot build for the box may still build for others."""
    elsewhere = BUILDS_FOR_OTHERS if row["builds_for"] and not row["can_build"] else ""
    return (
        row["name"],
        "-" if row["tier"] is None else str(row["tier"]),
        row["version"] or "-",
        "yes" if row["can_build"] else "no",
        "yes" if row["can_run"] else "no",
        "; ".join(text for text in (row["why_not"], row["hint"], elsewhere) if text),
    )


def _row(name: str, target: "Target", known: "Sequence[Target]") -> dict[str, Any]:
    """Returns what a backend says of a target, and the names of the known boxes that it can build for here."""
    from nndeploy.plugin.interface import Probe, builds_for
    from nndeploy.plugin.registry import backend

    tier, others = None, list[str]()
    try:
        plugin = backend(name)
        tier, probe = plugin.tier, plugin.probe(target)
        others = [box.name for box in known if builds_for(plugin, box)]
    except UnavailableError as err:
        probe = Probe(False, False, reason=err.what, hint=err.hint)
    except Exception as err:  # a third party's probe should refuse by a value, but may fail
        probe = Probe(False, False, reason=f"its probe failed: {type(err).__name__}: {err}")
    return {"name": name, "tier": tier, **asdict(probe), "why_not": probe.why_not, "builds_for": others}
