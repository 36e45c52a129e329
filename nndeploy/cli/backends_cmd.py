# SPDX-License-Identifier: Apache-2.0
"""`nndeploy backends`: which plugins are installed and what each can do on this machine."""

from typing import TYPE_CHECKING, Any

import click

from nndeploy.cli.console import print_json, print_table
from nndeploy.cli.value_types import BOX
from nndeploy.errors import UnavailableError

if TYPE_CHECKING:
    from nndeploy.target.target import Target

EXAMPLES = """\b
Examples:
  nndeploy backends
  nndeploy backends --target rtx4090
  nndeploy backends --json
"""


@click.command("backends", epilog=EXAMPLES)
@click.option(
    "--target", type=BOX, metavar="BOX", help="Ask for a box, by name (rtx4090) or file. Default: this machine."
)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON on standard output.")
def backends(target: str | None, as_json: bool) -> None:
    """List the backends and what they can do here.

    They stand in the order of their tiers, which is the order in which compile offers them the nodes of a model.
    """
    from nndeploy.plugin.registry import backend_names
    from nndeploy.target.known_targets import target_of
    from nndeploy.target.target import host_target

    box = host_target() if target is None else target_of(target)
    found = sorted((_row(name, box) for name in backend_names()), key=lambda row: (row["tier"] or 99, row["name"]))
    if as_json:
        print_json({"backends": found})
        return
    columns = ("backend", "tier", "version", "build here", "run here", "why not, and what to do")
    rows = [
        (
            row["name"],
            "-" if row["tier"] is None else str(row["tier"]),
            row["version"] or "-",
            "yes" if row["can_build"] else "no",
            "yes" if row["can_run"] else "no",
            "; ".join(text for text in (row["reason"], row["hint"]) if text),
        )
        for row in found
    ]
    print_table("backends", columns, rows, right=("tier",))


def _row(name: str, target: "Target") -> dict[str, Any]:
    from nndeploy.plugin.registry import backend
    from nndeploy.runtime.select import install_hint

    row: dict[str, Any] = {"name": name, "tier": None, "version": "", "can_build": False, "can_run": False}
    try:
        plugin = backend(name)
        probe = plugin.probe(target)
    except UnavailableError as err:
        return row | {"reason": err.what, "hint": err.hint or install_hint(name)}
    except Exception as err:  # a third party's probe should refuse by a value, but may fail
        return row | {"reason": f"its probe failed: {type(err).__name__}: {err}", "hint": ""}
    return row | {
        "tier": plugin.tier,
        "version": probe.version,
        "can_build": probe.can_build,
        "can_run": probe.can_run,
        "reason": probe.reason,
        "hint": probe.hint,
    }
