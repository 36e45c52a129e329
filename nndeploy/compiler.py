# SPDX-License-Identifier: Apache-2.0
"""The compile flow on one page: load -> optimise -> reference -> place, build and check -> measure -> pack -> write.

Comes in: a trained ONNX model. Goes out: one bundle and its report. Law: a bundle is written only when every
submodel and the whole gave the original model's outputs within tolerance (or the report says why that could not be
compared), and then in one step: the old file or the new one.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import onnx_ir as ir

from nndeploy.as_it_is import described, may_help, plan_as_it_is, settled_as_it_is, takers_of_all
from nndeploy.backend_order import (
    TargetBackends,
    backends_for,
    check_all_used,
    check_known,
    check_libraries,
    pins_for,
    with_points_first,
)
from nndeploy.bundle.manifest import ImageInput, Limits, Manifest
from nndeploy.bundle.writer import check_can_create, write_bundle
from nndeploy.candidates import EXPORTED, OPTIMISED, Graphs, Pins, Recipe, by_priority, planned
from nndeploy.decisions import Decisions, decisions_from_file, write_decisions
from nndeploy.errors import CheckError, DataError, ModelError, NndeployError, UsageError
from nndeploy.frontend.image_input import check_image_fits
from nndeploy.frontend.limits import limits_within
from nndeploy.frontend.load import LoadedModel, load_model
from nndeploy.frontend.operator_rules import ANY_DOMAIN
from nndeploy.frontend.value_sizes import check_value_sizes
from nndeploy.jobs.memory import memory_limit
from nndeploy.jobs.messages import model_bytes
from nndeploy.jobs.shared_workers import shared_workers
from nndeploy.jobs.tasks import MeasureOptions
from nndeploy.jobs.temporary import temporary_folder
from nndeploy.jobs.workers import Workers
from nndeploy.known_targets import target_of
from nndeploy.lower import Events, Plan, Setting, Settled, precision_of, with_fallbacks
from nndeploy.objective import (
    Chosen,
    Race,
    chosen_again,
    chosen_by_priority,
    fastest,
    planned_best,
    seconds_to_measure,
    shapes_to_measure,
)
from nndeploy.options import OBJECTIVES, Carried, CompileOptions, options_to_json
from nndeploy.pace_libraries import pace_libraries
from nndeploy.pack import Findings, Packing, pack, report_of
from nndeploy.partition.concrete_shapes import concrete_shapes
from nndeploy.partition.cost import estimate_costs
from nndeploy.partition.gates import check_gates
from nndeploy.passes import PassError, optimisations, optimise
from nndeploy.plugin.interface import (
    LAST_RESORT_TIER,
    PRECISIONS,
    Backend,
    BuildOptions,
    BuildRefusedError,
    ReferenceEngine,
)
from nndeploy.plugin.registry import backends_in_order, broken_backends
from nndeploy.report import CheckReport, PassReport, Report, report_for_bundle
from nndeploy.target import (
    BF16_FEATURE,
    Target,
    has_bf16,
    host_target,
    unmet,
    with_window_buffer,
)
from nndeploy.target_chains import plan_chains, settle_chains
from nndeploy.target_variants import check_served, target_reports, with_target_variants
from nndeploy.value_types import Value
from nndeploy.verify.check import (
    MIN_BF16_COSINE,
    compare_outputs,
    describe_failure,
    in_precision,
    is_quantised,
    not_compared,
    tolerances,
)
from nndeploy.verify.drawn_sizes import Drawn, affordable_sizes
from nndeploy.verify.incomparable import incomparable_values
from nndeploy.verify.original import Original, original_outputs
from nndeploy.verify.reference import Reference, reference_engines
from nndeploy.verify.right_engines import EVALUATOR, SOON_SECONDS, RightEngines
from nndeploy.verify.samples import has_free_size
from nndeploy.verify.widened import has_short_floats

if TYPE_CHECKING:
    import onnx

T = TypeVar("T")

AS_EXPORTED = PassReport("none: the graph is the one that was exported, which is as fast or faster", 0)
REPORT = "this is a mistake of nndeploy's; please report it"
AS_IT_IS = PassReport("none: the model is as it was loaded", 0)
NO_OPTIMISATION = PassReport("none: the optimised model gave other numbers than the original", 0)


def compile_model(
    source: "str | PathLike[str] | bytes | onnx.ModelProto",
    out: str | PathLike[str] | None,
    *,
    backends: str | Sequence[str] | None = None,
    targets: Sequence[Target | str | PathLike[str]] | None = None,
    objective: str = OBJECTIVES[0],
    samples: Sequence[Mapping[str, Value]] | None = None,
    shapes: Mapping[str, Any] | None = None,
    threads: int | None = None,
    cache_buffer: int | None = None,
    precision: str = "fp32",
    without: Sequence[str] = (),
    pins: Sequence[tuple[str, str]] = (),
    custom_op_libraries: Sequence[str | PathLike[str]] = (),
    image_input: ImageInput | None = None,
    pipeline: Carried | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    require: Mapping[str, float] | None = None,
    max_fallback: float | None = None,
    num_goldens: int = 1,
    keep_fallback: bool = True,
    optimise: bool = True,
    pace: bool = False,
    allow_uncompared: bool = False,
    dry_run: bool = False,
    decisions: str | PathLike[str] | None = None,
    workers: Workers | None = None,
    events: Events | None = None,
) -> Report:
    """Compiles a model into the bundle `out` and returns the report; the options are those of `CompileOptions`.

    `source` is a path, an `onnx.ModelProto` or its bytes. `backends` is a list or text as on the command line
    ("openvino,onnxruntime"). `samples` is a list of {input name: array}; without it inputs are generated. `shapes`
    maps an input to its sizes, as text ("1..8,3,224,224:4,3,224,224") or a sequence. `workers` decides where the
    backends' libraries run: in children that all calls of this process share by default, so that a library that crashes
    is one refusal more; `nndeploy.jobs.workers.InProcessWorkers()` runs them here. With `dry_run` nothing is built
    or written and `out` may be None. `decisions` names a file: where it exists what it holds is decided, and nothing is
    measured; else what was decided is written to it. `pipeline` is one for the bundle to carry.

    Raises:
        ModelError: the model is malformed, or nothing here can run it.
        CheckError: nothing could be compared (unless `allow_uncompared`), the outputs are not the original's, or a gate
            (`require`, `max_fallback`) failed.
        UsageError: options contradict each other or the model.
        DataError: the pipeline does not fit the model.
        CannotCreateError: `out` cannot be created.
    """
    options = CompileOptions(
        backends=_names(backends),
        without=tuple(without),
        pins=tuple(pins),
        targets=tuple(_target(target, cache_buffer) for target in targets or ()),
        objective=objective,
        threads=threads,
        cache_buffer=cache_buffer,
        precision=precision,
        shapes=dict(shapes or {}),
        custom_op_libraries=tuple(fspath(path) for path in custom_op_libraries),
        image_input=image_input,
        pipeline=dict(pipeline.members) if pipeline is not None else {},
        rtol=rtol,
        atol=atol,
        require=dict(require or {}),
        max_fallback=max_fallback,
        num_goldens=num_goldens,
        keep_fallback=keep_fallback,
        optimise=optimise,
        pace=pace,
        allow_uncompared=allow_uncompared,
        dry_run=dry_run,
    )
    if out is None and not dry_run:
        raise UsageError("no output was named", hint="give a path ending in .nnd, or dry_run")
    if out is not None and not dry_run:
        check_can_create(Path(out))  # before the work, not after it
    file = None if decisions is None else Path(decisions)
    if file is not None and not file.exists() and not dry_run:
        check_can_create(file)
    here = _target(host_target(), cache_buffer)
    flow = _Flow(options, workers or shared_workers(), events or (lambda _stage, _detail: None), here, pipeline, file)
    return flow.compile(source, None if out is None else Path(out), samples)


@dataclass(slots=True)
class _Flow:
    """One compile: the options, what it is built on (`here`), and what was learnt on the way."""

    options: CompileOptions
    workers: Workers
    events: Events
    here: Target
    pipeline: Carried | None
    decisions: Path | None = None
    stage: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    checks: list[CheckReport] = field(default_factory=list)

    @property
    def host(self) -> Target:
        """This machine without its GPUs: what the portable chain is built for and checked on."""
        return replace(self.here, gpus=())

    def compile(self, source: Any, out: Path | None, samples: Sequence[Mapping[str, Value]] | None) -> Report:
        with ExitStack() as held:
            return self._compile_in(lambda: held.enter_context(temporary_folder("weights")), source, out, samples)

    def _compile_in(
        self,
        folder_for_weights: Callable[[], Path],
        source: Any,
        out: Path | None,
        samples: Sequence[Mapping[str, Value]] | None,
    ) -> Report:
        """Compiles; `folder_for_weights` is called where they are too many for the model's own message."""
        portable, *others = self._backends()
        try:
            loaded = self._load(source, (portable, *others), folder_for_weights)
            whole = replace(loaded, model=loaded.model.clone())
        except Exception as err:
            if isinstance(err, NndeployError) or not may_help(err, self.stage):
                raise
            raise ModelError(f"the stage {self.stage!r} failed: {described(err)}", hint=REPORT) from err
        try:
            return self._compile(loaded, out, samples, portable, others)
        except Exception as err:
            if not may_help(err, self.stage):
                raise
            failure = f"the stage {self.stage!r} failed: {described(err)}"
            try:
                return self._compile_as_it_is(whole, out, samples, portable, failure)
            except Exception as other:
                if isinstance(err, ModelError | CheckError):
                    raise err from other
                raise ModelError(f"{failure}; and as it is: {described(other)}", hint=REPORT) from err

    def _load(
        self, source: Any, chains: Sequence[TargetBackends], folder_for_weights: Callable[[], Path]
    ) -> LoadedModel:
        with self._stage("load"):
            loaded = load_model(
                source,
                shapes=self.options.shapes,
                extra_domains=self._extra_domains(chains),
                limits=limits_within(memory_limit()),
                folder_for_weights=folder_for_weights,
            )
            check_value_sizes(loaded.model, memory_limit())
            if self.options.image_input is not None:
                check_image_fits(self.options.image_input, loaded.inputs)
            if self.pipeline is not None:
                self.pipeline.check(_outside(loaded))
        self.warnings += loaded.warnings
        return loaded

    def _compile(
        self,
        loaded: LoadedModel,
        out: Path | None,
        samples: Sequence[Mapping[str, Value]] | None,
        portable: TargetBackends,
        others: Sequence[TargetBackends],
    ) -> Report:
        with self._stage("optimise"):
            unoptimised = loaded.model.clone()
            passes, loaded = self._optimised(loaded, unoptimised)
            if loaded.stored is not None:
                loaded.stored.add_made(loaded.model)
            check_value_sizes(loaded.model, memory_limit())  # constants that were folded tell more sizes
        with self._stage("reference"):
            setting, original = self._reference(loaded, samples)
            if not self._passes_are_right(setting, loaded, original, passes):
                loaded, passes = replace(loaded, model=unoptimised), (NO_OPTIMISATION,)
        graphs = {OPTIMISED: loaded.model}
        if any(report.count for report in passes):
            graphs[EXPORTED] = unoptimised
        if self.options.dry_run:
            return self._dry_report(setting, loaded, graphs, passes, portable, others)
        bundle = Packing(loaded, original, passes, self.options, portable, setting)
        with self._stage("build"):
            chosen = self._chosen(bundle, graphs)
            settled = chosen.settled
            bundle = self._as_chosen(bundle, chosen.recipe)
            bundle = replace(bundle, candidates=chosen.candidates, measured_shapes=chosen.measured_shapes)
        if self.options.pace:
            with self._stage("pace"):
                bundle = replace(bundle, pace_libraries=pace_libraries((self.host, *self.options.targets)))
        if self.options.keep_fallback:
            with self._stage("fallback"):
                settled = with_fallbacks(setting, settled)
                self._warn_of_code(settled)
        if boxes := tuple(target for target in self.options.targets if not target.gpus):
            with self._stage("targets"):
                found = with_target_variants(setting, settled, portable, boxes)
                settled = found.settled
                bundle = replace(bundle, targets=target_reports(found, portable, self.host))
                check_served(bundle.targets)
        if others:
            with self._stage("chains for GPUs"):
                bundle = replace(bundle, chains=settle_chains(setting, loaded.model, others, self.options.pins))
        chains = [(settled.plan, portable), *((chain.plan, chain.backends) for chain in bundle.chains)]
        self._check_gates(chains, lambda: self._report_so_far(bundle, settled))
        self._warn_of_precision([settled, *(chain.settled for chain in bundle.chains)])
        self._warn_of_last_resorts(settled.plan, portable.backends)
        with self._stage("check and write"):
            assert out is not None
            report = self._checked_and_written(bundle, settled, out)
            self._keep_decisions(chosen, loaded)
        return replace(report, bundle=str(out), bundle_bytes=out.stat().st_size, seconds=dict(self.seconds))

    def _compile_as_it_is(
        self,
        loaded: LoadedModel,
        out: Path | None,
        samples: Sequence[Mapping[str, Value]] | None,
        portable: TargetBackends,
        failure: str,
    ) -> Report:
        """Compiles the model as it was loaded for one backend that is there to take any; `failure` says why."""
        takers = takers_of_all(portable.backends)
        if not takers:
            raise ModelError("no backend is left that takes any model", hint="add onnxruntime to --backends")
        names = " or ".join(backend.name for backend in takers)
        self.warnings.append(f"{failure}; so the whole model goes to {names} as it is")
        self.checks.clear()
        with self._stage("reference"):
            setting, original = self._reference(loaded, samples)
        bundle = Packing(loaded, original, (AS_IT_IS,), self.options, portable, setting)
        if self.options.dry_run:
            plan = plan_as_it_is(loaded.model, takers[0], portable.backends)
            return replace(
                report_of(bundle, plan, None, Findings((), tuple(self.warnings)), ()), seconds=dict(self.seconds)
            )
        with self._stage("build"):
            settled = settled_as_it_is(setting, loaded.model, portable.backends)
        self._check_gates([(settled.plan, portable)], lambda: self._report_so_far(bundle, settled))
        with self._stage("check and write"):
            assert out is not None
            report = self._checked_and_written(bundle, settled, out)
        return replace(report, bundle=str(out), bundle_bytes=out.stat().st_size, seconds=dict(self.seconds))

    def _or_else(self, what: str, call: Callable[[], T], otherwise: T) -> T:
        """Returns what `call` does; `otherwise`, and a warning, where it meets what it does not know."""
        try:
            return call()
        except NndeployError:
            raise
        except Exception as err:
            self.warnings.append(f"{what}: {described(err)}")
            return otherwise

    def _backends(self) -> list[TargetBackends]:
        """Returns who builds for the portable chain, then for each target with GPUs: those asked for, or this box's."""
        names, without = self.options.backends, self.options.without
        if names is None:
            self.warnings += [reason for name, reason in broken_backends().items() if name not in without]
        check_libraries(self.options.targets)
        targets = self.options.targets or ((self.here,) if self.here.gpus else ())
        wanted = [self.host, *(target for target in targets if target.gpus)]
        found = [backends_for(target, names, without) for target in wanted]
        check_all_used(names, without, found)
        check_known("--require", self.options.require, found)
        check_known("--pin", [name for _, name in self.options.pins], found)
        self.warnings += found[0].warnings
        if self.options.pace and names is None:
            found[0] = replace(found[0], backends=with_points_first(found[0].backends))
        return found

    def _extra_domains(self, chains: Sequence[TargetBackends]) -> Set[str]:
        """Returns the operator domains beyond ONNX's own that may be there."""
        if self.options.custom_op_libraries:
            return ANY_DOMAIN
        return frozenset(domain for chain in chains for b in chain.backends for domain in b.extra_domains)

    def _optimised(self, loaded: LoadedModel, unoptimised: ir.Model) -> tuple[tuple[PassReport, ...], LoadedModel]:
        """Returns what each pass did, and the model; a pass that fails on it is a mistake of ours, and left out."""
        passes = optimisations(loaded.ranges) if self.options.optimise else ()
        while passes:
            try:
                return optimise(loaded.model, loaded.ranges, passes=passes), loaded
            except PassError as err:
                self.warnings.append(described(err))
                loaded = replace(loaded, model=unoptimised.clone())
                passes = tuple(each for each in passes if err.name and each.name != err.name)
        return (), loaded

    def _reference(
        self, loaded: LoadedModel, samples: Sequence[Mapping[str, Value]] | None
    ) -> tuple[Setting, Original]:
        """Returns what stays the same during this compile, and the original model's outputs."""
        build_options = BuildOptions(
            self.options.threads, loaded.ranges, self.options.custom_op_libraries, self.options.precision
        )
        drawn = self._or_else(
            "no sizes could be drawn", lambda: affordable_sizes(loaded.model, loaded.ranges), Drawn(({},), 0.0, ())
        )
        engines = [b.name for b in backends_in_order() if isinstance(b, ReferenceEngine) and b.probe(self.host).can_run]
        engines_in_order = reference_engines(engines, drawn.seconds, loaded.original)
        quantised = is_quantised(loaded.model.graph)
        right = self._right_engines(engines_in_order, drawn.seconds, build_options, quantised)
        reference = Reference(self.workers, engines_in_order, build_options, right)
        original = self._or_else(
            "outputs were not compared: no input could be made up",
            lambda: original_outputs(loaded, reference, samples, drawn),
            Original((), (), "generated"),
        )
        self.warnings += original.warnings
        self._check_is_compared(original)
        rtol, atol = self.options.rtol, self.options.atol
        first = original.samples[0] if original.samples else {}
        setting = Setting(
            workers=self.workers,
            target=self.host,
            build_options=build_options,
            reference=reference,
            samples=original.samples,
            incomparable=self._or_else(
                "values that may differ were not found", lambda: incomparable_values(loaded.model.graph), {}
            ),
            tolerances={precision: tolerances(rtol, atol, quantised, precision, True) for precision in PRECISIONS},
            min_cosine=MIN_BF16_COSINE if rtol is None and atol is None else -1.0,
            shapes_of=lambda model: concrete_shapes(model, first),
            events=self.events,
            has_limits=rtol is None and atol is None,
            made_up=original.shapes[0] if original.is_made_up and has_free_size(loaded.inputs) else "",
        )
        return setting, original

    def _right_engines(
        self, engines: Sequence[str], seconds: float, options: BuildOptions, quantised: bool
    ) -> RightEngines | None:
        """Returns who tells how far right engines differ; None where there is no library to ask."""
        libraries = [name for name in engines if name != EVALUATOR]
        if not libraries:
            return None
        is_soon = EVALUATOR in engines and seconds < SOON_SECONDS
        return RightEngines(self.workers, libraries[0], is_soon, options, self.host, quantised)

    def _passes_are_right(
        self, setting: Setting, loaded: LoadedModel, original: Original, passes: tuple[PassReport, ...]
    ) -> bool:
        """Compares the optimised model with the original, both under the reference; warns where they differ."""
        if not original.outputs or not any(report.count for report in passes):
            return True
        try:
            got = setting.reference.evaluate(model_bytes(loaded.model), original.samples)
        except BuildRefusedError as err:
            self.checks.append(not_compared("passes", "", str(err)))
            return True
        checks = _compare(setting, "passes", loaded, got, original, "fp32")
        wrong = next((check for check in checks if not check.ok), None)
        if wrong is None:
            self.checks += checks
            return True
        self.warnings.append(f"the optimisation was dropped: {describe_failure(wrong)}")
        return False

    def _decided(self, loaded: LoadedModel, order: Sequence[Backend]) -> Decisions | None:
        """Returns what the file of decisions holds, None where there is no such file.

        Raises:
            DataError: it is for another model or other options, or for backends that do not build here.
        """
        if self.decisions is None or not self.decisions.exists():
            return None
        found = decisions_from_file(self.decisions, loaded.sha256, options_to_json(self.options))
        here = {backend.name for backend in order}
        if missing := [name for name in found.recipe.order if name not in here]:
            raise DataError(f"the decisions name {missing[0]}, which does not build here", where=str(self.decisions))
        return found

    def _keep_decisions(self, chosen: Chosen, loaded: LoadedModel) -> None:
        if self.decisions is not None and not self.decisions.exists():
            lost = chosen.settled.dropped
            decisions = Decisions(chosen.recipe, chosen.candidates, chosen.measured_shapes, lost)
            write_decisions(self.decisions, decisions, loaded.sha256, options_to_json(self.options))

    def _chosen(self, bundle: Packing, graphs: Graphs) -> Chosen:
        """Returns the placement of the portable chain, built and checked."""
        setting, order = bundle.setting, bundle.portable.backends
        pins = tuple(pins_for(self.options.pins, order))
        if (decided := self._decided(bundle.loaded, order)) is not None:
            settled = chosen_again(setting, graphs, order, decided.recipe)
            settled = replace(settled, dropped=decided.dropped)
            return Chosen(settled, decided.recipe, decided.candidates, decided.measured_shapes)
        if self.options.objective == "priority" or bundle.loaded.stored is not None:  # each candidate has its weights
            return chosen_by_priority(setting, graphs, order, pins)
        samples = tuple(shapes_to_measure(bundle.original.samples).values())
        seconds = seconds_to_measure(
            estimate_costs(graphs[OPTIMISED], setting.shapes_of(graphs[OPTIMISED])).total, len(samples)
        )
        options = MeasureOptions(
            seconds=seconds,
            inflight=1 if self.options.objective == "latency" else max(2, self.host.num_cores),
            threads=self.options.threads or 1,
            custom_op_libraries=self.options.custom_op_libraries,
        )

        def write_trial(trial: Settled, recipe: Recipe, path: Path) -> None:
            self._write(self._as_chosen(bundle, recipe), trial, (), path)

        with temporary_folder("measure") as folder:
            return fastest(setting, graphs, order, pins, Race(write_trial, folder, samples, options))

    def _as_chosen(self, bundle: Packing, recipe: Recipe) -> Packing:
        """Returns what is packed where the graph of `recipe` was chosen."""
        return bundle if recipe.graph == OPTIMISED else replace(bundle, passes=(AS_EXPORTED,))

    def _checked_and_written(self, bundle: Packing, settled: Settled, out: Path) -> Report:
        """Checks the whole bundle, as it will be run, against the original model; then writes it for good."""
        original = bundle.original
        if not original.outputs:
            return self._write(bundle, settled, (), out)
        with temporary_folder("check") as folder:
            trial = folder / "trial.nnd"
            self._write(bundle, settled, (), trial)
            checks = self._checked(bundle, settled, trial, "cpu", precision_of([settled]))
            if bundle.chains and self.here.gpus:
                chains = [chain.settled for chain in bundle.chains]
                checks += self._checked(bundle, settled, trial, "auto", precision_of([settled, *chains]))
        return self._write(replace(bundle, limits=self._limits(bundle, checks)), settled, checks, out)

    def _limits(self, bundle: Packing, checks: Sequence[CheckReport]) -> tuple[Mapping[str, Limits], ...]:
        """Returns how far right engines differ on the samples, where they do: another box must judge by it too."""
        if not bundle.setting.has_limits:
            return ()
        graph = bundle.loaded.model.graph
        if all(check.rule == "tolerance" for check in checks) and not (is_quantised(graph) or has_short_floats(graph)):
            return ()
        original, loaded = bundle.original, bundle.loaded
        types = {named.name: named.type for named in loaded.outputs}
        limits = bundle.setting.limits(
            lambda: ir.from_proto(loaded.original), original.samples, original.outputs, types
        )
        return tuple(limits()) if limits is not None else ()

    def _checked(
        self, bundle: Packing, settled: Settled, trial: Path, device: str, precision: str
    ) -> list[CheckReport]:
        """Runs a bundle on a device of this machine and compares it with the original model."""
        run = MeasureOptions(threads=1, custom_op_libraries=self.options.custom_op_libraries, device=device)
        try:
            got = self.workers.run_bundle(trial, bundle.original.samples, run)
        except BuildRefusedError as err:
            raise CheckError(f"the bundle does not run: {err}") from err
        checks = _compare(bundle.setting, "whole", bundle.loaded, got, bundle.original, precision)
        wrong = next((check for check in checks if not check.ok), None)
        if wrong is not None:
            hint = "made-up inputs may mean nothing to the model: --samples gives real ones; see also --rtol and --atol"
            given = "see --rtol and --atol"
            error = CheckError(
                f"the whole bundle is wrong: {describe_failure(wrong)}",
                hint=hint if bundle.original.is_made_up else given,
            )
            error.report = self._report_so_far(bundle, settled, checks)
            raise error
        return checks

    def _write(self, bundle: Packing, settled: Settled, checks: Sequence[CheckReport], path: Path) -> Report:
        findings = Findings((*checks, *self.checks), tuple(self.warnings))
        manifest, members, report = pack(bundle, settled, findings)
        write_bundle(path, manifest, members, report_for_bundle(report))
        return report

    def _dry_report(
        self,
        setting: Setting,
        loaded: LoadedModel,
        graphs: Graphs,
        passes: tuple[PassReport, ...],
        portable: TargetBackends,
        others: Sequence[TargetBackends],
    ) -> Report:
        with self._stage("partition"):
            pins = tuple(pins_for(self.options.pins, portable.backends))
            recipe, plan = self._planned(setting, graphs, portable.backends, pins)
            chains = plan_chains(setting, loaded.model, others, self.options.pins)
        bundle = Packing(loaded, Original((), (), ""), passes, self.options, portable, setting)
        bundle = self._as_chosen(bundle, recipe)
        report = report_of(bundle, plan, None, Findings((), tuple(self.warnings)), chains)
        report = replace(report, seconds=dict(self.seconds))
        self._check_gates([(plan, portable), *((chain.plan, chain.backends) for chain in chains)], lambda: report)
        return report

    def _planned(self, setting: Setting, graphs: Graphs, order: Sequence[Backend], pins: Pins) -> tuple[Recipe, Plan]:
        """Returns who would run what, as far as that is known before anything is measured."""
        if self.options.objective == "priority":
            found = planned(setting, graphs, by_priority(order, pins), {b.name: b for b in order}.__getitem__)
        else:
            found, _ = planned_best(setting, graphs, order, pins)
        return found.recipe, found.plan

    def _warn_of_precision(self, chains: Sequence[Settled]) -> None:
        """Warns of each target for which nothing computes in the precision that was asked for."""
        asked = self.options.precision
        if asked == "fp32":
            return
        variants = [v for settled in chains for built in settled.pieces for v in built.variants]
        computing = [variant.artifact.requires for variant in variants if variant.artifact.precision == asked]
        for target in dict.fromkeys((self.host, *self.options.targets)):
            if not has_bf16(target):
                self.warnings.append(f"{target.name} lacks {BF16_FEATURE}: fp32 is computed there, not {asked}")
            elif all(unmet(requires, target) for requires in computing):
                self.warnings.append(f"no backend computes in {asked} for {target.name}: fp32 is computed there")

    def _warn_of_last_resorts(self, plan: Plan, order: Sequence[Backend]) -> None:
        """Warns of nodes that only the last resort takes, which is slow; of the heaviest by name."""
        for name in (backend.name for backend in order if backend.tier == LAST_RESORT_TIER and len(order) > 1):
            nodes = sorted((n for n, b in plan.backend_of.items() if b == name), key=lambda n: -plan.costs.share(n))
            if nodes:
                share, more = sum(map(plan.costs.share, nodes)), len(nodes) - 1
                others = f" and {more} more" if more else ""
                self.warnings.append(f"{name}, which is slow, runs {nodes[0]!r}{others}: {share:.1%} of the compute")

    def _warn_of_code(self, settled: Settled) -> None:
        """Warns of submodels that cannot be run where no code of a bundle may be."""
        bare = [b.piece.id for b in settled.pieces if all(variant.artifact.native_code for variant in b.variants)]
        if bare:
            names = ", ".join(bare)
            self.warnings.append(f"nothing here builds {names} without code in it: --no-native-code cannot run this")

    def _check_gates(self, chains: Sequence[tuple[Plan, TargetBackends]], report: Callable[[], Report]) -> None:
        try:
            for plan, who in chains:
                check_gates(plan.backend_of, plan.costs, who.backends, self.options.require, self.options.max_fallback)
        except CheckError as err:
            err.report = report()
            raise

    def _report_so_far(self, bundle: Packing, settled: Settled, checks: Sequence[CheckReport] = ()) -> Report:
        """Returns the report of a compile that a gate ends: what stands in it is what the gate is about."""
        findings = Findings((*checks, *self.checks), tuple(self.warnings))
        return replace(report_of(bundle, settled.plan, settled, findings, bundle.chains), seconds=dict(self.seconds))

    def _check_is_compared(self, original: Original) -> None:
        """Refuses to go on where nothing can be compared with the original model, unless that was allowed.

        Raises:
            CheckError: so it is.
        """
        if original.outputs or self.options.allow_uncompared or self.options.dry_run:
            return
        raise CheckError(
            original.warnings[-1] if original.warnings else "nothing can be compared with the original model",
            hint="give inputs with --samples, or sizes with --shape; --allow-uncompared writes the bundle as it is",
        )

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        self.events(name, "")
        start = time.perf_counter()
        self.stage = name
        try:
            yield
            self.stage = ""
        finally:
            self.seconds[name] = round(time.perf_counter() - start, 4)


def _compare(
    setting: Setting,
    scope: str,
    loaded: LoadedModel,
    got: Sequence[Mapping[str, Value]],
    original: Original,
    precision: str,
) -> list[CheckReport]:
    types = {named.name: named.type for named in loaded.outputs}
    limits = setting.tolerances[precision]
    by_limits = setting.limits(lambda: ir.from_proto(loaded.original), original.samples, original.outputs, types)
    compared = compare_outputs(scope, "", got, original.outputs, types, limits, setting.incomparable, by_limits)
    return in_precision(compared, precision, setting.min_cosine)


def _names(backends: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if backends is None:
        return None
    names = backends.split(",") if isinstance(backends, str) else backends
    return tuple(name.strip() for name in names if name.strip())


def _target(target: Target | str | PathLike[str], cache_buffer: int | None) -> Target:
    found = target if isinstance(target, Target) else target_of(fspath(target))
    return found if cache_buffer is None else with_window_buffer(found, cache_buffer)


def _outside(loaded: LoadedModel) -> Manifest:
    """Returns the manifest that the bundle will have, as far as its user meets it: inputs, outputs and ranges."""
    return Manifest(loaded.name, loaded.sha256, loaded.inputs, loaded.outputs, (), {}, ranges=loaded.ranges)
