# SPDX-License-Identifier: Apache-2.0
"""A plan -> built submodels: each piece through its backend's build, run on the samples, compared with the reference.

    place -> regions -> pieces -> build (several at once) -> compare
      a failed build or wrong numbers: the piece's nodes are taken from that backend, with the reason, and again

Every round takes at least one node from a backend for good, so this ends; when nobody is left, placement says which
node has no taker and why.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import onnx_ir as ir

from nndeploy.compiler.chains.between_pieces import types_between_pieces, values_between_pieces
from nndeploy.compiler.chains.build_piece import Outcome, build_piece
from nndeploy.compiler.chains.built_chain import BuiltPiece, BuiltVariant, Settled
from nndeploy.compiler.chains.chain_plan import ChainPlan, Piece, pieces_of, plan_for
from nndeploy.compiler.chains.chain_setting import Setting, options_for
from nndeploy.errors import ModelError
from nndeploy.partition.placement import Banned
from nndeploy.plugin.interface import Backend
from nndeploy.values.types import Value

Memo = dict[tuple[str, tuple[str, ...]], "Outcome"]
"""(backend, nodes) -> what came of building them; for plans of one graph, where the same nodes are the same piece, and
for settings that leave the same rewrites out."""


def settle(
    setting: Setting,
    model: ir.Model,
    order: Sequence[Backend],
    pins: Sequence[tuple[str, str]] = (),
    *,
    first: ChainPlan | None = None,
    memo: Memo | None = None,
) -> Settled:
    """Returns a plan that was built and checked, moving nodes to the next backend until all is right.

    `first` is the plan to begin with where it is known; `memo` keeps what was built for further plans of this graph.

    Raises:
        ModelError: some node has no backend left.
    """
    banned, lost = Banned(), list[str]()
    memo = {} if memo is None else memo
    while True:
        try:
            plan = first or plan_for(setting, model, order, pins, banned)
        except ModelError as err:
            err.hint = _of_made_up(setting, lost) or err.hint
            raise
        first = None
        pieces = pieces_of(plan)
        boundaries, note = values_between_pieces(setting, pieces)
        here = replace(setting, build_options=options_for(setting, plan.model))
        outcomes = _build_all(here, pieces, boundaries, note, memo)
        failed = [outcome for outcome in outcomes if outcome.failure]
        if not failed:
            return _settled(setting, plan, outcomes, boundaries, lost)
        for outcome in failed:
            piece = outcome.piece
            banned = banned.with_nodes(piece.backend, piece.nodes, outcome.failure)
            lost.append(f"{piece.backend} lost {len(piece.nodes)} nodes: {outcome.failure}")


def settle_planned(setting: Setting, plan: ChainPlan) -> tuple[Settled | None, str]:
    """Returns `plan` once it was built and checked as it stands; None and the reason where that fails."""
    pieces = pieces_of(plan)
    boundaries, note = values_between_pieces(setting, pieces)
    outcomes = [build_piece(setting, piece, piece.backend, boundaries, note) for piece in pieces]
    failure = next((outcome.failure for outcome in outcomes if outcome.failure), "")
    if failure:
        return None, failure
    return _settled(setting, plan, outcomes, boundaries, []), ""


def _settled(
    setting: Setting,
    plan: ChainPlan,
    outcomes: Sequence[Outcome],
    boundaries: tuple[Mapping[str, Value], ...],
    lost: Sequence[str],
) -> Settled:
    types = types_between_pieces([outcome.piece for outcome in outcomes], boundaries)
    checks = tuple(check for outcome in outcomes for check in outcome.checks)
    lines = (line for outcome in outcomes for line in (outcome.reverted, outcome.unrewritten))
    dropped = tuple(filter(None, (*lost, *lines, _of_made_up(setting, lost))))
    rewrites = Counter[str]()
    for outcome in outcomes:
        rewrites[outcome.piece.backend] += outcome.rewrites
    built = tuple(_built_piece(setting, outcome) for outcome in outcomes)
    return Settled(plan, built, boundaries, types, checks, dropped, tuple((+rewrites).items()))


def _of_made_up(setting: Setting, lost: Sequence[str]) -> str:
    """Says that what was lost may only not suit the sizes that were made up, "" where nothing was or none were."""
    if not lost or not setting.made_up:
        return ""
    return (
        f"nobody gave inputs, so it was tried with {setting.made_up}: where the model needs other sizes, say them with "
        "--shape, or give --samples"
    )


def _build_all(
    setting: Setting,
    pieces: Sequence[Piece],
    boundaries: Sequence[Mapping[str, Value]],
    note: str,
    memo: Memo,
) -> list[Outcome]:
    def build(piece: Piece) -> Outcome:
        key = (piece.backend, piece.nodes)
        if key not in memo:
            memo[key] = build_piece(setting, piece, piece.backend, boundaries, note)
        return replace(memo[key], piece=piece)

    if setting.workers.num_parallel == 1 or len(pieces) == 1:
        return [build(piece) for piece in pieces]
    with ThreadPoolExecutor(setting.workers.num_parallel) as pool:
        return list(pool.map(build, pieces))


def _built_piece(setting: Setting, outcome: Outcome) -> BuiltPiece:
    assert outcome.built is not None
    return BuiltPiece(outcome.piece, (BuiltVariant(outcome.piece.backend, setting.target, outcome.built.artifact),))
