# SPDX-License-Identifier: Apache-2.0
"""How long operators take, by what they compute and move: max(flops / flops a second, bytes / bytes a second)."""

from collections.abc import Sequence

import numpy as np

from nndeploy.pacing.plan.operators import Amount
from nndeploy.target.target import BYTES_PER_S, FLOPS_PER_S, Target
from nndeploy.values.types import Array


def has_rates(target: Target) -> bool:
    """Returns whether estimates for the target are times, not shares alone."""
    return bool(target.flops_per_s and target.bytes_per_s)


def estimated_ns(amounts: Sequence[Amount], target: Target | None = None) -> Array:
    """Returns the nanoseconds of each operator on a target, on an ordinary core where that does not say."""
    flops, moved = np.array(amounts, np.float64).reshape(-1, 2).T
    if target is not None and has_rates(target):
        return 1e9 * np.maximum(flops / target.flops_per_s, moved / target.bytes_per_s)
    return 1e9 * np.maximum(flops / FLOPS_PER_S, moved / BYTES_PER_S)


def explained(estimated: Array, measured: Array) -> float | None:
    """Returns R2: how much of the differences between measured times the estimates explain, None where nothing differs.

    That is the square of their correlation, so the scale does not count.
    """
    if len(measured) < 2 or not np.ptp(estimated) or not np.ptp(measured):
        return None
    return float(np.corrcoef(estimated, measured)[0, 1] ** 2)
