# SPDX-License-Identifier: Apache-2.0
"""`nndeploy targets`: the targets that can be named, and what is known of each."""

from typing import TYPE_CHECKING, Any

import click

from nndeploy.cli.console import print_json, print_line, print_table
from nndeploy.values.amounts import size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nndeploy.plugin.interface import Backend
    from nndeploy.target.target import Target

EXAMPLES = """\b
Examples:
  nndeploy targets
  nndeploy targets --json
  nndeploy compile model.onnx -o model.nnd --target x86-64-v3 --target raspberry-pi-5+onnxruntime
"""


@click.command("targets", epilog=EXAMPLES)
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON on standard output.")
def targets(as_json: bool) -> None:
    """List the targets that --target knows by name.

    A target without a GPU uses only nndeploy's own runtime, plus the libraries named with it: TARGET+LIBRARY. For any
    other machine, write a target file there: nndeploy probe -o box.toml.
    """
    from nndeploy.plugin.registry import backends_in_order
    from nndeploy.target.known_targets import known_targets, target_of

    plugins = backends_in_order()
    found = [_row(target_of(str(path)), plugins) for path in known_targets().values()]
    if as_json:
        print_json({"targets": found})
        return
    common = [name for name in found[0]["built_here_by"] if all(name in row["built_here_by"] for row in found)]
    columns = ("name", "processor", "cores", "gpu", "memory", "built here also by" if common else "built here by")
    print_table("known targets", columns, [_cells(row, common) for row in found], right=("cores", "memory"))
    if common:
        print_line(f"every target is built here by: {_starred(found[0], common)}")
    print_line("* needs only nndeploy's own runtime; the others need their library on the target")


def _cells(row: dict[str, Any], common: "Sequence[str]") -> tuple[str, ...]:
    """Returns the row of the table; its name tells the GPU's, so the cell has what it computes as."""
    gpus = row["gpus"]
    return (
        row["name"],
        row["level"],
        str(row["num_cores"] or "-"),
        ", ".join(f"sm_{gpu['compute_capability'].replace('.', '')}" for gpu in gpus) or "-",
        ", ".join(size_text(gpu["memory_bytes"]) for gpu in gpus if gpu["memory_bytes"]) or "-",
        _starred(row, [name for name in row["built_here_by"] if name not in common]) or "-",
    )


def _starred(row: dict[str, Any], names: "Sequence[str]") -> str:
    return ", ".join(f"{name}*" if name in row["runs_alone"] else name for name in names)


def _row(target: "Target", plugins: "list[Backend]") -> dict[str, Any]:
    from nndeploy.plugin.interface import RunsAlone, builds_for

    builders = [one for one in plugins if builds_for(one, target)]
    return {
        "name": target.name,
        "arch": target.arch,
        "level": target.level,
        "num_cores": target.num_cores,
        "gpus": [
            {"name": gpu.name, "compute_capability": gpu.compute_capability, "memory_bytes": gpu.memory_bytes}
            for gpu in target.gpus
        ],
        "built_here_by": [one.name for one in builders],
        "runs_alone": [one.name for one in builders if isinstance(one, RunsAlone)],
    }
