# SPDX-License-Identifier: Apache-2.0
"""One piece through one backend: built, run on the samples, compared with the reference.

    piece, backend -> its own rewrites -> build in a child -> outputs -> compared -> `Outcome`: an artifact, or why not

Law: what fails after the backend's own rewrites is built again without them, and what fails in a lower precision than
float32 in float32, before the backend loses the piece.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from nndeploy.bundle.report import CheckReport
from nndeploy.checking.check import compare_outputs, describe_failure, in_precision, not_compared
from nndeploy.checking.cuts import model_before_cuts
from nndeploy.checking.saturation import model_before_saturation, saturated_outputs
from nndeploy.comparison.judge import BY_LIMITS, BY_ROWS
from nndeploy.compiler.chains.between_pieces import NO_SAMPLE, types_between_pieces
from nndeploy.compiler.chains.built_chain import Settled
from nndeploy.compiler.chains.chain_plan import Piece
from nndeploy.compiler.chains.chain_setting import Setting
from nndeploy.compiler.chains.own_rewrites import Rewritten, rewritten
from nndeploy.errors import BuildRefusedError, one_line
from nndeploy.jobs.messages import model_bytes
from nndeploy.jobs.tasks import Built
from nndeploy.target.place_limits import is_gpu, number_of
from nndeploy.target.target import Target
from nndeploy.values.types import Value, shapes_text


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of building a piece: an artifact and comparisons, or the reason why not.

    `reverted` says why it is in float32 although less was allowed, and `unrewritten` why a rewrite of the backend was
    left out, "" where it is not so; `rewrites` is how many nodes were rewritten.
    """

    piece: Piece
    built: Built | None
    checks: tuple[CheckReport, ...] = ()
    failure: str = ""
    reverted: str = ""
    unrewritten: str = ""
    rewrites: int = 0

    @property
    def made(self) -> list[CheckReport]:
        """The comparisons that could be made."""
        return [check for check in self.checks if check.was_made]


def build_piece(
    setting: Setting, piece: Piece, backend: str, boundaries: Sequence[Mapping[str, Value]], note: str
) -> Outcome:
    """Builds and compares a piece as the backend rewrites it; where that fails, as it is."""
    build = _Build(setting, piece, backend, boundaries, note)
    found = Rewritten() if backend in setting.as_taken else rewritten(piece.model, backend, _target(setting, piece))
    if found.model is None:
        return replace(build.in_some_precision(piece.model), unrewritten=found.why_not)
    outcome = build.in_some_precision(found.model)
    if not outcome.failure:
        return replace(outcome, rewrites=found.count)
    plain = build.in_some_precision(piece.model)
    if plain.failure:  # which is no fault of the rewrites
        return plain
    return replace(plain, unrewritten=f"{backend} builds {piece.id} without its own rewrites: {outcome.failure}")


def built_and_checked(setting: Setting, settled: Settled, piece: Piece, backend: str) -> Outcome:
    """Returns what comes of building a piece of a settled plan with another backend, or for another target."""
    note = "" if settled.boundaries else NO_SAMPLE
    return build_piece(setting, piece, backend, settled.boundaries, note)


@dataclass(frozen=True, slots=True)
class _Build:
    """A piece that is to be built by a backend, and what it is compared with."""

    setting: Setting
    piece: Piece
    backend: str
    boundaries: Sequence[Mapping[str, Value]]
    note: str

    def in_some_precision(self, model: ir.Model) -> Outcome:
        """Builds `model`, which is the piece or what the backend made of it, in what is allowed, else in float32."""
        outcome = self.tried(model)
        allowed = self.setting.build_options.precision
        if not outcome.failure or allowed == "fp32" or (outcome.built and outcome.built.artifact.precision == "fp32"):
            return outcome
        options = replace(self.setting.build_options, precision="fp32")
        again = replace(self, setting=replace(self.setting, build_options=options)).tried(model)
        reason = f"{self.backend} computes {len(self.piece.nodes)} nodes in fp32, not in {allowed}: {outcome.failure}"
        return again if again.failure else replace(again, reverted=reason)

    def tried(self, model: ir.Model) -> Outcome:
        """Builds `model` in the precision of the setting, and compares it."""
        self.setting.events("build", f"{self.piece.id} for {self.backend}, {len(self.piece.nodes)} nodes")
        fed = [{name: values[name] for name in self.piece.inputs} for values in self.boundaries]
        try:
            built = self.setting.workers.build(
                self.backend, model, _target(self.setting, self.piece), self.setting.build_options, fed
            )
        except BuildRefusedError as err:
            return Outcome(self.piece, None, failure=one_line(str(err)))
        if self.note or built.not_run:
            return Outcome(
                self.piece,
                built,
                (not_compared(self.piece.id, self.backend, built.not_run or self.note, absent=bool(built.not_run)),),
            )
        types = types_between_pieces([self.piece], self.boundaries)
        whole = self.setting.whole_of(self.piece.outputs)
        original = whole.model if whole is not None else lambda: self.piece.model
        precision = built.artifact.precision
        compared = compare_outputs(
            self.piece.id,
            self.backend,
            built.outputs,
            self.boundaries,
            {name: types[name] for name in self.piece.outputs},
            self.setting.tolerances[precision],
            self.setting.incomparable,
            self.setting.limits(original, fed, self.boundaries, {name: types[name] for name in self.piece.outputs}),
        )
        checks = in_precision(compared, precision)
        if any(check.rule == BY_ROWS for check in checks):
            checks += _before(self.setting, self.piece, self.backend, fed, model_before_cuts(self.piece.model))
        by_limits = {check.output for check in checks if check.rule == BY_LIMITS}
        if saturated := saturated_outputs(self.piece.model, self.boundaries, by_limits):
            checks += _before(
                self.setting, self.piece, self.backend, fed, model_before_saturation(self.piece.model, saturated)
            )
        wrong = next((check for check in checks if not check.ok), None)
        if wrong is None:
            return Outcome(self.piece, built, tuple(checks))
        if precision == "fp32":
            self.setting.confirm()
        at = f" at {shapes_text(fed[wrong.sample])}" if len(set(map(shapes_text, fed))) > 1 else ""
        return Outcome(self.piece, built, tuple(checks), f"wrong numbers: {describe_failure(wrong)}{at}")


def _target(setting: Setting, piece: Piece) -> Target:
    """Returns what a piece is built for: of several GPUs the one that runs it."""
    if not is_gpu(piece.place):
        return setting.target
    return replace(setting.target, gpus=(setting.target.gpus[number_of(piece.place)],), places=())


def _before(
    setting: Setting, piece: Piece, backend: str, fed: Sequence[Mapping[str, Value]], before: ir.Model | None
) -> list[CheckReport]:
    """Returns comparisons of what operators are given in a piece behind which numbers tell little.

    The backend builds `before`, the part of the piece before them; where there is none, or the backend will not, there
    is nothing more to compare.
    """
    if before is None:
        return []
    part = replace(piece, model=before, outputs=tuple(value.name or "" for value in before.graph.outputs))
    names = [value.name or "" for value in before.graph.inputs]
    samples = [{name: values[name] for name in names} for values in fed]
    try:
        want = setting.reference.evaluate(model_bytes(before), samples)
        built = setting.workers.build(backend, before, _target(setting, piece), setting.build_options, samples)
    except BuildRefusedError:
        return []
    types = {name: kind for name, kind in types_between_pieces([part], want).items() if name in part.outputs}
    limits = setting.limits(lambda: before, samples, want, types)
    tolerances = setting.tolerances[built.artifact.precision]
    checks = compare_outputs(piece.id, backend, built.outputs, want, types, tolerances, setting.incomparable, limits)
    return in_precision(checks, built.artifact.precision)
