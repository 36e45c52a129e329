# SPDX-License-Identifier: Apache-2.0
"""Gates for CI: how much of the compute a backend must take, and how much the fallbacks may."""

from collections.abc import Callable, Mapping, Sequence

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
    why_not: Callable[[str, str], str],
    where: str = "",
) -> None:
    """Checks who takes which share of the compute against what was asked for of the backends in `order`.

    `why_not` says of a node and a backend why that would not take it, "" where it would. `where` names the target that
    they are judged for, "" for this machine.

    Raises:
        CheckError: a backend takes less than `require` says, or backends of tier 4 and 5 more than `max_fallback`.
    """
    on = f" on {where}" if where else ""
    shares = {backend.name: 0.0 for backend in order}
    for node, backend in backend_of.items():
        shares[backend] += costs.compute_share(node)
    for name, least in require.items():
        if shares.get(name, 1.0) < least - ROUNDING:
            raise CheckError(
                f"{name} takes {shares[name]:.1%} of the compute{on}, {least:.1%} were required",
                hint=_mend(name, backend_of, costs, why_not),
            )
    fallback = sum(shares[backend.name] for backend in order if backend.tier >= FALLBACK_TIER)
    if max_fallback is not None and fallback > max_fallback + ROUNDING:
        raise CheckError(
            f"fallback backends take {fallback:.1%} of the compute{on}, the limit is {max_fallback:.1%}",
            hint=_higher(backend_of, order, why_not),
        )


def _mend(name: str, backend_of: Mapping[str, str], costs: Costs, why_not: Callable[[str, str], str]) -> str:
    """Returns what keeps a backend from more: the first node that it refuses, or that another one was chosen."""
    refused = {node: reason for node in backend_of if (reason := why_not(node, name))}
    if not refused:
        return f"{name} would take all of it: --backends {name} or --objective priority, which measures nothing"
    node, reason = next(iter(refused.items()))
    most = sum(costs.compute_share(one) for one in backend_of if one not in refused)
    return f"{name} refuses {node!r:.80}: {reason}; it can take {most:.1%} at most"


def _higher(backend_of: Mapping[str, str], order: Sequence[Backend], why_not: Callable[[str, str], str]) -> str:
    """Returns why no backend above the fallbacks took the first node that one of them has, or that there is none."""
    higher = [backend.name for backend in order if backend.tier < FALLBACK_TIER]
    if not higher:
        return f"no other backend was asked: --backends native,{','.join(backend.name for backend in order)}"
    node = next(node for node, name in backend_of.items() if name not in higher)
    reasons = "; ".join(f"{name}: {why_not(node, name) or 'would take it'}" for name in higher)
    return f"{node!r:.80}: {reasons}; --verbose shows every node"
