# SPDX-License-Identifier: Apache-2.0
"""Start: load and first result of models, what a compile costs, the overhead of a call, many weights, the command.

    compile   `nndeploy compile MODEL` of the digit reader and every real model, nothing from a cache: processor and
              wall time of all its processes, the most memory that they have together, and the wall time of each stage;
              with `--other` beside another version, in turns; the least of `--compiles`
    models    load, first and second call of a bundle of `native`, of ONNX Runtime and OpenVINO from the .onnx file;
              processor time of `nndeploy compile` and its children
    large     `nndeploy compile` of encoders with random weights, `--layers` of 50 MB each, as `compile`; then load,
              first call, memory over the weights (at the peak, held, and of the process alone), of the bundle, also
              with `--share-weights`, of one that ONNX Runtime runs, and of ONNX Runtime with the .onnx file
    weights   a network of 2048 x 2048 products: load, first call, peak and held memory over the weights
    call      `Program.run` over a bare session of ONNX Runtime, on the digit reader
    isolation a call of a submodel in a process of its own, beside the same call here, by the size of its values
    bits      outputs of libnndeploy beside those of Python, bit for bit, on one thread and on two: every real model and
              exported graph of which each submodel has a variant of `native`
    programs  programs that `nndeploy export` writes, beside Python with the same bundle: bytes; a process from start
              to first result, its memory, and a call; outputs are the same bits
    command   wall time of `nndeploy --version`, of `import nndeploy.runtime.program`, and of an empty Python

Every measurement but of `call` is a fresh process in which the library was imported before the clock starts; the page
cache holds the files, engines take turns, medians are printed. Outputs are compared with the recorded ones.
"""

import argparse
import compileall
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
import onnx.parser
from commands import NNDEPLOY, ran
from figures import ROOT
from interleaved import largest_error
from libnndeploy_call import Call
from model_sets import EXPORTED, REAL, Subject, all_names, compiled, encoder, real_model, subject
from report import Part, Report, Table, add_models, bench_parser, run_parts, words
from whole_compile import Compile, children_seconds, whole_compile

GOALS = {"first result": 5.0, "compile": 1500.0, "load": 100.0, "peak": 1.3, "overhead": 25.0}
"""Milliseconds; processor milliseconds; milliseconds; peak memory over the weights; microseconds."""
DIGITS_SECONDS, MEDIAN_SECONDS = 1.0, 3.0
"""Goals of `compile` on the clock: of the digit reader, and the median of the real models, which are below 10 MB."""
TOLERANCE = 1e-4
SIZE, CALLS = 2048, 5000
NEGATED = '<ir_version: 10, opset_import: ["" : 21]> g (float[n] x) => (float[n] y) { y = Neg(x) }'
SIZES = (2, 1 << 10, 1 << 14, 3 * 224 * 224, 1 << 22)
"""Numbers of floats that come in, and go out, of `isolation`."""
NOT_BY_NATIVE = ("random_forest_iris", "superres_ortext")
"""Real models that have maps or images."""
SHARED = "nndeploy --share-weights"
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
ENGINES = {
    "nndeploy": """
from nndeploy import LoadOptions, load_bundle
def load(path):
    program = load_bundle(path, LoadOptions(threads=threads))
    return lambda inputs: program.run(inputs)
""",
    SHARED: """
from nndeploy import LoadOptions, load_bundle
def load(path):
    program = load_bundle(path, LoadOptions(threads=threads, share_weights=True))
    return lambda inputs: program.run(inputs)
""",
    "onnxruntime": """
import onnxruntime
from engines import ort_session
def load(path):
    session = ort_session(path, threads)
    return lambda inputs: dict(zip([one.name for one in session.get_outputs()], session.run(None, inputs)))
""",
    "openvino": """
import openvino
from engines import openvino_compiled
def load(path):
    request = openvino_compiled(path, threads).create_infer_request()
    return lambda inputs: {next(iter(port.get_names())): value for port, value in request.infer(inputs).items()}
""",
}
MEASURE = """
import json, sys, time
from functools import partial
from pathlib import Path
import numpy as np
folder, path, warm, threads = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
{engine}
def mebibytes(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(field))) / 1024
inputs = dict(np.load(folder / "inputs.npz"))
if warm:
    load(warm)({{name: value[:, :16] for name, value in inputs.items()}})
before, own, times = mebibytes("VmRSS"), mebibytes("RssAnon"), [time.perf_counter()]
call = load(path)
times.append(time.perf_counter())
outputs = call(inputs)
times.append(time.perf_counter())
call(inputs)
times.append(time.perf_counter())
memory = [mebibytes("VmHWM") - before, mebibytes("VmRSS") - before, mebibytes("RssAnon") - own]
np.savez(folder / "outputs.npz", **{{name: np.asarray(value) for name, value in outputs.items()}})
print(json.dumps([*((after - before) * 1e3 for before, after in zip(times, times[1:])), *memory]))
"""


def main() -> None:
    parts: dict[str, Part] = {
        "compile": _compile, "large": _large, "models": _models, "weights": _weights, "call": _call,
        "isolation": _isolation, "bits": _bits, "programs": _programs, "command": _command,
    }  # fmt: skip
    parser = bench_parser(__doc__, parts)
    add_models(parser, zoo=True)
    parser.add_argument("--layers", type=lambda text: [*map(int, words(text))], default="2,7,24", help="of `large`")
    parser.add_argument("--other", help="of `compile`: the Python of another version")
    parser.add_argument("--compiles", type=int, default=1, help="of `compile`: of each model, by each version")
    parser.add_argument("--names", type=words, default="ultraface_rfb320", help="of `models`")
    parser.add_argument("--mebibytes", type=int, default=96, help="of `weights`")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=200, help="of `isolation`")
    options = parser.parse_args()
    for package in ("nndeploy", "backends"):
        compileall.compile_dir(ROOT / package, quiet=2)  # as an installer does
    run_parts(options, "speed.md", "Start", parts)


def _compile(report: Report, options: argparse.Namespace) -> None:
    table = report.table("model", "file MB:", "processor s:", "wall s:", "peak MB:", "wall s of the stages")
    versions = [*filter(None, (options.other, sys.executable))]
    found: dict[str, list[Compile]] = {}
    for path in (DIGITS, *sorted(options.models.glob("*.onnx"))):
        with tempfile.TemporaryDirectory() as folder:
            turns = [
                [whole_compile(path, Path(folder) / "model.nnd", python) for python in versions]
                for _ in range(options.compiles)
            ]
        if None in turns[0]:
            continue  # operators that this installation lacks
        found[path.stem] = each = [
            _least([one for one in runs if one is not None]) for runs in zip(*turns, strict=True)
        ]
        stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in each[-1].stages.items())
        figures = (
            [f"{one.processor:.1f}" for one in each],
            [f"{one.wall:.1f}" for one in each],
            [f"{one.peak / 1e6:.0f}" for one in each],
        )
        size = path.stat().st_size / 1e6
        table.row(path.stem, f"{size:.1f}", *(" -> ".join(of_each) for of_each in figures), stages)
    for i, python in enumerate(versions):
        digits, *real = (each[i] for each in found.values())
        processor, wall = (statistics.median(getattr(one, name) for one in real) for name in ("processor", "wall"))
        report.text(
            f"Median of the real models{'' if python == sys.executable else ' before'}: {processor:.1f} s of processor "
            f"time, {wall:.1f} s on the clock; the goal is {MEDIAN_SECONDS:g} s. The digit reader: "
            f"{digits.processor:.1f} s and {digits.wall:.1f} s; the goal is {DIGITS_SECONDS:g} s."
        )
    report.sample(compiles={name: [asdict(one) for one in each] for name, each in found.items()})


def _least(runs: Sequence[Compile]) -> Compile:
    """Returns the least that some compiles of a model took, of each figure; the stages are those of the fastest."""
    fastest = min(runs, key=lambda one: one.wall)
    return Compile(min(one.processor for one in runs), fastest.wall, min(one.peak for one in runs), fastest.stages)


def _large(report: Report, options: argparse.Namespace) -> None:
    taken = ("processor s:", "wall s:", "peak MB:", "peak / weights:")
    table = report.table("layers:", "weights MB:", *taken, "wall s of the stages")
    runs = list[list[str]]()
    for layers in options.layers:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            path, bundle = folder / "model.onnx", folder / "model.nnd"
            onnx.save(encoder(layers), path, save_as_external_data=True, location="model.data")
            megabytes = (folder / "model.data").stat().st_size / 1e6
            one = whole_compile(path, bundle)
            assert one is not None
            stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in one.stages.items())
            figures = (f"{figure:.0f}" for figure in (megabytes, one.processor, one.wall, one.peak / 1e6))
            table.row(str(layers), *figures, f"{one.peak / 1e6 / megabytes:.1f}", stages)
            runs += [[str(layers), *run] for run in _runs_of_encoder(folder, path, bundle, megabytes, options.threads)]
            report.sample(layers=layers, megabytes=megabytes, compile=asdict(one))
    measured = ("load ms:", "first call ms:", "second call ms:")
    memory = ("peak / weights:", "held / weights:", "of its own / weights:")
    table = report.table("layers:", "engine", *measured, *memory)
    for run in runs:
        table.row(*run)


def _runs_of_encoder(folder: Path, path: Path, bundle: Path, megabytes: float, threads: int) -> Iterator[list[str]]:
    """Yields what a fresh process of each engine takes for 64 tokens."""
    np.savez(folder / "inputs.npz", ids=np.arange(64)[None])
    small = folder / "small.onnx"
    onnx.save(encoder(1, 64), small)
    _compiled(small, small.with_suffix(".nnd"))
    fallback, small_fallback = folder / "fallback.nnd", folder / "small_fallback.nnd"
    for model, made in ((path, fallback), (small, small_fallback)):
        _compiled(model, made, backends="onnxruntime")
    outputs = []
    for name, engine, file, warm in (
        ("nndeploy", "nndeploy", bundle, small.with_suffix(".nnd")),
        (SHARED + ", the first", SHARED, bundle, small.with_suffix(".nnd")),
        (SHARED, SHARED, bundle, small.with_suffix(".nnd")),
        ("nndeploy --backends onnxruntime", "nndeploy", fallback, small_fallback),
        ("onnxruntime", "onnxruntime", path, small),
    ):
        load, first, second, *memory = _measured(engine, folder, file, threads, warm)
        with np.load(folder / "outputs.npz") as got:
            outputs.append([got[name] for name in got.files])
        shares = (mebibytes * 2**20 / 1e6 / megabytes for mebibytes in memory)
        yield [name, *(f"{one:.0f}" for one in (load, first, second)), *(f"{share:.2f}" for share in shares)]
    assert max(largest_error(outputs[-1], one) for one in outputs) <= TOLERANCE


def _models(report: Report, options: argparse.Namespace) -> None:
    columns = ("load ms:", "first call ms:", "both ms:", "second call ms:", "compile, processor ms:")
    table = report.table("model", "engine", *columns)
    for name in options.names:
        model = real_model(options.models, name)
        with tempfile.TemporaryDirectory() as temporary:
            folder, bundle = Path(temporary), Path(temporary) / "model.nnd"
            np.savez(folder / "inputs.npz", **model.inputs)  # type: ignore[arg-type]  # none is called allow_pickle
            compiles = [_compiled(model.path, bundle) for _ in range(options.rounds)]
            samples: dict[str, list[list[float]]] = {engine: [] for engine in ENGINES if engine != SHARED}
            for _ in range(options.rounds):
                for engine, taken in samples.items():
                    path = bundle if engine == "nndeploy" else model.path
                    taken.append(_measured(engine, folder, path, options.threads))
                    with np.load(folder / "outputs.npz") as got:
                        error = largest_error([got[one] for one in model.outputs], list(model.outputs.values()))
                    assert error <= TOLERANCE, (engine, name, error)
        for engine, taken in samples.items():
            load, first, second = (statistics.median(column) for column in list(zip(*taken, strict=True))[:3])
            both = statistics.median(one[0] + one[1] for one in taken)
            compile_ms = f"{statistics.median(compiles):.0f}" if engine == "nndeploy" else ""
            table.row(name, engine, f"{load:.1f}", f"{first:.1f}", f"{both:.1f}", f"{second:.1f}", compile_ms)
        report.sample(model=name, samples=samples, compiles=compiles)
    report.text(f"Goals: both {GOALS['first result']:g} ms, compile {GOALS['compile']:g} ms.")


def _measured(engine: str, folder: Path, path: Path, threads: int, warm: str | Path = "") -> list[float]:
    """Returns milliseconds of load, first and second call, then MiB at the peak, held, and not to be shared."""
    command = [sys.executable, "-c", MEASURE.format(engine=ENGINES[engine]), str(folder), str(path), str(warm)]
    answer = ran([*command, threads], cwd=Path(__file__).parent).answer  # where `engines` is found
    return [float(value) for value in json.loads(answer.splitlines()[-1])]


def _compiled(model: Path, bundle: Path, *more: str, backends: str = "native") -> float:
    """Returns the milliseconds of processor time that the command took."""
    before = children_seconds()
    assert ran([*NNDEPLOY, "compile", model, "-o", bundle, "--backends", backends, *more]).code == 0
    return (children_seconds() - before) * 1e3


def _weights(report: Report, options: argparse.Namespace) -> None:
    count = max(1, options.mebibytes * 2**20 // (4 * SIZE * SIZE))
    mebibytes = count * 4 * SIZE * SIZE / 2**20
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        np.savez(folder / "inputs.npz", x=np.ones((1, SIZE), np.float32))
        small, large = _products(folder, 16, 1), _products(folder, SIZE, count)
        taken = [_measured("nndeploy", folder, large, options.threads, small) for _ in range(options.rounds)]
    load, first, _, peak, held, _ = (statistics.median(column) for column in zip(*taken, strict=True))
    table = report.table("weights MiB:", "load ms:", "first call ms:", "peak / weights:", "held / weights:")
    table.row(f"{mebibytes:g}", f"{load:.1f}", f"{first:.1f}", f"{peak / mebibytes:.2f}", f"{held / mebibytes:.2f}")
    report.text(f"Goals: load {GOALS['load']:g} ms, peak {GOALS['peak']:g}.")


def _products(folder: Path, size: int, count: int) -> Path:
    """Returns the bundle of `count` products by matrices of size x size."""
    body = " ".join(f"h{i + 1} = MatMul(h{i}, w{i})" for i in range(count))
    given, taken = f"float[1,{size}] x", f"float[1,{size}] h{count}"
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g ({given}) => ({taken}) {{ h0 = Identity(x) {body} }}'
    )
    dice = np.random.default_rng(0)
    for i in range(count):
        matrix = dice.standard_normal((size, size), np.float32) / np.float32(size**0.5)
        model.graph.initializer.append(onnx.numpy_helper.from_array(matrix, f"w{i}"))
    path = folder / f"{size}.onnx"
    onnx.save(model, path)
    _compiled(path, path.with_suffix(".nnd"), "--goldens", "0")
    return path.with_suffix(".nnd")


def _call(report: Report, options: argparse.Namespace) -> None:
    from engines import ort_session

    import nndeploy

    image = {"image": np.random.default_rng(0).random((1, 1, 8, 8), np.float32) * 16}
    session = ort_session(str(DIGITS), 1)
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder) / "digits.nnd"
        nndeploy.compile_model(DIGITS, bundle, nndeploy.CompileOptions(backends=("onnxruntime",), keep_fallback=False))
        with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(threads=1)) as program:
            assert largest_error(list(program.run(image).values()), session.run(None, image)) <= TOLERANCE
            calls = {"Program.run": lambda: program.run(image), "bare session": lambda: session.run(None, image)}
            us = {name: seconds * 1e6 for name, seconds in _in_turns(calls, CALLS).items()}
    table = report.table("call", "median us:", "goal:")
    for name, value in us.items():
        table.row(name, f"{value:.1f}", "")
    table.row("overhead", f"{us['Program.run'] - us['bare session']:.1f}", f"{GOALS['overhead']:g}")


def _isolation(report: Report, options: argparse.Namespace) -> None:
    import nndeploy

    table = report.table("bytes in, and out:", "here us:", "in a worker:", "more, median:", "more, fastest tenth:")
    model, bundle = options.folder / "m.onnx", options.folder / "m.nnd"
    onnx.save(onnx.parser.parse_model(NEGATED), model)
    nndeploy.compile_model(model, bundle, nndeploy.CompileOptions(backends=("onnxruntime",), objective="priority"))
    how = [nndeploy.LoadOptions(threads=1, isolate=isolate) for isolate in ("none", "all")]
    with nndeploy.load_bundle(bundle, how[0]) as here, nndeploy.load_bundle(bundle, how[1]) as there:
        for size in SIZES:
            x = {"x": np.ones(size, np.float32)}
            calls = {"here": partial(here.run, x), "there": partial(there.run, x)}
            _in_turns(calls, 1)
            found = [[1e6 * one for one in times] for times in _times_in_turns(calls, options.calls).values()]
            medians = [statistics.median(one) for one in found]
            tenths = [statistics.quantiles(one, n=10)[0] for one in found]
            more = medians[1] - medians[0], tenths[1] - tenths[0]
            table.row(f"{4 * size:,}", *(f"{one:.1f}" for one in (*medians, *more)))


def _bits(report: Report, options: argparse.Namespace) -> None:
    counts: dict[str, Counter[str]] = {group: Counter() for group in (REAL, EXPORTED)}
    others = list[str]()
    for name in all_names(options.zoo, options.models):
        one = subject(name, options.zoo, options.models)
        found = _compared_bits(one, options.folder / f"{name}.nnd")
        counts[one.group][found] += 1
        if found != "same":
            others.append(f"{name}: {found}")
    table = report.table("models", "number:", "whole by native, of tensors:", "same bits:")
    for group, found_of in counts.items():
        whole = found_of["same"] + found_of["OTHER BITS"]
        table.row(group, found_of.total(), whole, found_of["same"])
    report.text("\n".join(f"* {other}" for other in others))


def _compared_bits(one: Subject, bundle: Path) -> str:
    """Returns "same", "OTHER BITS", or why a model is not compared."""
    import nndeploy
    from nndeploy.errors import NndeployError

    try:
        compiled(one.path, bundle, backends=("native",), objective="priority")
        for threads in (1, 2):
            with nndeploy.load_bundle(bundle, threads=threads) as program:
                wanted = program.run(one.inputs)
            values = (*one.inputs.values(), *wanted.values())
            if any(not isinstance(value, np.ndarray) or value.dtype.kind in "OSU" for value in values):
                return "texts or maps"
            call = Call(str(bundle), one.inputs, threads)
            call.run()
            for found, array in zip(call.outputs(), wanted.values(), strict=True):
                if (found.dtype, found.shape, found.tobytes()) != (array.dtype, array.shape, array.tobytes()):
                    return "OTHER BITS"
    except NndeployError as err:
        return f"not by native: {err.code}"
    return "same"


_BY_PYTHON = """
import sys, numpy as np
from nndeploy import load_bundle
inputs = dict(np.load(sys.argv[2]))
with load_bundle(sys.argv[1], threads=1) as program:
    outputs = program.run(inputs)
np.savez(sys.argv[3], *[outputs[one.name] for one in program.outputs])
"""


def _programs(report: Report, options: argparse.Namespace) -> None:
    columns = (
        "program MB", "bundle kB", "first result ms", "Python", "of a processor", "Python", "memory MB", "Python",
        "call ms", "Python",
    )  # fmt: skip
    table = report.table("model", *(f"{name}:" for name in columns))
    for path in (DIGITS, *sorted(options.models.glob("*.onnx"))):
        if path.stem not in NOT_BY_NATIVE:
            _program(table, path, options)


def _program(table: Table, model: Path, options: argparse.Namespace) -> None:
    import nndeploy
    from nndeploy.bundle.reader import open_bundle
    from nndeploy.runtime.exported_program import export_program

    name = model.stem
    bundle, program = options.folder / f"{name}.nnd", options.folder / name
    nndeploy.compile_model(model, bundle, backends=("native",), objective="priority", threads=1)
    with open_bundle(bundle) as opened:
        written = export_program(opened, program, platform.machine())
        inputs = opened.values(opened.manifest.goldens[0].inputs)
        order = [one.name for one in opened.manifest.outputs]
    np.savez(options.folder / "inputs.npz", **inputs)
    given = []
    for number, (key, array) in enumerate(inputs.items()):
        np.save(options.folder / f"{number}.npy", array)
        given += ["-i", f"{key}=@{options.folder / f'{number}.npy'}"]
    out = options.folder / f"{name}-out"
    here = [str(program), *given, "--threads", "1"]
    files = [str(options.folder / f"{one}.npz") for one in ("inputs", name)]
    python = [sys.executable, "-c", _BY_PYTHON, str(bundle), *files]
    commands = {"program": [*here, "-o", str(out)], "python": python}
    found: dict[str, list[tuple[float, float, float]]] = {key: [] for key in commands}
    _process(python)  # which Python may have to compile first
    for _ in range(options.rounds):
        for key, command in commands.items():
            found[key].append(_process(command))
    wanted = np.load(options.folder / f"{name}.npz")
    for number, key in enumerate(order):
        plain = "".join(c if c.isalnum() or c in "._-" else "_" for c in key)
        assert np.load(out / f"{plain}.npy").tobytes() == wanted[f"arr_{number}"].tobytes(), key
    with nndeploy.load_bundle(bundle, threads=1) as loaded:
        calls: dict[str, list[float]] = {"program": [], "python": []}
        for _ in range(options.rounds):
            told = subprocess.run([*here, "--bench", "0.2"], check=True, capture_output=True, text=True).stdout
            calls["program"].append(float(told.split("median ")[1].split()[0]))
            times, end = list[float](), time.perf_counter() + 0.2
            while time.perf_counter() < end:
                start = time.perf_counter()
                loaded.run(inputs)
                times.append(time.perf_counter() - start)
            calls["python"].append(statistics.median(times) * 1e3)
    taken = [statistics.median([one[i] for one in found[key] if one[i]] or [0.0]) for i in range(3) for key in commands]
    each = [statistics.median(calls[key]) for key in commands]
    sizes = f"{written.num_bytes / 1e6:.1f}", f"{written.bundle_bytes / 1e3:,.0f}"
    table.row(name, *sizes, *(f"{one:.1f}" for one in taken), *(f"{one:.4f}" for one in each))


def _process(command: list[str]) -> tuple[float, float, float]:
    """Returns milliseconds of a process from start to end, those of a processor, and the most megabytes resident.

    These are 0 of a process that ended before it was looked at.
    """
    start, most, ended = time.perf_counter(), 0.0, 0
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    told = Path(f"/proc/{process.pid}/status")  # of what is run now: `ru_maxrss` is of what was before it too
    while not ended:
        with contextlib.suppress(OSError, StopIteration):
            lines = told.read_text(encoding="ascii").splitlines()
            most = max(most, float(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024)
        ended, process.returncode, used = os.wait4(process.pid, os.WNOHANG)
    assert process.returncode == 0, command
    return (time.perf_counter() - start) * 1e3, (used.ru_utime + used.ru_stime) * 1e3, most


def _command(report: Report, options: argparse.Namespace) -> None:
    commands = {
        "python -c pass": ["-c", "pass"],
        "nndeploy --version": ["-m", "nndeploy", "--version"],
        "import nndeploy.runtime.program": ["-c", "import nndeploy.runtime.program"],
    }

    def call_of(arguments: list[str]) -> Callable[[], Any]:
        return lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True)

    table = report.table("start", "median s:")
    for name, seconds in _in_turns({name: call_of(one) for name, one in commands.items()}, options.rounds).items():
        table.row(name, f"{seconds:.3f}")


def _in_turns(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    return {name: statistics.median(found) for name, found in _times_in_turns(calls, rounds).items()}


def _times_in_turns(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return times


if __name__ == "__main__":
    main()
