# SPDX-License-Identifier: Apache-2.0
"""Other computations of a model that are right too, on the very inputs of a check: what tells rounding from error.

    optimised   the reference's library with all its optimisations, as its users run it
    wide        16-bit floats in 32 bits
    exact       quantised operators between ONNX's own quantisation steps
    shifted     every operator rounds a little otherwise, three times (`shifted_rounding`)
    evaluator   ONNX's own evaluator, where it was not the reference itself and is done soon

They are asked only where a tolerance failed: a compile whose numbers agree pays nothing. An engine that lost a vote
about the model is not among them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from nndeploy.checking.engines import EVALUATOR, Engines, is_reference_engine
from nndeploy.checking.shifted_rounding import shifted, taken_apart
from nndeploy.checking.vote import Outputs, Verdict
from nndeploy.checking.widened import has_short_floats, widened
from nndeploy.errors import BuildRefusedError
from nndeploy.jobs.messages import model_bytes
from nndeploy.values.types import Value

NUM_SHIFTED = 3
SOON_SECONDS = 2e-3
"""Estimated compute up to which ONNX's evaluator is worth asking: it takes some thousand times as long."""
FAR, FAR_QUANTISED, BROKEN = 0.02, 0.5, 30.0
"""An engine that is further off than this, relative, and so many times more than shifted rounding, is no witness.

Quantised networks are really so far off: ONNX Runtime 1.31 saturates sums of 8-bit products in pairs where the
processor has AVX2 and no VNNI (ultraface and fastestdet quantised with real samples: 0.02 to 0.25, 2026-11-22).
"""


@dataclass(frozen=True, slots=True)
class RightEngines:
    """Who is asked: `engine` runs the rewritten models, `evaluator` says whether ONNX's evaluator is a witness too."""

    engines: Engines
    engine: str
    evaluator: bool
    quantised: bool

    def after(self, verdict: Verdict) -> "RightEngines | None":
        """Returns the witnesses that did not lose a vote; None where nobody is left to run a rewritten model."""
        engine = next(filter(is_reference_engine, verdict.right), None)
        if engine is None:
            return None
        return replace(self, engine=engine, evaluator=engine != EVALUATOR and EVALUATOR in verdict.right)

    def outputs(self, model: ir.Model, samples: Sequence[Outputs], want: Sequence[Outputs]) -> list[Sequence[Outputs]]:
        """Returns for each engine that could run the model its outputs on each sample."""
        calm: list[Sequence[Outputs]] = []
        for make in _variants(model):
            found = self._tried(lambda make=make: self._evaluated(make(), samples))  # type: ignore[misc]
            if found is not None:
                calm.append(found)
        is_library = self.engine != EVALUATOR
        optimised = self._tried(lambda: self.engines.built(self.engine, model, samples)) if is_library else None
        if optimised is not None and not self._is_broken(optimised, calm, want):
            calm.append(optimised)
        if self.evaluator:
            by_definition = self._tried(lambda: self.engines.outputs(EVALUATOR, model_bytes(model), samples))
            if by_definition is not None and not self._is_broken(by_definition, calm, want):
                calm.append(by_definition)
        return calm

    def _evaluated(self, model: ir.Model, samples: Sequence[Outputs]) -> Sequence[Outputs]:
        return self.engines.outputs(self.engine, model_bytes(model), samples)

    def _is_broken(self, found: Sequence[Outputs], calm: Sequence[Sequence[Outputs]], want: Sequence[Outputs]) -> bool:
        """Returns whether an engine is so much further off than shifted rounding that it must be wrong."""
        least = FAR_QUANTISED if self.quantised else FAR
        return bool(calm) and any(
            _relative(found[i].get(name), value)
            > max(least, BROKEN * max(_relative(other[i].get(name), value) for other in calm))
            for i, outputs in enumerate(want)
            for name, value in outputs.items()
        )

    def _tried(self, call: Callable[[], Sequence[Outputs]]) -> Sequence[Outputs] | None:
        try:
            return call()
        except BuildRefusedError:
            return None  # one witness less


def _variants(model: ir.Model) -> Iterator[Callable[[], ir.Model]]:
    """Yields what makes each rewritten model."""
    is_short = has_short_floats(model.graph)
    try:
        apart = taken_apart(model)
    except Exception:  # a graph that cannot be rewritten: no such witness
        return

    def made(seed: int | None) -> ir.Model:
        of = apart if seed is None else shifted(apart, seed)
        return widened(of) if is_short else of

    seeds: list[int | None] = [*range(1, NUM_SHIFTED + 1)]
    if is_short or len(apart.graph) != len(model.graph):  # else it is the model itself
        seeds.insert(0, None)
    for seed in seeds:
        yield lambda seed=seed: _refused_if_failing(lambda: made(seed))  # type: ignore[misc]


def _refused_if_failing(make: Callable[[], ir.Model]) -> ir.Model:
    try:
        return make()
    except Exception as err:  # a graph that cannot be rewritten: one witness less
        raise BuildRefusedError(str(err)) from err


def _relative(got: Value, want: Value) -> float:
    """Returns the root mean square of the difference relative to that of `want`, 0 where it has no meaning."""
    if not isinstance(got, np.ndarray) or not isinstance(want, np.ndarray) or got.shape != want.shape:
        return 0.0
    if not want.size or not str(want.dtype).startswith(("float", "int8", "uint8")):
        return 0.0
    with np.errstate(all="ignore"):
        got, want = got.astype(np.float64), want.astype(np.float64)
        size = float(np.sqrt(np.nanmean(want * want)))
        apart = float(np.sqrt(np.nanmean((got - want) ** 2)))
    return apart / size if size > 0 and np.isfinite(apart) else 0.0
