# SPDX-License-Identifier: Apache-2.0
"""Variants of the portable chain for boxes that the user named, and the check that each is served.

    settled chain, targets -> for each submodel and target: a variant of a backend that runs alone (our own kernels),
    and where the box is known to have a library, of its backend -> which variant each target takes, or why none

A box is *served* where it has for every submodel a variant that it runs with nothing but this runtime, or with a
library that its target file (or `--target BOX+LIBRARY`) says it has. What this machine can run of a target's variants
is run and compared here; what it cannot is built.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nndeploy.bundle.report import TargetReport
from nndeploy.compiler.chains.backend_order import TargetBackends
from nndeploy.compiler.chains.build_piece import Outcome, built_and_checked
from nndeploy.compiler.chains.built_chain import BuiltPiece, BuiltVariant, Settled, in_order
from nndeploy.compiler.chains.chain_plan import Piece
from nndeploy.compiler.chains.chain_setting import Setting, options_on
from nndeploy.compiler.chains.fallbacks import takers_below, with_variants
from nndeploy.errors import CheckError
from nndeploy.plugin.interface import RunsAlone
from nndeploy.target.known_targets import named_again
from nndeploy.target.target import Target, unmet


@dataclass(slots=True)
class TargetVariants:
    """A settled chain with variants for targets; `refusals` says by (target, submodel) why our own runtime has none."""

    settled: Settled
    targets: tuple[Target, ...]
    refusals: Mapping[tuple[str, str], str] = field(default_factory=dict)


def with_target_variants(
    setting: Setting, settled: Settled, who: TargetBackends, targets: Sequence[Target]
) -> TargetVariants:
    """Returns the portable chain with variants for each of `targets`; `who` builds it."""
    alone = [backend.name for backend in who.backends if isinstance(backend, RunsAlone)]
    refusals: dict[tuple[str, str], str] = {}
    outcomes: list[Outcome] = []
    pieces = list(settled.pieces)
    for number, built in enumerate(settled.pieces):
        variants = list(built.variants)
        for target in targets:
            setting.events("targets", f"{built.piece.id} for {target.name}")
            made = _Maker(_for_target(setting, target), settled, built.piece)
            own, reason = made.first_of(alone)
            if own is None:
                refusals[target.name, built.piece.id] = reason or "no backend that needs no library is among --backends"
            variants += [own] if own is not None else []
            if not _serving(variants, target, alone):
                library, _ = made.first_of(_there(settled, built.piece, target))
                variants += [library] if library is not None else []
            outcomes += made.outcomes
        pieces[number] = replace(built, variants=in_order(variants))
    return TargetVariants(with_variants(settled, pieces, outcomes), tuple(targets), refusals)


@dataclass(slots=True)
class _Maker:
    """Builds variants of one piece for the target of `setting`; keeps what came of those that are right."""

    setting: Setting
    settled: Settled
    piece: Piece
    outcomes: list[Outcome] = field(default_factory=list)

    def first_of(self, backends: Sequence[str]) -> tuple[BuiltVariant | None, str]:
        """Returns the variant of the first backend that builds the piece and is right, or None and why not."""
        reasons = []
        for backend in backends:
            if reason := self._refusal(backend):
                reasons.append(f"{backend}: {reason}")
                continue
            outcome = built_and_checked(self.setting, self.settled, self.piece, backend)
            if outcome.built is not None and not outcome.failure:
                self.outcomes.append(outcome)
                return BuiltVariant(backend, self.setting.target, outcome.built.artifact), ""
            reasons.append(f"{backend}: {outcome.failure}")
        return None, "; ".join(reasons)

    def _refusal(self, backend: str) -> str:
        """Returns what a backend said of the first node of the piece that it does not take, "" where it takes all."""
        answers = self.settled.plan.placement.answers.get(backend, {})  # a plan may not have asked everybody
        refused = next((node for node in self.piece.nodes if node in answers and not answers[node].ok), "")
        return f"node {refused!r:.80}: {answers[refused].reason}" if refused else ""


def _for_target(setting: Setting, target: Target) -> Setting:
    return replace(setting, target=target, build_options=options_on(target, setting.build_options))


def _there(settled: Settled, piece: Piece, target: Target) -> list[str]:
    """Returns the backends of a piece, its own first, whose library the target is known to have."""
    libraries = dict(target.libraries)
    return [name for name in (piece.backend, *takers_below(settled.plan.placement, piece)) if name in libraries]


def _serving(variants: Sequence[BuiltVariant], target: Target, alone: Sequence[str]) -> BuiltVariant | None:
    """Returns the first variant that a target runs with what it is known to have."""
    has = {*alone, *dict(target.libraries)}
    fits = (one for one in variants if one.backend in has and not unmet(one.artifact.requires, target))
    return next(fits, None)


def target_reports(
    found: TargetVariants, who: TargetBackends, host: Target, but: Container[Target] = ()
) -> tuple[TargetReport, ...]:
    """Returns which variant of each submodel each target takes, or why it has none; `but` have a chain of their own."""
    alone = [backend.name for backend in who.backends if isinstance(backend, RunsAlone)]
    return tuple(
        _report(found, built, target, alone, host)
        for target in found.targets
        if target not in but
        for built in found.settled.pieces
    )


def _report(
    found: TargetVariants, built: BuiltPiece, target: Target, alone: Sequence[str], host: Target
) -> TargetReport:
    submodel, taken = built.piece.id, _serving(built.variants, target, alone)
    if taken is None:
        return TargetReport(target.name, submodel, reason=found.refusals[target.name, submodel])
    compared = not unmet(taken.artifact.requires, host) and any(
        (check.scope, check.backend) == (submodel, taken.backend) and check.was_made for check in found.settled.checks
    )
    variant = built.variant_id(built.variants.index(taken))
    needs = "" if taken.backend in alone else taken.backend
    return TargetReport(target.name, submodel, variant, taken.backend, needs, compared)


def check_served(reports: Sequence[TargetReport]) -> None:
    """Checks that every named box has a variant of every submodel.

    Raises:
        CheckError: one has none.
    """
    missing = [report for report in reports if not report.variant]
    if not missing:
        return
    first = missing[0]
    without = {report.target: [one.submodel for one in missing if one.target == report.target] for report in missing}
    named = "; ".join(f"{target} lacks {', '.join(submodels)}" for target, submodels in without.items())
    raise CheckError(
        f"these targets cannot run the bundle with nndeploy's own runtime alone: {named} ({first.reason})",
        hint=f"if a target has a library, say so: --target {named_again(first.target)}+onnxruntime, or [libraries] "
        "in its file",
    )
