# SPDX-License-Identifier: Apache-2.0
"""The compile flow on one page: load -> optimise -> reference -> place, build and check -> measure -> pack -> write.

Comes in: a trained ONNX model. Goes out: one bundle and its report. Law: a bundle is written only when every
submodel and the whole gave the original model's outputs within tolerance (or the report says why that could not be
compared), and then in one step: the old file or the new one.
"""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

from nndeploy.bundle.manifest import ImageInput, Tolerance
from nndeploy.bundle.writer import write_bundle
from nndeploy.errors import CheckError, ModelError, UnavailableError, UsageError, did_you_mean
from nndeploy.frontend.load import LoadedModel, load_model
from nndeploy.jobs.child import model_bytes
from nndeploy.jobs.tasks import MeasureOptions
from nndeploy.jobs.workers import InProcessWorkers, Workers
from nndeploy.lower import Events, Plan, Setting, Settled, plan_for, settle, with_fallbacks
from nndeploy.objective import fastest
from nndeploy.options import CompileOptions
from nndeploy.pack import Findings, Goldens, pack, report_of
from nndeploy.partition.cost import estimate_costs
from nndeploy.passes import optimise
from nndeploy.plugin.interface import Backend, BuildOptions, BuildRefusedError, ReferenceEngine
from nndeploy.plugin.registry import backends_in_order, broken_backends
from nndeploy.report import CheckReport, PassReport, Report, report_for_bundle
from nndeploy.target import Target, host_target, target_from_toml
from nndeploy.value_types import DTYPES, Value
from nndeploy.verify.check import compare_outputs, describe_failure, not_compared
from nndeploy.verify.reference import Reference, is_random, reference_engines
from nndeploy.verify.samples import Sample, SampleSet, generated_samples, given_samples
from nndeploy.verify.tolerances import tolerance_for

if TYPE_CHECKING:
    import onnx

FALLBACK_TIER = 4
NUM_GENERATED = 2
LARGE_SECONDS = 0.1  # estimated; larger models are checked on one generated sample
NO_OPTIMISATION = PassReport("none: the optimised model gave other numbers than the original", 0)


def compile_model(
    source: "str | PathLike[str] | bytes | onnx.ModelProto",
    out: str | PathLike[str] | None,
    *,
    backends: str | Sequence[str] | None = None,
    targets: Sequence[Target | str | PathLike[str]] | None = None,
    objective: str = "priority",
    samples: Sequence[Mapping[str, Value]] | None = None,
    shapes: Mapping[str, Any] | None = None,
    threads: int | None = None,
    without: Sequence[str] = (),
    pins: Sequence[tuple[str, str]] = (),
    custom_op_libraries: Sequence[str | PathLike[str]] = (),
    image_input: ImageInput | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    require: Mapping[str, float] | None = None,
    max_fallback: float | None = None,
    num_goldens: int = 1,
    keep_fallback: bool = True,
    optimise: bool = True,
    dry_run: bool = False,
    workers: Workers | None = None,
    events: Events | None = None,
) -> Report:
    """Compiles a model into the bundle `out` and returns the report; the options are those of `CompileOptions`.

    `source` is a path, an `onnx.ModelProto` or its bytes. `backends` is a list or text as on the command line
    ("openvino,onnxruntime"). `samples` is a list of {input name: array}; without it inputs are generated. `shapes`
    maps an input to its sizes, as text ("1..8,3,224,224:4,3,224,224") or a sequence. `workers` decides where the
    backends' libraries run (in this process by default; the command uses children). With `dry_run` nothing is built
    or written and `out` may be None.

    Raises:
        ModelError: the model is malformed, or nothing here can run it.
        CheckError: the outputs are not the original's within tolerance, or a gate (`require`, `max_fallback`) failed.
        UsageError: options contradict each other or the model.
        CannotCreateError: `out` cannot be created.
    """
    options = CompileOptions(
        backends=_names(backends),
        without=tuple(without),
        pins=tuple(pins),
        targets=tuple(_target(target) for target in targets or ()),
        objective=objective,
        threads=threads,
        shapes=dict(shapes or {}),
        custom_op_libraries=tuple(fspath(path) for path in custom_op_libraries),
        image_input=image_input,
        rtol=rtol,
        atol=atol,
        require=dict(require or {}),
        max_fallback=max_fallback,
        num_goldens=num_goldens,
        keep_fallback=keep_fallback,
        optimise=optimise,
        dry_run=dry_run,
    )
    if out is None and not dry_run:
        raise UsageError("no output was named", hint="give a path ending in .nnd, or dry_run")
    flow = _Flow(options, workers or InProcessWorkers(), events or (lambda _stage, _detail: None))
    return flow.compile(source, None if out is None else Path(out), samples)


@dataclass(slots=True)
class _Flow:
    """One compile: the options, and what was learnt on the way."""

    options: CompileOptions
    workers: Workers
    events: Events
    host: Target = field(default_factory=host_target)
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    checks: list[CheckReport] = field(default_factory=list)

    def compile(self, source: Any, out: Path | None, samples: Sequence[Mapping[str, Value]] | None) -> Report:
        order = self._backends()
        with self._stage("load"):
            loaded = load_model(source, shapes=self.options.shapes, extra_domains=self._extra_domains(order))
            _check_image_input(self.options.image_input, loaded)
        with self._stage("optimise"):
            unoptimised = loaded.model.clone()
            passes = optimise(loaded.model) if self.options.optimise else ()
        with self._stage("reference"):
            setting, sample_set, wanted = self._reference(loaded, samples)
        if self.options.dry_run:
            with self._stage("partition"):
                plan = plan_for(setting, loaded.model, order, self.options.pins)
            return self._dry_report(loaded, plan, passes, order)
        with self._stage("build"):
            if not self._passes_are_right(setting, loaded, wanted, passes):
                loaded, passes = replace(loaded, model=unoptimised), (NO_OPTIMISATION,)
            settled = settle(setting, loaded.model, order, self.options.pins)
        goldens = Goldens(setting.samples if wanted else (), wanted, sample_set.origin)
        findings = Findings(passes, tuple(self.checks), (), tuple(self.warnings))
        if self.options.objective != "priority":
            with self._stage("measure"):
                settled, findings = self._fastest(setting, loaded, settled, order, goldens, findings)
        if self.options.keep_fallback:
            with self._stage("fallback"):
                settled = with_fallbacks(setting, settled)
        self._gate(settled.plan, order)
        with self._stage("check and write"):
            assert out is not None
            return self._write(setting, loaded, settled, goldens, findings, order, out)

    def _backends(self) -> list[Backend]:
        order = backends_in_order(self.options.backends, self.options.without)
        usable = []
        if self.options.backends is None:
            self.warnings += [reason for name, reason in broken_backends().items() if name not in self.options.without]
        for backend in order:
            probe = backend.probe(self.host)
            if probe.can_build:
                usable.append(backend)
            elif self.options.backends is not None:
                raise UnavailableError(f"{backend.name} cannot build here: {probe.reason}", hint=probe.hint)
            else:
                self.warnings.append(f"{backend.name} is left out: {probe.reason}")
        return usable

    def _extra_domains(self, order: Sequence[Backend]) -> frozenset[str] | None:
        """Returns the operator domains beyond ONNX's own; None (any) where a library of operators was given."""
        if self.options.custom_op_libraries:
            return None
        return frozenset(domain for backend in order for domain in backend.extra_domains)

    def _reference(
        self, loaded: LoadedModel, samples: Sequence[Mapping[str, Value]] | None
    ) -> tuple[Setting, SampleSet, tuple[dict[str, Value], ...]]:
        """Returns the setting of this compile, the samples, and the original model's outputs on them."""
        build_options = BuildOptions(self.options.threads, loaded.ranges, self.options.custom_op_libraries)
        seconds = estimate_costs(loaded.model, {}).total
        engines = [b.name for b in backends_in_order() if isinstance(b, ReferenceEngine) and b.probe(self.host).can_run]
        reference = Reference(self.workers, reference_engines(engines, seconds, len(loaded.model.graph)), build_options)
        sample_set, wanted = self._samples_and_outputs(loaded, reference, samples, seconds)
        first = sample_set.samples[0] if sample_set.samples else {}
        setting = Setting(
            workers=self.workers,
            targets=self.options.targets,
            host=self.host,
            build_options=build_options,
            reference=reference,
            samples=sample_set.samples if wanted else (),
            values_matter=not is_random(loaded.model.graph),
            tolerances=_tolerances(self.options),
            shapes_of=lambda model: concrete_shapes(model, first),
            events=self.events,
        )
        return setting, sample_set, wanted

    def _samples_and_outputs(
        self,
        loaded: LoadedModel,
        reference: Reference,
        samples: Sequence[Mapping[str, Value]] | None,
        seconds: float,
    ) -> tuple[SampleSet, tuple[dict[str, Value], ...]]:
        original = loaded.original.SerializeToString()
        if samples is not None:
            given = given_samples(samples, loaded.inputs)
            try:
                return given, tuple(reference.evaluate(original, given.samples))
            except BuildRefusedError as err:
                raise ModelError(f"the original model does not run on the given samples: {err}") from err
        found: list[Sample] = []
        outputs: list[dict[str, Value]] = []
        reason = "it has no input that could be generated"
        for seed in range(1 if seconds > LARGE_SECONDS else NUM_GENERATED):
            for sample in generated_samples(loaded.model.graph, loaded.inputs, loaded.ranges, seed):
                try:
                    outputs += reference.evaluate(original, [sample])
                    found.append(sample)
                    break
                except BuildRefusedError as err:
                    reason = str(err)
        if not found:
            self.warnings.append(f"outputs were not compared: no generated input runs ({reason}); give --samples")
        return SampleSet(tuple(found), "generated"), tuple(outputs)

    def _passes_are_right(
        self,
        setting: Setting,
        loaded: LoadedModel,
        wanted: Sequence[Mapping[str, Value]],
        passes: tuple[PassReport, ...],
    ) -> bool:
        """Compares the optimised model with the original, both under the reference; warns where they differ."""
        if not wanted or not any(report.count for report in passes):
            return True
        try:
            got = setting.reference.evaluate(model_bytes(loaded.model), setting.samples)
        except BuildRefusedError as err:
            self.checks.append(not_compared("passes", "", str(err)))
            return True
        checks = self._compare(setting, "passes", loaded, got, wanted)
        wrong = next((check for check in checks if not check.ok), None)
        if wrong is None:
            self.checks += checks
            return True
        self.warnings.append(f"the optimisation was dropped: {describe_failure(wrong)}")
        return False

    def _fastest(
        self,
        setting: Setting,
        loaded: LoadedModel,
        settled: Settled,
        order: Sequence[Backend],
        goldens: Goldens,
        findings: Findings,
    ) -> tuple[Settled, Findings]:
        if not setting.samples:
            raise UsageError(
                f"--objective {self.options.objective} needs inputs to measure with", hint="give --samples"
            )
        inflight = 1 if self.options.objective == "latency" else max(2, self.host.num_cores)
        options = MeasureOptions(
            inflight=inflight, threads=self.options.threads, custom_op_libraries=self.options.custom_op_libraries
        )

        def write_trial(trial: Settled, path: Path) -> None:
            self._write_bundle(loaded, trial, goldens, findings, order, path)

        with tempfile.TemporaryDirectory(prefix="nndeploy-measure-") as folder:
            best, candidates = fastest(
                setting, loaded.model, settled, order, write_trial, Path(folder), setting.samples[0], options
            )
        return replace(best, dropped=settled.dropped), replace(findings, candidates=candidates)

    def _write(
        self,
        setting: Setting,
        loaded: LoadedModel,
        settled: Settled,
        goldens: Goldens,
        findings: Findings,
        order: Sequence[Backend],
        out: Path,
    ) -> Report:
        """Checks the whole bundle, as it will be run, against the original model; then writes it for good."""
        if goldens.outputs:
            with tempfile.TemporaryDirectory(prefix="nndeploy-check-") as folder:
                trial = Path(folder) / "trial.nnd"
                self._write_bundle(loaded, settled, goldens, findings, order, trial)
                run = MeasureOptions(threads=1, custom_op_libraries=self.options.custom_op_libraries)
                try:
                    got = self.workers.run_bundle(trial, goldens.samples, run)
                except BuildRefusedError as err:
                    raise CheckError(f"the bundle does not run: {err}") from err
            checks = self._compare(setting, "whole", loaded, got, goldens.outputs)
            wrong = next((check for check in checks if not check.ok), None)
            if wrong is not None:
                raise CheckError(f"the whole bundle is wrong: {describe_failure(wrong)}", hint="see --rtol and --atol")
            findings = replace(findings, checks=(*checks, *findings.checks))
        report = self._write_bundle(loaded, settled, goldens, findings, order, out)
        return replace(report, bundle=str(out), bundle_bytes=out.stat().st_size, seconds=dict(self.seconds))

    def _write_bundle(
        self,
        loaded: LoadedModel,
        settled: Settled,
        goldens: Goldens,
        findings: Findings,
        order: Sequence[Backend],
        path: Path,
    ) -> Report:
        tolerances = _tolerances(self.options)
        manifest, members, report = pack(loaded, settled, goldens, findings, self.options, order, tolerances, self.host)
        write_bundle(path, manifest, members, report_for_bundle(report))
        return report

    def _compare(
        self,
        setting: Setting,
        scope: str,
        loaded: LoadedModel,
        got: Sequence[Mapping[str, Value]],
        want: Sequence[Mapping[str, Value]],
    ) -> list[CheckReport]:
        types = {named.name: named.type for named in loaded.outputs}
        return compare_outputs(scope, "", got, want, types, setting.tolerances, setting.values_matter)

    def _dry_report(
        self, loaded: LoadedModel, plan: Plan, passes: tuple[PassReport, ...], order: Sequence[Backend]
    ) -> Report:
        findings = Findings(passes, (), (), tuple(self.warnings))
        report = report_of(loaded, plan, None, findings, self.options, order)
        self._gate(plan, order)
        return replace(report, seconds=dict(self.seconds))

    def _gate(self, plan: Plan, order: Sequence[Backend]) -> None:
        """Raises CheckError where a backend took less, or the fallbacks more, of the compute than was asked for."""
        shares = {backend.name: 0.0 for backend in order}
        for node, backend in plan.backend_of.items():
            shares[backend] += plan.costs.share(node)
        for name, least in self.options.require.items():
            if name not in shares:
                raise UsageError(f"--require names the backend {name!r}", hint=did_you_mean(name, shares))
            if shares[name] < least - 1e-9:
                raise CheckError(f"{name} takes {shares[name]:.1%} of the compute, {least:.1%} were required")
        fallback = sum(shares[backend.name] for backend in order if backend.tier >= FALLBACK_TIER)
        if self.options.max_fallback is not None and fallback > self.options.max_fallback + 1e-9:
            raise CheckError(
                f"fallback backends take {fallback:.1%} of the compute, at most {self.options.max_fallback:.1%} may be",
                hint="--dry-run shows why each node was refused",
            )

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        self.events(name, "")
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = round(time.perf_counter() - start, 4)


def concrete_shapes(model: ir.Model, sample: Mapping[str, Value]) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of values by name when the inputs have the sizes of `sample`, where they can be inferred."""
    fed = {name: value.shape for name, value in sample.items() if isinstance(value, np.ndarray)}
    if all(value.shape is not None and value.shape.is_static() for value in model.graph.inputs if value.name in fed):
        return {}
    trial = model.clone()
    for value in (*trial.graph.outputs, *(output for node in trial.graph for output in node.outputs)):
        value.shape = None
    for value in trial.graph.inputs:
        if value.name in fed:
            value.shape = ir.Shape(fed[value.name])
    ShapeInferencePass(data_prop=True)(trial)
    return {
        value.name: value.shape.numpy()
        for node in trial.graph
        for value in (*node.inputs, *node.outputs)
        if value is not None and value.name and value.shape is not None and value.shape.is_static()
    }


def _names(backends: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if backends is None:
        return None
    names = backends.split(",") if isinstance(backends, str) else backends
    return tuple(name.strip() for name in names if name.strip())


def _target(target: Target | str | PathLike[str]) -> Target:
    return target if isinstance(target, Target) else target_from_toml(Path(target))


def _tolerances(options: CompileOptions) -> dict[str, Tolerance]:
    def of(dtype: str) -> Tolerance:
        default = tolerance_for(dtype)
        if not dtype.startswith(("float", "bfloat", "complex")):
            return default
        return Tolerance(
            default.rtol if options.rtol is None else options.rtol,
            default.atol if options.atol is None else options.atol,
        )

    return {dtype: of(dtype) for dtype in DTYPES}


def _check_image_input(image: ImageInput | None, loaded: LoadedModel) -> None:
    names = [named.name for named in loaded.inputs]
    if image is not None and image.name not in names:
        raise UsageError(f"the image goes into {image.name!r}, which is no input", hint=did_you_mean(image.name, names))
