# SPDX-License-Identifier: Apache-2.0
"""What is right for one model: samples, the original's outputs on them, and how far from these a result may be.

    loaded model -> sizes drawn -> reference engines in order -> `Original` -> `Setting` of all that is built behind

Law: where nothing can be compared with the original model, the compile ends here unless that was allowed.
"""

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from nndeploy.bundle.report import CheckReport
from nndeploy.checking.check import (
    MIN_BF16_COSINE,
    SampleLimits,
    compare_outputs,
    in_precision,
    is_quantised,
    tolerances,
)
from nndeploy.checking.drawn_sizes import Drawn, affordable_sizes
from nndeploy.checking.incomparable import incomparable_values
from nndeploy.checking.original import Original, original_outputs
from nndeploy.checking.reference import Reference, reference_engines
from nndeploy.checking.right_engines import EVALUATOR, SOON_SECONDS, RightEngines
from nndeploy.checking.samples import has_free_size
from nndeploy.compiler.chains.chain_setting import Setting
from nndeploy.compiler.compilation import Compilation
from nndeploy.errors import CheckError
from nndeploy.frontend.load import LoadedModel
from nndeploy.partition.concrete_shapes import shapes_in_all_graphs
from nndeploy.plugin.interface import PRECISIONS, BuildOptions, ReferenceEngine
from nndeploy.plugin.registry import backends_in_order
from nndeploy.values.types import Value


def ground_truth(compilation: Compilation, loaded: LoadedModel) -> tuple[Setting, Original]:
    """Returns what stays the same during this compile, and the original model's outputs on given or made-up samples.

    Raises:
        CheckError: nothing can be compared, and that was not allowed.
        InputError: a given sample does not fit the model's inputs.
        ModelError: the reference cannot run the model on a given sample.
    """
    options = compilation.options
    build_options = BuildOptions(
        options.threads, loaded.ranges, options.custom_op_libraries, options.precision, options.pace
    )
    drawn = compilation.or_else(
        "no sizes could be drawn", lambda: affordable_sizes(loaded.model, loaded.ranges), Drawn(({},), 0.0, ())
    )
    quantised = is_quantised(loaded.model.graph)
    reference = _reference(compilation, loaded, drawn, build_options, quantised)
    original = compilation.or_else(
        "outputs were not compared: no input could be made up",
        lambda: original_outputs(loaded, reference, compilation.options.samples, drawn),
        Original((), (), "generated"),
    )
    compilation.warnings += original.warnings
    _check_is_compared(compilation, original)
    rtol, atol = options.rtol, options.atol
    asked = rtol is not None or atol is not None
    first = original.samples[0] if original.samples else {}
    setting = Setting(
        workers=compilation.workers,
        target=compilation.host,
        build_options=build_options,
        reference=reference,
        samples=original.samples,
        incomparable=compilation.or_else(
            "values that may differ were not found", lambda: incomparable_values(loaded.model.graph), {}
        ),
        tolerances={precision: tolerances(rtol, atol, quantised, precision, True) for precision in PRECISIONS},
        min_cosine=-1.0 if asked else MIN_BF16_COSINE,
        shapes_of=shapes_in_all_graphs(loaded.model, first),
        events=compilation.events,
        has_limits=not asked,
        made_up=original.shapes[0] if original.is_made_up and has_free_size(loaded.inputs) else "",
    )
    return setting, original


def compared_with_original(
    setting: Setting,
    scope: str,
    loaded: LoadedModel,
    got: Sequence[Mapping[str, Value]],
    original: Original,
    precision: str,
) -> list[CheckReport]:
    """Returns comparisons of the whole model's outputs, computed in `precision`, with the original's."""
    compared = compare_outputs(
        scope,
        "",
        got,
        original.outputs,
        {named.name: named.type for named in loaded.outputs},
        setting.tolerances[precision],
        setting.incomparable,
        limits_of_original(setting, loaded, original),
    )
    return in_precision(compared, precision, setting.min_cosine)


def limits_of_original(setting: Setting, loaded: LoadedModel, original: Original) -> SampleLimits | None:
    """Returns what tells how far right engines differ on the original model; None where the user said how far."""
    types = {named.name: named.type for named in loaded.outputs}
    return setting.limits(lambda: ir.from_proto(loaded.original), original.samples, original.outputs, types)


def _reference(
    compilation: Compilation, loaded: LoadedModel, drawn: Drawn, options: BuildOptions, quantised: bool
) -> Reference:
    host = compilation.host
    installed = [b.name for b in backends_in_order() if isinstance(b, ReferenceEngine) and b.probe(host).can_run]
    engines = reference_engines(installed, drawn.seconds, loaded.original)
    libraries = [name for name in engines if name != EVALUATOR]
    if not libraries:
        return Reference(compilation.workers, engines, options)  # none to ask how far right engines differ
    is_soon = EVALUATOR in engines and drawn.seconds < SOON_SECONDS
    right = RightEngines(compilation.workers, libraries[0], is_soon, options, host, quantised)
    return Reference(compilation.workers, engines, options, right)


def _check_is_compared(compilation: Compilation, original: Original) -> None:
    """Refuses to go on where nothing can be compared with the original model, unless that was allowed.

    Raises:
        CheckError: so it is.
    """
    if original.outputs or compilation.options.allow_uncompared or compilation.options.dry_run:
        return
    raise CheckError(
        original.warnings[-1] if original.warnings else "nothing can be compared with the original model",
        hint="give inputs with --samples, or sizes with --shape; --allow-uncompared writes the bundle as it is",
    )
