# SPDX-License-Identifier: Apache-2.0
"""A vote held: the engines of this machine are asked about one model, in rounds, until two of them agree.

    original model, model before the passes, samples -> ballots, round by round -> `Verdict`

A small model is voted on before it is compiled: ONNX Runtime and ONNX's evaluator, and all others where these do not
agree or cannot run it. Any other model is voted on when a backend contradicts the reference: all engines, and ONNX's
evaluator, which is slow, only where no two of them agree.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir

from nndeploy.bundle.manifest import Limits, Tolerance
from nndeploy.checking.check import compare_outputs, describe_difference
from nndeploy.checking.cuts import behind_cuts, listing_axes
from nndeploy.checking.engines import EVALUATOR, Engines, is_reference_engine
from nndeploy.checking.spread import UNMATCHED
from nndeploy.checking.vote import Ballots, Outputs, Verdict, verdict_of
from nndeploy.comparison.judge import MIN_COSINE
from nndeploy.errors import BuildRefusedError
from nndeploy.values.types import TensorType, ValueType


@dataclass(frozen=True, slots=True)
class Election:
    """One model on its samples, and how outputs of it are compared.

    `original` is the model as the file says, `exported` the one before the passes. `rounds` are engines, of which more
    are asked as long as no two agree. With `is_rounded` (quantised values, 16-bit floats) right engines may differ by
    more than a tolerance; they then agree where they point the same way. `is_before` tells a vote that is held before
    the compile.
    """

    engines: Engines
    rounds: Sequence[Sequence[str]]
    original: onnx.ModelProto
    exported: ir.Model
    samples: Sequence[Outputs]
    types: Mapping[str, ValueType]
    tolerances: Mapping[str, Tolerance]
    incomparable: Mapping[str, str]
    is_rounded: bool
    is_before: bool
    _ballots: dict[str, Sequence[Outputs] | None] = field(default_factory=dict)

    def verdict(self) -> Verdict | None:
        """Returns which engines are right; None where none can run the model."""
        verdict = None
        for voters in self.rounds:
            verdict = self._verdict_of(voters)
            if verdict is not None and len(verdict.right) > 1:
                break
        return verdict

    def _verdict_of(self, voters: Sequence[str]) -> Verdict | None:
        ballots = {engine: of for engine in voters if (of := self._ballot(engine)) is not None}
        if not ballots:
            return None
        verdict = self._counted(ballots)
        if not verdict.wrong:
            return verdict
        allowed = {name: of for name, of in ballots.items() if not self.engines.refusal(name, self.exported)}
        return self._counted(allowed or ballots)

    def _counted(self, ballots: Ballots) -> Verdict:
        differs = [self._differs, *([self._points_elsewhere] if self.is_rounded else [])]
        return verdict_of(ballots, differs, self._has_inferred_shapes, EVALUATOR)

    def _ballot(self, engine: str) -> Sequence[Outputs] | None:
        if engine not in self._ballots:
            try:
                self._ballots[engine] = self._asked(engine)
            except BuildRefusedError:
                self._ballots[engine] = None
        return self._ballots[engine]

    def _asked(self, engine: str) -> Sequence[Outputs]:
        if is_reference_engine(engine):
            return self.engines.outputs(engine, self.original.SerializeToString(), self.samples)
        return self.engines.of_backend(engine, self.exported, self.samples)

    def _differs(self, got: Sequence[Outputs], want: Sequence[Outputs]) -> str:
        behind = behind_cuts(self.exported.graph) & self.types.keys()
        rows = [
            {name: Limits(0.0, 0.0, 0.0, 0.0, axis, UNMATCHED) for name, axis in listing_axes(behind, one).items()}
            for one in want
        ]
        checks = compare_outputs("", "", got, want, self.types, self.tolerances, self.incomparable, lambda: rows)
        return next((describe_difference(check) for check in checks if not check.ok), "")

    def _points_elsewhere(self, got: Sequence[Outputs], want: Sequence[Outputs]) -> str:
        checks = compare_outputs("", "", got, want, self.types, self.tolerances, self.incomparable)
        return next((describe_difference(c) for c in checks if not (c.ok or (c.cosine or 0.0) >= MIN_COSINE)), "")

    def _has_inferred_shapes(self, outputs: Outputs) -> bool:
        return all(_has_shape(outputs.get(name), kind) for name, kind in self.types.items())


def _has_shape(value: object, kind: ValueType) -> bool:
    if not isinstance(kind, TensorType) or kind.shape is None:
        return True
    shape = getattr(value, "shape", ())
    return len(shape) == len(kind.shape) and all(
        size == dim for size, dim in zip(shape, kind.shape, strict=True) if isinstance(dim, int)
    )
