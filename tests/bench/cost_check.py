# SPDX-License-Identifier: Apache-2.0
"""Whole models predicted from the cost table and measured, engine by engine: docs/figures/cost-results.md.

What was measured of a model is a line of build/cost-measurements.jsonl, one process a model, so that the check can go
on where it was stopped and another table can be held against the same measurements. The factors of terms within
networks are fitted to the same models: a model is predicted by those of all other families, which never saw it.
"""

import argparse
import fnmatch
import json
import subprocess
import sys
from pathlib import Path

from cost_networks import Network, factors, predicted_unseen
from cost_page import Row, page, summary
from cost_table_file import with_factors, write_table
from figures import figure, header, tree
from native_engines import machine_name
from zoo_graphs import Subject, all_names, subject

from nndeploy.frontend.load import load_model
from nndeploy.graph.nodes import node_name
from nndeploy.graph.regions import regions_of
from nndeploy.graph.submodels import values_between
from nndeploy.partition.concrete_shapes import concrete_shapes
from nndeploy.partition.cost import estimate_costs
from nndeploy.partition.cost_table import CALL, LEVELS, table_for
from nndeploy.partition.speeds import crossing_seconds, region_terms
from nndeploy.passes import optimise
from nndeploy.target.target import host_target

SECONDS_LIMIT = 240.0


def check(options: argparse.Namespace) -> None:
    """Measures what has no result yet, predicts everything, and writes the page where no pattern was given."""
    found, trees = networks(options)
    predicted = predicted_unseen(found)
    rows = [Row(one.name, predicted[one.name], one.measured) for one in found]
    sys.stdout.write("\n".join([*(row.line for row in rows), *summary(rows)]) + "\n")
    if not options.patterns:
        options.page.write_text(header(figure("cost-results.md"), machine_name()) + page(rows, trees), encoding="utf-8")


def fit(options: argparse.Namespace) -> None:
    """Writes the factors of terms within networks into the tables, fitted to the measured models."""
    found, _ = networks(options)
    for level in LEVELS:
        path = options.out / f"{level}.json"
        write_table(path, with_factors(json.loads(path.read_text(encoding="utf-8")), factors(found)))


def networks(options: argparse.Namespace) -> tuple[list[Network], list[str]]:
    """Returns the models that are asked for, as the table of this host's level adds them up, and the trees measured."""
    names = all_names(options.zoo, options.models)
    asked = [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in options.patterns or ["*"])]
    if not asked:
        sys.exit("nothing to check: `make zoo` exports the graphs")
    known, measured_on = ({}, {}) if options.again else _known(options.results)
    found = []
    for name in asked:
        if name not in known and not options.table:
            known[name], measured_on[name] = _measured(name, options), tree()
        if known.get(name):
            found.append(_network(subject(name, options.zoo, options.models), known[name]))
    return found, sorted({measured_on[one.name] for one in found})


def _network(one: Subject, measured: dict[str, float]) -> Network:
    """Returns what the whole optimised model adds up to on each engine that it was measured on."""
    loaded = load_model(one.path, shapes={name: array.shape for name, array in one.inputs.items()})
    optimise(loaded.model, loaded.ranges)
    graph, level = loaded.model.graph, host_target().level
    costs = estimate_costs(loaded.model, concrete_shapes(loaded.model, one.inputs), level)
    terms, crossing = {}, {}
    for engine in measured:
        whole = regions_of(graph, {node_name(node): engine for node in graph})
        between = values_between(whole, graph)
        terms[engine] = {CALL: len(whole) * table_for(level).of(engine).call}
        for region in whole:
            for term, seconds in region_terms(region, engine, costs).items():
                terms[engine][term] = terms[engine].get(term, 0.0) + seconds
        crossing[engine] = sum(crossing_seconds(region, between, costs) for region in whole)
    return Network(one.name, terms, crossing, measured)


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
