# SPDX-License-Identifier: Apache-2.0
"""How long operators take, by what they compute and move: max(flops / flops a second, bytes / bytes a second)."""

from collections.abc import Sequence

import numpy as np

from nndeploy.pacing.plan.operators import Amount
from nndeploy.plugin.interface import Roof
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


def least_ns(amount: Amount, roof: Roof, *, is_quantised: bool) -> tuple[float, float]:
    """Returns the nanoseconds that the operations of an operator take at least on a processor, and that its bytes do.

    Bytes come as fast as from the smallest memory that holds all of them: those of a small operator from a cache,
    wherever they were before, so that no operator seems closer to the roof than it is.
    """
    operations = roof.int8_per_s if is_quantised else roof.float32_per_s
    held = [rate for size, rate in roof.bytes_per_s.items() if size >= amount.bytes]
    reading = max(held, default=min(roof.bytes_per_s.values()))
    return 1e9 * amount.flops / operations, 1e9 * amount.bytes / reading


def explained(estimated: Array, measured: Array) -> float | None:
    """Returns R2: how much of the differences between measured times the estimates explain, None where nothing differs.

    That is the square of their correlation, so the scale does not count.
    """
    if len(measured) < 2 or not np.ptp(estimated) or not np.ptp(measured):
        return None
    return float(np.corrcoef(estimated, measured)[0, 1] ** 2)
