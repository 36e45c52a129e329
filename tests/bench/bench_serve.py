# SPDX-License-Identifier: Apache-2.0
"""What a service costs: a request beside a call in the process, a bare echo, other servers, and under LoadGen."""

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import figures
import numpy as np
import onnx
import rival_servers
import served_loadgen
from constant_weights import with_constant_weights
from interleaved import Array, Engine, Pace, Race, largest_error, race
from native_engines import machine_name
from real_models import MODELS, names_in, real_model

import nndeploy

CLIENTS = 8
EACH = 16
LARGE = "ultraface_rfb320"
LARGEST_ERROR = 1e-5
DIGITS = figures.ROOT / "examples" / "digits"
HTTP, HTTP_ECHO, JSON = "HTTP", "HTTP echo", "HTTP, JSON"
GRPC, GRPC_ECHO = "gRPC", "gRPC echo"
IN_PROCESS, BATCHED_HTTP, BATCHED_GRPC = "in the process", "HTTP, --batch 8", "gRPC, --batch 8"
LOADGEN_SECONDS, LOADGEN_ROUNDS = 3.0, 5
SLOW_MS = 50.0
"""Of one client: a server that takes longer is not asked by several, which would take minutes."""

PAGE = """{header}# A service: figures

`make bench-serve ARGS=--write`. Servers and clients are processes of their own on one machine, over loopback. All but
one engine are stopped while it is timed, rounds are interleaved, figures are medians. The clients are asynchronous, of
aiohttp and grpcio. An echo is the same library with a handler that reads the request and gives back as many bytes as
the service does. Each answer of the service was compared with that of the call in the process, within {error:g} of the
largest value. A batch was asked for of both models; {large}, where it is there, takes one row at a time.
The load average when it began was {load:.1f}, of programs that have nothing to do with this.

## One client

Milliseconds from request to answer, raw bytes unless JSON is said. "Adds" is what the service takes beyond the call in
the process, "over echo" the part of it that is not the library's own.

{one}
## {clients} clients at once

Requests a second, each client {each} requests one after the other over a connection of its own; server and clients
share the machine's cores.

{many}
## Under MLPerf's LoadGen

The same questions of LoadGen {loadgen} to the bundle in LoadGen's process, and through the service, each way {rounds}
tests of {seconds:g} seconds in turns (`make bench-loadgen ARGS=--served` does it for other models). In `single-stream`
a question comes when the one before is answered, and both cores work on each. In `server` questions come at random
times, at half of the rate that the slowest way was able to answer; {at_once} calls run at once with a thread each, and
through the service {clients_of_server} clients wait for answers. What the client takes to write a request and to read
the answer is in the latency. A test of `server` is VALID where 99 of 100 answers took at most 100 ms.

{loadgen_rows}
## Beside other servers of the protocol

The same model in ONNX Runtime {onnxruntime} behind each server, asked by the same client in interleaved rounds: for the
service a bundle of that backend, for the others the model, so what the call takes in a process is told for each;
`make servers` installs the others. Triton is the server that nvidia-pytriton {pytriton} holds. Its backend for
ONNX Runtime is on no index, so the model runs in its backend for Python, whose process is beside the server, with
values in shared memory. KServe {kserve} is the server of that package, which is Python, as the service is. All
servers have the settings that they come with, but no log; ONNX Runtime stops its threads between calls in each, as the
service lets it. Who takes longer than {slow_ms:g} ms with one client was not asked by several.

{others}
Triton's documentation has figures of another machine: of the 708 microseconds that a request of the model `simple`
takes over HTTP on average, the model computes for 257
([quick start of Perf Analyzer](https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/perf_analyzer/docs/quick_start.html)),
so 451 are what the table above calls "adds". OpenVINO Model Server is in no package of an index. Its documentation has
rates of several clients over Ethernet, and no figure of what a request takes beyond the call in a process
([how they are measured](https://docs.openvino.ai/2025/about-openvino/performance-benchmarks/getting-performance-numbers.html)).
"""
ONE = ("model", "over", "in the process", "service", "echo", "adds", "over echo")
MANY = ("model", "over", "requests a second", "of calls one after the other in the process")
OTHERS = (
    "model",
    "server",
    "over",
    "in the process, ms",
    "one client, ms",
    "adds, ms",
    f"{CLIENTS} clients, requests a second",
)

Asked = Mapping[str, tuple[str, Mapping[str, object]]]
"""Name of an engine -> "module:function", and its arguments beside the bundle."""


@dataclass(frozen=True)
class Case:
    """A model with its bundles, one of them in ONNX Runtime alone, and inputs."""

    name: str
    model: Path
    bundle: Path
    in_onnxruntime: Path
    inputs: Mapping[str, Array]


def cases(folder: Path) -> list[Case]:
    """Returns the digit reader, and a larger real model where it is there."""
    found = [_case("digits", DIGITS / "digits.onnx", {"image": _digit()}, folder)]
    if LARGE in names_in(MODELS):
        model = real_model(MODELS, LARGE)
        found.append(_case(LARGE, model.path, model.inputs, folder))
    return found


def _case(name: str, model: Path, inputs: Mapping[str, Array], folder: Path) -> Case:
    case = Case(name, folder / f"{name}.onnx", folder / f"{name}.nnd", folder / f"{name}-onnxruntime.nnd", inputs)
    onnx.save(with_constant_weights(model), case.model)
    nndeploy.compile_model(model, case.bundle)
    nndeploy.compile_model(model, case.in_onnxruntime, nndeploy.CompileOptions(backends=("onnxruntime",)))
    return case


def _digit() -> Array:
    with np.load(DIGITS / "batch.npz") as arrays:
        image: Array = arrays["image"][:1]
        return image


def raced(case: Case, bundle: Path, asked: Asked, pace: Pace) -> Race:
    """Returns what a race of engines found.

    Raises:
        SystemExit: an engine could not be made, or an answer differs from that of the process.
    """
    every = [Engine(name, maker, {"bundle": str(bundle), **arguments}) for name, (maker, arguments) in asked.items()]
    found = race(every, case.inputs, pace)
    if found.refused:
        raise SystemExit(f"{case.name}: {found.refused}")
    for name, outputs in found.outputs.items():
        if "echo" not in name and (worst := largest_error(outputs, found.outputs[IN_PROCESS])) > LARGEST_ERROR:
            raise SystemExit(f"{case.name}: {name} differs from the call in the process by {worst:g}")
    return found


def head(columns: Sequence[str], num_texts: int = 2) -> list[str]:
    """Returns the head of a table, of which all columns but the first ones hold figures."""
    return [f"| {' | '.join(columns)} |", "|" + " --- |" * num_texts + " ---: |" * (len(columns) - num_texts)]


def one_client(case: Case, pace: Pace) -> list[str]:
    """Returns the rows of a model with one client."""
    asked: Asked = {
        IN_PROCESS: ("serve_engines:in_process", {}),
        HTTP: ("serve_engines:over_http", {}),
        HTTP_ECHO: ("serve_engines:over_http_echo", {}),
        JSON: ("serve_engines:over_http", {"is_binary": False}),
        GRPC: ("serve_engines:over_grpc", {}),
        GRPC_ECHO: ("serve_engines:over_grpc_echo", {}),
    }
    found = raced(case, case.bundle, asked, pace)
    rows = []
    for name, echo in ((HTTP, HTTP_ECHO), (JSON, HTTP_ECHO), (GRPC, GRPC_ECHO)):
        call, ours, bare = found.ms(IN_PROCESS), found.ms(name), found.ms(echo)
        adds = ours - call
        rows.append(f"| {case.name} | {name} | {call:.3f} | {ours:.3f} | {bare:.3f} | {adds:.3f} | {adds - bare:.3f} |")
    return rows


def many_clients(case: Case, pace: Pace) -> list[str]:
    """Returns the rows of a model with several clients."""
    several: dict[str, object] = {"clients": CLIENTS}
    batched = {**several, "options": ("--batch", str(CLIENTS))}
    asked: Asked = {
        IN_PROCESS: ("serve_engines:in_process", {}),
        HTTP: ("serve_engines:over_http", several),
        BATCHED_HTTP: ("serve_engines:over_http", batched),
        HTTP_ECHO: ("serve_engines:over_http_echo", several),
        GRPC: ("serve_engines:over_grpc", several),
        BATCHED_GRPC: ("serve_engines:over_grpc", batched),
        GRPC_ECHO: ("serve_engines:over_grpc_echo", several),
    }
    found = raced(case, case.bundle, asked, pace)
    rates = {name: (1 if name == IN_PROCESS else CLIENTS * EACH) / found.ms(name) * 1e3 for name in asked}
    return [f"| {case.name} | {name} | {rates[name]:,.0f} | {rates[name] / rates[IN_PROCESS]:.0%} |" for name in asked]


def other_servers(case: Case, pace: Pace) -> list[str]:
    """Returns the rows of a model in ONNX Runtime behind several servers, asked by one client and by several."""
    rival = {"model": str(case.model)}
    plain = "ONNX Runtime in the process"
    servers: Asked = {
        "service | HTTP": ("serve_engines:over_http", {}),
        "service | gRPC": ("serve_engines:over_grpc", {}),
        "Triton | HTTP": ("rival_servers:triton", {**rival, "protocol": "http"}),
        "Triton | gRPC": ("rival_servers:triton", {**rival, "protocol": "grpc"}),
        "KServe | HTTP": ("rival_servers:kserve", {**rival, "protocol": "http"}),
        "KServe | gRPC": ("rival_servers:kserve", {**rival, "protocol": "grpc"}),
    }

    def found(names: Sequence[str], **more: object) -> Race:
        asked = {name: (servers[name][0], {**servers[name][1], **more}) for name in names}
        here: Asked = {IN_PROCESS: ("serve_engines:in_process", {}), plain: ("rival_servers:in_process", rival)}
        return raced(case, case.in_onnxruntime, {**here, **asked}, pace)

    one = found(list(servers))
    fast = [name for name in servers if one.ms(name) < SLOW_MS]
    many = found(fast, clients=CLIENTS)
    rows = []
    for name in servers:
        call = one.ms(IN_PROCESS if name.startswith("service") else plain)
        rate = f"{CLIENTS * EACH / many.ms(name) * 1e3:,.0f}" if name in fast else "not asked"
        rows.append(f"| {case.name} | {name} | {call:.3f} | {one.ms(name):.3f} | {one.ms(name) - call:.3f} | {rate} |")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/figures/serve-results.md")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each race (default: 9)")
    options = parser.parse_args()
    if not rival_servers.ENVIRONMENT.exists():
        sys.exit("there is no Triton and no KServe: `make servers` installs them")
    pace = Pace(seconds=0.5, rounds=options.rounds, warm_seconds=1.0)
    one, many, others, load = head(ONE), head(MANY), head(OTHERS, 3), os.getloadavg()[0]
    loadgen = list(served_loadgen.HEAD)
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(Path(folder)):
            one += one_client(case, pace)
            many += many_clients(case, pace)
            loadgen += served_loadgen.rows(case.name, case.bundle, case.inputs, LOADGEN_SECONDS, LOADGEN_ROUNDS)
            others += other_servers(case, pace)
    text = PAGE.format(
        header=figures.header(figures.figure("serve-results.md"), machine_name()), error=LARGEST_ERROR,
        one="\n".join(one) + "\n", many="\n".join(many) + "\n", clients=CLIENTS, each=EACH, load=load, large=LARGE,
        loadgen_rows="\n".join(loadgen) + "\n", rounds=LOADGEN_ROUNDS, seconds=LOADGEN_SECONDS,
        at_once=served_loadgen.CALLS_AT_ONCE, clients_of_server=served_loadgen.REQUESTS_AT_ONCE,
        others="\n".join(others) + "\n", loadgen=version("mlcommons-loadgen"), slow_ms=SLOW_MS,
        **rival_servers.versions(),
    )  # fmt: skip
    print(text)
    if options.write:
        (figures.FIGURES / "serve-results.md").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
