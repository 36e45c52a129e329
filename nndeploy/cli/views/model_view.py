# SPDX-License-Identifier: Apache-2.0
"""What `inspect` shows of a model that was not compiled yet."""

import dataclasses
from pathlib import Path
from typing import Any

from nndeploy.cli.console import print_line, print_table
from nndeploy.frontend.model_overview import ModelOverview
from nndeploy.values.amounts import size_text


def overview_to_json(path: Path, found: ModelOverview) -> dict[str, Any]:
    """Returns the overview of a model as plain data."""
    values = {
        kind: [{"name": one.name, "type": one.type} for one in getattr(found, kind)] for kind in ("inputs", "outputs")
    }
    return {"model": str(path), **dataclasses.asdict(found), **values, "num_nodes": found.num_nodes}


def print_overview(path: Path, found: ModelOverview) -> None:
    """Prints the overview of a model for a person."""
    opsets = ", ".join(f"{domain} {version}" for domain, version in found.opsets.items())
    beside = ", in files beside it" if found.has_external_data else ""
    print_line(f"{path}: an ONNX model, {size_text(found.size_bytes)}, {found.num_nodes:,} nodes")
    print_line(f"weights: {size_text(found.weight_bytes)}{beside}; IR version {found.ir_version}; opsets: {opsets}")
    rows = [("input", one.name, one.type) for one in found.inputs]
    rows += [("output", one.name, one.type) for one in found.outputs]
    print_table("inputs and outputs", ("", "name", "type"), rows)
    if found.symbols:
        bound = [(name, ", ".join(axes)) for name, axes in found.symbols.items()]
        print_table("sizes that a call sets", ("size", "by"), bound)
    counts = [(name, f"{count:,}") for name, count in found.operators.items()]
    print_table("operators", ("operator", "nodes"), counts, right=("nodes",))
