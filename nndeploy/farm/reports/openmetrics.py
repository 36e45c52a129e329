# SPDX-License-Identifier: Apache-2.0
"""A batch as OpenMetrics text, for the textfile collector of node_exporter and for GitLab's reports of metrics.

The number of series does not grow with the batch: there is no label of a model, target or worker.
"""

from datetime import datetime

from nndeploy.farm.outcome import STATUSES
from nndeploy.farm.reports.batch import Batch

_PREFIX = "nndeploy_batch"


def openmetrics(batch: Batch) -> bytes:
    """Returns the text of a batch."""
    jobs, counts = batch.outcomes, batch.counts
    built = [one for one in jobs if one.status == "ok"]
    hits = _ratio(counts["hit"], sum(one.is_good or one.is_failure for one in jobs))
    peak = max((one.peak_mb for one in jobs), default=0.0) * 1e6
    lines = _family("jobs", "", "Jobs by outcome.", {f'{{status="{name}"}}': counts[name] for name in STATUSES})
    for name, unit, text, value in (
        ("hit_ratio", "ratio", "Jobs whose bundle was in the cache, of those that ran.", hits),
        ("retries", "", "Retries.", sum(max(one.tries - 1, 0) for one in jobs)),
        ("failed_gates", "", "Regressions found by gates.", len(batch.failed_gates)),
        ("start_time_seconds", "seconds", "Start time, in seconds since 1970.", _since_1970(batch.started)),
        ("duration_seconds", "seconds", "Duration of the batch.", batch.seconds),
        ("build_seconds", "seconds", "Total time of the builds that succeeded.", sum(one.seconds for one in built)),
        (
            "longest_build_seconds",
            "seconds",
            "Longest build that succeeded.",
            max((one.seconds for one in built), default=0.0),
        ),
        (
            "bundle_bytes",
            "bytes",
            "Total size of the bundles, built or cached.",
            sum(one.size for one in jobs if one.is_good),
        ),
        ("peak_memory_bytes", "bytes", "Peak memory of a job.", peak),
    ):
        lines += _family(name, unit, text, {"": value})
    return "\n".join([*lines, "# EOF\n"]).encode("ascii")


def _family(name: str, unit: str, text: str, values: dict[str, float]) -> list[str]:
    full = f"{_PREFIX}_{name}"
    head = [f"# TYPE {full} gauge", *([f"# UNIT {full} {unit}"] if unit else []), f"# HELP {full} {text}"]
    return [*head, *(f"{full}{labels} {value}" for labels, value in values.items())]


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _since_1970(started: str) -> float:
    return datetime.fromisoformat(started).timestamp()
