# SPDX-License-Identifier: Apache-2.0
"""What LoadGen is told follows from the scenario, the pace and the user's options."""

import math

import pytest

from nndeploy.errors import UsageError
from nndeploy.loadgen.settings import Pace, Request, Scenario, queries_for_early_stopping, settings_from_request

PACE = Pace(query_s=0.01, samples_per_s=200.0)


@pytest.mark.parametrize(("percentile", "misses", "least"), [(90, 1, 64), (99, 1, 662), (99, 0, 459), (90, 0, 44)])
def test_the_least_number_of_queries_is_early_stopping_s(percentile, misses, least) -> None:
    assert queries_for_early_stopping(percentile, misses) == least

    def chance(n: int) -> float:
        late = 1 - percentile / 100
        return math.fsum(math.comb(n, k) * late**k * (1 - late) ** (n - k) for k in range(misses + 1))

    assert chance(least) <= 0.01 < chance(least - 1)


@pytest.mark.parametrize(("scenario", "least", "percentile"), [
    ("single-stream", 64, 90), ("multi-stream", 662, 99), ("server", 459, 99), ("offline", 1, 99)
])  # fmt: skip
def test_defaults_are_those_of_the_scenario(scenario, least, percentile) -> None:
    settings = settings_from_request(Request(Scenario(scenario)), PACE)
    assert (settings.min_queries, settings.percentile, settings.seconds) == (least, percentile, 10)


def test_a_test_that_takes_longer_than_was_asked_for_says_why() -> None:
    settings = settings_from_request(Request(Scenario.MULTI_STREAM), Pace(0.1, 80))
    assert settings.expected_s == pytest.approx(66.2)
    assert settings.notes == ("about 66 s in all, for the 662 queries that early stopping needs",)
    assert settings_from_request(Request(Scenario.MULTI_STREAM), PACE).notes == ()
    asked = settings_from_request(Request(Scenario.SINGLE_STREAM, min_queries=5000), PACE)
    assert asked.notes == ("about 50 s in all, for the 5,000 queries",)


def test_server_asks_at_half_of_the_rehearsed_rate_and_says_so() -> None:
    settings = settings_from_request(Request(Scenario.SERVER), PACE)
    assert (settings.target_qps, settings.target_latency_ms) == (100, 100)
    assert settings.notes[0].startswith("100.0 queries/s, half of what was rehearsed")
    given = settings_from_request(Request(Scenario.SERVER, target_qps=150, target_latency_ms=7), PACE)
    assert (given.target_qps, given.target_latency_ms, given.notes) == (150, 7, ())


def test_offline_expects_more_than_was_rehearsed_so_that_samples_do_not_run_out() -> None:
    assert settings_from_request(Request(Scenario.OFFLINE), PACE).target_qps > PACE.samples_per_s


@pytest.mark.parametrize(("scenario", "workers", "rows"), [
    ("single-stream", 0, 1), ("multi-stream", 1, 8), ("offline", 2, 8), ("server", 2, 1)
])  # fmt: skip
def test_workers_and_rows_by_default(scenario, workers, rows) -> None:
    request = Request(Scenario(scenario))
    assert (request.num_workers, request.most_rows) == (workers, rows)


def test_a_query_of_multi_stream_is_one_call_where_nothing_else_is_asked() -> None:
    assert Request(Scenario.MULTI_STREAM, samples_per_query=5).most_rows == 5
    assert Request(Scenario.MULTI_STREAM, samples_per_query=5, batch=2).most_rows == 2


@pytest.mark.parametrize(("scenario", "options"), [
    ("single-stream", {"seconds": 1e5 + 1}), ("multi-stream", {"seconds": 12501}),
    ("multi-stream", {"min_queries": 2_500_001}), ("offline", {"seconds": 1, "target_qps": 2e7}),
    ("server", {"seconds": 200, "target_qps": 100_001}),
])  # fmt: skip
def test_a_test_whose_queries_would_fill_the_memory_is_refused(scenario, options) -> None:
    with pytest.raises(UsageError, match=r"LoadGen would prepare 2\d,\d{3},\d{3} samples"):
        settings_from_request(Request(Scenario(scenario), **options), PACE)
    if "min_queries" not in options:
        fewer = options | {"seconds": options["seconds"] / 2}
        assert settings_from_request(Request(Scenario(scenario), **fewer), PACE).seconds == fewer["seconds"]
