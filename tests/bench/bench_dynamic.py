# SPDX-License-Identifier: Apache-2.0
"""Real networks with dynamic inputs at shapes drawn from declared ranges: right everywhere, first result, steady time.

Each network is compiled once for each backend with `--shape` ranges. The bundles, an ONNX Runtime session and an
OpenVINO session over the model as it is run the same drawn shapes (best, both ends, primes, others), inputs cut and
repeated from the recorded sample; one thread, CPU time, interleaved passes. `first` is the median over shapes of the
first call with a shape, `steady` of the median later call; `x ORT` and `x OpenVINO` are geometric means over shapes of
the session's steady time over the bundle's, with the tenth percentile. A shape that ONNX Runtime refuses is not
counted; one that it takes must give its numbers within 1e-4 of an output's largest value at any shape, or the command
fails.
"""

import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from interleaved import Array, Engine, Inputs, Pace, Race, race
from model_sets import Subject, compiled, real_model
from report import Report, add_models, bench_parser, geometric_mean, words

from nndeploy.checking.drawn_sizes import Sizes, drawn_sizes
from nndeploy.errors import NndeployError
from nndeploy.frontend.load import load_model

SHAPES: Mapping[str, Mapping[str, str]] = {
    "ppocr_det_mobile_v2": {"x": "1,3,32..640:32,32..640:32"},
    "ppocr_rec_en_mobile_v2": {"x": "1..4,3,32,8..640"},
    "magika_standard_v3_3": {"bytes": "1..8,2048"},
    "basic_pitch": {"serving_default_input_2:0": "1..4,43844,1"},
    "nnsplit_en": {"input": "1..8,8..200"},
    "fsmn_vad_online": {"speech": "1,1..200,400"},
}
BOUND = 1e-4
FALLBACK = {"native": ("onnxruntime",)}
"""Who takes what a backend has no operator for."""
SESSIONS = ("onnxruntime", "openvino")
Seconds = list[float | None]


@dataclass(frozen=True)
class Case:
    """A network with its drawn sizes, and the inputs at each: "<number of the shape>/<input>"."""

    model: Subject
    outputs: list[str]
    sizes: Sequence[Sizes]
    inputs: Inputs


def main() -> None:
    parser = bench_parser(__doc__)
    add_models(parser)
    parser.add_argument("--only", type=words, default=",".join(SHAPES), help="models by name")
    parser.add_argument("--backends", type=words, default="native,onnxruntime,openvino", help="a bundle of each")
    parser.add_argument("--shapes", type=int, default=50, help="drawn from the ranges; fewer where there are no more")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    wrong: list[str] = []
    with Report(options, "speed.md", "Dynamic inputs") as report:
        table = report.table("model", "bundle of", "shapes right / taken by ONNX Runtime / tried:",
                             "first ms: bundle, ORT, OpenVINO:", "steady ms: bundle, ORT, OpenVINO:", "x ORT (p10):",
                             "x OpenVINO (p10):", "error:")  # fmt: skip
        for name in options.only:
            case = _case(real_model(options.models, name), options.shapes)
            with tempfile.TemporaryDirectory() as folder:
                found, times = _raced(case, options.backends, Path(folder), options.rounds)
            for backend in [one for one in options.backends if one in found.outputs]:
                errors = _errors(case, found, backend)
                table.row(name, backend, *_cells(errors, backend, times, len(case.sizes)))
                wrong += [
                    f"{name}, {backend}, {case.sizes[i]}: error {errors[i]:.1e}" for i in errors if errors[i] > BOUND
                ]
            report.sample(model=name, times=times)
    if wrong:
        sys.exit("\n".join(["wrong:", *wrong]))


def _case(model: Subject, count: int) -> Case:
    loaded = load_model(model.path, shapes=SHAPES[model.name])
    sizes = drawn_sizes(loaded.ranges, count)
    inputs = {}
    for number, chosen in enumerate(sizes):
        for one in loaded.inputs:
            shape: Any = tuple(chosen.get(str(dim), dim) for dim in one.type.shape)
            inputs[f"{number}/{one.name}"] = _of_shape(model.inputs[one.name], shape)
    return Case(model, [one.name for one in loaded.outputs], sizes, inputs)


def _of_shape(array: Array, shape: tuple[int, ...]) -> Array:
    """Returns an array cut, and repeated where it is too small, to a shape."""
    for axis, size in enumerate(shape):
        array = np.take(array, np.arange(size) % array.shape[axis], axis)
    return np.ascontiguousarray(array)


def _raced(case: Case, backends: list[str], folder: Path, rounds: int) -> tuple[Race, dict[str, list[Seconds]]]:
    """Returns the race, and for each engine the seconds of each shape in each pass; bundles are named by backend."""
    told = {"model": str(case.model.path), "knows_sizes": False}
    engines = {f"{name} session": {**told, "engine": name} for name in SESSIONS}
    for backend in backends:
        path = folder / f"{backend}.nnd"
        try:
            order = tuple(dict.fromkeys((backend, *FALLBACK.get(backend, ()))))
            compiled(case.model.path, path, backends=order, shapes=SHAPES[case.model.name], threads=1)
        except NndeployError as err:
            sys.stderr.write(f"{case.model.name}: {backend} refuses: {err}\n")
        else:
            engines[backend] = {"engine": "bundle", "model": str(path), "outputs": case.outputs}
    records = {name: folder / f"{name}.jsonl" for name in engines}
    every = [Engine(name, "engines:any_shape", {**how, "record": str(records[name])}) for name, how in engines.items()]
    found = race(every, case.inputs, Pace(0.0, rounds, 0.0))
    return found, {name: [json.loads(line) for line in path.read_text().splitlines()] for name, path in records.items()}


def _errors(case: Case, found: Race, backend: str) -> dict[int, float]:
    """Returns the error at each shape that ONNX Runtime takes, of an output's largest value at any shape."""
    got, want = _by_shape(found.outputs[backend]), _by_shape(found.outputs["onnxruntime session"])
    taken = [i for i, outputs in enumerate(want) if outputs]
    scales = [max(float(np.abs(want[i][k]).max(initial=0.0)) for i in taken) or 1.0 for k in range(len(case.outputs))]
    return {i: _error(got[i], want[i], scales) for i in taken}


def _error(got: Sequence[Array], want: Sequence[Array], scales: Sequence[float]) -> float:
    """Returns the largest difference; infinite where shapes differ or something is not a number."""
    if [array.shape for array in got] != [array.shape for array in want]:
        return float("inf")
    pairs = zip(got, want, scales, strict=True)
    errors = [float(np.abs(a.astype(np.float64) - b).max(initial=0.0)) / scale for a, b, scale in pairs]
    return float("inf") if any(np.isnan(errors)) else max(errors)


def _by_shape(arrays: Sequence[Array]) -> list[list[Array]]:
    """Returns the outputs of each shape; a count stands before each."""
    rest, found = list(arrays), []
    while rest:
        count = int(rest.pop(0))
        found.append(rest[:count])
        del rest[:count]
    return found


def _cells(errors: dict[int, float], backend: str, times: Mapping[str, list[Seconds]], tried: int) -> list[str]:
    names = (backend, *(f"{name} session" for name in SESSIONS))
    right = [i for i, error in errors.items() if error <= BOUND]
    firsts = {name: [times[name][0][i] for i in right] for name in names}
    steady = {name: [_median([one[i] for one in times[name][1:]]) for i in right] for name in names}
    return [
        f"{len(right)} / {len(errors)} / {tried}",
        ", ".join(_ms(firsts[name]) for name in names),
        ", ".join(_ms(steady[name]) for name in names),
        *(_ratio(steady[name], steady[backend]) for name in names[1:]),
        f"{max((errors[i] for i in right), default=0.0):.1e}",
    ]


def _median(seconds: Seconds) -> float | None:
    present = [one for one in seconds if one is not None]
    return statistics.median(present) if present else None


def _ms(seconds: Seconds) -> str:
    found = _median(seconds)
    return "-" if found is None else f"{1e3 * found:.2f}"


def _ratio(theirs: Seconds, ours: Seconds) -> str:
    ratios = [a / b for a, b in zip(theirs, ours, strict=True) if a and b]
    return f"{geometric_mean(ratios):.2f} ({np.percentile(ratios, 10):.2f})" if ratios else "-"


if __name__ == "__main__":
    main()
