# SPDX-License-Identifier: Apache-2.0
"""Latencies of many calls, and what people ask of them: rate and percentiles."""

from array import array
from collections.abc import Iterable, Sequence

PERCENTILES = (50, 90, 99)


class Latencies:
    """Durations in nanoseconds, 8 bytes each; beyond `most` of them only every second one is kept, and so on.

    Once there were so many, no memory is taken or given back any more.
    """

    def __init__(self, durations_ns: Iterable[int] = (), most: int | None = None) -> None:
        self._places = array("q", durations_ns)
        self._num = len(self._places)
        self._most = most
        self._stride = 1
        self._num_skipped = 0

    def __len__(self) -> int:
        return self._num

    def add(self, duration_ns: int) -> None:
        """Adds the duration of one call."""
        if self._stride > 1:
            self._num_skipped = (self._num_skipped + 1) % self._stride
            if self._num_skipped:
                return
        if self._num < len(self._places):
            self._places[self._num] = duration_ns
        else:
            self._places.append(duration_ns)
        self._num += 1
        if self._most is not None and self._num > self._most:
            kept = self._places[: self._num : 2]
            self._places[: len(kept)] = kept
            self._num = len(kept)
            self._stride *= 2

    def percentiles_ms(self) -> dict[str, float]:
        """Returns {"p50": ..., "p90": ..., "p99": ...} in milliseconds, empty where there was no call.

        The p-th percentile is the smallest duration that p of 100 calls did not exceed (nearest rank).
        """
        return percentiles_ms([self])

    def to_json(self) -> list[int]:
        """Returns the durations in nanoseconds, in order."""
        return self._places[: self._num].tolist()


def percentiles_ms(several: Sequence[Latencies]) -> dict[str, float]:
    """Returns the percentiles of several together, to each of which may be added meanwhile."""
    ordered = sorted(duration for one in several for duration in one.to_json())
    return {f"p{p}": ordered[-(-p * len(ordered) // 100) - 1] / 1e6 for p in PERCENTILES if ordered}
