# SPDX-License-Identifier: Apache-2.0
"""Gates for CI: how much of the compute a backend must take, and how much the fallbacks may."""

from collections.abc import Mapping, Sequence

from nndeploy.errors import CheckError
from nndeploy.partition.cost import Costs
from nndeploy.plugin.interface import FALLBACK_TIER, Backend

ROUNDING = 1e-9


def check_gates(
    backend_of: Mapping[str, str],
    costs: Costs,
    order: Sequence[Backend],
    require: Mapping[str, float],
    max_fallback: float | None,
    where: str = "",
) -> None:
    """Checks who takes which share of the compute against what was asked for of the backends in `order`.

    `where` names the target that they are judged for, "" for this machine.

    Raises:
        CheckError: a backend takes less than `require` says, or backends of tier 4 and 5 more than `max_fallback`.
    """
    on = f" on {where}" if where else ""
    shares = {backend.name: 0.0 for backend in order}
    for node, backend in backend_of.items():
        shares[backend] += costs.compute_share(node)
    for name, least in require.items():
        if shares.get(name, 1.0) < least - ROUNDING:
            raise CheckError(f"{name} takes {shares[name]:.1%} of the compute{on}, {least:.1%} were required")
    fallback = sum(shares[backend.name] for backend in order if backend.tier >= FALLBACK_TIER)
    if max_fallback is not None and fallback > max_fallback + ROUNDING:
        raise CheckError(
            f"fallback backends take {fallback:.1%} of the compute{on}, the limit is {max_fallback:.1%}",
            hint="--dry-run shows why each node was refused",
        )
