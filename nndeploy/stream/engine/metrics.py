# SPDX-License-Identifier: Apache-2.0
"""Figures of a stream for machines: a JSON file that is replaced about once a second, and a page for Prometheus.

The page is served on 127.0.0.1 alone, on a port that the user chose; nothing is ever sent anywhere. The last figures
stay in the file after the stream.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from nndeploy.errors import CannotCreateError
from nndeploy.files.whole_files import new_file, wrapped_io
from nndeploy.runtime.tuned_meanwhile import TUNING_FIGURES
from nndeploy.stream.engine.engine import Stream
from nndeploy.stream.engine.exposition import CONTENT_TYPE, Sample, family
from nndeploy.stream.engine.process_figures import process_families
from nndeploy.stream.sources.readers import SourceFigures

SECONDS = 1.0
HOST = "127.0.0.1"
JSON_PATH = "/metrics.json"
_COUNTS = {
    "records": "Records with an outcome.",
    "failed": "Records whose outcome is an error.",
    "not_taken": "Records that no pipeline accepted.",
    "non_finite": "Records with NaN or infinity in an output.",
    "forgotten_sessions": "Sessions whose state was dropped to keep the limit.",
}


def metrics_of(stream: Stream) -> dict[str, Any]:
    """Returns the figures of a stream so far as plain data."""
    summary = stream.summary
    return {
        "records": summary.num_items,
        "failed": summary.num_failed,
        "not_taken": summary.num_not_taken,
        "non_finite": summary.num_non_finite,
        "forgotten_sessions": stream.num_forgotten,
        "seconds": summary.seconds,
        "records_per_second": summary.rate_hz,
        "latency_ms": summary.latencies.percentiles_ms(),
        "stages": [stage.to_json() for stage in stream.stages()],
        "cores": stream.cores().to_json(),
        "queues": [queue.to_json() for queue in stream.queues()],
        "sources": [asdict(source) for source in stream.sources()],
        **({"tuning": stream.tuning.to_json()} if stream.tuning is not None else {}),
        "time": time.time(),
    }


def prometheus_text(metrics: dict[str, Any]) -> str:
    """Returns the same figures as Prometheus reads them."""
    return "".join(f"{line}\n" for line in _lines(metrics))


def _lines(metrics: dict[str, Any]) -> Iterator[str]:
    for name, about in _COUNTS.items():
        yield from family(f"nndeploy_{name}_total", "counter", about, [({}, metrics[name])])
    stages, queues = metrics["stages"], metrics["queues"]
    for name, key, kind, about in (
        ("busy_seconds_total", "busy_ns", "counter", "Busy time of the workers of a stage."),
        ("core_wait_seconds_total", "core_wait_ns", "counter", "Busy time in which these waited for a core."),
        ("records_total", "num_done", "counter", "Records that a stage has processed."),
        ("workers", "num_workers", "gauge", "Workers of a stage."),
    ):
        divisor = 1e9 if key.endswith("_ns") else 1
        samples = [({"stage": stage["name"]}, stage[key] / divisor) for stage in stages if key in stage]
        if samples:
            yield from family(f"nndeploy_stage_{name}", kind, about, samples)
    if "core_wait_ns" in metrics["cores"]:
        about = "Time for which the stream's threads waited for a core."
        waited: list[Sample] = [({}, metrics["cores"]["core_wait_ns"] / 1e9)]
        yield from family("nndeploy_core_wait_seconds_total", "counter", about, waited)
    for name, key, kind, about in (
        ("depth", "depth", "gauge", "Records waiting in the queue."),
        ("passed_total", "num_passed", "counter", "Records that have passed through the queue."),
    ):
        samples = [({"queue": queue["name"]}, queue[key]) for queue in queues]
        yield from family(f"nndeploy_queue_{name}", kind, about, samples)
    yield from _latency_family("latency", "Time from a record's start to its outcome.", [({}, metrics["latency_ms"])])
    for what, found, done in (("stage", stages, "worked"), ("queue", queues, "waited")):
        percentiles = [({what: one["name"]}, one[f"{done}_ms"]) for one in found]
        yield from _latency_family(f"{what}_{done}", f"Time for which a record {done} there.", percentiles)
    for key in [one.name for one in fields(SourceFigures) if one.name != "name"] if metrics["sources"] else ():
        samples = [({"source": source["name"]}, source[key]) for source in metrics["sources"]]
        name = key.removeprefix("num_")
        yield from family(f"nndeploy_source_{name}_total", "counter", f"What a source did: {name}.", samples)
    if tuning := metrics.get("tuning"):
        for key, about in TUNING_FIGURES.items():
            yield from family(f"nndeploy_{key}_total", "counter", about, [({}, tuning[key])])
    yield from process_families()


def _latency_family(name: str, about: str, found: list[tuple[dict[str, str], dict[str, float]]]) -> Iterator[str]:
    """Yields percentiles in seconds, by labels of what they are of."""
    samples = [
        ({**labels, "quantile": f"0.{percentile.removeprefix('p')}"}, ms / 1e3)
        for labels, percentiles in found
        for percentile, ms in percentiles.items()
    ]
    yield from family(f"nndeploy_{name}_seconds", "summary", about, samples)


class MetricsFile:
    """Writes the figures into a file while a `with` block runs, and a last time at its end."""

    def __init__(self, path: Path, stream: Stream) -> None:
        """Writes the first figures.

        Raises:
            CannotCreateError: the file cannot be made.
        """
        self._path = path
        self._stream = stream
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="nndeploy metrics", daemon=True)
        self._write()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._is_over.set()
        self._thread.join()
        with suppress(Exception):  # what the stream did counts more
            self._write()

    def _work(self) -> None:
        while not self._is_over.wait(SECONDS):
            with suppress(Exception):  # the disk may be full for a while; the stream goes on
                self._write()

    def _write(self) -> None:
        metrics = metrics_of(self._stream)
        new = new_file(self._path)
        try:
            with wrapped_io(self._path):
                new.file.write((json.dumps(metrics) + "\n").encode("ascii"))
            new.finish(sync=False)
        finally:
            new.discard()


class MetricsServer:
    """Serves the figures at http://127.0.0.1:PORT/metrics, and as JSON at /metrics.json, while a `with` block runs."""

    def __init__(self, port: int, metrics: Callable[[], dict[str, Any]]) -> None:
        """Takes the port; 0 is any that is free.

        Raises:
            CannotCreateError: the port is taken.
        """
        try:
            self._server = ThreadingHTTPServer((HOST, port), _handler(metrics))
        except OSError as err:
            raise CannotCreateError(f"cannot listen on the port: {err.strerror}", where=f"{HOST}:{port}") from err
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, name="nndeploy metrics page", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(metrics: Callable[[], dict[str, Any]]) -> type[BaseHTTPRequestHandler]:
    class Page(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path not in ("/metrics", JSON_PATH):
                self.send_error(404)
                return
            is_json = path == JSON_PATH
            body = (json.dumps(metrics()) if is_json else prometheus_text(metrics())).encode("utf-8")
            self.send_response(200)
            self.send_header("Content-Type", "application/json" if is_json else CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            """Says nothing: standard error is for the run."""

    return Page
