# SPDX-License-Identifier: Apache-2.0
"""The gates of a compile: of every chain, who takes which share of the compute, against what was asked for.

Comes in: plans, each with who builds it. Goes out: nothing, or an error that carries the report. Law: a gate that fails
ends the compile before anything is written.
"""

from collections.abc import Callable, Sequence

from nndeploy.bundle.report import Report
from nndeploy.compiler.chains.backend_order import TargetBackends
from nndeploy.compiler.chains.built_chain import Settled
from nndeploy.compiler.chains.chain_plan import ChainPlan
from nndeploy.compiler.compilation import Compilation
from nndeploy.compiler.options import CompileOptions
from nndeploy.compiler.pack import Packing
from nndeploy.compiler.whole_bundle import report_so_far
from nndeploy.errors import CheckError
from nndeploy.partition.gates import check_gates


def check_settled(compilation: Compilation, packing: Packing, settled: Settled) -> None:
    """Checks the shares of the portable chain, which is `settled`, and of those for targets with GPUs.

    Raises:
        CheckError: a gate failed.
    """
    plans = [(settled.plan, packing.portable), *((chain.plan, chain.backends) for chain in packing.chains)]
    check_plans(compilation.options, plans, lambda: report_so_far(compilation, packing, settled))


def check_plans(
    options: CompileOptions, plans: Sequence[tuple[ChainPlan, TargetBackends]], report: Callable[[], Report]
) -> None:
    """Checks the shares of each plan; `report` is asked for where one fails.

    Raises:
        CheckError: a gate failed.
    """
    try:
        for plan, who in plans:
            check_gates(plan.backend_of, plan.costs, who.backends, options.require, options.max_fallback)
    except CheckError as err:
        err.report = report()
        raise
