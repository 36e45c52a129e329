# SPDX-License-Identifier: Apache-2.0
"""The compile flow on one page: load -> optimise -> reference -> place, build and check -> measure -> pack -> write.

Comes in: a trained ONNX model. Goes out: one bundle and its report. Law: a bundle is written only when every
submodel and the whole gave the original model's outputs within tolerance (or the report says why that could not be
compared), and then in one step: the old file or the new one.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from nndeploy.bundle.report import PassReport, Report
from nndeploy.bundle.writer import check_can_create
from nndeploy.checking.vote import Verdict
from nndeploy.compiler import compile_warnings
from nndeploy.compiler.chains.as_it_is import described, may_help, plan_as_it_is, settled_as_it_is, takers_of_all
from nndeploy.compiler.chains.backend_order import TargetBackends
from nndeploy.compiler.chains.chain_setting import Events
from nndeploy.compiler.chains.fallbacks import with_fallbacks
from nndeploy.compiler.chains.target_chains import settle_chains
from nndeploy.compiler.chains.target_variants import check_served, target_reports, with_target_variants
from nndeploy.compiler.compilation import Compilation
from nndeploy.compiler.dry_run import dry_report, planned_report
from nndeploy.compiler.ground_truth import OverruledError, ground_truth
from nndeploy.compiler.keywords import CompileKeywords
from nndeploy.compiler.model_loading import model_to_compile
from nndeploy.compiler.observed_outputs import as_observed
from nndeploy.compiler.options import CompileOptions
from nndeploy.compiler.pack import Packing
from nndeploy.compiler.placed_targets import placed_targets, places_here
from nndeploy.compiler.placement_choice import chosen_placement, keep_decisions, packed_as_chosen
from nndeploy.compiler.prepared_model import prepared_model
from nndeploy.compiler.quantised_model import check_can_quantise
from nndeploy.compiler.share_gates import check_settled
from nndeploy.compiler.signed_bundle import signed_by_this_machine
from nndeploy.compiler.speed_against_float32 import with_speeds
from nndeploy.compiler.wanted_chains import wanted_chains
from nndeploy.compiler.whole_bundle import check_and_write, finished
from nndeploy.errors import CheckError, ModelError, NndeployError, UsageError
from nndeploy.frontend.load import LoadedModel
from nndeploy.frontend.shape_texts import parse_trtexec_shapes
from nndeploy.jobs.shared_workers import shared_workers
from nndeploy.jobs.temporary import temporary_folder
from nndeploy.jobs.workers import Workers
from nndeploy.target.target import Target, host_target, with_window_buffer

if TYPE_CHECKING:
    import onnx

REPORT = "this is a mistake of nndeploy's; please report it"
AS_IT_IS = PassReport("none: the model is as it was loaded", 0)


def compile_model(
    source: "str | PathLike[str] | bytes | onnx.ModelProto",
    out: str | PathLike[str] | None,
    options: CompileOptions = CompileOptions(),
    *,
    workers: Workers | None = None,
    events: Events | None = None,
    signs: bool = True,
    **given: Unpack[CompileKeywords],
) -> Report:
    """Compiles a model into the bundle `out` and returns the report.

    Options are `given` as keywords, in `options`, or both: then keywords win.

    `source` is a path, an `onnx.ModelProto` or its bytes. With the option `dry_run` nothing is built or written and
    `out` may be None. `workers` decides where the backends' libraries run: in children that all calls of this process
    share by default, so that a library that crashes is one refusal more; `nndeploy.jobs.workers.InProcessWorkers()`
    runs them here. With `signs` a bundle that holds code is signed with this machine's key.

    Raises:
        ModelError: the model is malformed, or nothing here can run it.
        CheckError: nothing could be compared (unless `allow_uncompared`), the outputs are not the original's, or a gate
            (`require`, `max_fallback`) failed.
        UsageError: options contradict each other or the model.
        DataError: the pipeline does not fit the model.
        CannotCreateError: `out` cannot be created.
    """
    options = replace(options, **given)
    compilation = Compilation(
        options=replace(
            options,
            shapes={
                **parse_trtexec_shapes(options.min_shapes, options.opt_shapes, options.max_shapes),
                **options.shapes,
            },
            targets=tuple(_with_buffer(target, options.cache_buffer) for target in placed_targets(options)),
        ),
        workers=workers or shared_workers(),
        events=events or (lambda _stage, _detail: None),
        here=_with_buffer(replace(host_target(), places=places_here(options)), options.cache_buffer),
        out=None if out is None else Path(out),
    )
    _check_places(compilation)  # before the work, not after it
    check_can_quantise(compilation)
    report = _compiled(compilation, source)
    report = replace(report, warnings=(*report.warnings, *compile_warnings.of_sandbox(compilation.workers.unprotected)))
    return signed_by_this_machine(report, Path(report.bundle)) if signs and not options.dry_run else report


def _check_places(compilation: Compilation) -> None:
    """Checks that what is to be written can be."""
    if compilation.options.dry_run:
        return
    if compilation.out is None:
        raise UsageError("no output path is given", hint="give a path ending in .nnd, or dry_run")
    check_can_create(compilation.out)
    if (decisions := compilation.options.decisions) is not None and not decisions.exists():
        check_can_create(decisions)


def _compiled(compilation: Compilation, source: Any) -> Report:
    """Runs the flow; where a stage meets what it does not know, once more with the model as it is.

    Weights that are too many for the model's own message lie in a folder until the end.
    """
    portable, *others = wanted_chains(compilation)
    with ExitStack() as held:
        try:
            with compilation.in_stage("load"):
                loaded = model_to_compile(
                    compilation,
                    source,
                    (portable, *others),
                    lambda: held.enter_context(temporary_folder("weights", compilation.workers.shared_folder)),
                )
            whole = replace(loaded, model=loaded.model.clone())
        except Exception as err:
            if isinstance(err, NndeployError) or not may_help(err, compilation.stage):
                raise
            raise ModelError(f"the stage {compilation.stage!r} failed: {described(err)}", hint=REPORT) from err
        try:
            return _flow_by_vote(compilation, loaded, whole, portable, others)
        except Exception as err:
            spans = compilation.here.places or any(target.places for target in compilation.options.targets)
            if spans or compilation.options.quantise is not None or not may_help(err, compilation.stage):
                raise
            failure = f"the stage {compilation.stage!r} failed: {described(err)}"
            try:
                return _flow_as_it_is(compilation, whole, portable, failure)
            except Exception as other:
                if isinstance(err, ModelError | CheckError):
                    raise err from other
                raise ModelError(f"{failure}; and without optimisation: {described(other)}", hint=REPORT) from err


def _flow_by_vote(
    compilation: Compilation,
    loaded: LoadedModel,
    whole: LoadedModel,
    portable: TargetBackends,
    others: Sequence[TargetBackends],
) -> Report:
    """Runs the flow; where a vote overrules its reference, once more on the `whole` model by those who are right."""
    num_warnings = len(compilation.warnings)
    try:
        return _flow(compilation, loaded, portable, others)
    except OverruledError as err:
        compilation.checks.clear()
        del compilation.warnings[num_warnings:]
        return _flow(compilation, replace(whole, model=whole.model.clone()), portable, others, err.verdict)


def _flow(
    compilation: Compilation,
    loaded: LoadedModel,
    portable: TargetBackends,
    others: Sequence[TargetBackends],
    verdict: Verdict | None = None,
) -> Report:
    prepared = prepared_model(compilation, loaded, portable, others, verdict)
    options, setting, in_stage = compilation.options, prepared.setting, compilation.in_stage
    if options.dry_run:
        return dry_report(compilation, setting, prepared.found, portable, others)
    packing = prepared.packing(compilation, portable)
    with in_stage("build"):
        chosen = chosen_placement(compilation, packing, prepared.found.graphs)
    packing, settled = packed_as_chosen(packing, chosen), chosen.settled
    compilation.warnings += chosen.warnings
    quantisation, targets, chains = packing.quantisation, packing.targets, packing.chains
    if (float32 := prepared.float32) is not None:
        with in_stage("float32"):
            quantisation = with_speeds(compilation, packing, settled, lambda other: _flow(other, float32, portable, ()))
    if options.keep_fallback:
        with in_stage("fallback"):
            settled = with_fallbacks(setting, settled, chosen.built)
            compilation.warnings += compile_warnings.of_native_code(settled)
    if others:
        with in_stage("chains for GPUs"):
            chains = settle_chains(setting, packing.loaded.model, others, options.pins)
    if options.targets:
        with in_stage("targets"):
            variants = with_target_variants(setting, settled, portable, options.targets)
            on_gpu = {chain.backends.target for chain in chains if chain.uses_gpu}
            settled, targets = variants.settled, target_reports(variants, portable, compilation.host, but=on_gpu)
            check_served(targets)
            in_ranges = {chain.backends.target: chain.ranges for chain in chains if chain.uses_gpu and chain.ranges}
            others_there = [target for target in options.targets if target not in in_ranges]
            floor = target_reports(variants, portable, compilation.host, but=others_there)
            compilation.warnings += compile_warnings.of_other_sizes(floor)
    packing = replace(packing, quantisation=quantisation, targets=targets, chains=chains)
    check_settled(compilation, packing, settled)
    compilation.warnings += compile_warnings.of_precision(packing, settled)
    compilation.warnings += compile_warnings.of_last_resorts(settled.plan, portable.backends)
    with in_stage("check and write"):
        report = check_and_write(compilation, packing, settled)
        keep_decisions(compilation, chosen, loaded)
    return finished(compilation, report)


def _flow_as_it_is(compilation: Compilation, loaded: LoadedModel, portable: TargetBackends, failure: str) -> Report:
    """Compiles the model as it was loaded for one backend that is there to take any; `failure` says why."""
    takers = takers_of_all(portable.backends)
    if not takers:
        raise ModelError("no remaining backend accepts arbitrary models", hint="add onnxruntime to --backends")
    names = " or ".join(backend.name for backend in takers)
    compilation.warnings.append(f"{failure}; the whole model is compiled unoptimised for {names}")
    compilation.checks.clear()
    with compilation.in_stage("reference"):
        setting, original = ground_truth(compilation, loaded, loaded.model)
        loaded, notes = as_observed(loaded, (loaded.model,), original)
        compilation.warnings += notes
    packing = Packing(loaded, original, (AS_IT_IS,), compilation.options, portable, setting)
    if compilation.options.dry_run:
        plan = plan_as_it_is(loaded.model, takers[0], portable.backends)
        return planned_report(compilation, packing, plan)
    with compilation.in_stage("build"):
        settled = settled_as_it_is(setting, loaded.model, portable.backends)
    check_settled(compilation, packing, settled)
    with compilation.in_stage("check and write"):
        report = check_and_write(compilation, packing, settled)
    return finished(compilation, report)


def _with_buffer(target: Target, cache_buffer: int | None) -> Target:
    return target if cache_buffer is None else with_window_buffer(target, cache_buffer)
