# SPDX-License-Identifier: Apache-2.0
"""The metrics keep to OpenMetrics' text format and are as few for ten jobs as for a thousand."""

from batch_examples import HOSTILE_NAMES, batch, every_status, finding, outcome
from exposition_page import samples_of

from nndeploy.farm.outcome import STATUSES
from nndeploy.farm.reports.batch import Batch
from nndeploy.farm.reports.openmetrics import openmetrics


def metrics_of(made: Batch) -> dict[str, float]:
    """Returns name and labels -> value."""
    found = samples_of(openmetrics(made).decode("ascii"), is_open_metrics=True)
    return {
        name + "".join(f'{{{key}="{text}"}}' for key, text in labels): found[name, labels] for name, labels in found
    }


def test_every_status_is_counted() -> None:
    found = metrics_of(every_status())
    assert {found[f'nndeploy_batch_jobs{{status="{status}"}}'] for status in STATUSES} == {2}
    assert found["nndeploy_batch_failed_gates"] == 1
    assert found["nndeploy_batch_hit_ratio"] == 2 / 16


def test_seconds_bytes_and_tries_are_summed() -> None:
    jobs = [
        outcome("a", seconds=2.0, size=100, tries=3, peak_mb=500.0),
        outcome("b", seconds=3.5, size=200),
        outcome("c", status="hit", seconds=0.1, size=400),
        outcome("d", status="crash", seconds=100.0),
        outcome("e", status="skipped", tries=0),
    ]
    found = {name.removeprefix("nndeploy_batch_"): value for name, value in metrics_of(batch(*jobs)).items()}
    assert {name: value for name, value in found.items() if "jobs" not in name} == {
        "hit_ratio": 0.25, "retries": 2, "failed_gates": 0, "start_time_seconds": 1795658400.0,
        "duration_seconds": 12.25, "build_seconds": 5.5, "longest_build_seconds": 3.5, "bundle_bytes": 700,
        "peak_memory_bytes": 5e8,
    }  # fmt: skip


def test_the_number_of_series_does_not_grow_and_no_name_is_among_them() -> None:
    many = batch(*(outcome(f"m{number}", f"box{number % 7}") for number in range(100)), findings=(finding(),) * 9)
    assert metrics_of(many).keys() == metrics_of(batch()).keys() == metrics_of(every_status(HOSTILE_NAMES)).keys()
    assert len(metrics_of(many)) < 25
