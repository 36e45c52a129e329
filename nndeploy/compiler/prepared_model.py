# SPDX-License-Identifier: Apache-2.0
"""The model that is placed and built, and what its outputs have to be: optimise -> quantise -> reference.

Comes in: the model as it was loaded. Goes out: one value that the placement, the chains and the packing read. Law: a
pass that changes the outputs is dropped before anything is built.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nndeploy.checking.original import Original
from nndeploy.checking.vote import Verdict
from nndeploy.compiler.chains.backend_order import TargetBackends
from nndeploy.compiler.chains.chain_setting import Setting
from nndeploy.compiler.checked_passes import Optimised, kept_if_right, optimised
from nndeploy.compiler.compilation import Compilation
from nndeploy.compiler.ground_truth import ground_truth
from nndeploy.compiler.observed_outputs import as_observed
from nndeploy.compiler.pack import Packing
from nndeploy.compiler.quantised_model import quantised_model
from nndeploy.frontend.load import LoadedModel
from nndeploy.frontend.value_sizes import check_value_sizes
from nndeploy.quantisation.quantise_model import Quantised
from nndeploy.sandbox.memory import memory_limit


@dataclass(frozen=True, slots=True)
class Prepared:
    """An optimised model and the reference outputs; where it was quantised, how, and the `float32` model it was."""

    found: Optimised
    setting: Setting
    original: Original
    quantised: Quantised | None = None
    float32: LoadedModel | None = None

    def packing(self, compilation: Compilation, portable: TargetBackends) -> Packing:
        """Returns what a bundle of this model is packed from before anything is placed."""
        packing = Packing(
            self.found.loaded, self.original, self.found.passes, compilation.options, portable, self.setting
        )
        if self.quantised is None:
            return packing
        return replace(packing, quantisation=self.quantised.report, float_outputs=self.quantised.float_outputs)


def prepared_model(
    compilation: Compilation,
    loaded: LoadedModel,
    portable: TargetBackends,
    others: Sequence[TargetBackends],
    verdict: Verdict | None,
) -> Prepared:
    """Returns the model to place; `verdict` is that of a vote which overruled an earlier reference.

    Raises:
        CheckError: quantised, it is not accurate enough.
        InputError: a sample does not fit the model.
        ModelError: it cannot be quantised, or its values need more memory than there is.
        OverruledError: the reference lost a vote.
    """
    with compilation.in_stage("optimise"):
        found = optimised(compilation, loaded, portable.backends)
        if found.loaded.stored is not None:
            found.loaded.stored.add_made(found.loaded.model)
        check_value_sizes(found.loaded.model, memory_limit())  # constants that were folded tell more sizes
    quantised, float32 = None, None
    if compilation.options.quantise is not None:
        float32 = replace(loaded, model=found.exported.clone())
        with compilation.in_stage("quantise"):
            smaller, quantised = quantised_model(compilation, found.loaded, (portable, *others))
            found = optimised(compilation, smaller, portable.backends)
    with compilation.in_stage("reference"):
        setting, original = ground_truth(compilation, found.loaded, found.exported, verdict)
        observed, notes = as_observed(found.loaded, (found.loaded.model, found.exported), original)
        compilation.warnings += notes
        found = kept_if_right(compilation, setting, original, replace(found, loaded=observed))
    return Prepared(found, setting, original, quantised, float32)
