# SPDX-License-Identifier: Apache-2.0
"""What the original model gives: the reference that everything else is compared with.

ONNX's own evaluator defines what is right, and is slow; so it is asked first for small models, and ONNX Runtime
without optimisation first for large ones. An engine that cannot run the model hands on to the next.

`along_chain` evaluates the submodels one after the other, each fed with the reference's own values: that gives the
right values at every border, whatever the backends do.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir

from nndeploy.bundle.manifest import Limits, Tolerance
from nndeploy.checking.cuts import behind_cuts, listing_axes
from nndeploy.checking.right_engines import EVALUATOR, RightEngines
from nndeploy.checking.spread import limits_of
from nndeploy.errors import BuildRefusedError
from nndeploy.jobs.messages import model_bytes
from nndeploy.jobs.workers import Workers
from nndeploy.plugin.interface import BuildOptions
from nndeploy.values.types import Value, ValueType

SMALL_SECONDS = 100e-6
"""Models estimated below this (about 10 million operations) go to ONNX's evaluator first."""
SMALL_NODES = 64
LAST_RESORT_SECONDS = 30.0
"""What ONNX's evaluator gets where a library refused: a suppression of boxes written in Python may take hours."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The engines that may be asked, best first, and how; `right` are those that tell how far right ones differ."""

    workers: Workers
    engines: tuple[str, ...]
    options: BuildOptions
    right: RightEngines | None = None
    _limits: dict[str, list[dict[str, Limits]]] = field(default_factory=dict)
    _loads: dict[tuple[str, bytes], bool] = field(default_factory=dict)

    def evaluate(self, model: bytes, samples: Sequence[Mapping[str, Value]]) -> list[dict[str, Value]]:
        """Returns the outputs on each sample from the first engine that can run the model.

        Raises:
            BuildRefusedError: no engine can; the reasons are in the message.
        """
        reasons = []
        for i, engine in enumerate(self.engines):
            late = (LAST_RESORT_SECONDS,) if engine == EVALUATOR and i else ()  # a loop in Python may take hours
            try:
                return self.workers.evaluate(engine, model, samples, self.options, *late)
            except BuildRefusedError as err:
                reasons.append(f"{engine}: {err}")
        raise BuildRefusedError("; ".join(reasons) or "no reference engine is installed")

    def evaluate_made_up(self, model: bytes, sample: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the outputs on an input that nobody gave.

        ONNX's evaluator computes with many an input that makes no sense: so a library must run it too, where one loads
        the model.

        Raises:
            BuildRefusedError: every library that loads the model refuses the input, or no engine can run it.
        """
        outputs, refusals = None, list[str]()
        for engine in (engine for engine in self.engines if engine != EVALUATOR):
            try:
                outputs = self.workers.evaluate(engine, model, [sample], self.options)[0]
                break
            except BuildRefusedError as err:
                if self._loads_model(engine, model):
                    refusals.append(f"{engine}: {err}")
        if outputs is not None and not self.evaluator_is_first:
            return outputs
        if outputs is None and refusals:
            raise BuildRefusedError("; ".join(refusals))
        return self.evaluate(model, [sample])[0]

    @property
    def evaluator_is_first(self) -> bool:
        """Whether ONNX's own evaluator defines what is right, where that is done soon."""
        return self.engines[:1] == (EVALUATOR,)

    def _loads_model(self, engine: str, model: bytes) -> bool:
        """Returns whether a library loads the model, whatever it then says of an input."""
        if (engine, model) not in self._loads:
            try:
                self.workers.evaluate(engine, model, [], self.options)
                self._loads[engine, model] = True
            except BuildRefusedError:
                self._loads[engine, model] = False
        return self._loads[engine, model]

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


def reference_engines(installed: Sequence[str], seconds: float, original: onnx.ModelProto) -> tuple[str, ...]:
    """Returns the engines to ask, in order, for a model of this estimated compute."""
    small = seconds < SMALL_SECONDS and len(original.graph.node) <= SMALL_NODES and not _evaluator_errs(original)
    return tuple(sorted(installed, key=lambda name: (name == EVALUATOR) != small))


def _evaluator_errs(model: onnx.ModelProto) -> bool:
    """Returns whether ONNX's evaluator (1.23.2) is known to be wrong on an operator of the model.

    BatchNormalization before opset 14 mixes in the batch's own statistics; ConvTranspose gets groups wrong.
    """
    opset = max((imported.version for imported in model.opset_import if imported.domain in ("", "ai.onnx")), default=1)
    return any(
        (node.op_type == "BatchNormalization" and opset < 14)
        or (node.op_type == "ConvTranspose" and any(a.name == "group" and a.i > 1 for a in node.attribute))
        for node in model.graph.node
    )
