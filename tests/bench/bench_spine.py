# SPDX-License-Identifier: Apache-2.0
"""What the run half costs over a bare ONNX Runtime session: a call, the load, the start of the command.

    python tests/bench/bench_spine.py [--models FOLDER]

Every comparison is interleaved and gives medians; the outputs of both sides are compared in the same run. Load and
first result are measured in fresh processes, libraries imported before the clock starts.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnxruntime
from real_models import MODELS, names_in, real_model

import nndeploy

REPOSITORY = Path(__file__).resolve().parents[2]
DIGITS = REPOSITORY / "examples" / "digits" / "digits.onnx"
NETWORKS = (
    "ultraface_rfb320",
    "fastestdet",
    "mobilenet_v2_quant",
    "magika_standard_v3_3",
    "nnsplit_en",
    "ppocr_det_mobile_v2",
)
CALLS = 5000
ROUNDS = 9

LOAD = """
import json, os, sys, time
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import numpy as np
inputs = dict(np.load(sys.argv[2]))
if sys.argv[1] == "bundle":
    import nndeploy.runtime.program, onnxruntime
    if len(sys.argv) > 4:
        from nndeploy_openvino.library import openvino
        openvino()
    start = time.perf_counter()
    program = nndeploy.runtime.program.load_bundle(sys.argv[3], nndeploy.LoadOptions(threads=1))
    outputs = program.run(inputs)
else:
    import onnxruntime
    start = time.perf_counter()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(sys.argv[3], options, providers=["CPUExecutionProvider"])
    outputs = dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))
seconds = time.perf_counter() - start
sums = [float(np.asarray(v, np.float64).sum()) for v in outputs.values() if not isinstance(v, list)]
print(json.dumps([seconds, sums]))
"""


def median_us(call: Callable[[], object], other: Callable[[], object]) -> tuple[float, float]:
    """Returns the median microseconds of two calls, made in turn."""
    times: tuple[list[int], list[int]] = ([], [])
    for _ in range(CALLS):
        for kind, function in enumerate((call, other)):
            start = time.perf_counter_ns()
            function()
            times[kind].append(time.perf_counter_ns() - start)
    return statistics.median(times[0]) / 1e3, statistics.median(times[1]) / 1e3


def bench_call(folder: Path) -> None:
    """Prints what `program.run` costs over a bare session's `run` on a one-submodel bundle."""
    bundle = folder / "digits.nnd"
    nndeploy.compile_model(DIGITS, bundle, nndeploy.CompileOptions(backends=("onnxruntime",), keep_fallback=False))
    image = np.random.default_rng(0).random((1, 1, 8, 8), np.float32) * 16
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(DIGITS), options, providers=["CPUExecutionProvider"])
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=1)) as program:
        want = session.run(None, {"image": image})[0]
        np.testing.assert_allclose(program.run({"image": image})["probabilities"], want, rtol=1e-4, atol=1e-6)
        ours, bare = median_us(lambda: program.run({"image": image}), lambda: session.run(None, {"image": image}))
    print("| call on the digit reader | median us |")
    print("| --- | ---: |")
    print(f"| program.run | {ours:.1f} |\n| bare ONNX Runtime session.run | {bare:.1f} |")
    print(f"| **overhead** | **{ours - bare:.1f}** (goal <= 25) |\n")


def bench_load(folder: Path, models: Path) -> None:
    """Prints load + first result of bundles against ONNX Runtime from the .onnx, in fresh processes."""
    print("| load + first result, ms | ONNX Runtime from .onnx | bundle, onnxruntime | ratio | bundle, all | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, model, inputs in [("digits", DIGITS, _digit()), *_real(models)]:
        np.savez(folder / "inputs.npz", **inputs)
        bundles = {}
        for kind, backends in (("onnxruntime", ("onnxruntime", "reference")), ("default", None)):
            bundles[kind] = folder / f"{name}-{kind}.nnd"
            nndeploy.compile_model(model, bundles[kind], nndeploy.CompileOptions(backends=backends, samples=[inputs]))
        times = _interleaved_loads(folder / "inputs.npz", model, bundles)
        bare = times["bare"]
        cells = [f"{times[kind]:.1f} | {times[kind] / bare:.2f}" for kind in bundles]
        print(f"| {name} | {bare:.1f} | {' | '.join(cells)} |")
    print()


def _interleaved_loads(inputs: Path, model: Path, bundles: dict[str, Path]) -> dict[str, float]:
    times: dict[str, list[float]] = {"bare": [], **{kind: [] for kind in bundles}}
    for _ in range(ROUNDS):
        sums = {}
        for kind in times:
            arguments = ["bare", inputs, model] if kind == "bare" else ["bundle", inputs, bundles[kind]]
            seconds, sums[kind] = _load_once([*arguments, *(["openvino"] if kind == "default" else [])])
            times[kind].append(seconds * 1e3)
        for kind in bundles:
            np.testing.assert_allclose(sums[kind], sums["bare"], rtol=1e-2, atol=1e-2)
    return {kind: statistics.median(values) for kind, values in times.items()}


def _load_once(arguments: list[Any]) -> tuple[float, list[float]]:
    command = [sys.executable, "-c", LOAD, *map(str, arguments)]
    seconds, sums = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return seconds, sums


def _digit() -> dict[str, Any]:
    return {"image": np.random.default_rng(0).random((1, 1, 8, 8), np.float32) * 16}


def _real(models: Path) -> list[tuple[str, Path, dict[str, Any]]]:
    if not names_in(models):
        print(f"(no real models: {models.name}/ is absent)")
        return []
    return [(one.name, one.path, one.inputs) for one in (real_model(models, name) for name in NETWORKS)]


def bench_start() -> None:
    """Prints the wall time of `nndeploy --version`, of an empty Python and of `import nndeploy.runtime`."""
    commands = {
        "python -c pass": ["-c", "pass"],
        "nndeploy --version": ["-m", "nndeploy", "--version"],
        "import nndeploy.runtime.program": ["-c", "import nndeploy.runtime.program"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(15):
        for name, arguments in commands.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            times[name].append(time.perf_counter() - start)
    print("| start | median s |\n| --- | ---: |")
    for name, values in times.items():
        print(f"| {name} | {statistics.median(values):.3f} |")


def main() -> None:
    """Runs the three benchmarks."""
    parser = argparse.ArgumentParser(description="overhead, load and start")
    parser.add_argument("--models", type=Path, default=MODELS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench_call(Path(folder))
        bench_load(Path(folder), options.models)
    bench_start()


if __name__ == "__main__":
    main()
