# SPDX-License-Identifier: Apache-2.0
"""What is right for one model: samples, the original's outputs on them, and how far from these a result may be.

    loaded model -> sizes drawn -> samples that run -> a vote of the engines, if it is small -> `Original`
                 -> `Setting` of all that is built behind

Laws: where nothing can be compared with the original model, the compile ends here unless that was allowed; an engine
that lost a vote is no reference.
"""

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir

from nndeploy.bundle.report import CheckReport
from nndeploy.checking.check import (
    SampleLimits,
    compare_outputs,
    in_precision,
    is_quantised,
    tolerances,
)
from nndeploy.checking.drawn_sizes import Drawn, affordable_sizes
from nndeploy.checking.engines import EVALUATOR, Engines, engines_here, is_reference_engine
from nndeploy.checking.held_vote import Election
from nndeploy.checking.incomparable import incomparable_values
from nndeploy.checking.original import Original, original_outputs
from nndeploy.checking.reference import Reference
from nndeploy.checking.right_engines import SOON_SECONDS, RightEngines
from nndeploy.checking.samples import has_free_size
from nndeploy.checking.vote import Verdict
from nndeploy.checking.widened import has_short_floats
from nndeploy.compiler.chains.chain_setting import Setting, Whole
from nndeploy.compiler.compilation import Compilation
from nndeploy.errors import CheckError
from nndeploy.frontend.internal_model import ir_model
from nndeploy.frontend.load import LoadedModel
from nndeploy.partition.concrete_shapes import concrete_shapes, shapes_in_all_graphs
from nndeploy.partition.cost import estimate_costs
from nndeploy.plugin.interface import PRECISIONS, BuildOptions
from nndeploy.values.types import Value, shapes_in_short

_HINT = "give inputs with --samples, or sizes with --shape"

SMALL_NODES, SMALL_SECONDS, SMALL_BYTES = 64, 100e-6, 1 << 18
"""Models of at most so many nodes, estimated compute and bytes of all values are voted on before they are compiled.

ONNX's evaluator takes some ten microseconds an element where it loops in Python: less than a second for these.
"""


class OverruledError(Exception):
    """The reference of a compile lost the vote that a backend's contradiction called for; not for users."""

    def __init__(self, verdict: Verdict) -> None:
        """Remembers who is right instead."""
        super().__init__("; ".join(verdict.wrong))
        self.verdict = verdict


def ground_truth(
    compilation: Compilation, loaded: LoadedModel, exported: ir.Model, verdict: Verdict | None = None
) -> tuple[Setting, Original]:
    """Returns what stays the same during this compile, and the original model's outputs on given or made-up samples.

    `exported` is the model before its passes; `verdict` that of a vote which overruled an earlier reference.

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
    engines = Engines(compilation.workers, compilation.host, build_options)
    voters = [name for name in engines_here(compilation.host) if name not in options.without]
    rtol, atol = options.rtol, options.atol
    asked = rtol is not None or atol is not None
    is_soon = drawn.seconds < SMALL_SECONDS and len(exported.graph) <= SMALL_NODES
    reference = _reference(engines, voters, drawn, quantised, is_soon)
    original = compilation.or_else(
        "outputs were not compared: no input could be made up",
        lambda: _original(loaded, reference, compilation.options.samples, drawn),
        Original((), (), "generated"),
    )
    compilation.warnings += original.warnings
    _check_is_compared(compilation, original)
    incomparable: Mapping[str, str] = compilation.or_else(
        "values that may differ were not found", lambda: incomparable_values(loaded.model.graph), {}
    )
    election = compilation.or_else(
        "the engines were not asked to vote",
        lambda: (
            _election(engines, voters, loaded, exported, original, incomparable, asked) if original.outputs else None
        ),
        None,
    )
    if verdict is None and election is not None and election.is_before:
        verdict, election = compilation.or_else("the engines did not vote", election.verdict, None), None
    if verdict is not None:
        compilation.warnings += verdict.warnings
        reference, original = reference.after(verdict), replace(original, outputs=verdict.outputs)
    first = original.samples[0] if original.samples else {}
    setting = Setting(
        workers=compilation.workers,
        target=compilation.host,
        build_options=build_options,
        reference=reference,
        samples=original.samples,
        incomparable=incomparable,
        tolerances={precision: tolerances(rtol, atol, quantised, precision, True) for precision in PRECISIONS},
        shapes_of=shapes_in_all_graphs(loaded.model, first),
        events=compilation.events,
        num_at_once=1 if loaded.stored is not None else compilation.workers.num_parallel,
        has_limits=not asked,
        made_up=shapes_in_short(original.samples[0]) if original.is_made_up and has_free_size(loaded.inputs) else "",
        for_rate=compilation.options.objective == "throughput",
        whole=Whole(lambda: ir_model(loaded.original), original.outputs) if original.outputs else None,
        confirm=_confirmation(election, reference.order[:1]) if verdict is None and election else lambda: None,
    )
    return setting, original


def _original(
    loaded: LoadedModel, reference: Reference, samples: Sequence[Mapping[str, Value]] | None, drawn: Drawn
) -> Original:
    """Returns the original's outputs on samples that all have what may be left out: as given, else the default."""
    if not loaded.defaults:
        return original_outputs(loaded, reference, samples, drawn)
    if samples is not None:
        return original_outputs(loaded, reference, loaded.filled(samples), drawn)
    found = original_outputs(loaded.without_defaults(), reference, None, drawn)
    return replace(found, samples=tuple(loaded.filled(found.samples)))


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
    return in_precision(compared, precision)


def limits_of_original(setting: Setting, loaded: LoadedModel, original: Original) -> SampleLimits | None:
    """Returns what tells how far right engines differ on the original model; None where the user said how far."""
    types = {named.name: named.type for named in loaded.outputs}
    return setting.limits(lambda: ir_model(loaded.original), original.samples, original.outputs, types)


def _reference(
    engines: Engines, voters: Sequence[str], drawn: Drawn, quantised: bool, has_soon_evaluator: bool
) -> Reference:
    able = tuple(filter(is_reference_engine, voters))
    if able[:1] in ((), (EVALUATOR,)):
        return Reference(engines, able)  # no library that tells how far right engines differ
    is_witness = EVALUATOR in able and drawn.seconds < SOON_SECONDS
    return Reference(engines, able, RightEngines(engines, able[0], is_witness, quantised), has_soon_evaluator)


def _election(
    engines: Engines,
    voters: Sequence[str],
    loaded: LoadedModel,
    exported: ir.Model,
    original: Original,
    incomparable: Mapping[str, str],
    is_exact: bool,
) -> Election:
    """Returns who may vote; `is_exact`, where tolerances were given, prefers the evaluator, whose zeros are zeros."""
    quantised, is_small = is_quantised(exported.graph), _is_small(exported, original)
    if is_small and is_exact:
        voters = sorted(voters, key=lambda name: name != EVALUATOR)
    first = [name for name in voters if (is_reference_engine(name) if is_small else name != EVALUATOR)]
    return Election(
        engines,
        (first, voters),
        loaded.original,
        exported,
        original.samples,
        {named.name: named.type for named in loaded.outputs},
        tolerances(None, None, quantised),
        incomparable,
        is_rounded=quantised or has_short_floats(exported.graph),
        is_before=is_small,
    )


def _is_small(exported: ir.Model, original: Original) -> bool:
    """Returns whether ONNX's evaluator runs the model on the samples within a second or so."""
    if len(exported.graph) > SMALL_NODES:
        return False
    costs = estimate_costs(exported, concrete_shapes(exported, original.samples[0]))
    num_bytes = sum(costs.value_bytes.get(value.name or "", 0) for node in exported.graph for value in node.outputs)
    return math.fsum(costs.seconds.values()) < SMALL_SECONDS and num_bytes <= SMALL_BYTES


def _confirmation(election: Election, reference: Sequence[str]) -> Callable[[], None]:
    """Returns what holds the vote when it is first called; it raises `OverruledError` where `reference` lost."""
    held: list[Verdict | None] = []
    lock = threading.Lock()

    def confirm() -> None:
        with lock:
            if not held:
                held.append(election.verdict())
        verdict = held[0]
        if verdict is not None and any(engine in verdict.wrong for engine in reference):
            raise OverruledError(verdict)

    return confirm


def _check_is_compared(compilation: Compilation, original: Original) -> None:
    """Refuses to go on where nothing can be compared with the original model, unless that was allowed.

    Raises:
        CheckError: so it is.
    """
    if original.outputs or compilation.options.allow_uncompared or compilation.options.dry_run:
        return
    raise CheckError(
        original.warnings[-1] if original.warnings else "nothing can be compared with the original model",
        hint=f"{original.hint or _HINT}; --allow-uncompared writes the bundle as it is",
    )
