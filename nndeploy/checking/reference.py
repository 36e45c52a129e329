# SPDX-License-Identifier: Apache-2.0
"""What the original model gives: the reference that everything else is compared with.

No engine is trusted alone: of a small model ONNX Runtime and ONNX's evaluator must agree, of any other ONNX Runtime is
the reference until another engine contradicts it (`held_vote`). Who lost a vote is not asked again about the model.

`along_chain` evaluates the submodels one after the other, each fed with the reference's own values: that gives the
right values at every border, whatever the backends do.
"""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from nndeploy.bundle.manifest import Limits, Tolerance
from nndeploy.checking.cuts import behind_cuts, listing_axes
from nndeploy.checking.engines import EVALUATOR, Engines, is_reference_engine
from nndeploy.checking.right_engines import RightEngines
from nndeploy.checking.spread import limits_of
from nndeploy.checking.vote import Verdict
from nndeploy.errors import BuildRefusedError
from nndeploy.jobs.messages import model_bytes
from nndeploy.values.types import Value, ValueType


@dataclass(frozen=True, slots=True)
class Reference:
    """The engines that may be asked, best first, and how; `right` are those that tell how far right ones differ.

    `has_soon_evaluator` says that ONNX's evaluator runs the model soon.
    """

    engines: Engines
    order: tuple[str, ...]
    right: RightEngines | None = None
    has_soon_evaluator: bool = False
    _limits: dict[str, list[dict[str, Limits]]] = field(default_factory=dict)
    _asking: dict[str, threading.Lock] = field(default_factory=dict)
    _loads: dict[tuple[str, bytes], bool] = field(default_factory=dict)

    def evaluate(self, model: bytes, samples: Sequence[Mapping[str, Value]]) -> list[dict[str, Value]]:
        """Returns the outputs on each sample from the first engine that can run the model.

        Raises:
            BuildRefusedError: no engine can; the reasons are in the message.
        """
        reasons = []
        for engine in self.order:
            try:
                return [dict(outputs) for outputs in self.engines.outputs(engine, model, samples)]
            except BuildRefusedError as err:
                reasons.append(f"{engine}: {err}")
        raise BuildRefusedError("; ".join(reasons) or "no reference engine is installed")

    def evaluate_made_up(self, model: bytes, sample: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the outputs on an input that nobody gave.

        ONNX's evaluator computes with many an input that makes no sense: so a library must run it, where one loads the
        model.

        Raises:
            BuildRefusedError: every library that loads the model refuses the input, or no engine can run it.
        """
        refusals = []
        for engine in (engine for engine in self.order if engine != EVALUATOR):
            try:
                return dict(self.engines.outputs(engine, model, [sample])[0])
            except BuildRefusedError as err:
                if self._loads_model(engine, model):
                    refusals.append(f"{engine}: {err}")
        if refusals:
            raise BuildRefusedError("; ".join(refusals))
        return self.evaluate(model, [sample])[0]

    def _loads_model(self, engine: str, model: bytes) -> bool:
        """Returns whether a library loads the model, whatever it then says of an input."""
        if (engine, model) not in self._loads:
            try:
                self.engines.outputs(engine, model, [])
                self._loads[engine, model] = True
            except BuildRefusedError:
                self._loads[engine, model] = False
        return self._loads[engine, model]

    def after(self, verdict: Verdict) -> "Reference":
        """Returns the reference that asks those who are right, then who could not run the whole model."""
        right = sorted(verdict.right, key=lambda engine: not is_reference_engine(engine))
        others = [engine for engine in self.order if engine not in (*right, *verdict.wrong)]
        return replace(
            self,
            order=(*right, *others),
            right=None if self.right is None else self.right.after(verdict),
            _limits={},
            _asking={},
            _loads={},
        )

    def limits(
        self,
        model: ir.Model,
        samples: Sequence[Mapping[str, Value]],
        want: Sequence[Mapping[str, Value]],
        types: Mapping[str, ValueType],
        tolerances: Mapping[str, Tolerance],
    ) -> list[dict[str, Limits]]:
        """Returns for each sample how far the outputs `types` of a right engine may be from the reference's, `want`.

        Asked again for the same model and inputs it remembers.
        """
        if self.right is None:
            return [{} for _ in want]
        shapes = [(name, getattr(value, "shape", ())) for sample in samples for name, value in sample.items()]
        key = hashlib.sha256(model_bytes(model) + repr((shapes, sorted(tolerances.items()))).encode()).hexdigest()
        with self._asking.setdefault(key, threading.Lock()):  # candidates that are built at once ask it at once
            if key not in self._limits:
                right = self.right.outputs(model, samples, [{name: w[name] for name in types} for w in want])
                behind = behind_cuts(model.graph)
                self._limits[key] = [
                    limits_of(
                        w,
                        [of[i] for of in right],
                        types,
                        tolerances,
                        listing_axes(behind & types.keys(), w),
                        self.right.quantised,
                    )
                    for i, w in enumerate(want)
                ]
        return self._limits[key]

    def along_chain(
        self, submodels: Sequence[ir.Model], samples: Sequence[Mapping[str, Value]]
    ) -> list[dict[str, Value]]:
        """Returns for each sample every value that enters or leaves a submodel, by name.

        Raises:
            BuildRefusedError: no engine can run some submodel.
        """
        known: list[dict[str, Value]] = [dict(sample) for sample in samples]
        for submodel in submodels:
            names = [value.name for value in submodel.graph.inputs if value.name]
            fed = [{name: values[name] for name in names} for values in known]
            for values, outputs in zip(known, self.evaluate(model_bytes(submodel), fed), strict=True):
                values.update(outputs)
        return known
