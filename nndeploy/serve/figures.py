# SPDX-License-Identifier: Apache-2.0
"""Figures of a service for machines: requests by what became of them, how long they took, what waits and what runs.

Counted by the thread of the event loop alone, so nothing here is locked. The page is that of Prometheus, or of
OpenMetrics where the reader asks for it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from nndeploy.serve.served_model import ServedModel
from nndeploy.stream.engine.exposition import CONTENT_TYPE, END, OPEN_METRICS_TYPE, Sample, family, labels_text

BUCKETS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper bounds, so many that a percentile can be told within a factor of two and a half."""
_SECONDS = "nndeploy_serve_request_seconds"


class Figures:
    """What became of the requests of a service, by model, protocol and name of gRPC's code."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, str]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._buckets: dict[str, list[int]] = {}

    def add(self, model: str, protocol: str, code: str, seconds: float) -> None:
        """Counts a request to a model that is served, which ended with a code after so many seconds."""
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
            ({"model": model, "protocol": protocol, "code": code}, count)
            for (model, protocol, code), count in sorted(self._requests.items())
        ]
        yield from family("nndeploy_serve_requests_total", "counter", requests, is_open_metrics=is_open_metrics)
        batches: list[Sample] = [({"model": name}, model.queue.num_batches) for name, model in models.items()]
        yield from family("nndeploy_serve_calls_total", "counter", batches, is_open_metrics=is_open_metrics)
        for name, samples in (
            ("ready", [({"model": name}, int(model.is_ready)) for name, model in models.items()]),
            ("waiting", [({"model": name}, model.queue.num_waiting) for name, model in models.items()]),
            ("running", [({"model": name}, model.queue.num_running) for name, model in models.items()]),
        ):
            yield from family(f"nndeploy_serve_{name}", "gauge", samples, is_open_metrics=is_open_metrics)
        yield f"# TYPE {_SECONDS} histogram"
        for model, counts in sorted(self._buckets.items()):
            yield from self._histogram(model, counts)

    def _histogram(self, model: str, counts: list[int]) -> Iterator[str]:
        total = 0
        for bound, count in zip((*BUCKETS_SECONDS, float("inf")), counts, strict=True):
            total += count
            le = "+Inf" if bound == float("inf") else f"{bound:g}"
            yield f"{_SECONDS}_bucket{labels_text({'model': model, 'le': le})} {total}"
        yield f"{_SECONDS}_sum{labels_text({'model': model})} {self._seconds[model]:.9g}"
        yield f"{_SECONDS}_count{labels_text({'model': model})} {total}"
