# SPDX-License-Identifier: Apache-2.0
"""What pacing costs: points in ONNX Runtime, the time to solve for delays; and pictures of the load for docs.

points     sessions of the same bundle in turn on one thread of one core, processor time: with points behind every
           operator, as they are placed, and as segments; two sessions without points show the noise. `program` is a
           whole run, paced against not paced; with 2% granted, all of which is kept in reserve, none sleeps.
           Outputs are compared bit by bit
solver     random graphs from their edges to their delays; half have bounds, and a tenth of their operators is
           rigid. Flatness is the mean square of the load over the granted time, relative to that with proportional
           delays: the sum over edges of duration^2 / (duration + delay). Exit code 1 if any takes too long
pictures   pacing-MODEL.svg: the load in windows of 10 ms of a baseline run, as planned, and as measured
"""

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import figures
import numpy as np
from interleaved import rotated
from model_sets import paced_bundle, real_model
from report import MODELS, Part, Report, bench_parser, run_parts, words

import nndeploy
from nndeploy.pacing.plan.goal import PaceGoal
from nndeploy.pacing.plan.operator_graph import OperatorGraph
from nndeploy.pacing.plan.policy import PacePolicy
from nndeploy.pacing.plan.solving import solve
from nndeploy.pacing.run.paced_program import PacedProgram

POINT_NAMES = "ultraface_rfb320,fastestdet,mobilenet_v2_quant,basic_pitch,ppocr_det_mobile_v2"
PICTURES = ("ppocr_det_mobile_v2", "unet_stress_field")
PLAIN, AGAIN = "without", "without again"
PICTURE_RUNS, EMPTY_RUNS = 60, 20_000
Edges = list[tuple[int, int]]
Random = np.random.Generator


def main() -> int:
    parts: dict[str, Part] = {"points": _points, "solver": _solver, "pictures": _pictures}
    parser = bench_parser(__doc__, parts, default=("points", "solver"))
    parser.add_argument("--only", type=words, help="models by name")
    parser.add_argument("--seconds", type=float, default=10.0, help="of `points`: of each model")
    parser.add_argument("--edges", type=int, default=2000, help="of `solver`")
    parser.add_argument("--graphs", type=int, default=10, help="of `solver`: of each shape")
    parser.add_argument("--most-seconds", type=float, default=0.3, help="of `solver`: allowed for a graph")
    return run_parts(parser.parse_args(), "pacing.md", "Costs of pacing", parts)


# Points


def _points(report: Report, options: argparse.Namespace) -> int:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    table = report.table("model", "points", "number:", "ms:", "more:", "a point us:", "load s:")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only or words(POINT_NAMES):
            model = real_model(MODELS, name)
            bundle = paced_bundle(model, Path(folder), ["onnxruntime"])
            for row in _point_rows(name, bundle, model.inputs, options.seconds):
                table.row(name, *row)
    return 0


def _ways() -> dict[str, list[tuple[Any, str, Any]]]:
    """Returns what is changed for each way: of a module, a name, and its value."""
    from nndeploy_onnxruntime import pace_segments, paced_session, placed_points

    no_points = (paced_session, "operator_problem", lambda _: "not asked for")
    return {
        "every operator": [(placed_points, "PART_NS", -1.0)],
        "as placed": [],
        "segments": [no_points, (pace_segments, "MOST_COST", 1.0)],
    }


@contextlib.contextmanager
def _changed(changes: list[tuple[Any, str, Any]]) -> Iterator[None]:
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    for module, name, value in changes:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def _point_rows(name: str, bundle: Path, inputs: dict[str, Any], seconds: float) -> Iterator[list[str]]:
    ways, load_s = _ways(), dict[str, float]()
    with contextlib.ExitStack() as stack:
        programs = dict[str, nndeploy.Program]()
        for way in (PLAIN, AGAIN, *ways):
            begin = time.perf_counter()
            with _changed(ways.get(way, [])):
                pace = PaceGoal(cpu_limit=0.98) if way in ways else None
                program = nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=1), pace=pace)
            programs[way], load_s[way] = stack.enter_context(program), time.perf_counter() - begin
        calls = {way: program._opened.sessions[0].run for way, program in programs.items()}
        calls |= {"program": programs[PLAIN].run, "program, as placed": programs["as placed"].run}
        ms = _interleaved(name, calls, inputs, seconds)
        yield [PLAIN, "", f"{ms[PLAIN]:.3f}", "", "", f"{load_s[PLAIN]:.2f}"]
        for way in (AGAIN, *ways, "program, as placed"):
            plain = ms["program" if way.startswith("program") else PLAIN]
            pacing = programs[way].pacing if way in programs else None
            count = len(pacing.points) if isinstance(pacing, PacedProgram) else 0
            each = f"{1e3 * (ms[way] - plain) / count:.2f}" if count else ""
            load = f"{load_s[way]:.2f}" if way in load_s else ""
            yield [way, str(count or ""), f"{ms[way]:.3f}", f"{ms[way] / plain - 1:+.2%}", each, load]
        python_us = _pacer_us(programs["as placed"], inputs)
        yield ["the pacer in Python", "", f"{python_us / 1e3:.3f}", f"{python_us / 1e3 / ms['program']:+.2%}", "", ""]


def _pacer_us(program: nndeploy.Program, inputs: dict[str, Any]) -> float:
    """Returns the microseconds of processor time that a paced run takes in which nothing is done."""
    from nndeploy.pacing.run.paced_program import shapes_of

    assert isinstance(program.pacing, PacedProgram)
    pacer, shapes = program.pacing.pacer, shapes_of(inputs)
    begin = time.thread_time()
    for _ in range(EMPTY_RUNS):
        with pacer.run(shapes):
            pass
    return (time.thread_time() - begin) * 1e6 / EMPTY_RUNS


def _interleaved(name: str, calls: dict[str, Any], inputs: dict[str, Any], seconds: float) -> dict[str, float]:
    want = {key: value.tobytes() for key, value in calls[PLAIN](inputs).items()}
    for way, call in calls.items():
        if {key: value.tobytes() for key, value in call(inputs).items()} != want:
            sys.exit(f"{name}, {way}: the outputs differ")
    ms: dict[str, list[float]] = {way: [] for way in calls}
    end, turn = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for way in rotated(list(calls), turn):  # what the one before leaves in the caches is not one way's business
            begin = time.thread_time()
            calls[way](inputs)
            ms[way].append((time.thread_time() - begin) * 1e3)
        turn += 1
    return {way: statistics.median(times) for way, times in ms.items()}


# The solver


def serial(random: Random, count: int) -> Edges:
    return [(i, i + 1) for i in range(count)]


def inception(random: Random, count: int) -> Edges:
    edges, fork, free = list[tuple[int, int]](), 0, 1
    while len(edges) < count:
        ends = []
        for length in random.integers(1, 6, 4).tolist():
            branch = [fork, *range(free, free + length)]
            free += length
            edges += pairwise(branch)
            ends.append(branch[-1])
        edges += [(end, free) for end in ends]
        fork, free = free, free + 1
    return edges


def residual(random: Random, count: int) -> Edges:
    """Returns blocks of a few operators in a row, each with a way past it."""
    edges, fork = list[tuple[int, int]](), 0
    while len(edges) < count:
        end = fork + int(random.integers(3, 6))
        edges += [*((i, i + 1) for i in range(fork, end)), (fork, end)]
        fork = end
    return edges


def crossed(random: Random, count: int) -> Edges:
    """Returns branches that lead into each other, as searched architectures have them."""
    size = count * 2 // 3
    edges = {(max(0, i - int(random.integers(1, 9))), i) for i in range(1, size)}
    while len(edges) < count:
        first = int(random.integers(0, size - 12))
        edges.add((first, first + int(random.integers(1, 12))))
    return sorted(edges)


def long_edges(random: Random, count: int) -> Edges:
    size = count * 2 // 3
    edges = {(i, i + 1) for i in range(size - 1) if random.random() < 0.7}
    while len(edges) < count:
        first, last = sorted(random.integers(0, size, 2).tolist())
        edges |= {(first, last)} if first < last else set()
    return sorted(edges)


def _parts_of(random: Random, edges: Edges, *, is_bounded: bool) -> tuple[list[float], Edges, list[float]]:
    size = 1 + max(max(edge) for edge in edges)
    bounds = np.full(size, np.inf)
    if is_bounded:
        bounds = random.uniform(0.5, 8.0, size)
        bounds[random.random(size) < 0.1] = 0.0
    return random.lognormal(11, 1.2, size).tolist(), edges, bounds.tolist()


def _solver(report: Report, options: argparse.Namespace) -> int:
    table = report.table("shape", "policy", "median s:", "worst s:", "mean square of the load:")
    worst = 0.0
    for shape in (serial, inception, residual, crossed, long_edges):
        found: dict[PacePolicy, list[tuple[float, float]]] = {policy: [] for policy in PacePolicy}
        for seed in range(options.graphs):
            random = np.random.default_rng(seed)
            parts = _parts_of(random, shape(random, options.edges), is_bounded=seed % 2 == 1)
            for policy in PacePolicy:
                found[policy].append(_solved(parts, policy))
        usual = [square for _, square in found[PacePolicy.PROPORTIONAL]]
        for policy, one in found.items():
            seconds = [second for second, _ in one]
            flatness = statistics.median(square / other for (_, square), other in zip(one, usual, strict=True))
            figures_of = (statistics.median(seconds), max(seconds), flatness)
            table.row(shape.__name__, policy.value, *(f"{figure:.3f}" for figure in figures_of))
            worst = max(worst, *seconds)
    report.text(f"{options.edges} edges, {options.graphs} graphs a shape, the total twice the baseline; worst "
                f"{worst:.3f} s, allowed {options.most_seconds:g} s.")  # fmt: skip
    return int(worst > options.most_seconds)


def _solved(parts: tuple[list[float], Edges, list[float]], policy: PacePolicy) -> tuple[float, float]:
    """Returns the seconds, and the mean square of the load, of a graph with twice its baseline as the total."""
    start = time.perf_counter()
    graph = OperatorGraph(*parts)
    total = 2.0 * graph.baseline_ns
    delays = solve(graph, total, policy)
    seconds = time.perf_counter() - start
    assert graph.length_ns(delays) <= total * (1 + 1e-12)
    work = graph.durations[graph.sources]
    return seconds, float((work**2 / (work + delays)).sum())


# Pictures


def _pictures(report: Report, options: argparse.Namespace) -> int:
    from nndeploy.pacing.run.achieved import achieved
    from nndeploy.pacing.show.load_picture import load_svg

    table = report.table("model", "budget ms:", "baseline: mean, peak", "expected", "measured", "over the budget:")
    for name in options.only or PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            model = real_model(MODELS, name)
            bundle = paced_bundle(model, Path(folder), ["native", "onnxruntime"])
            with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=1), pace=PaceGoal(cpu_limit=0.5)) as program:
                for _ in range(PICTURE_RUNS):
                    program.run(model.inputs)
                assert isinstance(program.pacing, PacedProgram)
                loads, found = program.pacing.pacer.loads(), achieved(program.pacing.pacer.records)
        if loads is None or found is None:
            sys.exit(f"{name}: too few runs to pace it")
        text = load_svg(loads, found.cap_ms * 1e6, f"{name}, granted 2 times the baseline")
        path = figures.FIGURES / f"pacing-{name}.svg"
        path.write_text(f"{figures.header(figures.figure(path.name), figures.machine_name())}{text}\n")
        cells = (f"{run.mean:.0%}, {run.peak:.0%}" for run in loads.named().values())
        table.row(name, f"{found.cap_ms:.3g}", *cells, f"{found.over_cap:.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
