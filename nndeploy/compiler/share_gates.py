# SPDX-License-Identifier: Apache-2.0
"""The gates of a compile: of every target that was named, who takes which share of the compute, and what its GPUs run.

Comes in: plans, and what named targets take of the portable chain. Goes out: nothing, or an error that carries the
report. Laws: a gate that fails ends the compile before anything is written; where targets are named these are judged,
not the machine that compiles.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nndeploy.bundle.report import Report, TargetReport
from nndeploy.compiler.chains.backend_order import TargetBackends
from nndeploy.compiler.chains.built_chain import Settled
from nndeploy.compiler.chains.chain_plan import ChainPlan
from nndeploy.compiler.chains.target_chains import PlannedChain, SettledChain
from nndeploy.compiler.compilation import Compilation
from nndeploy.compiler.options import CompileOptions
from nndeploy.compiler.pack import Packing
from nndeploy.compiler.whole_bundle import report_so_far
from nndeploy.errors import CheckError
from nndeploy.graph.nodes import node_name
from nndeploy.partition.gates import check_gates
from nndeploy.plugin.interface import Backend


@dataclass(frozen=True, slots=True)
class _Judged:
    """Who runs which node of a plan on a target; `target` is "" where it is this machine."""

    target: str
    backend_of: Mapping[str, str]
    plan: ChainPlan
    order: Sequence[Backend]


def check_settled(compilation: Compilation, packing: Packing, settled: Settled) -> None:
    """Checks what was built for each named target, or for this machine.

    Raises:
        CheckError: a gate failed.
    """
    judged = _judged(
        settled.plan, packing.portable, packing.chains, packing.targets, are_named=bool(compilation.options.targets)
    )
    _check(compilation.options, judged, lambda: report_so_far(compilation, packing, settled))


def check_planned(
    options: CompileOptions,
    plan: ChainPlan,
    portable: TargetBackends,
    chains: Sequence[PlannedChain],
    report: Report,
) -> None:
    """Checks what would be built; which variants targets without GPUs would take is not known before.

    Raises:
        CheckError: a gate failed.
    """
    _check(options, _judged(plan, portable, chains, (), are_named=bool(options.targets)), lambda: report)


def _judged(
    plan: ChainPlan,
    portable: TargetBackends,
    chains: Sequence[PlannedChain | SettledChain],
    targets: Sequence[TargetReport],
    *,
    are_named: bool,
) -> Iterator[_Judged]:
    """Yields what each target runs: its chain, or its variants of the portable one; `are_named` says if any was."""
    used = [chain for chain in chains if chain.uses_gpu]
    if not targets and not (are_named and used):
        yield _Judged("", plan.backend_of, plan, portable.backends)
    for target in dict.fromkeys(one.target for one in targets):
        taken = {one.submodel: one.backend for one in targets if one.target == target}
        backend_of = {
            node_name(node): taken[plan.submodel_id(i)]
            for i, region in enumerate(plan.regions)
            for node in region.nodes
        }
        yield _Judged(target, backend_of, plan, portable.backends)
    for chain in used:
        target = chain.backends.target.name
        yield _Judged(target, chain.plan.backend_of, chain.plan, chain.backends.backends)


def _check(options: CompileOptions, judged: Iterable[_Judged], report: Callable[[], Report]) -> None:
    try:
        for one in judged:
            check_gates(
                one.backend_of, one.plan.costs, one.order, options.require, options.max_fallback, one.plan.why_not,
                one.target,
            )  # fmt: skip
    except CheckError as err:
        err.report = report()
        raise
    if options.strict_targets:
        found = report()
        if idle := [chain.idle_gpu for chain in found.target_chains if chain.idle_gpu]:
            error = CheckError("; ".join(idle), hint="without --strict-targets its CPU runs all of the model")
            error.report = found
            raise error
