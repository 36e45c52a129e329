# SPDX-License-Identifier: Apache-2.0
"""The quantised model in the place of the float32 one, between the passes and the split.

Comes in: an optimised float32 model. Goes out: the quantised one as if it had been loaded, which everything behind is
compared with. Law: the compile checks and measures with the samples that no range was taken from.
"""

from collections.abc import Sequence
from dataclasses import replace

from nndeploy.compiler.chains.backend_order import TargetBackends
from nndeploy.compiler.compilation import Compilation
from nndeploy.compiler.model_loading import extra_domains
from nndeploy.compiler.options import LEAST_SQNR_DB
from nndeploy.errors import UnavailableError, UsageError
from nndeploy.frontend.load import LoadedModel, load_model
from nndeploy.plugin.interface import BuildOptions, Quantiser, ReferenceEngine
from nndeploy.plugin.registry import backends_in_order
from nndeploy.quantisation.quantise_model import Quantised, Quantising, Wanted, quantise_model

MAX_COMPARED = 8
"""Samples that each submodel and the bundle are compared on; hundreds serve to calibrate."""


def check_can_quantise(compilation: Compilation) -> None:
    """Checks, before any work, that what quantisation needs is there.

    Raises:
        UsageError: there are no samples.
        UnavailableError: no backend here quantises.
    """
    options = compilation.options
    if options.quantise is None:
        return
    if not options.samples:
        raise UsageError(
            "--quantise needs samples to calibrate with",
            hint="--samples FOLDER with about twenty or more real inputs as .npz files",
        )
    _quantiser(compilation)


def quantised_model(
    compilation: Compilation, loaded: LoadedModel, chains: Sequence[TargetBackends]
) -> tuple[LoadedModel, Quantised]:
    """Returns the quantised model in the place of `loaded`, which is optimised, and how it came about.

    From here on the compile's samples are those that were held out.

    Raises:
        ModelError: it is none to quantise.
        InputError: a sample does not fit it.
        CheckError: whatever stays float, it is not accurate enough.
    """
    options = compilation.options
    assert options.quantise is not None
    build_options = BuildOptions(options.threads, loaded.ranges, options.custom_op_libraries)
    who = Quantising(
        compilation.workers, _quantiser(compilation), build_options, lambda at: compilation.events("quantise", at)
    )
    least_db = LEAST_SQNR_DB if options.quantise_tolerance is None else options.quantise_tolerance
    wanted = Wanted(options.quantise, options.calibration, least_db)
    found = quantise_model(who, loaded, loaded.filled(options.samples or ()), wanted)
    compilation.warnings += found.warnings
    compilation.options = replace(options, samples=found.held_out[:MAX_COMPARED])
    again = load_model(found.model, shapes=options.shapes, extra_domains=extra_domains(compilation, chains))
    found = replace(found, float_outputs=found.float_outputs[:MAX_COMPARED])
    again = replace(again, name=loaded.name, sha256=loaded.sha256, ranges=loaded.ranges, defaults=loaded.defaults)
    return again, found


def _quantiser(compilation: Compilation) -> str:
    """Returns the name of the backend that quantises."""
    plugins = [b for b in backends_in_order() if isinstance(b, Quantiser) and isinstance(b, ReferenceEngine)]
    for plugin in plugins:
        if plugin.probe(compilation.host).can_build:
            return plugin.name
    hints = [plugin.probe(compilation.host).hint for plugin in plugins]
    raise UnavailableError("no available backend can quantise models", hint="; ".join(filter(None, hints)))
