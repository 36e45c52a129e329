# SPDX-License-Identifier: Apache-2.0
"""What a service costs: a request beside a call in the process, a bare echo, other servers, and under LoadGen.

    one       one client, milliseconds from request to answer: the call in the process, the service, an echo (the same
              library with a handler that reads the request and gives back as many bytes). "adds" is what the service
              takes beyond the call, "over echo" the part of it that is not the library's own
    many      several clients at once, requests a second
    loadgen   the same questions of LoadGen to the bundle in LoadGen's process and through the service, in turns.
              `single-stream`: the next question comes with the answer, both cores work on each. `server`: questions at
              random times, at half of the rate of the slowest way; VALID where 99 of 100 answers took at most 100 ms.
              "HTTP, tuning" makes trials all the while (`--tune`)
    processes a server by hand, the service in one process, and in two behind the same port: their memory together, what
              they share counted once (PSS); requests a second of 8 clients that ask all the time; how long a request at
              a random time takes at 80% of that rate, and for how much of that time a thread of the server waited for a
              core that others had. One server that takes the same time for each request has a 99th percentile of 4.9
              times the median at 80% (M/D/1), by arithmetic
    others    the same model in ONNX Runtime behind Triton and KServe (`make servers`), each with its own settings, no
              log; Triton's backend for ONNX Runtime is on no index, so the model runs in its backend for Python

Servers and clients are processes of their own over loopback; all but one engine are stopped while it is timed, rounds
are interleaved, figures are medians. Answers are compared with those of the call in the process.
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import figures
import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import rival_servers
import served_load
import served_loadgen
from interleaved import Array, Engine, Pace, Race, largest_error, race
from model_sets import real_model, real_names, with_constant_weights
from report import MODELS, Part, Report, add_race, bench_parser, run_parts, words

import nndeploy

CLIENTS, EACH = 8, 16
PROCESSES = (1, 2)
WIDTH, LAYERS = 2048, 7
"""Products of a model whose weights are large beside the service."""
LARGEST_ERROR = 1e-5
DIGITS = figures.ROOT / "examples" / "digits"
IN_PROCESS, PLAIN = "in the process", "ONNX Runtime in the process"
SLOW_MS = 50.0
"""Of one client: a server that takes longer is not asked by several, which would take minutes."""
LOADGEN = ("scenario", "answered", "LoadGen says", "queries/s:", "p50 ms:", "p90 ms:", "p99 ms:", "adds at p50:")

Asked = Mapping[str, tuple[str, Mapping[str, object]]]
"""Name of an engine -> its maker in serve_engines or "module:function", and its arguments beside the bundle."""


@dataclass(frozen=True)
class Case:
    """A model with its bundles, one of them in ONNX Runtime alone, and inputs."""

    name: str
    model: Path
    bundle: Path
    in_onnxruntime: Path
    inputs: Mapping[str, Array]


def main() -> None:
    parts: dict[str, Part] = {
        "one": _one, "many": _many, "loadgen": _loadgen, "processes": _processes, "others": _others,
    }  # fmt: skip
    parser = bench_parser(__doc__, parts)
    parser.add_argument("--only", type=words, default="ultraface_rfb320", help="real models beside the digit reader")
    parser.add_argument("--duration", type=float, default=3.0, help="of `loadgen`, `processes`: seconds of a test")
    add_race(parser, seconds=0.5, rounds=9)
    options = parser.parse_args()
    if "others" in options.parts and not rival_servers.ENVIRONMENT.exists():
        sys.exit("there is no Triton and no KServe: `make servers` installs them")
    with tempfile.TemporaryDirectory() as folder:
        options.cases = _cases(Path(folder), options.only)
        run_parts(options, "streams.md", "Services", parts)


def _cases(folder: Path, names: Sequence[str]) -> list[Case]:
    with np.load(DIGITS / "batch.npz") as arrays:
        found = [_case("digits", DIGITS / "digits.onnx", {"image": arrays["image"][:1]}, folder)]
    real = (real_model(MODELS, name) for name in real_names(MODELS) if name in names)
    return [*found, *(_case(one.name, one.path, one.inputs, folder) for one in real)]


def _case(name: str, model: Path, inputs: Mapping[str, Array], folder: Path) -> Case:
    case = Case(name, folder / f"{name}.onnx", folder / f"{name}.nnd", folder / f"{name}-onnxruntime.nnd", inputs)
    onnx.save(with_constant_weights(model), case.model)
    nndeploy.compile_model(model, case.bundle)
    nndeploy.compile_model(model, case.in_onnxruntime, nndeploy.CompileOptions(backends=("onnxruntime",)))
    return case


def _raced(case: Case, bundle: Path, asked: Asked, options: argparse.Namespace) -> Race:
    """Returns what a race of engines with the call in the process found."""
    every: Asked = {IN_PROCESS: ("in_process", {}), **asked}
    engines = [
        Engine(name, maker if ":" in maker else f"serve_engines:{maker}", {"bundle": str(bundle), **arguments})
        for name, (maker, arguments) in every.items()
    ]
    found = race(engines, case.inputs, Pace(options.seconds, options.rounds, 1.0))
    if found.refused:
        raise SystemExit(f"{case.name}: {found.refused}")
    for name, outputs in found.outputs.items():
        if "echo" not in name and (worst := largest_error(outputs, found.outputs[IN_PROCESS])) > LARGEST_ERROR:
            raise SystemExit(f"{case.name}: {name} differs from the call in the process by {worst:g}")
    return found


def _one(report: Report, options: argparse.Namespace) -> None:
    table = report.table("one client", "over", "in the process:", "service:", "echo:", "adds:", "over echo:")
    asked: Asked = {
        "HTTP": ("over_http", {}),
        "HTTP echo": ("over_http_echo", {}),
        "HTTP, JSON": ("over_http", {"is_binary": False}),
        "gRPC": ("over_grpc", {}),
        "gRPC echo": ("over_grpc_echo", {}),
    }
    for case in options.cases:
        found = _raced(case, case.bundle, asked, options)
        for name, echo in (("HTTP", "HTTP echo"), ("HTTP, JSON", "HTTP echo"), ("gRPC", "gRPC echo")):
            call, ours, bare = (found.ms(one) for one in (IN_PROCESS, name, echo))
            times = (call, ours, bare, ours - call, ours - call - bare)
            table.row(case.name, name, *(f"{ms:.3f}" for ms in times))


def _many(report: Report, options: argparse.Namespace) -> None:
    table = report.table(f"{CLIENTS} clients", "over", "requests a second:", "of calls one after the other:")
    several: dict[str, object] = {"clients": CLIENTS}
    batched = {**several, "options": ("--batch", str(CLIENTS))}
    asked: dict[str, tuple[str, Mapping[str, object]]] = {}
    for name, maker in (("HTTP", "over_http"), ("gRPC", "over_grpc")):
        asked |= {name: (maker, several), f"{name}, --batch {CLIENTS}": (maker, batched)}
        asked[f"{name} echo"] = (f"{maker}_echo", several)
    for case in options.cases:
        found = _raced(case, case.bundle, asked, options)
        alone = 1e3 / found.ms(IN_PROCESS)
        for name in (IN_PROCESS, *asked):
            rate = alone if name == IN_PROCESS else CLIENTS * EACH / found.ms(name) * 1e3
            table.row(case.name, name, f"{rate:,.0f}", f"{rate / alone:.0%}")


def _loadgen(report: Report, options: argparse.Namespace) -> None:
    table = report.table("model", *LOADGEN)
    for case in options.cases:
        for row in served_loadgen.rows(case.name, case.bundle, case.inputs, options.duration, options.rounds):
            table.row(case.name, *row)


def _processes(report: Report, options: argparse.Namespace) -> None:
    table = report.table("model", "processes:", "MiB in memory:", f"{CLIENTS} clients, requests a second:",
                         "at 80%, p50 ms:", "p99 ms:", "p99 over p50:", "waits for a core:")  # fmt: skip
    digits = options.cases[0]
    with tempfile.TemporaryDirectory() as folder:
        wide, bundle = Path(folder) / "wide.onnx", Path(folder) / "one.nnd"
        onnx.save(_wide(), wide)
        for name, model, inputs in (
            (digits.name, digits.model, digits.inputs),
            (f"{LAYERS} products of {WIDTH} x {WIDTH}", wide, {"x": np.ones((1, WIDTH), np.float32)}),
        ):
            nndeploy.compile_model(model, bundle, nndeploy.CompileOptions(backends=("native",)))
            for row in served_load.rows(bundle, inputs, PROCESSES, CLIENTS, options.duration, options.rounds):
                table.row(name, *row)


def _wide() -> onnx.ModelProto:
    """Returns a model of 112 MB of weights, all of which a call reads."""
    steps = " ".join(f"h{i + 1} = MatMul(h{i}, w{i})" for i in range(LAYERS))
    text = f"""<ir_version: 8, opset_import: ["": 17]>
g (float[1,{WIDTH}] x) => (float[1,{WIDTH}] y) {{ h0 = Relu(x) {steps} y = Relu(h{LAYERS}) }}"""
    model = onnx.parser.parse_model(text)
    draw = np.random.default_rng(0)
    for i in range(LAYERS):
        weights = draw.standard_normal((WIDTH, WIDTH)).astype(np.float32) / np.float32(WIDTH**0.5)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, f"w{i}"))
    return model


def _others(report: Report, options: argparse.Namespace) -> None:
    versions = ", ".join(f"{name} {version}" for name, version in rival_servers.versions().items())
    report.text(f"Other servers: {versions}.")
    table = report.table("model", "server", "over", "in the process, ms:", "one client, ms:", "adds, ms:",
                         f"{CLIENTS} clients, requests a second:")  # fmt: skip
    for case in options.cases:
        servers = _servers(case)
        one = _servers_raced(case, servers, options)
        fast = {name: server for name, server in servers.items() if one.ms(name) < SLOW_MS}
        many = _servers_raced(case, fast, options, clients=CLIENTS)
        for name in servers:
            call, ms = one.ms(IN_PROCESS if name.startswith("service") else PLAIN), one.ms(name)
            rate = f"{CLIENTS * EACH / many.ms(name) * 1e3:,.0f}" if name in fast else "not asked"
            table.row(case.name, *name.split(), f"{call:.3f}", f"{ms:.3f}", f"{ms - call:.3f}", rate)


def _servers(case: Case) -> Asked:
    found: dict[str, tuple[str, Mapping[str, object]]] = {}
    for protocol in ("HTTP", "gRPC"):
        found[f"service {protocol}"] = (f"over_{protocol.lower()}", {})
        for name in ("Triton", "KServe"):
            told = {"model": str(case.model), "protocol": protocol.lower()}
            found[f"{name} {protocol}"] = (f"rival_servers:{name.lower()}", told)
    return found


def _servers_raced(case: Case, servers: Asked, options: argparse.Namespace, **more: object) -> Race:
    asked = {name: (maker, {**told, **more}) for name, (maker, told) in servers.items()}
    plain = ("rival_servers:in_process", {"model": str(case.model)})
    return _raced(case, case.in_onnxruntime, {PLAIN: plain, **asked}, options)


if __name__ == "__main__":
    main()
