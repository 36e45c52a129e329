# SPDX-License-Identifier: Apache-2.0
"""Whole models predicted from the cost table and measured, engine by engine: docs/figures/cost-results.md.

What was measured of a model is a line of build/cost-measurements.jsonl, one process a model, so that the check can go
on where it was stopped and another table can be held against the same measurements.
"""

import argparse
import fnmatch
import json
import subprocess
import sys
from pathlib import Path

from cost_page import Row, page, summary
from figures import figure, header, tree
from native_engines import machine_name
from zoo_graphs import Subject, all_names, subject

from nndeploy.frontend.load import load_model
from nndeploy.graph.nodes import node_name
from nndeploy.graph.regions import regions_of
from nndeploy.partition.concrete_shapes import concrete_shapes
from nndeploy.partition.cost import estimate_costs
from nndeploy.partition.speeds import chain_seconds
from nndeploy.passes import optimise
from nndeploy.target.target import host_target

SECONDS_LIMIT = 240.0


def check(options: argparse.Namespace) -> None:
    """Measures what has no result yet, predicts everything, and writes the page where no pattern was given."""
    names = all_names(options.zoo, options.models)
    asked = [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in options.patterns or ["*"])]
    if not asked:
        sys.exit("nothing to check: `make zoo` exports the graphs")
    known, measured_on = ({}, {}) if options.again else _known(options.results)
    rows = []
    for name in asked:
        if name not in known and not options.table:
            known[name], measured_on[name] = _measured(name, options), tree()
        if known.get(name):
            rows.append(
                Row(name, predicted(subject(name, options.zoo, options.models), list(known[name])), known[name])
            )
            sys.stdout.write(f"{rows[-1].line}\n")
    sys.stdout.write("\n".join(summary(rows)) + "\n")
    if not options.patterns:
        trees = sorted({measured_on[row.name] for row in rows})
        options.page.write_text(header(figure("cost-results.md"), machine_name()) + page(rows, trees), encoding="utf-8")


def predicted(one: Subject, engines: list[str]) -> dict[str, float]:
    """Returns the predicted seconds of the whole optimised model on each engine."""
    loaded = load_model(one.path, shapes={name: array.shape for name, array in one.inputs.items()})
    optimise(loaded.model, loaded.ranges)
    costs = estimate_costs(loaded.model, concrete_shapes(loaded.model, one.inputs), host_target().level)
    found = {}
    for engine in engines:
        whole = regions_of(loaded.model.graph, {node_name(node): engine for node in loaded.model.graph})
        found[engine] = chain_seconds(whole, loaded.model.graph, costs)
    return found


def _known(path: Path) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Returns the newest seconds of every model by engine, and the tree that they were measured on."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    found = [json.loads(line) for line in text.splitlines()]
    return {one["name"]: one["seconds"] for one in found}, {one["name"]: one["tree"] for one in found}


def _measured(name: str, options: argparse.Namespace) -> dict[str, float]:
    script = Path(__file__).with_name("cost_whole_model.py")
    command = [sys.executable, str(script), name, str(options.zoo), str(options.models)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_LIMIT, check=False)
        said = done.stdout.splitlines()[-1] if done.returncode == 0 and done.stdout else "{}"
    except subprocess.TimeoutExpired:
        said = "{}"
    seconds: dict[str, float] = json.loads(said)
    options.results.parent.mkdir(parents=True, exist_ok=True)
    with options.results.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({"name": name, "tree": tree(), "seconds": seconds}) + "\n")
    return seconds
