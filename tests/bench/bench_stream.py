# SPDX-License-Identifier: Apache-2.0
"""Streams: against the slowest stage, against other ways to write them, the cost of a record, memory.

    stages   the whole beside the ideal, the larger of the slowest stage's time over its workers and the seconds of CPU
             of all stages over the cores: stages of known work (waiting, computing), then real pipelines, each of whose
             stages runs alone in a process of its own
    rivals   the same files through the same steps over ONNX Runtime and OpenVINO (stream_rivals.py), results compared
    busy     stages of known work beside as many busy processes as --load says, against threads and queues by hand
    python   a step of one's own in pure Python, which holds Python's lock, by `workers = N` and by `processes = N`;
             results are compared, and each pass starts its processes
    record   records through stages that do nothing
    places   eight equal convolutions over two pools of one core: streams and calls beside those on one pool, same bits
    memory   what the process holds after each tenth of 100,000 records of 300 KB

One process an engine, the others stopped, interleaved rounds, medians; ratios are taken within a round. Bundles are
compiled once into `--bundles` and kept; remove the folder after a change of the compiler.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import model_sets
import numpy as np
import onnx
from figures import ROOT
from interleaved import Engine, Pace, Race, race
from onnx import TensorProto, helper, numpy_helper
from report import MODELS, Part, Report, Table, add_race, bench_parser, run_parts, words
from stream_engines import SHAPES

import nndeploy
from nndeploy.target.place_limits import places_in

POOLS = "cpu:0,cpu:1"
CORES = min(2, os.cpu_count() or 1)
BOUND = 5e-3
"""Of a value over the largest of its array; kernels sum in another order, and boxes are in pixels, up to 1,000."""
KINDS: dict[str, dict[str, Any]] = {
    "latency": {"objective": "latency"},
    "throughput": {"objective": "throughput"},
    "onnxruntime": {"backends": ["onnxruntime"]},
}
RIVALS = ("ORT loop", "ORT staged", "ORT pooled", "OpenVINO async")
OURS = {
    "ours, latency": ("latency", 1),
    "ours, throughput": ("throughput", CORES),
    "ours, ORT": ("onnxruntime", 1),
    f"ours, ORT x{CORES}": ("onnxruntime", CORES),
}
"""Bundle, runners of each model; the runners of all models share the cores."""
KNOWN = {
    "all wait": [[0.002, 0], [0.003, 0], [0.001, 0]],
    "all compute": [[0.0, 4], [0.0, 6], [0.0, 2]],
    "model waits": [[0.0, 3], [0.004, 0], [0.0, 2]],
}
"""Seconds of waiting and MiB hashed, of loader, runner and post-processor; the last is a CPU around a device."""


BUSY = "import ctypes\nctypes.CDLL(None).prctl(1, 9)\nwhile True: pass"
"""Works until it or its parent is killed."""
BUSY_ITEMS = 150
PYTHON_ITEMS, PYTHON_ROUNDS = 300, 100_000
"""A record takes some 6 ms: the start of processes is a small part of a pass."""


@dataclass(frozen=True)
class Case:
    """A pipeline of the repository, models by the names of its pipelines, files, how often they are repeated."""

    name: str
    toml: str
    models: Mapping[str, str]
    files: tuple[str, ...]
    repeats: int

    @property
    def paths(self) -> list[str]:
        return [str(MODELS / "inputs" / name) for _ in range(self.repeats) for name in self.files]

    @property
    def pipeline(self) -> str:
        return str(ROOT / "configs" / "pipelines" / f"{self.toml}.toml")

    def threads(self, runners: int = 1) -> int:
        """Returns the threads of each runner: several that have all cores each would fight for them."""
        return max(1, CORES // (runners * len(self.models)))


FACES = ("face_16.jpg", "face_group.jpg", "face_small.jpg")
THINGS = ("objects_1.jpg", "objects_street.jpg", "goldfish.jpg", "wolves.jpg")
TEXTS = ("text_11.jpg", "text_photo.jpg", "text_sample.jpg")
CASES = {
    case.name: case
    for case in (
        Case("faces", "faces", {"faces": "ultraface_rfb320"}, FACES, 24),
        Case("objects", "objects", {"objects": "fastestdet"}, THINGS, 18),
        Case("text", "read-text", {"find": "ppocr_det_mobile_v2", "read": "ppocr_rec_en_mobile_v2"}, TEXTS, 4),
    )
}


def main() -> None:
    parts: dict[str, Part] = {
        "stages": _stages,
        "rivals": _rivals,
        "busy": _busy,
        "python": _python,
        "record": _records,
        "places": _places,
        "memory": _memory,
    }
    parser = bench_parser(__doc__, parts)
    parser.add_argument("--pipelines", type=words, default=",".join(CASES))
    parser.add_argument("--bundles", type=Path, default=ROOT / "build" / "bench-stream")
    parser.add_argument("--records", type=int, default=100_000, help="of `memory`")
    parser.add_argument("--load", type=int, default=10, help="of `busy`")
    add_race(parser, seconds=1.0)
    options = parser.parse_args()
    options.pace = Pace(options.seconds, options.rounds, 0.3)
    run_parts(options, "streams.md", "Streams", parts)


def _ours(options: argparse.Namespace, case: Case, kind: str, runners: int, loaders: int) -> dict[str, Any]:
    threads = case.threads(runners)
    models = {name: bundle_of(options.bundles, model, kind, threads) for name, model in case.models.items()}
    return {"pipeline": case.pipeline, "models": models, "files": case.paths, "threads": threads, "runners": runners,
            "loaders": loaders}  # fmt: skip


def bundle_of(folder: Path, model: str, kind: str, threads: int) -> str:
    """Returns the path of a model's bundle, compiled the first time, on the recorded sample."""
    path = folder / f"{model}.{kind}-{threads}.nnd"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        samples = [model_sets.real_model(MODELS, model).inputs]
        model_sets.compiled(MODELS / f"{model}.onnx", path, threads=threads, samples=samples, **KINDS[kind])
    return str(path)


def _stages(report: Report, options: argparse.Namespace) -> None:
    table = report.table("stream", "workers:", "stages alone, ms", "CPU ms:", "whole ms:", "ideal ms:", "limit",
                         "of the ideal:")  # fmt: skip
    for name, works in KNOWN.items():
        for workers in (1, 2):
            _known_row(table, name, works, workers, options.pace)
    for name in options.pipelines:
        _case_rows(table, options, CASES[name])


def _known_row(table: Table, name: str, works: list[list[Any]], workers: int, pace: Pace) -> None:
    num_items, times = 120, 6
    told = [{"seconds": seconds, "rounds": rounds, "count": num_items // times} for seconds, rounds in works]
    stages = {f"stage {i}": one for i, one in enumerate(told)}
    engines = [Engine(stage, "stream_engines:known_alone", one) for stage, one in stages.items()]
    whole = {"works": works, "workers": [workers] * 3, "count": num_items}
    found = race([*engines, Engine("whole", "stream_engines:known_whole", whole)], {}, pace)
    _scale(found, stages, times)
    cpu = [sum(one[stage] for stage in stages if stages[stage]["rounds"]) for one in found.rounds]
    _stage_row(table, name, workers, found, dict.fromkeys(stages, workers), cpu, num_items, "whole")


def _scale(found: Race, stages: Mapping[str, Any], times: int) -> None:
    """Makes the times of stages, which ran on a part of the items, those of all."""
    for one in found.rounds:
        one.update({stage: one[stage] * times for stage in stages})


def _case_rows(table: Table, options: argparse.Namespace, case: Case) -> None:
    """Prints the rows of a real pipeline, for one and two loaders; the stages are raced once for both."""
    ours = _ours(options, case, "latency", 1, 1)
    shared = {key: ours[key] for key in ("pipeline", "models", "threads")} | {"files": case.paths[: len(case.files)]}
    stages = {
        f"{name} {stage}" if len(case.models) > 1 else stage: {"level": level, "stage": stage}
        for level, name in enumerate(case.models)
        for stage in ("loader", "runner", "post")
    }
    engines = [Engine(name, "stream_engines:stage_alone", {**shared, **which}) for name, which in stages.items()]
    wholes = [Engine(f"whole {n}", "stream_engines:stream", {**ours, "loaders": n}) for n in (1, 2)]
    found = race([*engines, *wholes], {}, options.pace)
    _scale(found, stages, case.repeats)
    cpu = [case.repeats * sum(json.loads(found.notes[name])["cpu"] for name in stages)] * options.pace.rounds
    for n in (1, 2):
        counts = dict.fromkeys(stages, 1) | {next(iter(stages)): n}
        _stage_row(table, case.name, n, found, counts, cpu, len(case.paths), f"whole {n}")


def _stage_row(
    table: Table, name: str, workers: int, found: Race, counts: Mapping[str, int], cpu: Sequence[float], num_items: int,
    whole: str,
) -> None:  # fmt: skip
    """Prints a row; `counts` are the workers of each stage, `cpu` the seconds of CPU of a pass in each round."""
    slowest = [max(one[stage] / count for stage, count in counts.items()) for one in found.rounds]
    ideals = [max(stage, busy / CORES) for stage, busy in zip(slowest, cpu, strict=True)]
    of_ideal = statistics.median(ideal / one[whole] for ideal, one in zip(ideals, found.rounds, strict=True))
    ideal = statistics.median(ideals)
    limit = f"{CORES} cores" if statistics.median(slowest) < ideal else "slowest stage"
    alone = ", ".join(f"{stage} {found.ms(stage) / num_items:.2f}" for stage in counts)
    figures = (1e3 * statistics.median(cpu), found.ms(whole), 1e3 * ideal)
    table.row(name, workers, alone, *(f"{ms / num_items:.2f}" for ms in figures), limit, f"{of_ideal:.2f}")


def _busy(report: Report, options: argparse.Namespace) -> None:
    beside = f"beside {options.load}: ours, by hand, ms"
    table = report.table("stream", "workers", "alone: ours, by hand, ms", beside, "by hand / ours:")
    cases = {"waits": ([[0.015, 0], [0.010, 0], [0.005, 0]], [3, 2, 1])}
    cases |= {f"{name} x{n}": (KNOWN[name], [n] * 3) for name in ("model waits", "all compute") for n in (1, 2)}
    for name, (works, workers) in cases.items():
        how = {"works": works, "workers": workers, "count": BUSY_ITEMS}
        engines = [Engine(one, f"stream_engines:{one}", how) for one in ("known_whole", "known_threads")]
        alone = race(engines, {}, options.pace)
        with contextlib.ExitStack() as stack:
            for _ in range(options.load):  # in sessions of their own, as the engines are: Linux shares cores by these
                busy = subprocess.Popen([sys.executable, "-c", BUSY], start_new_session=True)
                stack.callback(busy.wait)
                stack.callback(busy.kill)
            crowded = race(engines, {}, options.pace)
        each = [", ".join(f"{found.ms(one.name) / BUSY_ITEMS:.2f}" for one in engines) for found in (alone, crowded)]
        ratio = crowded.ratio("known_whole", ["known_threads"])
        table.row(name, " ".join(map(str, workers)), *each, f"{ratio:.2f}")
        report.sample(stream=name, load=options.load, alone=alone.rounds, beside=crowded.rounds)


def _python(report: Report, options: argparse.Namespace) -> None:
    shared = {"rounds": PYTHON_ROUNDS, "count": PYTHON_ITEMS}
    hows = ["", *(f"{what} = {n}" for what in ("workers", "processes") for n in (1, 2))]
    engines = [Engine(how or "a loop", "own_steps:counted", {"how": how, **shared}) for how in hows]
    found = race(engines, {}, options.pace)
    found.drop_others(found.outputs["a loop"], 0.0, found.outputs.keys())
    table = report.table("ms a record", *(f"{one.name}:" for one in engines), "2 processes: rate over 2 workers:")
    times = (f"{found.ms(one.name) / PYTHON_ITEMS:.2f}" for one in engines)
    table.row("pure Python", *times, f"{found.ratio('processes = 2', ['workers = 2']):.2f}")
    report.sample(rounds=found.rounds)


def _rivals(report: Report, options: argparse.Namespace) -> None:
    heads = (f"{name}:" for name in (*RIVALS, *OURS))
    table = report.table("ms an item", *heads, "best rival / ours:", "best ORT / ours, ORT:", "error:")
    for name in options.pipelines:
        case = CASES[name]
        found = race(_rival_engines(options, case), {}, options.pace)
        want = found.outputs["ORT loop"]
        if not any(array.size for array in want):
            sys.exit(f"{name}: nothing was found in the files")
        errors = found.drop_others(want, BOUND, (*RIVALS, *OURS))
        ratios = []
        for ours, rivals in ((OURS, RIVALS), ([one for one in OURS if "ORT" in one], RIVALS[:3])):
            best = min(ours, key=found.ms)
            ratios.append(f"{found.ratio(best, rivals):.2f} ({best})")
        times = (f"{found.ms(one) / len(case.paths):.2f}" for one in (*RIVALS, *OURS))
        table.row(name, *times, *ratios, f"{max(errors.values()):.1e}")
        report.sample(pipeline=name, items=len(case.paths), rounds=found.rounds, errors=errors)


def _rival_engines(options: argparse.Namespace, case: Case) -> list[Engine]:
    models = {name: str(MODELS / f"{model}.onnx") for name, model in case.models.items()}
    shared = {"pipeline": case.pipeline, "files": case.paths, "models": models}
    makers: dict[str, tuple[str, dict[str, Any]]] = {
        "ORT loop": ("loop", {"threads": CORES}),
        "ORT staged": ("staged", {"threads": case.threads(), "loaders": CORES}),
        "ORT pooled": ("pooled", {"threads": CORES}),
        "OpenVINO async": ("asynchronous", {"threads": CORES, "loaders": CORES}),
    }
    rivals = [Engine(name, f"stream_rivals:{maker}", {**shared, **how}) for name, (maker, how) in makers.items()]
    return rivals + [
        Engine(name, "stream_engines:stream", _ours(options, case, kind, runners, CORES))
        for name, (kind, runners) in OURS.items()
    ]


def _records(report: Report, options: argparse.Namespace) -> None:
    count = 2_000
    engines = [Engine(shape, "stream_engines:empty_stream", {"shape": shape, "count": count}) for shape in SHAPES]
    found = race(engines, {}, options.pace)
    table = report.table("records of no work", "us a record:", "records a second:")
    for shape in SHAPES:
        each = found.ms(shape) / count
        table.row(shape, f"{1e3 * each:.1f}", f"{1e3 / each:,.0f}")


def _places(report: Report, options: argparse.Namespace) -> None:
    bundle, count = options.bundles / "convolutions.nnd", 24
    if not bundle.exists():
        options.bundles.mkdir(parents=True, exist_ok=True)
        how = nndeploy.CompileOptions(backends=("native",), objective="throughput", places=places_in(POOLS))
        nndeploy.compile_model(_convolutions(), bundle, how)
    shared = {"bundle": str(bundle), "threads": 1, "count": count}
    engines = [
        Engine(f"{where}, {how}", "stream_engines:over_places", {**shared, "device": device, "is_stream": is_stream})
        for where, device in (("one pool", "cpu"), ("two pools", "auto"))
        for how, is_stream in (("call by call", False), ("a stream", True))
    ]
    engines.append(Engine("two processes", "stream_engines:by_two_processes", shared))
    found = race(engines, {}, options.pace)
    found.drop_others(found.outputs["one pool, call by call"], 0.0, found.outputs.keys())
    table = report.table(
        "ms an item", *(f"{engine.name}:" for engine in engines), "rate of two pools:", "of two processes:", "latency:"
    )
    times = (f"{found.ms(engine.name) / count:.2f}" for engine in engines)
    rate = found.ratio("two pools, a stream", ["one pool, a stream"])
    most = found.ratio("two processes", ["one pool, call by call"])
    latency = 1 / found.ratio("two pools, call by call", ["one pool, call by call"])
    table.row("eight convolutions", *times, f"{rate:.2f}", f"{most:.2f}", f"{latency:.2f}")
    report.sample(rounds=found.rounds)


def _convolutions() -> onnx.ModelProto:
    """Returns eight convolutions in a line, 3x3, of 64 channels to 64, on 56 x 56 pixels."""
    random = np.random.default_rng(0)
    weights = [(random.standard_normal((64, 64, 3, 3)) / 24).astype(np.float32) for _ in range(8)]
    nodes = [helper.make_node("Conv", [f"v{i}", f"w{i}"], [f"v{i + 1}"], pads=[1] * 4) for i in range(8)]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 64, 56, 56]) for name in ("v0", "v8"))
    constants = [numpy_helper.from_array(weight, f"w{i}") for i, weight in enumerate(weights)]
    graph = helper.make_graph(nodes, "convolutions", [x], [y], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def _memory(report: Report, options: argparse.Namespace) -> None:
    count = options.records
    found = race([Engine("memory", "stream_engines:memory", {"count": count})], {}, Pace(0.0, 0, 0.0))
    table = report.table("records", *(f"{count * i // 10:,}:" for i in range(1, 11)))
    table.row("MiB in RAM", *(f"{size:.1f}" for size in found.outputs["memory"][0]))


if __name__ == "__main__":
    main()
