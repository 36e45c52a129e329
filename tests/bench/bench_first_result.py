# SPDX-License-Identifier: Apache-2.0
"""From `import` to the first result of a small model, and what its whole compile costs: nndeploy, ORT, OpenVINO.

    python tests/bench/bench_first_result.py [--models FOLDER] [--name NAME] [--threads N] [--rounds N] [--json F]

Every measurement is a fresh process in which the library was imported before the clock starts; the engines take turns.
A bundle of `nndeploy compile NAME --backends native` stands against the .onnx file itself, which the page cache holds.
The outputs of all are compared. Of the compile its processor time is told, of the command and all its children.
"""

import argparse
import compileall
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from native_engines import machine_line
from real_models import MODELS, names_in, real_model

REPOSITORY = Path(__file__).resolve().parents[2]
GOALS = {"first result": 5.0, "compile": 1500.0}
"""Milliseconds: load and first result together; processor time of the command."""
TOLERANCE = 1e-4
ENGINES = {
    "nndeploy": """
from nndeploy import LoadOptions, load_bundle
def load():
    return load_bundle(bundle, LoadOptions(threads=threads))
def call(program):
    return program.run(inputs)
""",
    "onnxruntime": """
import onnxruntime as ort
def load():
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
def call(session):
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, inputs)))
""",
    "openvino": """
import openvino as ov
def load():
    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    return ov.Core().compile_model(model, "CPU", options).create_infer_request()
def call(request):
    return {next(iter(port.get_names())): value for port, value in request.infer(inputs).items()}
""",
}
MEASURE = """
import json, os, sys, time
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import numpy as np
folder, bundle, model, threads = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
inputs = dict(np.load(folder + "/inputs.npz"))
{engine}
times = [time.perf_counter()]
loaded = load()
times.append(time.perf_counter())
outputs = call(loaded)
times.append(time.perf_counter())
call(loaded)
times.append(time.perf_counter())
np.savez(folder + "/outputs.npz", **{{name: np.asarray(value) for name, value in outputs.items()}})
print(json.dumps([(after - before) * 1e3 for before, after in zip(times, times[1:])]))
"""


def measured(engine: str, folder: Path, bundle: Path, model: Path, threads: int) -> list[float]:
    """Returns the milliseconds of the load, the first call and the second."""
    command = [sys.executable, "-c", MEASURE.format(engine=ENGINES[engine])]
    arguments = [str(folder), str(bundle), str(model), str(threads)]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [float(value) for value in json.loads(done.stdout.splitlines()[-1])]


def compiled(model: Path, bundle: Path) -> float:
    """Returns the milliseconds of processor time that the command took to compile a model."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "nndeploy", "compile", str(model), "-o", str(bundle), "--backends", "native"]
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e3


def main() -> None:
    """Prints a table of the engines, a line for the compile, and whether the goals are reached."""
    options = _options()
    if not names_in(options.models):
        sys.exit("the real models are not here; name their folder with --models")
    for package in ("nndeploy", "backends"):
        compileall.compile_dir(REPOSITORY / package, quiet=2)  # as an installer does
    found = real_model(options.models, options.name)
    samples: dict[str, list[list[float]]] = {engine: [] for engine in ENGINES}
    with tempfile.TemporaryDirectory() as temporary:
        folder, bundle = Path(temporary), Path(temporary) / "model.nnd"
        np.savez(folder / "inputs.npz", **found.inputs)  # type: ignore[arg-type]  # one called allow_pickle is none of ours
        compiles = [compiled(found.path, bundle) for _ in range(options.rounds)]
        for _ in range(options.rounds):
            for engine, taken in samples.items():
                taken.append(measured(engine, folder, bundle, found.path, options.threads))
                for name, value in np.load(folder / "outputs.npz").items():
                    wanted = found.outputs[name]
                    assert np.abs(value - wanted).max() <= TOLERANCE * max(1.0, np.abs(wanted).max()), (engine, name)
        size = bundle.stat().st_size
    print(machine_line())
    print(f"{options.name}, {options.threads} threads, {options.rounds} rounds, {size} bytes; medians, (least)\n")
    _print(samples, compiles)
    if options.json:
        options.json.write_text(json.dumps({"samples": samples, "compiles": compiles}), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="time from import to the first result, and of the compile")
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--name", default="ultraface_rfb320")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, help="file for the raw samples")
    return parser.parse_args()


def _print(samples: dict[str, list[list[float]]], compiles: list[float]) -> None:
    print("| engine | load ms | first call ms | both ms | second call ms |\n| --- | ---: | ---: | ---: | ---: |")
    for engine, taken in samples.items():
        load, first, second = zip(*taken, strict=True)
        both = [one + other for one, other in zip(load, first, strict=True)]
        print(f"| {engine} | {' | '.join(_text(column) for column in (load, first, both, second))} |")
    ours = [load + first for load, first, _ in samples["nndeploy"]]
    print(f"\ncompile: {_text(compiles)} ms of processor time")
    for what, values in (("first result", ours), ("compile", compiles)):
        reached = "reached" if statistics.median(values) <= GOALS[what] else "missed"
        print(f"{what}: at most {GOALS[what]:g} ms: {reached}")


def _text(values: "tuple[float, ...] | list[float]") -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f})"


if __name__ == "__main__":
    main()
