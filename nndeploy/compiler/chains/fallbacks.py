# SPDX-License-Identifier: Apache-2.0
"""More variants of pieces that are built: of the next backends that take them and are right.

Comes in: a settled chain. Goes out: the same chain, of which more machines run each piece. Law: the variant that was
chosen stays the first.
"""

from collections.abc import Sequence
from dataclasses import replace

from nndeploy.compiler.chains.build_piece import Outcome, built_and_checked
from nndeploy.compiler.chains.built_chain import BuiltPiece, BuiltVariant, Settled, in_order
from nndeploy.compiler.chains.chain_plan import Piece
from nndeploy.compiler.chains.chain_setting import Setting, options_for
from nndeploy.compiler.chains.lower import Memo
from nndeploy.partition.placement import Placement
from nndeploy.plugin import registry
from nndeploy.plugin.interface import LAST_RESORT_TIER, OWN_KERNELS_TIER, Backend


def with_fallbacks(setting: Setting, settled: Settled, memo: Memo) -> Settled:
    """Returns the same with more variants for each piece: of the next backends that take it and are right.

    The last of them is the first without code in it, so that the bundle runs on other machines, and where no code is
    allowed. `memo` is what was built of the same graph before.
    """
    here = replace(setting, build_options=options_for(setting, settled.plan.model))
    found = [_with_fallback(here, settled, built, memo) for built in settled.pieces]
    return with_variants(settled, [built for built, _ in found], [one for _, made in found for one in made])


def with_variants(settled: Settled, pieces: Sequence[BuiltPiece], outcomes: Sequence[Outcome]) -> Settled:
    """Returns a chain with more variants of its pieces, and what came of building these: comparisons, lines."""
    checks = (check for outcome in outcomes for check in outcome.made)
    lines = (outcome.unrewritten for outcome in outcomes if outcome.unrewritten)
    return replace(
        settled,
        pieces=tuple(pieces),
        checks=(*settled.checks, *checks),
        dropped=tuple(dict.fromkeys((*settled.dropped, *lines))),
    )


def takers_below(placement: Placement, piece: Piece) -> list[str]:
    """Returns the backends below a piece's own that take all of it, best first; own kernels for CPUs behind libraries.

    A fallback must run whatever comes, and a library does what kernels refuse at some sizes.
    """
    backends = list(placement.answers)
    below = backends[backends.index(piece.backend) + 1 :]
    takers = [registry.backend(name) for name in below if placement.takes_all(name, piece.nodes)]
    takers.sort(key=lambda taker: (taker.tier == LAST_RESORT_TIER, _has_kernels_for_cpus(taker)))
    return [taker.name for taker in takers]


def _has_kernels_for_cpus(taker: Backend) -> bool:
    return taker.tier == OWN_KERNELS_TIER and taker.device_kind == "cpu"


def _with_fallback(
    setting: Setting, settled: Settled, built: BuiltPiece, memo: Memo
) -> tuple[BuiltPiece, list[Outcome]]:
    """Returns a piece with its fallbacks, and what came of building these; as it is where it has some."""
    if len(built.variants) > 1:
        return built, []
    variants, outcomes = list(built.variants), list[Outcome]()
    for backend in takers_below(settled.plan.placement, built.piece):
        outcome = memo.get((backend, built.piece.nodes)) or built_and_checked(setting, settled, built.piece, backend)
        if outcome.built is not None and not outcome.failure:
            variants.append(BuiltVariant(backend, setting.target, outcome.built.artifact))
            outcomes.append(outcome)
            if not outcome.built.artifact.native_code:
                break
    return replace(built, variants=in_order(variants)), outcomes
