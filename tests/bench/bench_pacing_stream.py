# SPDX-License-Identifier: Apache-2.0
"""Pipelines with and without pacing: latency of the items against what was granted, load of the process, same outputs.

    python tests/bench/bench_pacing_stream.py [faces text] [--budgets 2,4] [--items 120] [--rounds 3] [--json out.json]

The source is files, so it is faster than the stages: without pacing items wait for each other. Each stream is a process
of its own; an item's time is from where its file is read until its outcome is written. First the baseline of an item
is measured; budgets are multiples of it. Then the ways take turns, and the medians of the rounds are told. The first
items, the baseline, are left out of the figures; outcomes of all are compared with those of one that was not paced.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
from bench_stream import CASES, REPOSITORY
from native_engines import machine_line
from real_models import MODELS

import nndeploy
from nndeploy.options.texts import names_in
from nndeploy.pacing.goal import PaceGoal
from nndeploy.stream.engine.engine import Stream
from nndeploy.stream.engine.pacing import BASELINE_ITEMS
from nndeploy.stream.formats.json_lines import line_from_outcome
from nndeploy.stream.items import Item, Outcome
from nndeploy.stream.pipeline.bundled_pipeline import pipeline_of_path
from nndeploy.stream.pipeline.pipeline_sources import Reading, pipeline_source
from nndeploy.stream.run.loaded import load_pipeline
from nndeploy.stream.run.options import RunOptions
from nndeploy.stream.stopping import Stop

WIDE_MS = 2000.0
"""A budget that no item comes near to, to learn the baseline."""


def main() -> None:
    """Prints a table for each pipeline."""
    options = _options()
    if options.child:
        _child(*options.child)
        return
    if not MODELS.exists():
        sys.exit("this needs ../shared/models")
    print(machine_line(), end="\n\n")
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.cases:
            case = CASES[name]
            for model in case.models.values():
                bundle = Path(folder) / f"{model}.nnd"
                nndeploy.compile_model(
                    MODELS / f"{model}.onnx", bundle, nndeploy.CompileOptions(backends=options.backends, pace=True)
                )
            found[name] = _race(name, folder, options)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="pipelines with and without pacing")
    parser.add_argument("cases", nargs="*", default=["faces", "text"])
    parser.add_argument("--backends", type=names_in, default=("native", "onnxruntime"))
    parser.add_argument("--budgets", default="2,4", help="multiples of the baseline of an item")
    parser.add_argument("--items", type=int, default=120)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    return parser.parse_args()


def _race(name: str, folder: str, options: argparse.Namespace) -> dict[str, Any]:
    baseline_ms = _measured(name, folder, WIDE_MS, BASELINE_ITEMS + 1)["calm_ms"]
    budgets = [0.0, *(baseline_ms * float(times) for times in options.budgets.split(","))]
    rows: dict[float, list[dict[str, Any]]] = {budget: [] for budget in budgets}
    for _ in range(options.rounds):
        for budget, rounds in rows.items():
            rounds.append(_measured(name, folder, budget, options.items))
    if len({one["digest"] for rounds in rows.values() for one in rounds}) > 1:
        sys.exit(f"{name}: the outputs differ")
    print(f"### {name}: the baseline of an item is {baseline_ms:.1f} ms, {options.items} items, outputs equal\n")
    print("| granted | item p50 / p99 ms | over | items a second | process load | load of runners |")
    print("| --- | --- | ---: | ---: | ---: | --- |")
    for budget, rounds in rows.items():
        median = {key: float(np.median([one[key] for one in rounds])) for key in ("p50", "p99", "over", "rate", "load")}
        runners = ", ".join(f"{key} {share:.0%}" for key, share in rounds[-1]["runners"].items())
        print(
            f"| {f'{budget:.0f} ms' if budget else 'not paced'} | {median['p50']:.1f} / {median['p99']:.1f} "
            f"| {format(median['over'], '.1%') if budget else '-'} | {median['rate']:.1f} | {median['load']:.0%} "
            f"| {runners or '-'} |",
            flush=True,
        )
    print()
    return {"calm_ms": baseline_ms, "rounds": {f"{budget:g}": rounds for budget, rounds in rows.items()}}


def _measured(name: str, folder: str, budget_ms: float, count: int) -> dict[str, Any]:
    arguments = [sys.executable, __file__, "--child", name, folder, str(budget_ms), str(count)]
    done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout))


class _Outcomes:
    """Takes outcomes, and notes when."""

    def __init__(self) -> None:
        self.ended: dict[int, float] = {}
        self.digest = hashlib.sha256()

    def write(self, outcome: Outcome) -> None:
        self.ended[outcome.index] = time.perf_counter()
        self.digest.update(line_from_outcome(outcome).encode())

    def finish(self) -> None:
        pass

    discard = finish


def _child(name: str, folder: str, budget_ms: str, count: str) -> None:
    """One stream: its figures as JSON on standard output."""
    case, budget, began = CASES[name], float(budget_ms), dict[int, float]()
    goal = PaceGoal(max_latency_ns=round(budget * 1e6)) if budget else None
    paths = [path for _ in range(-(-int(count) // len(case.paths))) for path in case.paths]
    with ExitStack() as stack:
        file = pipeline_of_path(REPOSITORY / "configs" / "pipelines" / f"{case.toml}.toml")
        models = {pipeline: Path(folder) / f"{model}.nnd" for pipeline, model in case.models.items()}
        options = RunOptions(models=models, threads=case.threads(), device="cpu", cache_dir="", pace=goal)
        loaded = load_pipeline(stack, file, None, options, nndeploy.load_bundle)
        reading = Reading(lambda _: sys.stdin.buffer, Stop())
        items = pipeline_source(file, paths, loaded.types, reading).items

        def noted() -> Iterator[Item]:
            for item in islice(items, int(count)):
                yield replace(item, load=lambda item=item: _noted(item, began))

        sink, stream = _Outcomes(), Stream(loaded.plan, loaded.programs, pacing=loaded.pacing)
        cpu, wall = time.process_time(), time.perf_counter()
        stream.run(noted(), sink)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        achieved = loaded.pacing.achieved() if loaded.pacing is not None else None
        pacers = loaded.pacing.pacers.items() if loaded.pacing is not None else ()
        records = {key: [one for pacer in several for one in pacer.records if one.budget] for key, several in pacers}
    took = np.array([(sink.ended[index] - began[index]) * 1e3 for index in sorted(began)][BASELINE_ITEMS:])
    print(json.dumps({
        "p50": float(np.median(took)), "p99": float(np.quantile(took, 0.99)), "over": float(np.mean(took > budget)),
        "rate": int(count) / wall, "load": achieved.process_load if achieved else cpu / wall,
        "calm_ms": achieved.calm_ms if achieved else 0.0, "digest": sink.digest.hexdigest(),
        "latency_ms": took.tolist(),
        "runners": {
            key: sum(one.used for one in made) / sum(one.latency for one in made)
            for key, made in records.items() if made
        },
    }))  # fmt: skip


def _noted(item: Item, began: dict[int, float]) -> dict[str, Any]:
    began[item.index] = time.perf_counter()
    return item.load()


if __name__ == "__main__":
    main()
