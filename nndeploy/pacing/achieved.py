# SPDX-License-Identifier: Apache-2.0
"""What pacing achieved: the figures of all paced runs."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nndeploy.pacing.load_curve import WINDOW_NS
from nndeploy.pacing.pacer import PaceRecord


@dataclass(frozen=True, slots=True)
class Achieved:
    """Times in milliseconds, shares 0..1.

    `peak_load` is that of the busiest 10 ms of any run, `p50_peak_load` that of the median run; `over_cap` is the
    share of runs that took longer than they might.
    """

    runs: int
    cap_ms: float
    p50_ms: float
    p99_ms: float
    over_cap: float
    load: float
    p50_peak_load: float
    peak_load: float
    longest_run_ms: float
    sleeps_a_run: float
    mean_late_us: float
    most_late_us: float


def achieved(records: Iterable[PaceRecord]) -> Achieved | None:
    """Returns the figures of the runs that were paced, None where there was none."""
    paced = [record for record in records if record.cap]
    if not paced:
        return None
    latency, slept, cap = (np.array([getattr(one, name) for one in paced]) for name in ("latency", "slept", "cap"))
    peaks = np.array([one.busiest / min(WINDOW_NS, one.latency) for one in paced])
    sleeps = sum(one.sleeps for one in paced)
    return Achieved(
        runs=len(paced),
        cap_ms=float(cap[-1]) / 1e6,
        p50_ms=float(np.median(latency)) / 1e6,
        p99_ms=float(np.quantile(latency, 0.99)) / 1e6,
        over_cap=float(np.mean(latency > cap)),
        load=float(1 - slept.sum() / latency.sum()),
        p50_peak_load=float(np.median(peaks)),
        peak_load=float(peaks.max()),
        longest_run_ms=max(one.longest_run for one in paced) / 1e6,
        sleeps_a_run=sleeps / len(paced),
        mean_late_us=sum(one.late for one in paced) / max(1, sleeps) / 1e3,
        most_late_us=max(one.most_late for one in paced) / 1e3,
    )
