# SPDX-License-Identifier: Apache-2.0
"""The same questions of LoadGen to a bundle in this process and, through the service, to one in another.

What comes in: a bundle and one sample of it. What goes out: a row for each scenario and way there, medians over rounds
in which the ways take turns. Law: all ways answer the same queries at the same rate, and give the same values before
any is timed.
"""

import contextlib
import http.client
import os
import statistics
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import serve_engines
from interleaved import Array, largest_error

from nndeploy.bundle.manifest import Manifest
from nndeploy.loadgen.driver import drive, log_folder
from nndeploy.loadgen.rehearsal import rehearse
from nndeploy.loadgen.samples import NamedSample
from nndeploy.loadgen.settings import DEFAULT_QPS_SHARE, Request, Scenario, settings_from_request
from nndeploy.loadgen.verdict import Verdict, verdict_from_log
from nndeploy.runtime.batching import JoinedCalls
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import load_bundle

SCENARIOS = (Scenario.SINGLE_STREAM, Scenario.SERVER)
IN_PROCESS = "in the process"
TUNING, ENDLESS = "HTTP, tuning", ("--tune", "3600")
"""A service that goes on trying other ways all the time."""
CALLS_AT_ONCE = 2
"""Of `server`: calls of the program that run at once, each with a thread of its own, in every way."""
REQUESTS_AT_ONCE = 16
"""Of `server` through the service: clients, so that what waits does so where the service can see it."""
LARGEST_ERROR = 1e-5
MANY = 1 << 30
"""Queries of a rehearsal that its time ends."""


@dataclass(frozen=True, slots=True)
class Way:
    name: str
    calls: JoinedCalls
    num_at_once: int


class OverHttp:
    """A program behind the service; each thread that calls it has a connection of its own."""

    rows_at_once = 1 << 31

    def __init__(self, manifest: Manifest, address: str) -> None:
        self.manifest = manifest
        self._address = address
        self._own = threading.local()

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        if not hasattr(self._own, "connection"):
            self._own.connection = http.client.HTTPConnection(self._address)
        body, headers = serve_engines.http_body(inputs)
        self._own.connection.request("POST", "/v2/models/m/infer", body, headers)
        answer = self._own.connection.getresponse()
        data = answer.read()
        if answer.status != http.client.OK:
            raise RuntimeError(f"HTTP {answer.status}: {data!r}")
        return _named(self.manifest, serve_engines.arrays_of_http(data))


class OverGrpc:
    rows_at_once = 1 << 31

    def __init__(self, manifest: Manifest, address: str) -> None:
        self.manifest = manifest
        channel = grpc.insecure_channel(address, options=serve_engines.UNLIMITED)
        self._infer = channel.unary_unary(f"/{serve_engines.SERVICE}/ModelInfer")

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        data = self._infer(serve_engines.grpc_message(inputs).SerializeToString())
        return _named(self.manifest, serve_engines.arrays_of_grpc(data))


def _named(manifest: Manifest, arrays: Sequence[Array]) -> dict[str, Any]:
    return dict(zip([item.name for item in manifest.outputs], arrays, strict=True))


def rows(name: str, bundle: Path, inputs: Mapping[str, Array], seconds: float, rounds: int) -> list[list[str]]:
    """Returns the rows of a model: each test lasts `seconds`, and each way has `rounds` of them."""
    samples = [NamedSample("the sample", inputs)]
    found: list[list[str]] = []
    for scenario in SCENARIOS:
        with _ways(bundle, scenario) as ways:
            _check_alike(name, ways, inputs)
            slowest = min(_paced(way, scenario, samples) for way in ways)
            rate = DEFAULT_QPS_SHARE * slowest if scenario is Scenario.SERVER else None
            tests: dict[str, list[Verdict]] = {way.name: [] for way in ways}
            for i in range(rounds):
                for way in (*ways[i % len(ways) :], *ways[: i % len(ways)]):
                    tests[way.name].append(_tested(way, scenario, samples, seconds, rate))
        found += [_row(scenario, way.name, tests) for way in ways]
    return found


@contextlib.contextmanager
def _ways(bundle: Path, scenario: Scenario) -> Iterator[list[Way]]:
    """Opens the bundle here and in a service for each protocol, with the same share of the machine for each call."""
    is_server = scenario is Scenario.SERVER
    threads = 1 if is_server else os.cpu_count() or 1
    at_once, clients = (CALLS_AT_ONCE, REQUESTS_AT_ONCE) if is_server else (1, 1)
    options = ("--threads", str(threads), "--workers", str(at_once))
    with load_bundle(bundle, LoadOptions(threads=threads)) as program, contextlib.ExitStack() as stack:
        ways = [Way(IN_PROCESS, JoinedCalls(program, 1), at_once)]
        for told, protocol, client, more in (
            ("HTTP", "http", OverHttp, ()), ("gRPC", "grpc", OverGrpc, ()), (TUNING, "http", OverHttp, ENDLESS),
        ):  # fmt: skip
            address = serve_engines.served(str(bundle), protocol, (*options, *more))
            stack.callback(serve_engines.end_server)
            ways.append(Way(told, JoinedCalls(client(program.manifest, address), 1), clients))
        yield ways


def _check_alike(name: str, ways: Sequence[Way], inputs: Mapping[str, Array]) -> None:
    outputs = [[np.asarray(value) for value in way.calls.run([inputs])[0].values()] for way in ways]
    for way, got in zip(ways, outputs, strict=True):
        if (worst := largest_error(got, outputs[0])) > LARGEST_ERROR:
            raise SystemExit(f"{name}: {way.name} differs from the call in the process by {worst:g}")


def _request(way: Way, scenario: Scenario, seconds: float, rate: float | None) -> Request:
    return Request(scenario, seconds=seconds, inflight=way.num_at_once, target_qps=rate)


def _paced(way: Way, scenario: Scenario, samples: Sequence[NamedSample]) -> float:
    """Returns how many queries a second a way answers that is kept busy."""
    return rehearse(way.calls, samples, _request(way, scenario, 1.0, None), MANY).samples_per_s


def _tested(
    way: Way, scenario: Scenario, samples: Sequence[NamedSample], seconds: float, rate: float | None
) -> Verdict:
    request = _request(way, scenario, seconds, rate)
    settings = settings_from_request(request, rehearse(way.calls, samples, request, MANY))
    with log_folder(None) as folder:
        drive(way.calls, samples, settings, folder, num_workers=request.num_workers)
        return verdict_from_log(folder, scenario)


def _row(scenario: Scenario, way: str, tests: Mapping[str, Sequence[Verdict]]) -> list[str]:
    def median(of: str, figure: str) -> float:
        return statistics.median(test.figures[figure] for test in tests[of])

    num_valid = sum(test.is_valid for test in tests[way])
    rate = median(way, "completed_per_second" if scenario is Scenario.SERVER else "queries_per_second")
    latencies = [f"{median(way, figure):.3f}" for figure in ("p50_ms", "p90_ms", "p99_ms")]
    adds = "" if way == IN_PROCESS else f"{median(way, 'p50_ms') - median(IN_PROCESS, 'p50_ms'):.3f}"
    says = f"VALID, {num_valid} of {len(tests[way])}"
    return [scenario, way, says, f"{rate:,.0f}", *latencies, adds]
