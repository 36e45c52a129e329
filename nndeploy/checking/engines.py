# SPDX-License-Identifier: Apache-2.0
"""The engines of this machine, each of which can say what a model's outputs are.

reference engines (ONNX Runtime unoptimised, ONNX's evaluator)   run the model's bytes, as the file says
other backends for CPUs (native, openvino)                       build the model, after their own transforms
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from nndeploy.checking.vote import Outputs
from nndeploy.errors import BuildRefusedError
from nndeploy.frontend.stored_weights import model_from_bytes
from nndeploy.jobs.workers import Workers
from nndeploy.plugin.interface import BuildOptions, ReferenceEngine
from nndeploy.plugin.registry import backend, backends_in_order
from nndeploy.target.target import Target

EVALUATOR = "reference"
EVALUATOR_SECONDS = 10.0
"""What ONNX's evaluator gets at most, a Python loop over elements now and then: a model may take it hours."""


def engines_here(target: Target) -> list[str]:
    """Returns the engines that can run models on this machine's CPU, the preferred reference first."""
    able = [b for b in backends_in_order() if b.device_kind == "cpu" and b.probe(target).can_run]
    return [b.name for b in sorted(able, key=lambda b: (not isinstance(b, ReferenceEngine), b.tier))]


def is_reference_engine(engine: str) -> bool:
    """Returns whether an engine runs a model as the file says, without building it."""
    return isinstance(backend(engine), ReferenceEngine)


@dataclass(frozen=True, slots=True)
class Engines:
    """Who runs a model here: `workers` for `target`, in float32, on one thread."""

    workers: Workers
    target: Target
    options: BuildOptions

    def outputs(self, engine: str, model: bytes, samples: Sequence[Outputs]) -> Sequence[Outputs]:
        """Returns a model's outputs on each sample.

        Raises:
            BuildRefusedError: the engine does not take some node, cannot run the model on these samples, or too slowly.
        """
        if is_reference_engine(engine):
            late = (EVALUATOR_SECONDS,) if engine == EVALUATOR else ()
            return self.workers.evaluate(engine, model, samples, self.options, *late)
        return self.of_backend(engine, model_from_bytes(model), samples)

    def of_backend(self, engine: str, model: ir.Model, samples: Sequence[Outputs]) -> Sequence[Outputs]:
        """Returns the outputs of a model that a backend takes and builds; raises as `outputs`."""
        taken, refusal = self._as_taken(engine, model)
        if refusal:
            raise BuildRefusedError(refusal)
        return self.built(engine, taken, samples)

    def built(self, engine: str, model: ir.Model, samples: Sequence[Outputs]) -> Sequence[Outputs]:
        """Returns the outputs of a model as a backend builds it, unasked whether it takes every node."""
        built = self.workers.build(engine, model, self.target, self._in_float32, samples)
        if built.not_run:
            raise BuildRefusedError(built.not_run)
        return built.outputs

    def refusal(self, engine: str, model: ir.Model) -> str:
        """Returns why an engine does not take some node of a model, "" where it takes all."""
        return self._as_taken(engine, model)[1]

    @property
    def _in_float32(self) -> BuildOptions:
        return replace(self.options, precision="fp32")

    def _as_taken(self, engine: str, model: ir.Model) -> tuple[ir.Model, str]:
        """Returns a model as the engine takes it, after its transforms where it needs them, and why it does not."""
        refused = self._refused(engine, model)
        transforms = backend(engine).transforms(self.target) if refused else ()
        if transforms:
            model, names = model.clone(), set(refused)
            for transform in transforms:
                transform(model, lambda node: node.name in names)
            refused = self._refused(engine, model)
        return model, next(iter(refused.values()), "")

    def _refused(self, engine: str, model: ir.Model) -> dict[str, str]:
        said = self.workers.supports(engine, model, self.target, self._in_float32)
        return {node.name or "": answer.reason for node, answer in zip(model.graph, said, strict=True) if not answer.ok}
