# SPDX-License-Identifier: Apache-2.0
"""`nndeploy backends`: which plugins are installed and what each can do on this machine."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from nndeploy.cli.console import print_json, print_line, print_table
from nndeploy.cli.options.value_types import BOX
from nndeploy.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nndeploy.target.target import Target

OTHERS = "why not for another target: nndeploy backends --target NAME; their names: nndeploy targets"

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
    """List the backends, and what each builds for here.

    Also whether each runs on this machine, or why not. They are listed by tier, the order in which `compile` offers
    them the nodes of a model.
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
    title = "builds for" if target is None else f"builds for {box.name}"
    cells = [_cells(row, _builds_for(row, known) if target is None else "yes" * row["can_build"]) for row in found]
    print_table("backends", ("backend", "tier", "version", title, "runs here"), cells, right=("tier",))
    if target is None:
        print_line(OTHERS)


def _builds_for(row: dict[str, Any], known: "Sequence[Target]") -> str:
    """Returns in words what a backend builds for on this machine, "" where nothing."""
    with_gpu = [box.name for box in known if box.gpus]
    sets = {"all targets": [box.name for box in known], "all targets with a GPU": with_gpu}
    others = next((words for words, names in sets.items() if names == row["builds_for"]), ", ".join(row["builds_for"]))
    return ", ".join(filter(None, ("this machine" * row["can_build"], others)))


def _cells(row: dict[str, Any], builds_for: str) -> tuple[str, ...]:
    """Returns the row of the table; why not stands where the first answer is no."""
    reason = f"no {row['absent_hardware']}" if row["absent_hardware"] else row["reason"]
    why_not = "; ".join(filter(None, (reason, row["hint"])))
    no = f"no ({why_not})" if why_not else "no"
    runs = "yes" if row["can_run"] else no if builds_for else "no"
    tier = "-" if row["tier"] is None else str(row["tier"])
    return row["name"], tier, row["version"] or "-", builds_for or no, runs


def _row(name: str, target: "Target", known: "Sequence[Target]") -> dict[str, Any]:
    """Returns what a backend says of a target, and the names of the known targets that it can build for here."""
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
