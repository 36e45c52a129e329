# SPDX-License-Identifier: Apache-2.0
"""The passes on one model, tried and checked: the optimised model must give the original's numbers, or it is dropped.

    loaded model -> passes, without those that fail on it -> `Optimised` -> compared under the reference -> kept or not

Law: the graph as it was exported is kept beside the optimised one, so that a pass never costs a model.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from nndeploy.bundle.report import PassReport
from nndeploy.checking.check import describe_failure, not_compared
from nndeploy.checking.original import Original
from nndeploy.compiler.chains.as_it_is import described
from nndeploy.compiler.chains.chain_setting import Setting
from nndeploy.compiler.compilation import Compilation
from nndeploy.compiler.ground_truth import compared_with_original
from nndeploy.compiler.placement.candidates import EXPORTED, OPTIMISED, Graphs
from nndeploy.errors import BuildRefusedError
from nndeploy.frontend.load import LoadedModel
from nndeploy.jobs.messages import model_bytes
from nndeploy.passes import PassError, optimisations, optimise
from nndeploy.plugin.interface import Backend, PlansBranches

IDLE = frozenset({"Identity", "Constant", "Dropout"})
DROPPED = PassReport("none: the optimised model gave other numbers than the original", 0)


@dataclass(frozen=True, slots=True)
class Optimised:
    """A model after its passes, what each of them did, and the graph before them."""

    loaded: LoadedModel
    exported: ir.Model
    passes: tuple[PassReport, ...]

    @property
    def is_changed(self) -> bool:
        """Whether any pass did anything."""
        return any(report.count for report in self.passes)

    @property
    def graphs(self) -> Graphs:
        """The graphs that may be placed."""
        optimised = self.loaded.model
        is_same = _operators(optimised) == _operators(self.exported)  # one would run as the other does
        return {OPTIMISED: optimised} if is_same else {OPTIMISED: optimised, EXPORTED: self.exported}


def _operators(model: ir.Model) -> Counter[tuple[str, str]]:
    """Returns how many there are of each operator but those that do nothing."""
    return Counter((node.domain, node.op_type) for node in model.graph.all_nodes() if node.op_type not in IDLE)


def optimised(compilation: Compilation, loaded: LoadedModel, backends: Sequence[Backend]) -> Optimised:
    """Returns the model after the passes, for `backends`; a pass that fails on it is left out with a warning.

    Such a failure is a mistake of ours.
    """
    exported = loaded.model.clone()
    by_branch = any(isinstance(backend, PlansBranches) for backend in backends)
    passes = optimisations(loaded.ranges, plans_branches=by_branch) if compilation.options.optimise else ()
    while passes:
        try:
            return Optimised(loaded, exported, optimise(loaded.model, loaded.ranges, passes=passes))
        except PassError as err:
            compilation.warnings.append(described(err))
            loaded = replace(loaded, model=exported.clone())
            passes = tuple(each for each in passes if err.name and each.name != err.name)
    return Optimised(loaded, exported, ())


def kept_if_right(compilation: Compilation, setting: Setting, original: Original, found: Optimised) -> Optimised:
    """Returns `found` where it gives the original's numbers under the reference; else the graph before, and warns."""
    if not original.outputs or not found.is_changed:
        return found
    try:
        got = setting.reference.evaluate(model_bytes(found.loaded.model), original.samples)
    except BuildRefusedError as err:
        compilation.checks.append(not_compared("passes", "", str(err)))
        return found
    checks = compared_with_original(setting, "passes", found.loaded, got, original, "fp32")
    wrong = next((check for check in checks if not check.ok), None)
    if wrong is None:
        compilation.checks += checks
        return found
    compilation.warnings.append(f"the optimisation was dropped: {describe_failure(wrong)}")
    return Optimised(replace(found.loaded, model=found.exported), found.exported, (DROPPED,))
