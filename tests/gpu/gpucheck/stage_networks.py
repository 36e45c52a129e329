# SPDX-License-Identifier: Apache-2.0
"""Stage 7: whole networks, compiled on this machine for its GPU, loaded and compared with ONNX Runtime on the CPU.

Each tier alone with the CPU behind it, then all together. The bundles stay for the stage `speed`. What a compile drops
because of wrong numbers is wrong here: on a user's machine the next backend would hide it.
"""

from collections import Counter
from collections.abc import Iterator

from gpucheck.agreement import agreement
from gpucheck.networks import Network, backends_of, bundle_path, combinations, network, network_names
from gpucheck.options import Options
from gpucheck.reference import outputs_of, session_of
from gpucheck.rows import GPU_TIERS, NOT_RUN, OK, REFUSED, WRONG, Row
from gpucheck.tiers import DEVICE, target_of, why_unusable
from nndeploy.bundle.report import ChainReport, Report
from nndeploy.compiler.flow import compile_model
from nndeploy.compiler.options import CompileOptions
from nndeploy.errors import CheckError, ModelError
from nndeploy.jobs.workers import InProcessWorkers
from nndeploy.runtime import program as runtime
from nndeploy.runtime.load_options import LoadOptions

STAGE = "networks"
WRONG_NUMBERS = "wrong numbers"
NUM_RUNS = 3
MAX_REASON = 200


def items(options: Options) -> list[str]:
    """Returns "network | combination", and a tier by its name where it is not usable."""
    found = [tier for tier in options.tiers if why_unusable(tier)]
    return found + [f"{name} | {which}" for name in network_names(options) for which in combinations(options)]


def run(item: str, options: Options) -> Iterator[Row]:
    """Yields what came of one network with one combination of backends."""
    name, _, which = item.partition(" | ")
    if not which:
        yield Row(STAGE, "(all)", name, REFUSED, why_unusable(name))
        return
    try:
        wanted = network(name, options)
        reference = session_of(wanted.source, threads=2)
    except Exception as err:  # ONNX Runtime's own way to say no: an operator it does not know
        yield Row(STAGE, name, which, NOT_RUN, f"no reference: {' '.join(str(err).split())[:MAX_REASON]}")
        return
    path = bundle_path(name, which, options)
    try:
        report = compile_model(
            wanted.source,
            path,
            CompileOptions(
                backends=backends_of(which, options),
                targets=(target_of(options),),
                samples=[wanted.sample],
                shapes=wanted.shapes,
                keep_fallback=False,
            ),
            workers=InProcessWorkers(),
        )
    except CheckError as err:
        yield Row(STAGE, name, which, WRONG, str(err))
        return
    except ModelError as err:
        yield Row(STAGE, name, which, REFUSED, str(err))
        return
    chain = report.target_chains[0]
    yield from _dropped(name, which, chain)
    if not any(submodel.backend in GPU_TIERS for submodel in chain.submodels):
        path.unlink()
        yield Row(STAGE, name, which, REFUSED, "it takes nothing", facts=facts_of(chain, report))
        return
    yield _compared(wanted, which, path, chain, report, outputs_of(reference, wanted.sample))


def _dropped(name: str, which: str, chain: ChainReport) -> Iterator[Row]:
    for reason in chain.dropped:
        yield Row(STAGE, name, which, WRONG if WRONG_NUMBERS in reason else REFUSED, reason)


def _compared(
    wanted: Network, which: str, path: object, chain: ChainReport, report: Report, want: dict[str, object]
) -> Row:
    """Returns the row of a bundle that is loaded on the GPU and run several times."""
    facts = facts_of(chain, report)
    with runtime.load_bundle(str(path), LoadOptions(device=DEVICE)) as program:
        if program.warnings:
            facts["warnings"] = "; ".join(program.warnings)[:MAX_REASON]
        for _ in range(NUM_RUNS):
            found = agreement(program.run(wanted.sample), want, wanted.quantised)
            if not found.ok:
                return Row(STAGE, wanted.name, which, WRONG, found.reason, max_abs=found.max_abs, facts=facts)
    return Row(STAGE, wanted.name, which, OK, max_abs=found.max_abs, facts=facts)


def facts_of(chain: ChainReport, report: Report) -> dict[str, object]:
    """Returns who took what, how long the compile took, and the most common reason why a GPU tier did not."""
    counts = Counter(submodel.backend for submodel in chain.submodels)
    shares = ", ".join(f"{name} {chain.share_of(name):.0%} in {count}" for name, count in counts.items())
    reasons = Counter(
        f"{backend}: {node.op}: {reason}"
        for node in chain.nodes
        for backend, reason in node.refusals.items()
        if backend in GPU_TIERS
    )
    facts: dict[str, object] = {"compute": shares, "compiled in s": round(sum(report.seconds.values()), 1)}
    if reasons:
        reason, count = reasons.most_common(1)[0]
        facts["mostly refused"] = f"{count} x {reason}"[:MAX_REASON]
    return facts
