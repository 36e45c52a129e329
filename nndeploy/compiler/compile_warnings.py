# SPDX-License-Identifier: Apache-2.0
"""What a user should know of a bundle that is right and yet not what was hoped for, one line each.

Comes in: settled chains. Goes out: lines for the report's warnings. Law: nothing is said twice, and nothing that is as
it was asked for.
"""

from collections.abc import Sequence

from nndeploy.bundle.report import CheckReport, TargetReport
from nndeploy.comparison.judge import is_weak
from nndeploy.compiler.chains.built_chain import Settled
from nndeploy.compiler.chains.chain_plan import ChainPlan
from nndeploy.compiler.pack import Packing
from nndeploy.plugin.interface import LAST_RESORT_TIER, Backend
from nndeploy.target.target import BF16_FEATURE, has_bf16, unmet


def of_precision(packing: Packing, settled: Settled) -> list[str]:
    """Returns a line for each target for which nothing computes in the precision that was asked for."""
    asked = packing.options.precision
    if asked == "fp32":
        return []
    chains = [settled, *(chain.settled for chain in packing.chains)]
    variants = [v for settled in chains for built in settled.pieces for v in built.variants]
    computing = [variant.artifact.requires for variant in variants if variant.artifact.precision == asked]
    found = []
    for target in dict.fromkeys((packing.setting.target, *packing.options.targets)):
        if not has_bf16(target):
            found.append(f"{target.name} lacks {BF16_FEATURE}: fp32 is computed there, not {asked}")
        elif all(unmet(requires, target) for requires in computing):
            found.append(f"no backend computes in {asked} for {target.name}: fp32 is computed there")
    return found


def of_last_resorts(plan: ChainPlan, order: Sequence[Backend]) -> list[str]:
    """Returns a line for each last resort, which is slow, that runs nodes; with the heaviest by name."""
    found = []
    for name in (backend.name for backend in order if backend.tier == LAST_RESORT_TIER and len(order) > 1):
        nodes = sorted((n for n, b in plan.backend_of.items() if b == name), key=lambda n: -plan.costs.share(n))
        if nodes:
            share, more = sum(map(plan.costs.share, nodes)), len(nodes) - 1
            others = f" and {more} more" if more else ""
            found.append(f"{name}, which is slow, runs {nodes[0]!r}{others}: {share:.1%} of the compute")
    return found


def of_other_sizes(floor: Sequence[TargetReport]) -> list[str]:
    """Returns a line for each target whose GPU's chain is for some sizes, and that is not known to run the others.

    `floor` is what these targets take of the portable chain.
    """
    lacking = {report.target: report for report in reversed(floor) if not report.variant}
    return [
        f"{target}: calls with sizes that its GPU's chain is not for need a library there ({report.reason})"
        for target, report in lacking.items()
    ]


def of_sandbox(unprotected: str) -> list[str]:
    """Returns a line where the libraries ran without a part of their sandbox, which this kernel lacks."""
    return [f"this kernel has no {unprotected}: libraries that a model exploits are not shut in"] if unprotected else []


def of_weak_checks(checks: Sequence[CheckReport]) -> list[str]:
    """Returns a line for each output that was found right although it is not like the reference."""
    weak = {check.output: check for check in checks if is_weak(check)}
    return [
        f"output {name!r} is hardly checked: right engines differ so much on these inputs that a cosine of "
        f"{check.cosine:.3f} passes; other inputs may tell more (--samples)"
        for name, check in weak.items()
    ]


def of_native_code(settled: Settled) -> list[str]:
    """Returns a line that names the submodels that cannot be run where no code of a bundle may be; none, no line."""
    bare = [b.piece.id for b in settled.pieces if all(variant.artifact.native_code for variant in b.variants)]
    names = ", ".join(bare)
    return [f"nothing here builds {names} without code in it: --no-native-code cannot run this"] if bare else []
