# SPDX-License-Identifier: Apache-2.0
"""Real networks with dynamic inputs at shapes drawn from declared ranges: right everywhere, first result, steady time.

    python tests/bench/bench_dynamic_networks.py [--models FOLDER] [--only NAMES] [--backends A,B] [--shapes N]
        [--rounds N] [--json out.json]

Each network is compiled once for each backend with `--shape` ranges. The bundles, an ONNX Runtime session and an
OpenVINO session over the model as it is run the same drawn shapes (best, both ends, primes, others), inputs cut and
repeated from the recorded sample. One process an engine, the others stopped, interleaved rounds (interleaved.py); one
thread; CPU time. `first` is the median over shapes of the first call with a shape, `steady` of the median later call;
`x ORT` and `x OpenVINO` are geometric means over shapes of the session's steady time over the bundle's, with the tenth
percentile. A shape that ONNX Runtime refuses is not counted; one that it takes must give its numbers, or the command
fails.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
from interleaved import Array, Engine, EngineDiedError, Pace, Race, race
from native_engines import machine_line
from real_models import MODELS, real_model

import nndeploy
from nndeploy.checking.drawn_sizes import Sizes, drawn_sizes
from nndeploy.errors import NndeployError
from nndeploy.frontend.load import LoadedModel, load_model
from nndeploy.jobs.workers import ChildWorkers

SHAPES: Mapping[str, Mapping[str, str]] = {
    "ppocr_det_mobile_v2": {"x": "1,3,32..640:32,32..640:32"},
    "ppocr_rec_en_mobile_v2": {"x": "1..4,3,32,8..640"},
    "magika_standard_v3_3": {"bytes": "1..8,2048"},
    "basic_pitch": {"serving_default_input_2:0": "1..4,43844,1"},
    "nnsplit_en": {"input": "1..8,8..200"},
    "fsmn_vad_online": {"speech": "1,1..200,400"},
}
BOUND = 1e-4
"""Largest error: other kernels sum in another order (docs/figures/results.md)."""
FALLBACK = {"native": ("onnxruntime",)}
"""Who takes what a backend has no operator for (an LSTM, bytes)."""
SESSIONS = ("onnxruntime", "openvino")


@dataclass(frozen=True)
class Case:
    """A network with its inputs at each drawn shape."""

    name: str
    path: Path
    loaded: LoadedModel
    sizes: Sequence[Sizes]
    inputs: Mapping[str, Array]


def main() -> None:
    """Prints the table; fails where a bundle is wrong at a shape that ONNX Runtime takes."""
    options = _options()
    print(machine_line(), end="\n\n")
    print("| model | bundle of | shapes right / taken by ONNX Runtime / tried | first ms: bundle, ORT, OpenVINO "
          "| steady ms: bundle, ORT, OpenVINO | x ORT (p10) | x OpenVINO (p10) | error |")  # fmt: skip
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    rows, wrong = [], []
    with closing(ChildWorkers(num_parallel=1, seconds_limit=300.0)) as workers:
        for name in options.only.split(","):
            case = _case(options.models, name, options.shapes)
            with tempfile.TemporaryDirectory() as folder:
                bundles = _bundles(case, options.backends.split(","), Path(folder), workers)
                found, times = _raced(case, bundles, Path(folder), Pace(0.0, options.rounds, 0.0))
            for backend in bundles:
                row = _row(case, backend, found, times)
                print(row["line"], flush=True)
                wrong += row["wrong"]
                rows.append({**row, "times": times})
            if options.json:
                options.json.write_text(json.dumps({"machine": machine_line(), "rows": rows}, indent=1))
    if wrong:
        sys.exit("\n".join(["wrong:", *wrong]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="networks with dynamic inputs: bundles, ONNX Runtime, OpenVINO",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--models", type=Path, default=MODELS, help="folder with index.json and samples/")
    parser.add_argument("--only", default=",".join(SHAPES), help="models by name")
    parser.add_argument("--backends", default="native,onnxruntime,openvino", help="a bundle of each")
    parser.add_argument("--shapes", type=int, default=50, help="drawn from the ranges; fewer where there are no more")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="where the seconds of every pass and shape are written")
    return parser.parse_args()


def _case(folder: Path, name: str, count: int) -> Case:
    model = real_model(folder, name)
    loaded = load_model(model.path, shapes=SHAPES[name])
    sizes = drawn_sizes(loaded.ranges, count)
    inputs = {}
    for number, chosen in enumerate(sizes):
        for one in loaded.inputs:
            shape: Any = tuple(chosen.get(str(dim), dim) for dim in one.type.shape)  # type: ignore[union-attr]
            inputs[f"{number}/{one.name}"] = _of_shape(model.inputs[one.name], shape)
    return Case(name, model.path, loaded, sizes, inputs)


def _of_shape(array: Array, shape: tuple[int, ...]) -> Array:
    """Returns an array cut, and repeated where it is too small, to a shape."""
    for axis, size in enumerate(shape):
        array = np.take(array, np.arange(size) % array.shape[axis], axis)
    return np.ascontiguousarray(array)


def _bundles(case: Case, backends: list[str], folder: Path, workers: ChildWorkers) -> dict[str, Path]:
    found = {}
    for backend in backends:
        path = folder / f"{backend}.nnd"
        try:
            nndeploy.compile_model(
                case.path,
                path,
                nndeploy.CompileOptions(
                    backends=tuple(dict.fromkeys((backend, *FALLBACK.get(backend, ())))),
                    shapes=SHAPES[case.name],
                    threads=1,
                    keep_fallback=False,
                ),
                workers=workers,
            )
        except NndeployError as err:
            print(f"{case.name}: {backend} refuses: {err}", file=sys.stderr)
        else:
            found[backend] = path
    return found


def _raced(
    case: Case, bundles: Mapping[str, Path], folder: Path, pace: Pace
) -> tuple[Race, dict[str, list[list[float | None]]]]:
    """Returns the race, and for each engine the seconds of each shape in each pass."""
    outputs = [one.name for one in case.loaded.outputs]
    records = {name: str(folder / f"{name}.jsonl") for name in (*(f"bundle of {one}" for one in bundles), *SESSIONS)}
    engines = [Engine(name, f"dynamic_engines:{name}", {"model": str(case.path), "record": records[name]})
               for name in SESSIONS]  # fmt: skip
    for backend, path in bundles.items():
        name = f"bundle of {backend}"
        arguments: dict[str, Any] = {"path": str(path), "record": records[name], "outputs": outputs}
        engines.append(Engine(name, "dynamic_engines:bundle", arguments))
    try:
        found = race(engines, case.inputs, pace)
    except EngineDiedError as err:
        sys.exit(f"{case.name}: {err}")
    return found, {name: [json.loads(line) for line in Path(path).read_text().splitlines()]
                   for name, path in records.items()}  # fmt: skip


def _row(case: Case, backend: str, found: Race, times: Mapping[str, list[list[float | None]]]) -> dict[str, Any]:
    engine = f"bundle of {backend}"
    got, want = _by_shape(found.outputs[engine]), _by_shape(found.outputs["onnxruntime"])
    taken = [i for i, outputs in enumerate(want) if outputs]
    scales = [max(float(np.abs(want[i][k]).max(initial=0.0)) for i in taken) for k in range(len(case.loaded.outputs))]
    errors = {i: _error(got[i], want[i], scales) for i in taken}
    right = [i for i in taken if errors[i] <= BOUND]
    firsts = {name: [passes[0][i] for i in right] for name, passes in times.items()}
    steady = {name: [_median([seconds[i] for seconds in passes[1:]]) for i in right] for name, passes in times.items()}
    columns = [
        case.name,
        backend,
        f"{len(right)} / {len(taken)} / {len(case.sizes)}",
        ", ".join(_ms(firsts[name]) for name in (engine, *SESSIONS)),
        ", ".join(_ms(steady[name]) for name in (engine, *SESSIONS)),
        *(_ratio(steady[name], steady[engine]) for name in SESSIONS),
        f"{max((errors[i] for i in right), default=0.0):.1e}",
    ]
    wrong = [f"{case.name}, {engine}, {case.sizes[i]}: error {errors[i]:.1e}" for i in taken if i not in right]
    return {"line": f"| {' | '.join(columns)} |", "wrong": wrong}


def _error(got: Sequence[Array], want: Sequence[Array], scales: Sequence[float]) -> float:
    """Returns the largest difference of an output over its largest value at any shape: at some, detectors see nothing.

    Infinite where shapes differ or something is not a number.
    """
    if [array.shape for array in got] != [array.shape for array in want]:
        return float("inf")
    errors = [
        float(np.abs(a.astype(np.float64) - b).max(initial=0.0)) / (scale or 1.0)
        for a, b, scale in zip(got, want, scales, strict=True)
    ]
    return float("inf") if any(np.isnan(errors)) else max(errors)


def _by_shape(arrays: Sequence[Array]) -> list[list[Array]]:
    """Returns the outputs of each shape; a count stands before each."""
    rest, found = list(arrays), []
    while rest:
        count = int(rest.pop(0))
        found.append(rest[:count])
        del rest[:count]
    return found


def _median(seconds: Sequence[float | None]) -> float | None:
    present = [one for one in seconds if one is not None]
    return statistics.median(present) if present else None


def _ms(seconds: Sequence[float | None]) -> str:
    found = _median(seconds)
    return "-" if found is None else f"{1e3 * found:.2f}"


def _ratio(theirs: Sequence[float | None], ours: Sequence[float | None]) -> str:
    ratios = [a / b for a, b in zip(theirs, ours, strict=True) if a and b]
    if not ratios:
        return "-"
    return f"{statistics.geometric_mean(ratios):.2f} ({np.percentile(ratios, 10):.2f})"


if __name__ == "__main__":
    main()
