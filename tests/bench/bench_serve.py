# SPDX-License-Identifier: Apache-2.0
"""What a service costs: a request over HTTP and gRPC beside a call in the process and beside a bare echo."""

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import figures
import numpy as np
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

{many}"""
ONE = ("model", "over", "in the process", "service", "echo", "adds", "over echo")
MANY = ("model", "over", "requests a second", "of calls one after the other in the process")


@dataclass(frozen=True)
class Case:
    """A model with its bundle and inputs."""

    name: str
    bundle: Path
    inputs: Mapping[str, Array]


def cases(folder: Path) -> list[Case]:
    """Returns the digit reader, and a larger real model where it is there."""
    found = [Case("digits", folder / "digits.nnd", {"image": _digit()})]
    nndeploy.compile_model(DIGITS / "digits.onnx", found[0].bundle)
    if LARGE in names_in(MODELS):
        model = real_model(MODELS, LARGE)
        found.append(Case(LARGE, folder / f"{LARGE}.nnd", model.inputs))
        nndeploy.compile_model(model.path, found[-1].bundle)
    return found


def _digit() -> Array:
    with np.load(DIGITS / "batch.npz") as arrays:
        image: Array = arrays["image"][:1]
        return image


def raced(case: Case, engines: Mapping[str, tuple[str, dict[str, object]]], pace: Pace) -> Race:
    """Returns what a race of engines, each a function of `serve_engines` with arguments, found.

    Raises:
        SystemExit: an answer differs from that of the process.
    """
    every = [
        Engine(name, f"serve_engines:{function}", {"bundle": str(case.bundle), **arguments})
        for name, (function, arguments) in engines.items()
    ]
    found = race(every, case.inputs, pace)
    for name, outputs in found.outputs.items():
        if "echo" not in name and (worst := largest_error(outputs, found.outputs[IN_PROCESS])) > LARGEST_ERROR:
            raise SystemExit(f"{case.name}: {name} differs from the call in the process by {worst:g}")
    return found


def head(columns: Sequence[str]) -> list[str]:
    """Returns the head of a table, of which all columns but two hold figures."""
    return [f"| {' | '.join(columns)} |", "| --- | --- |" + " ---: |" * (len(columns) - 2)]


def one_client(case: Case, pace: Pace) -> list[str]:
    """Returns the rows of a model with one client."""
    engines: dict[str, tuple[str, dict[str, object]]] = {
        IN_PROCESS: ("in_process", {}),
        HTTP: ("over_http", {}), HTTP_ECHO: ("over_http_echo", {}), JSON: ("over_http", {"is_binary": False}),
        GRPC: ("over_grpc", {}), GRPC_ECHO: ("over_grpc_echo", {}),
    }  # fmt: skip
    found = raced(case, engines, pace)
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
    engines: dict[str, tuple[str, dict[str, object]]] = {
        IN_PROCESS: ("in_process", {}),
        HTTP: ("over_http", several), BATCHED_HTTP: ("over_http", batched), HTTP_ECHO: ("over_http_echo", several),
        GRPC: ("over_grpc", several), BATCHED_GRPC: ("over_grpc", batched), GRPC_ECHO: ("over_grpc_echo", several),
    }  # fmt: skip
    found = raced(case, engines, pace)
    rates = {name: (1 if name == IN_PROCESS else CLIENTS * EACH) / found.ms(name) * 1e3 for name in engines}
    return [
        f"| {case.name} | {name} | {rates[name]:,.0f} | {rates[name] / rates[IN_PROCESS]:.0%} |" for name in engines
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/figures/serve-results.md")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each race (default: 9)")
    options = parser.parse_args()
    pace = Pace(seconds=0.5, rounds=options.rounds, warm_seconds=1.0)
    one, many, load = head(ONE), head(MANY), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(Path(folder)):
            one += one_client(case, pace)
            many += many_clients(case, pace)
    text = PAGE.format(
        header=figures.header(figures.figure("serve-results.md"), machine_name()), error=LARGEST_ERROR,
        one="\n".join(one) + "\n", many="\n".join(many) + "\n", clients=CLIENTS, each=EACH, load=load, large=LARGE,
    )  # fmt: skip
    print(text)
    if options.write:
        (figures.FIGURES / "serve-results.md").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
