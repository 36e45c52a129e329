# SPDX-License-Identifier: Apache-2.0
"""Latencies of many calls, and what people ask of them: rate and percentiles."""

from array import array
from collections.abc import Iterable

PERCENTILES = (50, 90, 99)


class Latencies:
    """Durations in nanoseconds, 8 bytes each; beyond `most` of them only every second one is kept, and so on."""

    def __init__(self, durations_ns: Iterable[int] = (), most: int | None = None) -> None:
        self._durations_ns = array("q", durations_ns)
        self._most = most
        self._stride = 1
        self._num_skipped = 0

    def __len__(self) -> int:
        return len(self._durations_ns)

    def add(self, duration_ns: int) -> None:
        """Adds the duration of one call."""
        if self._stride > 1:
            self._num_skipped = (self._num_skipped + 1) % self._stride
            if self._num_skipped:
                return
        self._durations_ns.append(duration_ns)
        if self._most is not None and len(self._durations_ns) > self._most:
            self._durations_ns = self._durations_ns[::2]
            self._stride *= 2

    def percentiles_ms(self) -> dict[str, float]:
        """Returns {"p50": ..., "p90": ..., "p99": ...} in milliseconds, empty where there was no call.

        The p-th percentile is the smallest duration that p of 100 calls did not exceed (nearest rank).
        """
        ordered = sorted(self._durations_ns)
        return {f"p{p}": ordered[-(-p * len(ordered) // 100) - 1] / 1e6 for p in PERCENTILES if ordered}

    def to_json(self) -> list[int]:
        """Returns the durations in nanoseconds, in order."""
        return self._durations_ns.tolist()
