# SPDX-License-Identifier: Apache-2.0
"""What a test of LoadGen is asked for, and the settings that follow from it once the pace of the program is known.

LoadGen prepares all queries before it starts, so it must be told how fast the answers will come: that is what the
rehearsal is for. Where the user gives no number of queries, it is the least that LoadGen's early stopping accepts.

Source: TestSettings and early_stopping.cc of mlcommons/inference, LoadGen 6.0.
"""

import math
from dataclasses import dataclass, field
from enum import StrEnum

from nndeploy.errors import UsageError
from nndeploy.options.described import described

_LOADGEN = "MLPerf's LoadGen"
DEFAULT_SECONDS = 10.0
SUBMISSION_SECONDS = 600
"""The shortest test that MLPerf takes as a submission."""
DEFAULT_SAMPLES_PER_QUERY = 8
DEFAULT_TARGET_LATENCY_MS = 100.0
DEFAULT_QPS_SHARE = 0.5
"""Part of the rehearsed rate at which queries arrive where the user names no rate: Poisson arrivals need the rest."""
OFFLINE_HEADROOM = 1.25
"""The rehearsed rate is exceeded by at most this, else LoadGen runs out of samples and calls the test too short."""
CONFIDENCE = 0.99
MAX_PREPARED = 20_000_000
"""Samples that LoadGen may prepare: about 270 bytes each (measured 2026-11-20, LoadGen 6.0.17, single-stream)."""


class Scenario(StrEnum):
    """MLPerf's scenarios."""

    SINGLE_STREAM = "single-stream"
    MULTI_STREAM = "multi-stream"
    OFFLINE = "offline"
    SERVER = "server"

    @property
    def is_stream(self) -> bool:
        """Whether a query is sent when the one before it was answered."""
        return self in (Scenario.SINGLE_STREAM, Scenario.MULTI_STREAM)


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asks for; None where the default follows from the scenario and the pace.

    `seconds` is how long the test lasts at least; what each other field means is its help.
    """

    scenario: Scenario
    seconds: float = DEFAULT_SECONDS
    accuracy: bool = described(
        False, "Query every sample once and compare with direct calls of the bundle.", section=_LOADGEN
    )
    min_queries: int | None = described(
        None, "Minimum number of queries (offline: samples). Default: as many as early stopping requires.",
        section=_LOADGEN, least=1,
    )  # fmt: skip
    percentile: float | None = described(
        None, "Latency percentile that decides the verdict. Default: 90 for single-stream, else 99.",
        section=_LOADGEN, metavar="PERCENT", least=50, most=99.99,
    )  # fmt: skip
    samples_per_query: int | None = described(
        None, f"Samples per query of multi-stream. Default: {DEFAULT_SAMPLES_PER_QUERY}.",
        section=_LOADGEN, least=1, most=4096,
    )  # fmt: skip
    target_latency_ms: float | None = described(
        None, f"Latency bound of server, in milliseconds. Default: {DEFAULT_TARGET_LATENCY_MS:g}.",
        section=_LOADGEN, least=0, is_above=True,
    )  # fmt: skip
    target_qps: float | None = described(
        None, "Query rate of server, or expected sample rate of offline, per second. Default: measured in a rehearsal.",
        section=_LOADGEN, least=0, is_above=True,
    )  # fmt: skip
    inflight: int | None = described(
        None,
        "Number of concurrent calls. Default: 1 for multi-stream, 2 for offline and server, where a chain over several "
        "places gets one for each place and one more.",
        section=_LOADGEN, least=1, most=1024,
    )  # fmt: skip
    batch: int | None = described(
        None,
        "Maximum batch size, if the bundle supports batching. Default: 8 for offline, 1 for server, a whole query "
        "for multi-stream.",
        section=_LOADGEN, least=1, most=65536,
    )  # fmt: skip

    @property
    def query_size(self) -> int:
        """Samples in a query that is answered as a whole."""
        return self.samples_per_query or DEFAULT_SAMPLES_PER_QUERY if self.scenario is Scenario.MULTI_STREAM else 1

    @property
    def num_workers(self) -> int:
        """Threads that answer; 0: LoadGen's own thread does, since it waits for the answer anyway.

        Offline and server have two, so that the Python part of one call overlaps with the computing of another.
        """
        match self.scenario:
            case Scenario.SINGLE_STREAM:
                return 0
            case Scenario.MULTI_STREAM:
                return self.inflight or 1
            case _:
                return self.inflight or 2

    @property
    def most_rows(self) -> int:
        """The most rows of one call, if the bundle allows; server joins only where it is asked to."""
        if self.scenario in (Scenario.SINGLE_STREAM, Scenario.SERVER):
            return self.batch or 1
        return self.batch or self.query_size if self.scenario is Scenario.MULTI_STREAM else self.batch or 8


@dataclass(frozen=True, slots=True)
class Pace:
    """What a rehearsal found: the fastest query, and the samples a second with all workers busy."""

    query_s: float
    samples_per_s: float


@dataclass(frozen=True, slots=True)
class Settings:
    """One test as LoadGen is told it. `expected_s` is how long it should take, `notes` say what was chosen and why."""

    scenario: Scenario
    accuracy: bool
    seconds: float
    min_queries: int
    percentile: float
    samples_per_query: int
    target_latency_ms: float
    target_qps: float
    query_s: float
    expected_s: float
    notes: tuple[str, ...] = field(default=())


def settings_from_request(request: Request, pace: Pace) -> Settings:
    """Returns the settings of a test for a program of this pace.

    Raises:
        UsageError: LoadGen would prepare more samples than memory should hold.
    """
    scenario = request.scenario
    percentile = request.percentile or (90.0 if scenario is Scenario.SINGLE_STREAM else 99.0)
    least = _least_queries(scenario, percentile)
    min_queries = request.min_queries or least
    target_qps = request.target_qps or pace.samples_per_s * (
        OFFLINE_HEADROOM if scenario is Scenario.OFFLINE else DEFAULT_QPS_SHARE
    )
    if not request.accuracy:
        _check_prepared(request, min_queries, target_qps, pace)
    expected_s = _expected_seconds(scenario, request.seconds, min_queries, target_qps, pace)
    notes = []
    if scenario is Scenario.SERVER and request.target_qps is None:
        notes.append(f"{target_qps:,.1f} queries/s, half of what was rehearsed; --target-qps asks for another rate")
    if expected_s > 1.5 * request.seconds:
        why = " that early stopping needs" if request.min_queries is None else ""
        notes.append(f"about {expected_s:,.0f} s in all, for the {min_queries:,} queries{why}")
    return Settings(
        scenario=scenario,
        accuracy=request.accuracy,
        seconds=request.seconds,
        min_queries=min_queries,
        percentile=percentile,
        samples_per_query=request.query_size,
        target_latency_ms=request.target_latency_ms or DEFAULT_TARGET_LATENCY_MS,
        target_qps=target_qps,
        query_s=pace.query_s,
        expected_s=expected_s,
        notes=() if request.accuracy else tuple(notes),
    )


def queries_for_early_stopping(percentile: float, misses: int) -> int:
    """Returns how many queries show that `percentile` percent are in time, though `misses` of them are not.

    It is the least n with P(Binomial(n, 1 - p) <= misses) <= 1 - 0.99.

    Source: early_stopping.cc of LoadGen, with tolerance 0.
    """
    late = 1 - percentile / 100
    low, high = misses + 1, misses + 2
    while _chance_of_at_most(misses, high, late) > 1 - CONFIDENCE:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        if _chance_of_at_most(misses, middle, late) > 1 - CONFIDENCE:
            low = middle + 1
        else:
            high = middle
    return high


def _chance_of_at_most(misses: int, queries: int, late: float) -> float:
    return sum(math.comb(queries, k) * late**k * (1 - late) ** (queries - k) for k in range(misses + 1))


def _least_queries(scenario: Scenario, percentile: float) -> int:
    """Returns the least number of queries that the scenario's early stopping accepts; streams drop the slowest one."""
    if scenario is Scenario.OFFLINE:
        return 1
    return queries_for_early_stopping(percentile, 1 if scenario.is_stream else 0)


def _check_prepared(request: Request, min_queries: int, target_qps: float, pace: Pace) -> None:
    """Refuses a test whose queries, all made before it starts, would fill the memory."""
    queries = {
        Scenario.OFFLINE: 1.1 * request.seconds * target_qps,
        Scenario.SERVER: request.seconds * target_qps,
    }.get(request.scenario, 2 * request.seconds / pace.query_s)
    prepared = max(min_queries, queries) * request.query_size
    if prepared > MAX_PREPARED:
        raise UsageError(
            f"LoadGen would prepare {prepared:,.0f} samples before it starts, more than {MAX_PREPARED:,}",
            hint="a shorter --duration, or a smaller --min-queries or --target-qps",
        )


def _expected_seconds(scenario: Scenario, seconds: float, min_queries: int, target_qps: float, pace: Pace) -> float:
    match scenario:
        case Scenario.OFFLINE:
            return max(min_queries, 1.1 * seconds * target_qps) / pace.samples_per_s
        case Scenario.SERVER:
            return max(seconds, min_queries / target_qps)
        case _:
            return max(seconds, min_queries * pace.query_s)
