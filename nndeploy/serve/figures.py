# SPDX-License-Identifier: Apache-2.0
"""Figures of a service for machines: requests by what became of them, how long they took, what waits and what runs.

Counted by the thread of the event loop alone, so nothing here is locked. The page is that of Prometheus, or of
OpenMetrics where the reader asks for it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from nndeploy.serve.served_model import ServedModel
from nndeploy.stream.engine.exposition import CONTENT_TYPE, END, OPEN_METRICS_TYPE, Sample, family, head, labels_text
from nndeploy.stream.engine.process_figures import process_families
from nndeploy.version import __version__

BUCKETS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper bounds, so many that a percentile can be told within a factor of two and a half."""
OUTCOMES = {
    "OK": "ok", "CANCELLED": "cancelled", "RESOURCE_EXHAUSTED": "overload", "UNAVAILABLE": "overload",
    "DEADLINE_EXCEEDED": "error", "INTERNAL": "error",
}  # fmt: skip
REJECTED = "rejected"
"""Name of gRPC's code -> whose turn it is: nobody's, the client's (also every other code), or the operator's."""


class Figures:
    """What became of the requests of a service, by model, protocol and name of gRPC's code; "" is no model's."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self.connections = self.idle_closed = 0

    def add(self, model: str, protocol: str, code: str, seconds: float = 0.0) -> None:
        """Counts a request to a model that is served, or to none, which ended with a code after so many seconds."""
        self._requests[model, protocol, code] += 1
        if code != "OK":
            return
        self._seconds[model] += seconds  # type: ignore[assignment]
        counts = self._buckets.setdefault(model, [0] * (len(BUCKETS_SECONDS) + 1))
        counts[sum(seconds > bound for bound in BUCKETS_SECONDS)] += 1

    def page(self, models: Mapping[str, ServedModel], accept: str) -> tuple[str, str]:
        """Returns the figures as text, and its type, for a reader that accepts this."""
        is_open_metrics = "application/openmetrics-text" in accept
        lines = [*self._lines(models, is_open_metrics=is_open_metrics), *((END,) if is_open_metrics else ())]
        return "".join(f"{line}\n" for line in lines), OPEN_METRICS_TYPE if is_open_metrics else CONTENT_TYPE

    def _lines(self, models: Mapping[str, ServedModel], *, is_open_metrics: bool) -> Iterator[str]:
        requests: list[Sample] = [
            ({"model": model, "protocol": protocol, "outcome": OUTCOMES.get(code, REJECTED), "code": code}, count)
            for (model, protocol, code), count in sorted(self._requests.items())
        ]

        def each(figure: str) -> list[Sample]:
            return [({"model": name}, _figure(model, figure)) for name, model in models.items()]

        for name, kind, about, samples in (
            (
                "requests_total",
                "counter",
                "Inference requests, including those refused before a model was known.",
                requests,
            ),
            ("calls_total", "counter", "Calls of the model, each with one or more requests.", each("calls")),
            ("ready", "gauge", "Whether the model is ready.", each("ready")),
            ("waiting", "gauge", "Requests waiting for a worker.", each("waiting")),
            ("running", "gauge", "Busy workers.", each("running")),
            ("http_connections", "gauge", "Open HTTP connections.", [({}, self.connections)]),
            ("http_idle_closed_total", "counter", "Idle connections closed to make room.", [({}, self.idle_closed)]),
            ("build_info", "gauge", "1, with the version of nndeploy.", [({"version": __version__}, 1)]),
        ):
            yield from family(f"nndeploy_serve_{name}", kind, about, samples, is_open_metrics=is_open_metrics)
        yield from process_families(is_open_metrics=is_open_metrics)
        seconds = "nndeploy_serve_request_seconds"
        yield from head(seconds, "histogram", "Time from the head of a request to its response, of answered requests.")
        for model, counts in sorted(self._buckets.items()):
            yield from self._histogram(seconds, model, counts)

    def _histogram(self, name: str, model: str, counts: list[int]) -> Iterator[str]:
        total = 0
        for bound, count in zip((*BUCKETS_SECONDS, float("inf")), counts, strict=True):
            total += count
            le = "+Inf" if bound == float("inf") else f"{bound:g}"
            yield f"{name}_bucket{labels_text({'model': model, 'le': le})} {total}"
        yield f"{name}_sum{labels_text({'model': model})} {self._seconds[model]:.9g}"
        yield f"{name}_count{labels_text({'model': model})} {total}"


def _figure(model: ServedModel, figure: str) -> int:
    queue = model.queue
    return {
        "calls": queue.num_batches, "ready": int(model.is_ready), "waiting": queue.num_waiting,
        "running": queue.num_running,
    }[figure]  # fmt: skip
