# SPDX-License-Identifier: Apache-2.0
"""The model as a compile takes it: read through the gate, its sizes within memory, and fit for what travels with it.

Comes in: a path, bytes or a proto, and who may build it. Goes out: `LoadedModel`. Law: what does not fit the model (an
image's description, a pipeline) ends the compile here, before any work.
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from nndeploy.bundle.manifest import Manifest
from nndeploy.checking.input_meanings import index_limits
from nndeploy.compiler.chains.backend_order import TargetBackends
from nndeploy.compiler.compilation import Compilation
from nndeploy.compiler.independent_sizes import independent_symbols
from nndeploy.compiler.pipeline_shapes import shapes_of_pipeline
from nndeploy.frontend.clamped_indices import clamp_indices, clamped
from nndeploy.frontend.image_input import check_image_fits
from nndeploy.frontend.last_position import with_last_position
from nndeploy.frontend.load import Interface, LoadedModel, Shapes, load_model
from nndeploy.frontend.shape_texts import shape_spec_from_value
from nndeploy.frontend.value_sizes import check_value_sizes
from nndeploy.graph.infer_sizes import known_sizes
from nndeploy.graph.operator_rules import ANY_DOMAIN
from nndeploy.onnx_gate.limits import limits_within
from nndeploy.sandbox.memory import memory_limit
from nndeploy.values.types import OptionalType


def model_to_compile(
    compilation: Compilation, source: Any, chains: Sequence[TargetBackends], folder_for_weights: Callable[[], Path]
) -> LoadedModel:
    """Returns the model that `source` holds.

    `folder_for_weights` is called where they are too many for the model's own message; the folder stays until the
    compile ends.

    Raises:
        ModelError: it is malformed, or too large for this machine.
        UsageError: shapes or the image's description do not fit it.
        DataError: the pipeline does not fit it.
    """
    options = compilation.options

    def load(independent: Set[str] = frozenset()) -> LoadedModel:
        loaded = load_model(
            source,
            shapes=lambda interface: _shapes(compilation, interface),
            extra_domains=extra_domains(compilation, chains),
            limits=limits_within(memory_limit()),
            folder_for_weights=folder_for_weights,
            initializer_inputs=options.initializer_inputs,
            independent=independent,
        )
        if options.out_of_range != "clamp":
            return loaded
        clamp_indices(loaded.model)
        return replace(loaded, original=clamped(loaded.original))

    loaded = load()
    check_value_sizes(loaded.model, memory_limit())
    if options.image_input is not None:
        check_image_fits(options.image_input, loaded.inputs)
    if options.pipeline is not None:
        none_known = dict[str, int]()
        rows = compilation.or_else("tokens were not checked", lambda: _rows_to_choose_from(loaded), none_known)
        options.pipeline.check(_outside(loaded), rows)
    compilation.warnings += loaded.warnings
    if loaded.stored is not None:
        lacking = loaded.stored.lacking(memory_limit())
        compilation.warnings += lacking
        for line in lacking:  # it may end there
            compilation.events("load", line)
    last = frozenset[str]() if options.pipeline is None else options.pipeline.last_positions(_outside(loaded))
    none: frozenset[str] = frozenset()
    own = compilation.or_else("names of sizes were not checked", lambda: independent_symbols(compilation, loaded), none)
    if own:
        loaded = load(independent=own)
    compilation.warnings += [f"{name!r:.80} is no single size: each place where it stands has its own" for name in own]
    return with_last_position(loaded, last)


def _shapes(compilation: Compilation, interface: Interface) -> Shapes:
    """Returns the shapes that are asked for, and from now on those too that the pipeline fixes."""
    options = compilation.options
    if options.pipeline is None:
        return options.shapes
    optional = {named.name for named in interface.inputs if isinstance(named.type, OptionalType)} | interface.defaults
    known = options.pipeline.input_shapes([named.name for named in interface.inputs], optional, interface.outputs)
    asked = {name: shape_spec_from_value(value) for name, value in options.shapes.items()}
    if fixed := shapes_of_pipeline(interface.inputs, known, asked):
        compilation.shapes_of_pipeline = {name: str(spec) for name, spec in fixed.items()}
        compilation.options = replace(options, shapes={**fixed, **options.shapes})
    return compilation.options.shapes


def extra_domains(compilation: Compilation, chains: Sequence[TargetBackends]) -> Set[str]:
    """Returns the operator domains beyond ONNX's own that may be there."""
    if compilation.options.custom_op_libraries:
        return ANY_DOMAIN
    return frozenset(domain for chain in chains for b in chain.backends for domain in b.extra_domains)


def _rows_to_choose_from(loaded: LoadedModel) -> dict[str, int]:
    """Returns of inputs that choose rows of tables, as tokens do, how many rows the smallest table has."""
    limits = index_limits(loaded.model.graph, known_sizes(loaded.model, loaded.ranges))
    fixed = {name: [rows for rows in found if isinstance(rows, int)] for name, found in limits.items()}
    return {name: min(rows) for name, rows in fixed.items() if rows}


def _outside(loaded: LoadedModel) -> Manifest:
    """Returns the manifest that the bundle will have, as far as its user meets it: inputs, outputs and ranges."""
    defaults = dict.fromkeys(loaded.defaults, "")
    return Manifest(
        loaded.name, loaded.sha256, loaded.inputs, loaded.outputs, (), {}, ranges=loaded.ranges, defaults=defaults
    )
