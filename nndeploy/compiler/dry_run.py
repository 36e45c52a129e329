# SPDX-License-Identifier: Apache-2.0
"""A compile of which nothing is built: who would run what, in the portable chain and on each target with GPUs.

Comes in: an optimised model and its setting. Goes out: the report as far as it is known. Law: nothing is written; gates
hold as in a compile.
"""

from collections.abc import Sequence
from dataclasses import replace

from nndeploy.bundle.manifest import PORTABLE, Submodel
from nndeploy.bundle.place_reports import PlaceReport, place_reports
from nndeploy.bundle.report import Report
from nndeploy.checking.original import Original
from nndeploy.compiler.chains.backend_order import TargetBackends
from nndeploy.compiler.chains.chain_plan import ChainPlan, pieces_of
from nndeploy.compiler.chains.chain_setting import Setting
from nndeploy.compiler.chains.target_chains import PlannedChain, plan_chains
from nndeploy.compiler.checked_passes import Optimised
from nndeploy.compiler.compilation import Compilation
from nndeploy.compiler.pack import Packing, report_of
from nndeploy.compiler.placement_choice import packed_by, planned_placement
from nndeploy.compiler.share_gates import check_planned


def dry_report(
    compilation: Compilation,
    setting: Setting,
    found: Optimised,
    portable: TargetBackends,
    others: Sequence[TargetBackends],
) -> Report:
    """Returns the report of a compile that would be made of `found`.

    Raises:
        CheckError: a gate failed.
        ModelError: a node has no backend.
    """
    with compilation.in_stage("partition"):
        best = planned_placement(compilation, setting, found.graphs, portable.backends)
        chains = plan_chains(setting, found.loaded.model, others, compilation.options.pins)
    unrun = Original((), (), "")
    packing = Packing(found.loaded, unrun, found.passes, compilation.options, portable, setting)
    report = planned_report(compilation, packed_by(packing, best.recipe), best.plan, chains)
    check_planned(compilation.options, best.plan, portable, chains, report)
    return report


def planned_report(
    compilation: Compilation, packing: Packing, plan: ChainPlan, chains: Sequence[PlannedChain] = ()
) -> Report:
    """Returns the report of a plan, and of the chains for GPUs beside it."""
    report = report_of(packing, plan, None, compilation.findings(), chains)
    places = [*_places(PORTABLE, plan), *(row for chain in chains for row in _places(chain.id, chain.plan))]
    return replace(report, places=tuple(places), seconds=dict(compilation.seconds))


def _places(chain: str, plan: ChainPlan) -> list[PlaceReport]:
    """Returns where the submodels of a chain would run, nothing for one that runs in one place."""
    placing = plan.placing
    if placing is None:
        return []
    submodels = [Submodel(piece.id, piece.inputs, piece.outputs, ()) for piece in pieces_of(plan)]
    return place_reports(chain, submodels, [value.name or "" for value in plan.model.graph.outputs], placing)
