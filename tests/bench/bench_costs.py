# SPDX-License-Identifier: Apache-2.0
"""The cost table: seconds by backend, kind of operator and size, measured and written; and how well it predicts.

    table   small models of one kind of operator (cost_cases.py) through each engine (cost_measurements.py); writes
            nndeploy/partition/costs
    check   whole models of the zoo and real ones, predicted by the table and measured
    fit     what terms come to within whole networks, from the measurements of `check`, becomes part of the table

Each instruction set is measured in a process of its own, which limits the libraries: our kernels by the features they
are shown, OpenVINO by ONEDNN_MAX_CPU_ISA, which its products of floats disregard. ONNX Runtime has no such limit. What
cannot be measured so at a lesser level is what the widest one takes, times the ratio of our own kernels of that kind
between the two. What was measured of whole models is kept in build/cost-measurements.jsonl, so that a check can go on
where it was stopped. A model is predicted by factors that were fitted to all other families, which never saw it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import cost_measurements
from commands import ran
from cost_fit import Network, factors, predicted_unseen, read_table, table_of, with_ratios_of, write_table
from figures import ROOT, tree
from kept_results import append, newest
from model_sets import Subject, all_names, fixed_shapes, subject
from report import Report, add_models, bench_parser, matching

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

ONEDNN_ISA = {"x86-64-v4": "DEFAULT", "x86-64-v3": "AVX2"}
SECONDS_LIMIT = 240.0
TABLES = ROOT / "nndeploy" / "partition" / "costs"
NOISE, NEAR = 0.10, 0.20
"""Engines that differ by less than `NOISE` are not ranked; predictions within `NEAR` count as right."""
RANKED_GOAL, NEAR_GOAL = 0.95, 0.80


def main() -> None:
    parser = bench_parser(__doc__)
    parser.add_argument("what", choices=("table", "check", "fit"), nargs="?", default="table")
    parser.add_argument("patterns", nargs="*", help="of `check` and `fit`: models, with * and ?; none: all")
    parser.add_argument("--level", default="", choices=["", *LEVELS], help="instruction set; none: all")
    parser.add_argument("--only", default="", help="of `table`: kinds that hold this text")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.004, help="of an engine and round")
    parser.add_argument("--out", type=Path, default=TABLES, help="folder of the tables")
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "cost-measurements.jsonl")
    parser.add_argument("--again", action="store_true", help="measure also whole models that have a result")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    add_models(parser, zoo=True)
    options = parser.parse_args()
    if options.inside:
        found = cost_measurements.measured(options.level, options.only, options.rounds, options.seconds)
        write_table(options.out / f"{options.level}.json", table_of(found, options.level))
    else:
        {"table": _write_levels, "check": _check, "fit": _fit}[options.what](options)


def _write_levels(options: argparse.Namespace) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    levels = [options.level] if options.level else list(LEVELS)
    for level in levels:
        command = [sys.executable, __file__, "--inside", "--level", level, "--out", str(options.out)]
        command += ["--rounds", str(options.rounds), "--seconds", str(options.seconds), "--only", options.only]
        subprocess.run(command, check=True, env={**os.environ, "ONEDNN_MAX_CPU_ISA": ONEDNN_ISA[level]})
    if LEVELS[1] in levels:
        with_ratios_of(options.out / f"{LEVELS[0]}.json", options.out / f"{LEVELS[1]}.json")


def _fit(options: argparse.Namespace) -> None:
    by_backend = factors(_networks(options))
    for path in (options.out / f"{level}.json" for level in LEVELS):
        table = read_table(path)
        for name, backend in table["backends"].items():
            backend["in_networks"] = by_backend.get(name, {})
        write_table(path, table)


def _check(options: argparse.Namespace) -> None:
    found = _networks(options)
    predicted = predicted_unseen(found)
    ratios = {
        one.name: {name: predicted[one.name][name] / one.measured[name] for name in one.measured} for one in found
    }
    pairs = {one.name: _pairs(one, predicted[one.name]) for one in found}
    with Report(options, "speed.md", "Cost table") as report:
        report.line()
        for line in _summary(list(ratios.values()), [right for some in pairs.values() for right in some]):
            report.line(f"* {line}")
        report.text("Milliseconds measured, and predicted / measured in brackets.")
        engines = cost_measurements.ENGINES
        table = report.table("model", *(f"{name}:" for name in engines), "ranked right:")
        for one in found:
            cells = (f"{one.measured[name] * 1e3:.3g} ({ratios[one.name][name]:.2f})" if name in one.measured else "-"
                     for name in engines)  # fmt: skip
            table.row(one.name, *cells, f"{sum(pairs[one.name])} of {len(pairs[one.name])}")


def _pairs(one: Network, predicted: dict[str, float]) -> list[bool]:
    """Returns, for each pair of engines that differ by more than the noise, whether it was ranked right."""
    real = one.measured
    return [
        (predicted[a] < predicted[b]) == (real[a] < real[b])
        for a, b in combinations(real, 2)
        if max(real[a], real[b]) > (1 + NOISE) * min(real[a], real[b])
    ]


def _summary(ratios: Sequence[dict[str, float]], right: Sequence[bool]) -> list[str]:
    values = [value for one in ratios for value in one.values()]
    lines = [
        f"{sum(right)} of {len(right)} pairs of engines are ranked right (goal {RANKED_GOAL:.0%})",
        f"{_num_near(values)} of {len(values)} predictions lie within {NEAR:.0%} (goal {NEAR_GOAL:.0%})",
    ]
    for engine in sorted({name for one in ratios for name in one}):
        of_engine = [one[engine] for one in ratios if engine in one]
        share, middle = _num_near(of_engine) / len(of_engine), statistics.median(of_engine)
        lines.append(f"{engine}: {len(of_engine)} models, {share:.0%} within {NEAR:.0%}, median {middle:.2f}")
    return lines


def _num_near(ratios: Sequence[float]) -> int:
    return sum(1 - NEAR <= ratio <= 1 + NEAR for ratio in ratios)


def _networks(options: argparse.Namespace) -> list[Network]:
    """Returns the models that are asked for, as the table of this host's level adds them up."""
    asked = matching(all_names(options.zoo, options.models), options.patterns)
    if not asked:
        sys.exit("nothing to check: `make zoo` exports the graphs")
    known = {} if options.again else newest(options.results)
    seconds = {name: known[name]["seconds"] if name in known else _measured(name, options) for name in asked}
    return [_network(subject(name, options.zoo, options.models), of) for name, of in seconds.items() if of]


def _network(one: Subject, measured: dict[str, float]) -> Network:
    """Returns what the whole optimised model adds up to on each engine that it was measured on."""
    loaded = load_model(one.path, shapes=fixed_shapes(one.inputs))
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


def _measured(name: str, options: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, cost_measurements.__file__, name, str(options.zoo), str(options.models)]
    done = ran(command, SECONDS_LIMIT)
    seconds: dict[str, float] = json.loads(done.out.splitlines()[-1]) if done.code == 0 else {}
    append(options.results, {"name": name, "tree": tree(), "seconds": seconds})
    return seconds


if __name__ == "__main__":
    main()
