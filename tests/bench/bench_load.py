# SPDX-License-Identifier: Apache-2.0
"""What the form of an artifact costs: load, first result and steady speed of each form that a backend could ship.

    python tests/bench/bench_load.py [--models FOLDER] [--names a,b] [--rounds N] [--samples out.json]

Every measurement is a fresh process with the libraries imported before the clock starts, two threads, the forms in
turn. Outputs of each form are compared with those of the .onnx file. `spin` prints what ONNX Runtime's threads take
from a library that runs after it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
from real_models import MODELS, names_in, real_model

from nndeploy.errors import BuildRefusedError
from nndeploy.frontend.load import load_model
from nndeploy.passes import optimise
from nndeploy.plugin.interface import BuildOptions
from nndeploy.plugin.registry import backend
from nndeploy.target.target import host_target

REPOSITORY = Path(__file__).resolve().parents[2]
NAMES = "ultraface_rfb320,fastestdet,ppocr_det_mobile_v2,mobilenet_v2_quant,magika_standard_v3_3,nnsplit_en"
FORMS = ("ort onnx", "ort artifact", "ort all", "ov onnx", "ov ir", "ov blob")

MEASURE = """
import json, sys, time
from pathlib import Path
import numpy as np
from nndeploy.plugin.interface import OpenOptions
from nndeploy.plugin.registry import backend
form, folder, model = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
inputs = dict(np.load(folder / "inputs.npz"))
library, kind = form.split()
if library == "ort":
    from nndeploy_onnxruntime.library import inference_session, onnxruntime, session_options
    ort = onnxruntime()
else:
    from nndeploy_openvino.library import DEVICE, configuration, core, openvino
    ov = openvino()

def onnx_session():
    if library == "ort":
        options = ort.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 2
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()]
        return lambda: dict(zip(names, session.run(names, inputs)))
    compiled = core().compile_model(core().read_model(model), DEVICE, configuration(2))
    request = compiled.create_infer_request()
    return lambda: {next(iter(port.get_names())): np.array(value) for port, value in request.infer(inputs).items()}

def optimised_session():
    options = session_options(2)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = inference_session((folder / "all.onnx").read_bytes(), options)
    names = [o.name for o in session.get_outputs()]
    return lambda: dict(zip(names, session.run(names, inputs)))

def artifact_session():
    place = folder / ("onnxruntime" if library == "ort" else "openvino")
    files = {p.name: memoryview(np.memmap(p, np.uint8, "r")) if p.stat().st_size else memoryview(b"")
             for p in sorted((place / "files").iterdir()) if kind != "ir" or p.suffix != ".blob"}
    metadata = json.loads((place / "metadata.json").read_text())
    session = backend(place.name).open(files, metadata, OpenOptions(threads=2))
    return lambda: session.run(inputs)

start = time.perf_counter()
run = {"onnx": onnx_session, "all": optimised_session}.get(kind, artifact_session)()
loaded = time.perf_counter()
outputs = run()
first = time.perf_counter()
times = []
while time.perf_counter() - first < 0.25 or len(times) < 5:
    begin = time.perf_counter()
    run()
    times.append(time.perf_counter() - begin)
np.savez(folder / "got.npz", **{f"o{i}": np.asarray(outputs[n]) for i, n in enumerate(sorted(outputs))})
print(json.dumps([loaded - start, first - loaded, float(np.median(times))]))
"""

SPIN = """
import json, sys, time
import numpy as np
from nndeploy_onnxruntime.library import onnxruntime
from nndeploy_openvino.library import DEVICE, configuration, core
ort, stop, model, other = onnxruntime(), sys.argv[1], sys.argv[2], sys.argv[3]
inputs = dict(np.load(sys.argv[4]))
options = ort.SessionOptions()
options.log_severity_level = 4
if stop == "stop":
    options.add_session_config_entry("session.force_spinning_stop", "1")
if stop == "never":
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
request = core().compile_model(core().read_model(other), DEVICE, configuration(None)).create_infer_request()
times = {"alone": [], "ort": [], "ov after ort": []}
for _ in range(100):
    begin = time.perf_counter(); session.run(None, inputs); times["alone"].append(time.perf_counter() - begin)
for _ in range(100):
    begin = time.perf_counter(); session.run(None, inputs); middle = time.perf_counter()
    request.infer(inputs); end = time.perf_counter()
    times["ort"].append(middle - begin); times["ov after ort"].append(end - middle)
busy, begin = time.process_time(), time.perf_counter()
for _ in range(100):
    time.sleep(0.003); session.run(None, inputs)
cores = (time.process_time() - busy) / (time.perf_counter() - begin)
print(json.dumps([*(float(np.median(t)) * 1e3 for t in times.values()), cores]))
"""


def build(model: Path, folder: Path) -> None:
    """Leaves the artifact of each backend in `folder`, and the model as ONNX Runtime optimises it for this CPU."""
    for name in ("onnxruntime", "openvino"):
        plugin, target = backend(name), host_target()
        loaded = load_model(model, extra_domains=frozenset(plugin.extra_domains))
        optimise(loaded.model)
        refused = plugin.supports(loaded.model, target, BuildOptions())
        open_nodes = {n.name for n, said in zip(loaded.model.graph, refused, strict=True) if not said.ok}
        for transform in plugin.transforms(target) if open_nodes else ():
            transform(loaded.model, lambda node, wanted=open_nodes: node.name in wanted)
        (folder / name / "files").mkdir(parents=True)
        (folder / name / "work").mkdir()
        try:
            artifact = plugin.build(loaded.model, target, BuildOptions(), folder / name / "work")
        except BuildRefusedError as err:
            print(f"({name} refuses {model.stem}: {err})")
            continue
        for file, data in artifact.files.items():
            (folder / name / "files" / file).write_bytes(data)
        (folder / name / "metadata.json").write_text(json.dumps(artifact.metadata))
    _optimise_for_this_cpu(model, folder / "all.onnx")
    if _openvino_reads(model):
        (folder / "openvino-reads").touch()


def _openvino_reads(model: Path) -> bool:
    from nndeploy_openvino.library import core

    try:
        core().read_model(str(model))
    except RuntimeError:
        return False
    return True


def forms_of(folder: Path) -> list[str]:
    """Returns the forms that there are of the model built in `folder`."""
    absent = set() if (folder / "openvino-reads").exists() else {"ov onnx"}
    if not any((folder / "openvino" / "files").iterdir()):
        absent |= {"ov ir", "ov blob"}
    return [form for form in FORMS if form not in absent]


def _optimise_for_this_cpu(model: Path, out: Path) -> None:
    from nndeploy_onnxruntime.library import inference_session, onnxruntime, session_options

    options = session_options(1)
    options.graph_optimization_level = onnxruntime().GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = str(out)
    inference_session(model.read_bytes(), options)


def measure(form: str, folder: Path, model: Path) -> list[float]:
    """Returns the seconds of load, first result and a later call, in a fresh process."""
    command = [sys.executable, "-c", MEASURE, form, str(folder), str(model)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [float(seconds) for seconds in json.loads(done.stdout)]


def table(models: Path, names: list[str], rounds: int) -> dict[str, dict[str, list[list[float]]]]:
    """Prints the table and returns the raw samples: model -> form -> [load, first, call] in seconds."""
    samples: dict[str, dict[str, list[list[float]]]] = {}
    print("| model | form | load | first | load + first | a call, ms |\n| --- | --- | ---: | ---: | ---: | ---: |")
    for name in names:
        model = models / f"{name}.onnx"
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            np.savez(folder / "inputs.npz", **real_model(models, name).inputs)  # type: ignore[arg-type]  # one called allow_pickle is none of ours
            build(model, folder)
            times: dict[str, list[list[float]]] = {form: [] for form in forms_of(folder)}
            for _ in range(rounds):
                for form in times:
                    times[form].append(measure(form, folder, model))
        for form, taken in times.items():
            load, first, call = (statistics.median(column) * 1e3 for column in zip(*taken, strict=True))
            print(f"| {name} | {form} | {load:.1f} | {first:.1f} | {load + first:.1f} | {call:.3f} |", flush=True)
        samples[name] = times
    return samples


def spin(models: Path) -> None:
    """Prints what spinning threads cost: ms alone, ms in turn with OpenVINO, OpenVINO's ms, cores kept busy."""
    print("\n| ONNX Runtime's threads | alone, ms | in turn, ms | OpenVINO in turn, ms | cores busy, 3 ms pauses |")
    print("| --- | ---: | ---: | ---: | ---: |")
    model = models / "ultraface_rfb320.onnx"
    with tempfile.TemporaryDirectory() as temporary:
        np.savez(Path(temporary) / "inputs.npz", **real_model(models, "ultraface_rfb320").inputs)  # type: ignore[arg-type]  # one called allow_pickle is none of ours
        for kind, said in (
            ("spin", "spin on (default)"),
            ("stop", "stop at the end of a run (ours)"),
            ("never", "never"),
        ):
            command = [sys.executable, "-c", SPIN, kind, str(model), str(model), str(Path(temporary) / "inputs.npz")]
            figures = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            print(f"| {said} | {' | '.join(f'{figure:.2f}' for figure in figures)} |")


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--names", default=NAMES)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--samples", type=Path, help="file for the raw samples")
    arguments = parser.parse_args()
    if not names_in(arguments.models):
        sys.exit("the real models are not here; name their folder with --models")
    samples = table(arguments.models.resolve(), arguments.names.split(","), arguments.rounds)
    spin(arguments.models.resolve())
    if arguments.samples:
        arguments.samples.write_text(json.dumps(samples))


if __name__ == "__main__":
    main()
