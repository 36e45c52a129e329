# SPDX-License-Identifier: Apache-2.0
"""Node: our WebAssembly modules against onnxruntime-web and our level x86-64-v2, on the real models.

Needs Node, and what `make web-tools` takes from npm. In one process the engines take turns; a round is one call that is
not counted, then calls for a while: the processor time of one, with --chromium, in that browser, the wall time. Level
v2, beside Node alone, is Python's run of the same bundle, timed so before and behind it. Ratios are taken within a
round, and their medians printed. Outputs are compared. With `--threads N` the best module and onnxruntime-web run on
one thread and on so many, in wall time: each number of threads in processes of its own, which take turns.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
from figures import ROOT
from model_sets import Subject, compiled, real_model, real_names
from nndeploy_kernels import build_web, loading
from nndeploy_kernels.build import LIBRARIES, build
from nndeploy_kernels.levels import LEVELS, WEB_ARCH, runner
from report import Report, Table, add_models, bench_parser, geometric_mean, matching, run_parts, words

import nndeploy

SCRIPT = Path(__file__).with_name("bench_web.mjs")
TOOLS = ROOT / "build" / "web-tools" / "node_modules"
RIVAL, PLAYWRIGHT = TOOLS / "onnxruntime-web", TOOLS / "playwright-core"
NOT_BY_NATIVE = ("random_forest_iris", "superres_ortext")
"""Real models with maps or images."""
TOLERANCE = {"mobilenet_v2_quant": 2e-2, "micro_kws_qdq": 2e-2}
"""Difference over the largest value: of quantised models a step, of others 1e-4."""
TURNS = 3
"""Processes of each number of threads, which share the rounds."""
V2 = next(level for level in LEVELS if level.name == "x86-64-v2")


def main() -> int:
    parser = bench_parser(__doc__)
    add_models(parser)
    parser.add_argument("--names", type=words, default="", help="comma-separated, with * and ?; all where none")
    parser.add_argument("--node", default="node", help="program Node")
    parser.add_argument("--chromium", default="", help="program Chromium, in which then is measured")
    parser.add_argument("--threads", type=int, default=1, help="compare one thread with so many")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="of an engine and round")
    options = parser.parse_args()
    options.parts = ["models"]
    where = "Chromium" if options.chromium else "Node"
    if options.threads > 1:
        return run_parts(options, "speed.md", f"{where}: {options.threads} threads", {"models": _threads})
    return run_parts(options, "speed.md", where, {"models": _models})


def _begin(report: Report, options: argparse.Namespace) -> None:
    """Builds our package, and reports with what is measured."""
    if not RIVAL.exists():
        raise SystemExit(f"no {RIVAL}: make web-tools")
    build_web.build_package()
    told = [options.node, "-p", "`Node ${process.versions.node}, V8 ${process.versions.v8}`"]
    command = [options.chromium, "--version"] if options.chromium else told
    version = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    report.text(f"{version}, onnxruntime-web {json.loads((RIVAL / 'package.json').read_text())['version']}.")


def _models(report: Report, options: argparse.Namespace) -> int:
    build(V2)
    loading.installed = lambda *_: V2  # type: ignore[assignment]
    _begin(report, options)
    columns = ("relaxed SIMD ms", "SIMD ms", "onnxruntime-web ms", "v2 ms", "rival / best", "rival / SIMD", "SIMD / v2")
    table = report.table("model", *(f"{name}:" for name in columns))
    ratios: dict[str, list[float]] = {name: [] for name in columns[-3:]}
    for name in matching(real_names(options.models), options.names):
        if name not in NOT_BY_NATIVE:
            _model(report, table, real_model(options.models, name), options, ratios)
    _tell_means(report, ratios)
    return 0


def _threads(report: Report, options: argparse.Namespace) -> int:
    _begin(report, options)
    counts, ours = (1, options.threads), f"ours 1 / {options.threads}"
    columns = (*(f"ours {count} ms" for count in counts), *(f"onnxruntime-web {count} ms" for count in counts))
    ratios: dict[str, list[float]] = {ours: [], **{f"rival / ours {count}": [] for count in counts}}
    table = report.table("model", *(f"{name}:" for name in (*columns, *ratios)))
    for name in matching(real_names(options.models), options.names):
        if name in NOT_BY_NATIVE:
            continue
        one = real_model(options.models, name)
        job = _job(one, options)
        found = _raced_in_turns(one, job | {"isWall": True}, counts, options)
        report.sample(model=name, **{str(count): engines for count, engines in found.items()})
        best = {count: engines.get("relaxed-simd", engines["simd128"]) for count, engines in found.items()}
        rival = {count: engines.get("onnxruntime-web") for count, engines in found.items()}
        ratios[ours].append(statistics.median(best[1]) / statistics.median(best[options.threads]))
        cells = [f"{statistics.median(best[count]):.3f}" for count in counts]
        cells += [f"{statistics.median(times):.3f}" if (times := rival[count]) else "" for count in counts]
        cells.append(f"{ratios[ours][-1]:.2f}")
        for count in counts:
            times = rival[count]
            if times:
                ratios[f"rival / ours {count}"].append(_ratio(times, best[count]))
            cells.append(f"{ratios[f'rival / ours {count}'][-1]:.2f}" if times else "")
        table.row(name, *cells)
    _tell_means(report, ratios)
    return 0


def _raced_in_turns(
    one: Subject, job: dict[str, Any], counts: Sequence[int], options: argparse.Namespace
) -> dict[int, dict[str, list[float]]]:
    """Returns, for each number of threads, what `_raced` does, whose rounds are parts of some processes each."""
    found: dict[int, dict[str, list[float]]] = {count: {} for count in counts}
    for _ in range(TURNS):
        for count in counts:
            part = job | {"threads": count, "rounds": max(1, job["rounds"] // TURNS)}
            for engine, times in _raced(one, part, options).items():
                found[count].setdefault(engine, []).extend(times)
    return found


def _tell_means(report: Report, ratios: dict[str, list[float]]) -> None:
    report.line()
    for name, found in ((name, found) for name, found in ratios.items() if found):
        mean = f"{geometric_mean(found):.2f} of {len(found)}"
        report.line(f"* {name}: geometric mean {mean}; {min(found):.2f} to {max(found):.2f}")


def _job(one: Subject, options: argparse.Namespace) -> dict[str, Any]:
    """Compiles a model and writes its inputs; returns what bench_web.mjs is told."""
    bundle = options.folder / f"{one.name}.nnd"
    compiled(one.path, bundle, backends=("native",), objective="priority")
    listed = []
    for number, (key, array) in enumerate(one.inputs.items()):
        file = options.folder / f"{number}.bin"
        file.write_bytes(np.ascontiguousarray(array).tobytes())
        listed.append({"name": key, "dtype": str(array.dtype), "shape": list(array.shape), "file": str(file)})
    return {
        "package": str(LIBRARIES / runner(WEB_ARCH)), "rival": str(RIVAL), "model": str(one.path), "inputs": listed,
        "bundle": str(bundle), "rounds": options.rounds, "seconds": options.seconds, "playwright": str(PLAYWRIGHT),
        "chromium": options.chromium and shutil.which(options.chromium), "threads": 1, "isWall": False,
    }  # fmt: skip


def _raced(one: Subject, job: dict[str, Any], options: argparse.Namespace) -> dict[str, list[float]]:
    """Returns the milliseconds of a call of each engine in each round, whose outputs are compared."""
    command = [options.node, SCRIPT]
    done = subprocess.run(command, input=json.dumps(job), check=True, capture_output=True, text=True)
    engines: dict[str, dict[str, Any]] = json.loads(done.stdout)
    wrong = {key: engine["error"] for key, engine in engines.items() if engine["error"] > TOLERANCE.get(one.name, 1e-4)}
    if wrong:
        raise SystemExit(f"{one.name}: outputs differ by {wrong}")
    return {key: engine["milliseconds"] for key, engine in engines.items()}


def _model(
    report: Report, table: Table, one: Subject, options: argparse.Namespace, ratios: dict[str, list[float]]
) -> None:
    job = _job(one, options)
    with nndeploy.load_bundle(job["bundle"], threads=1) as program:
        if {choice.backend for choice in program.choices} != {"native"}:
            raise SystemExit(f"{one.name}: not by native alone")
        run = partial(program.run, one.inputs)
        rounds = 0 if options.chromium else options.rounds
        before = [_round(run, options.seconds) for _ in range(rounds)]
        times = _raced(one, job, options)
        behind = [_round(run, options.seconds) for _ in range(rounds)]
    v2 = [*before, *behind]
    report.sample(model=one.name, v2=v2, **times)
    rival, simd = times.get("onnxruntime-web"), times["simd128"]
    best = times.get("relaxed-simd", simd)
    found = {"SIMD / v2": statistics.median(simd) / statistics.median(v2)} if v2 else {}
    if rival:
        found |= {"rival / best": _ratio(rival, best), "rival / SIMD": _ratio(rival, simd)}
    for key, value in found.items():
        ratios[key].append(value)
    shown = [times.get("relaxed-simd"), simd, rival, v2]
    cells = [f"{statistics.median(each):.3f}" if each else "" for each in shown]
    table.row(one.name, *cells, *(f"{found[key]:.2f}" if key in found else "" for key in ratios))


def _ratio(over: list[float], under: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(over, under, strict=True))


def _round(run: Any, seconds: float) -> float:
    """Returns the processor milliseconds of a call."""
    run()
    calls, begin, before = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < seconds:
        run()
        calls += 1
    return (time.process_time() - before) / calls * 1e3


if __name__ == "__main__":
    sys.exit(main())
