# SPDX-License-Identifier: Apache-2.0
"""What a stream wins, what it costs: against its slowest stage, against other ways to write it, and per record.

    python tests/bench/bench_stream.py [--only stages,rivals,record,memory] [--pipelines faces,objects,text] [--quick]
        [--models FOLDER] [--bundles FOLDER] [--seconds S] [--rounds N] [--json out.json]

Everything is raced as `interleaved.py` does it: one process an engine, all others stopped, interleaved rounds, medians;
ratios are taken within a round.

* `stages`: the whole beside the ideal, the larger of the slowest stage's time over its workers and the seconds of CPU
  of all stages over the cores. Stages of known work first (waiting, computing), then the real pipelines, each of whose
  stages runs alone in a process of its own.
* `rivals`: the same files through the same steps over ONNX Runtime and OpenVINO (`stream_engines.py`); results are
  compared.
* `record`: records through stages that do nothing; queues alone.
* `memory`: what the process holds after each tenth of 100,000 records.

Bundles are compiled once into `--bundles` (default build/bench-stream) and kept; remove the folder after a change of
the compiler.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
from interleaved import Engine, EngineDiedError, Pace, Race, race
from native_engines import machine_line
from onnx import TensorProto, helper
from real_models import MODELS, real_model
from stream_overhead import QUEUES, SHAPES

import nndeploy
from nndeploy.jobs.workers import ChildWorkers

REPOSITORY = Path(__file__).resolve().parents[2]
CORES = min(2, os.cpu_count() or 1)
BOUND = 5e-3
"""Of a value over the largest of its array; kernels sum in another order, and boxes are in pixels, up to 1,000."""
KINDS: dict[str, dict[str, Any]] = {
    "latency": {"objective": "latency"},
    "throughput": {"objective": "throughput"},
    "onnxruntime": {"backends": ["onnxruntime"]},
}
RIVALS = ("ORT loop", "ORT elements", "ORT staged", "ORT pooled", "OpenVINO async")
OURS = {
    "ours, latency": ("latency", 1),
    "ours, throughput": ("throughput", CORES),
    "ours, ORT": ("onnxruntime", 1),
    f"ours, ORT x{CORES}": ("onnxruntime", CORES),
}
"""Bundle, runners of each model; the runners of all models share the cores."""


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
        """The files of one pass."""
        return [str(MODELS / "inputs" / name) for _ in range(self.repeats) for name in self.files]

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

WAITS = [[0.002, 0], [0.003, 0], [0.001, 0]]
COMPUTES = [[0.0, 4], [0.0, 6], [0.0, 2]]
MIXED = [[0.0, 3], [0.004, 0], [0.0, 2]]
"""Seconds of waiting and MiB hashed, of loader, runner and post-processor; the last is a CPU around a device."""
KNOWN = {"all wait": WAITS, "all compute": COMPUTES, "model waits": MIXED}


def main() -> None:
    """Prints the tables."""
    options = _options()
    began, found = time.perf_counter(), {"machine": machine_line()}
    print(found["machine"], end="\n\n")
    pace = Pace(options.seconds, options.rounds, 0.3)
    sections: dict[str, Callable[[], Any]] = {
        "stages": lambda: _stages(options, pace),
        "rivals": lambda: _rivals(options, pace),
        "record": lambda: _records(options, pace),
        "memory": lambda: _memory(options),
    }
    for name in options.only.split(","):
        try:
            found[name] = sections[name]()
        except EngineDiedError as err:
            sys.exit(f"{name}: {err}")
        if options.json:
            options.json.write_text(json.dumps(found, indent=1))
        print()
    print(f"{time.perf_counter() - began:.0f} s in all")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="stages,rivals,record,memory")
    parser.add_argument("--pipelines", default=",".join(CASES))
    parser.add_argument("--bundles", type=Path, default=REPOSITORY / "build" / "bench-stream")
    parser.add_argument("--seconds", type=float, help="an engine and round; default 1, with --quick 0.2")
    parser.add_argument("--rounds", type=int, help="default 7, with --quick 3")
    parser.add_argument("--quick", action="store_true", help="short rounds, a tenth of the memory's records")
    parser.add_argument("--json", type=Path, help="where the seconds of every round are written")
    options = parser.parse_args()
    options.seconds = options.seconds or (0.2 if options.quick else 1.0)
    options.rounds = options.rounds or (3 if options.quick else 7)
    if unknown := set(options.pipelines.split(",")) - CASES.keys():
        parser.error(f"no such pipeline: {', '.join(unknown)}")
    return options


# Bundles


def _bundle(folder: Path, model: str, kind: str, threads: int) -> str:
    """Returns the path of a model's bundle, compiled the first time, on the recorded sample."""
    path = folder / f"{model}.{kind}-{threads}.nnd"
    if path.exists():
        return str(path)
    folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    with closing(ChildWorkers(num_parallel=1, seconds_limit=300.0)) as workers:
        how = nndeploy.CompileOptions(
            threads=threads, samples=[real_model(MODELS, model).inputs], keep_fallback=False, **KINDS[kind]
        )
        nndeploy.compile_model(MODELS / f"{model}.onnx", path, how, workers=workers)
    print(f"compiled {path.name} in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return str(path)


def _ours(options: argparse.Namespace, case: Case, kind: str, runners: int, loaders: int) -> dict[str, Any]:
    """Returns the arguments of nndeploy's engine."""
    threads = case.threads(runners)
    models = {name: _bundle(options.bundles, model, kind, threads) for name, model in case.models.items()}
    return {"pipeline": _toml(case), "models": models, "files": case.paths, "threads": threads, "runners": runners,
            "loaders": loaders}  # fmt: skip


def _toml(case: Case) -> str:
    return str(REPOSITORY / "configs" / "pipelines" / f"{case.toml}.toml")


# 1. The whole against its slowest stage


def _stages(options: argparse.Namespace, pace: Pace) -> list[Any]:
    print("| stream | workers | stages alone, ms | CPU, ms | whole, ms | ideal, ms | limit | of the ideal |")
    print("| --- | ---: | --- | ---: | ---: | ---: | --- | ---: |")
    rows = [_known_row(name, works, workers, pace) for name, works in KNOWN.items() for workers in (1, 2)]
    for name in options.pipelines.split(","):
        rows += _case_rows(options, CASES[name], pace)
    return rows


def _known_row(name: str, works: list[list[Any]], workers: int, pace: Pace) -> Any:
    num_items, times = 120, 6
    engines = [
        Engine(
            f"stage {i}", "stream_overhead:known_alone",
            {"seconds": seconds, "rounds": rounds, "count": num_items // times},
        )
        for i, (seconds, rounds) in enumerate(works)
    ]  # fmt: skip
    stages = [engine.name for engine in engines]
    whole = {"works": works, "workers": workers, "count": num_items}
    found = race([*engines, Engine("whole", "stream_overhead:known_whole", whole)], {}, pace)
    _scale(found, stages, times)
    computing = [stage for stage, (_, rounds) in zip(stages, works, strict=True) if rounds]
    cpu = [sum(one[stage] for stage in computing) for one in found.rounds]
    return _stage_row(name, workers, found, dict.fromkeys(stages, workers), cpu, num_items)


def _scale(found: Race, stages: Sequence[str], times: int) -> None:
    """Makes the times of stages, which ran on a part of the items, those of all."""
    for one in found.rounds:
        one.update({stage: one[stage] * times for stage in stages})


def _case_rows(options: argparse.Namespace, case: Case, pace: Pace) -> list[Any]:
    """Returns the rows of a real pipeline, for one and two loaders; the stages are raced once for both."""
    ours = _ours(options, case, "latency", 1, 1)
    shared = {key: ours[key] for key in ("pipeline", "models", "threads")} | {"files": case.paths[: len(case.files)]}
    stages = {
        f"{name} {stage}" if len(case.models) > 1 else stage: {"level": level, "stage": stage}
        for level, name in enumerate(case.models)
        for stage in ("loader", "runner", "post")
    }
    engines = [Engine(name, "stream_engines:stage_alone", {**shared, **which}) for name, which in stages.items()]
    wholes = [Engine(f"whole {n}", "stream_engines:stream", {**ours, "loaders": n}) for n in (1, 2)]
    found = race([*engines, *wholes], {}, pace)
    _scale(found, list(stages), case.repeats)
    cpu = [case.repeats * sum(json.loads(found.notes[name])["cpu"] for name in stages)] * pace.rounds
    first = next(iter(stages))
    return [
        _stage_row(case.name, n, found, dict.fromkeys(stages, 1) | {first: n}, cpu, len(case.paths), f"whole {n}")
        for n in (1, 2)
    ]


def _stage_row(
    name: str, workers: int, found: Race, counts: Mapping[str, int], cpu: Sequence[float], num_items: int,
    whole: str = "whole",
) -> Any:  # fmt: skip
    """Prints a row; `counts` are the workers of each stage, `cpu` the seconds of CPU of a pass in each round."""
    slowest = [max(one[stage] / count for stage, count in counts.items()) for one in found.rounds]
    ideals = [max(stage, busy / CORES) for stage, busy in zip(slowest, cpu, strict=True)]
    of_ideal = statistics.median(ideal / one[whole] for ideal, one in zip(ideals, found.rounds, strict=True))
    ideal, limit = statistics.median(ideals), "slowest stage"
    if statistics.median(slowest) < ideal:
        limit = f"{CORES} cores"
    alone = ", ".join(f"{stage} {found.ms(stage) / num_items:.2f}" for stage in counts)
    busy_ms = 1e3 * statistics.median(cpu) / num_items
    print(
        f"| {name} | {workers} | {alone} | {busy_ms:.2f} | {found.ms(whole) / num_items:.2f} "
        f"| {1e3 * ideal / num_items:.2f} | {limit} | {of_ideal:.2f} |", flush=True,
    )  # fmt: skip
    return {"stream": name, "workers": workers, "items": num_items, "of_ideal": of_ideal, "rounds": found.rounds,
            "cpu": list(cpu)}  # fmt: skip


# 2. Against other ways to write it


def _rivals(options: argparse.Namespace, pace: Pace) -> list[Any]:
    print(f"| pipeline | {' | '.join((*RIVALS, *OURS))} | best rival / ours | ORT alone: best ORT / ours | error |")
    print(f"| --- |{' ---: |' * (len(RIVALS) + len(OURS) + 3)}")
    return [_rival_row(options, CASES[name], pace) for name in options.pipelines.split(",")]


def _rival_row(options: argparse.Namespace, case: Case, pace: Pace) -> Any:
    shared = {"pipeline": _toml(case), "files": case.paths}
    over_models = {**shared, "models": {name: str(MODELS / f"{model}.onnx") for name, model in case.models.items()}}
    engines = [
        Engine("ORT loop", "stream_engines:loop", {**over_models, "threads": CORES}),
        Engine("ORT elements", "stream_engines:elements", {**over_models, "threads": case.threads()}),
        Engine("ORT staged", "stream_engines:staged", {**over_models, "threads": case.threads(), "loaders": CORES}),
        Engine("ORT pooled", "stream_engines:pooled", {**over_models, "workers": CORES}),
        Engine("OpenVINO async", "stream_engines:asynchronous", {**over_models, "threads": CORES, "loaders": CORES}),
    ]
    engines += [
        Engine(name, "stream_engines:stream", _ours(options, case, kind, runners, CORES))
        for name, (kind, runners) in OURS.items()
    ]
    found = race(engines, {}, pace)
    if found.refused:
        sys.exit(f"{case.name}: {found.refused}")
    error = _checked(case, found)
    ours = min(OURS, key=found.ms)
    ours_ort = min((name for name in OURS if "ORT" in name), key=found.ms)
    whole, same = found.ratio(ours, RIVALS), found.ratio(ours_ort, [name for name in RIVALS if "ORT" in name])
    times = " | ".join(f"{found.ms(name) / len(case.paths):.2f}" for name in (*RIVALS, *OURS))
    print(f"| {case.name} | {times} | {whole:.2f} ({ours}) | {same:.2f} ({ours_ort}) | {error:.1e} |", flush=True)
    return {
        "pipeline": case.name,
        "items": len(case.paths),
        "rounds": found.rounds,
        "notes": found.notes,
        "error": error,
    }


def _checked(case: Case, found: Race) -> float:
    """Returns the largest error of any engine beside the loop; ends the command where one is wrong."""
    want = found.outputs["ORT loop"]
    if not any(array.size for array in want):
        sys.exit(f"{case.name}: nothing was found in the files")
    worst = 0.0
    for name, got in found.outputs.items():
        if [array.shape for array in got] != [array.shape for array in want]:
            sys.exit(f"{case.name}: {name} found something else than the loop: shapes differ")
        error = max(float(np.abs(a - b).max(initial=0.0)) / (float(np.abs(b).max(initial=0.0)) or 1.0)
                    for a, b in zip(got, want, strict=True))  # fmt: skip
        if not error <= BOUND:
            sys.exit(f"{case.name}: {name} is wrong: error {error:.1e} of the largest value, bound {BOUND:.0e}")
        worst = max(worst, error)
    return worst


# 3. What a record costs


def _records(options: argparse.Namespace, pace: Pace) -> Any:
    count = 2_000
    identity = _identity_bundle(options.bundles)
    engines = [
        Engine("the same calls, no queue, no thread", "stream_overhead:same_calls", {"count": count}),
        *(Engine(shape, "stream_overhead:empty_stream", {"shape": shape, "count": count}) for shape in SHAPES),
        Engine(
            "loader, runner, post, with a bundle of one Identity", "stream_overhead:empty_stream",
            {"shape": SHAPES[0], "count": count, "bundle": identity},
        ),
        *(Engine(f"queue alone: {kind}", "stream_overhead:queue_alone", {"kind": kind, "count": count})
          for kind in QUEUES),
    ]  # fmt: skip
    found = race(engines, {}, pace)
    print("| records of no work | µs a record | records a second |")
    print("| --- | ---: | ---: |")
    for engine in engines:
        each = found.ms(engine.name) / count
        print(f"| {engine.name} | {1e3 * each:.1f} | {1e3 / each:,.0f} |")
    return {"items": count, "rounds": found.rounds}


def _identity_bundle(folder: Path) -> str:
    path = folder / "identity.nnd"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        named = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 4)) for name in "xy"]
        graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "identity", named[:1], named[1:])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        onnx.checker.check_model(model)
        nndeploy.compile_model(model, path, nndeploy.CompileOptions(backends=("onnxruntime",)))
    return str(path)


# 4. Memory


def _memory(options: argparse.Namespace) -> Any:
    count = 10_000 if options.quick else 100_000
    found = race([Engine("memory", "stream_overhead:memory", {"count": count})], {}, Pace(0.0, 0, 0.0))
    sizes = [float(size) for size in found.outputs["memory"][0]]
    print(f"| records | {' | '.join(f'{count * i // 10:,}' for i in range(1, 11))} |")
    print(f"| --- |{' ---: |' * 10}")
    print(f"| MiB in RAM | {' | '.join(f'{size / 2**20:.1f}' for size in sizes)} |")
    return {"items": count, "bytes": sizes}


if __name__ == "__main__":
    main()
