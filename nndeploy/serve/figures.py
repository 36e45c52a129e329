# SPDX-License-Identifier: Apache-2.0
"""Figures of a service for machines: requests by what became of them, how long they took, what waits and what runs.

Each process counts in a row of its own; the page, which any of them gives, is of all together. The page is that of
Prometheus, or of OpenMetrics where the reader asks for it.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence

from nndeploy.runtime.tuned_meanwhile import TUNING_FIGURES
from nndeploy.serve.served_model import ServedModel
from nndeploy.serve.shared_numbers import Name, NumbersPart, SharedNumbers
from nndeploy.stream.engine.exposition import CONTENT_TYPE, END, OPEN_METRICS_TYPE, Sample, family, head, labels_text
from nndeploy.stream.engine.process_figures import process_families
from nndeploy.version import __version__

BUCKETS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper bounds, so many that a percentile can be told within a factor of two and a half."""
PROTOCOLS = ("grpc", "http")
OUTCOMES = {
    "OK": "ok", "CANCELLED": "cancelled", "RESOURCE_EXHAUSTED": "overload", "UNAVAILABLE": "overload",
    "DEADLINE_EXCEEDED": "error", "INTERNAL": "error", "INVALID_ARGUMENT": "rejected", "NOT_FOUND": "rejected",
    "PERMISSION_DENIED": "rejected", "UNAUTHENTICATED": "rejected",
}  # fmt: skip
"""Name of gRPC's code -> whose turn it is: nobody's, the client's, or the operator's."""
SERVICE = ""
"""What numbers are of that are of no model."""
_OF_SERVICE = ("connections", "idle_closed", "loaded", "pid", "restarts")
_OF_MODEL = ("calls", "waiting", "running", "began_ns", "seconds", *TUNING_FIGURES)
_NOW = ("connections", "pid", "waiting", "running", "began_ns")
"""Those that hold for a process as long as it lives; all others go on with the one in its place."""
_BUCKETS = range(len(BUCKETS_SECONDS) + 1)


def service_numbers(models: Sequence[str], processes: int) -> SharedNumbers:
    """Returns the numbers of a service with these models, a row for each of its processes."""
    codes = [(protocol, code) for protocol in PROTOCOLS for code in OUTCOMES]
    names: list[Name] = [(SERVICE, which) for which in (*_OF_SERVICE, *codes)]
    names += [(model, which) for model in models for which in (*_OF_MODEL, *codes, *_BUCKETS)]
    return SharedNumbers(names, processes)


def forget_process(numbers: SharedNumbers, models: Sequence[str], number: int) -> None:
    """Ends what held for a process that has ended, and counts that it did; what it counted stays."""
    for of in (SERVICE, *models):
        part = numbers.part(number, of)
        for which in _NOW:
            if which in part:
                part[which] = 0
    numbers.part(number, SERVICE)["restarts"] += 1


class Figures:
    """The figures of a service, by one of its processes."""

    def __init__(self, numbers: SharedNumbers, models: Sequence[str], number: int) -> None:
        self._numbers, self._number = numbers, number
        self._parts: dict[str, NumbersPart] = {of: numbers.part(number, of) for of in (SERVICE, *models)}

    def of(self, model: str) -> NumbersPart:
        """Returns this process's numbers of a model, or of the `SERVICE`."""
        return self._parts[model]

    def add(self, model: str, protocol: str, code: str, seconds: float = 0.0) -> None:
        """Counts a request to a model, or to none (""), which ended with a code after so many seconds."""
        part = self._parts[model]
        part[protocol, code] += 1
        if code != "OK":
            return
        part["seconds"] += seconds
        part[sum(seconds > bound for bound in BUCKETS_SECONDS)] += 1

    def loaded(self) -> None:
        """Says that this process answers from now on."""
        self._parts[SERVICE]["pid"] = os.getpid()
        self._parts[SERVICE]["loaded"] = 1

    def standstill_ns(self) -> int:
        """Returns for how long the slowest call of this process has been running, 0 where none is."""
        began = (part["began_ns"] for of, part in self._parts.items() if of != SERVICE)
        first = min(filter(None, began), default=0.0)
        return time.monotonic_ns() - int(first) if first else 0

    @property
    def others_loaded(self) -> bool:
        """Whether every other process has answered once, or the one before it in its place."""
        loaded = self._numbers.each(SERVICE, "loaded")
        return all(loaded[: self._number]) and all(loaded[self._number + 1 :])

    @property
    def has_more_connections(self) -> bool:
        """Whether this process has more connections than another one that answers."""
        connections, pids = (self._numbers.each(SERVICE, which) for which in ("connections", "pid"))
        own = connections[self._number]
        return any(pid and number < own for number, pid in zip(connections, pids, strict=True))

    def page(self, models: Mapping[str, ServedModel], accept: str) -> tuple[str, str]:
        """Returns the figures as text, and its type, for a reader that accepts this."""
        is_open_metrics = "application/openmetrics-text" in accept
        lines = [*self._lines(models, is_open_metrics=is_open_metrics), *((END,) if is_open_metrics else ())]
        return "".join(f"{line}\n" for line in lines), OPEN_METRICS_TYPE if is_open_metrics else CONTENT_TYPE

    def _lines(self, models: Mapping[str, ServedModel], *, is_open_metrics: bool) -> Iterator[str]:
        numbers = self._numbers
        requests: list[Sample] = [
            ({"model": of, "protocol": protocol, "outcome": OUTCOMES[code], "code": code}, int(count))
            for of in sorted(self._parts)
            for protocol in PROTOCOLS
            for code in sorted(OUTCOMES)
            if (count := numbers.total(of, (protocol, code)))
        ]
        pids = [int(pid) for pid in numbers.each(SERVICE, "pid") if pid]

        def each(figure: str) -> list[Sample]:
            return [({"model": name}, int(numbers.total(name, figure))) for name in models]

        def whole(figure: str) -> list[Sample]:
            return [({}, int(numbers.total(SERVICE, figure)))]

        ready: list[Sample] = [
            ({"model": name}, int(model.is_ready and self.others_loaded)) for name, model in models.items()
        ]
        for name, kind, about, samples in (
            (
                "requests_total",
                "counter",
                "Inference requests, including those refused before a model was known.",
                requests,
            ),
            ("calls_total", "counter", "Calls of the model, each with one or more requests.", each("calls")),
            ("ready", "gauge", "Whether the model is ready.", ready),
            ("waiting", "gauge", "Requests waiting for a worker.", each("waiting")),
            ("running", "gauge", "Busy workers.", each("running")),
            ("http_connections", "gauge", "Open HTTP connections.", whole("connections")),
            ("http_idle_closed_total", "counter", "Idle connections closed to make room.", whole("idle_closed")),
            ("processes", "gauge", "Worker processes that answer.", [({}, len(pids))]),
            ("process_restarts_total", "counter", "Worker processes that were replaced.", whole("restarts")),
            ("build_info", "gauge", "1, with the version of nndeploy.", [({"version": __version__}, 1)]),
        ):
            yield from family(f"nndeploy_serve_{name}", kind, about, samples, is_open_metrics=is_open_metrics)
        for key, about in TUNING_FIGURES.items():
            of_each: list[Sample] = [({"model": name}, numbers.total(name, key)) for name in models]
            full = f"nndeploy_serve_{key}_total"
            yield from family(full, "counter", about, of_each, is_open_metrics=is_open_metrics)
        yield from process_families(pids if len(numbers.rows) > 1 else (), is_open_metrics=is_open_metrics)
        seconds = "nndeploy_serve_request_seconds"
        yield from head(seconds, "histogram", "Time from the head of a request to its response, of answered requests.")
        for model in sorted(models):
            counts = [int(numbers.total(model, bucket)) for bucket in _BUCKETS]
            if any(counts):
                yield from _histogram(seconds, model, counts, numbers.total(model, "seconds"))


def _histogram(name: str, model: str, counts: list[int], seconds: float) -> Iterator[str]:
    total = 0
    for bound, count in zip((*BUCKETS_SECONDS, float("inf")), counts, strict=True):
        total += count
        le = "+Inf" if bound == float("inf") else f"{bound:g}"
        yield f"{name}_bucket{labels_text({'model': model, 'le': le})} {total}"
    yield f"{name}_sum{labels_text({'model': model})} {seconds:.9g}"
    yield f"{name}_count{labels_text({'model': model})} {total}"
