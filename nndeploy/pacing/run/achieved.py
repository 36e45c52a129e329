# SPDX-License-Identifier: Apache-2.0
"""What pacing achieved: the figures of all paced runs."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np

from nndeploy.pacing.plan.load_curve import WINDOW_NS


@dataclass(frozen=True, slots=True)
class PaceRecord:
    """What one run did, in nanoseconds and on the thread that called it: `budget` is 0 for one of the baseline.

    `used` is its processor time, `waiting_used` the part of it that sleeping took, `longest_run` the most of it between
    two sleeps; `busiest` is the most work in any window of 10 ms. `late` says of each sleep by how much it ended later
    than planned. `threads` is how many worked, each on a submodel: what several did is added up, but the longest told.
    `waited` is how long they waited for cores, None where nobody counts that.
    """

    budget: int
    latency: int
    slept: int
    used: int
    waiting_used: int
    longest_run: int
    busiest: int
    late: tuple[int, ...]
    threads: int = 1
    waited: int | None = None


@dataclass(frozen=True, slots=True)
class Achieved:
    """Times in milliseconds, shares 0..1.

    `load` is the processor time of the runs over their time, `p50_peak_load` that of the busiest 10 ms of the median
    run, `peak_load` of any; `over_cap` is the share of runs that took longer than they might; `waiting` the share of
    the processor time that went into sleeping. `core_wait` is the share of the runs' time for which their threads
    waited for a core, None where the system does not count that. `p99_delay_error_us` is how much longer or shorter
    sleeps were than planned.
    """

    runs: int
    cap_ms: float
    p50_ms: float
    p99_ms: float
    over_cap: float
    load: float
    p50_peak_load: float
    peak_load: float
    waiting: float
    p99_longest_run_ms: float
    longest_run_ms: float
    sleeps_a_run: float
    p50_delay_error_us: float
    p99_delay_error_us: float
    core_wait: float | None = None

    def to_json(self) -> dict[str, float]:
        """Returns the figures as plain data, without what nobody counts."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def achieved(records: Iterable[PaceRecord]) -> Achieved | None:
    """Returns the figures of the runs that were paced, None where there was none."""
    paced = [record for record in records if record.budget]
    if not paced:
        return None
    latency, budget, used, waiting, longest = (
        np.array([getattr(one, name) for one in paced])
        for name in ("latency", "budget", "used", "waiting_used", "longest_run")
    )
    waits = [one.waited for one in paced if one.waited is not None]
    most = max(one.threads for one in paced)
    peaks = np.array([one.busiest / min(WINDOW_NS, one.latency) for one in paced])
    errors = np.abs([late for one in paced for late in one.late] or [0])
    return Achieved(
        runs=len(paced),
        cap_ms=float(budget[-1]) / 1e6,
        p50_ms=float(np.median(latency)) / 1e6,
        p99_ms=float(np.quantile(latency, 0.99)) / 1e6,
        over_cap=float(np.mean(latency > budget)),
        load=min(float(most), float(used.sum() / latency.sum())),  # the two clocks differ a little
        p50_peak_load=float(np.median(peaks)),
        peak_load=float(peaks.max()),
        waiting=float(waiting.sum() / used.sum()),
        p99_longest_run_ms=float(np.quantile(longest, 0.99)) / 1e6,
        longest_run_ms=float(longest.max()) / 1e6,
        sleeps_a_run=sum(len(one.late) for one in paced) / len(paced),
        p50_delay_error_us=float(np.median(errors)) / 1e3,
        p99_delay_error_us=float(np.quantile(errors, 0.99)) / 1e3,
        core_wait=min(float(most), sum(waits) / float(latency.sum())) if waits else None,
    )
