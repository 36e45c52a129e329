# SPDX-License-Identifier: Apache-2.0
"""Quantisation on one page: methods -> each tried with all layers -> the best, with some layers float -> the report.

Comes in: an optimised float32 model and samples. Goes out: the quantised model as bytes. Law: its outputs on samples
that no range was taken from are as near float32's as was asked for, or there is none.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import onnx
import onnx_ir as ir

from nndeploy.bundle.report import QuantisationReport, QuantisationTrial, QuantisedLayer
from nndeploy.checking.cuts import model_before_cuts
from nndeploy.checking.samples import given_samples
from nndeploy.errors import BuildRefusedError, CheckError, ModelError
from nndeploy.frontend.load import LoadedModel
from nndeploy.jobs.messages import model_bytes
from nndeploy.jobs.workers import Workers
from nndeploy.plugin.interface import CALIBRATIONS, BuildOptions
from nndeploy.quantisation.accuracy import Accuracy, Outputs
from nndeploy.quantisation.float_layers import FloatLayers, float_layers
from nndeploy.quantisation.held_out import SplitSamples, split_samples
from nndeploy.quantisation.layers import (
    all_layers,
    check_is_float32,
    constant_bytes,
    is_mostly_matmuls,
    weighted_matmuls,
)
from nndeploy.quantisation.trials import Bench, Method, reported
from nndeploy.values.types import Value

Sample = Mapping[str, Value]
_SQUASHING = ("LogSoftmax", "Sigmoid", "Softmax")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for: "int8" or "int4", one way to calibrate or None for the best, the least accuracy in dB."""

    to: str
    calibration: str | None
    least_db: float


@dataclass(frozen=True, slots=True)
class Quantised:
    """A quantised model, how it came about, and the samples held out with the float32 model's outputs on them."""

    model: bytes
    report: QuantisationReport
    held_out: tuple[Sample, ...]
    float_outputs: tuple[Mapping[str, Value], ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tried:
    """The method that is most accurate with all layers quantised, all trials, its own first, and refusals in words."""

    method: Method
    trials: tuple[QuantisationTrial, ...]
    refusals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Quantising:
    """Who quantises: a backend that offers `Quantiser`, in workers; `progress` hears what it is at."""

    workers: Workers
    quantiser: str
    options: BuildOptions
    progress: Callable[[str], None]


def quantise_model(who: Quantising, loaded: LoadedModel, given: Sequence[Sample], wanted: Wanted) -> Quantised:
    """Returns the model quantised; `loaded` is left as it is.

    Raises:
        ModelError: it is none to quantise, or the library fails on it.
        InputError: a sample does not fit it.
        CheckError: whatever stays float, it is not accurate enough.
    """
    if loaded.stored is not None and loaded.stored.is_beyond_a_message:
        raise ModelError("--quantise takes models with less than 2 GiB of weights")
    check_is_float32(loaded.model.graph)
    samples = split_samples(given_samples(given, loaded.inputs, loaded.ranges))
    try:
        return _quantised(who, loaded, samples, wanted)
    except BuildRefusedError as err:
        raise ModelError(f"the model cannot be quantised: {err}") from err


def _quantised(who: Quantising, loaded: LoadedModel, samples: SplitSamples, wanted: Wanted) -> Quantised:
    who.progress("float32")
    original = loaded.original.SerializeToString()
    float_outputs = who.workers.evaluate(who.quantiser, original, samples.held_out, who.options)
    measured = model_before_cuts(loaded.model) or loaded.model
    bench = _bench(who, measured, samples, float_outputs)
    tried = _tried(who, bench, _methods(measured.graph, wanted))
    method, trials = tried.method, tried.trials
    found = FloatLayers((), {}, ())
    if trials[0].sqnr_db < wanted.least_db:
        found = float_layers(bench, _ranking_bench(who, measured, bench), method, wanted.least_db, who.progress)
    if found.floats is None:
        raise _not_accurate(trials[0], method, wanted)
    who.progress("the quantised model")
    model = who.workers.quantise(who.quantiser, model_bytes(loaded.model), method.recipe(found.floats))
    result = ir.from_proto(onnx.load_from_string(model))
    report = QuantisationReport(
        to=wanted.to,
        form=method.form,
        calibration=method.calibration,
        least_db=wanted.least_db,
        num_calibration=len(samples.calibration),
        num_held_out=len(samples.held_out),
        float_bytes=constant_bytes(loaded.model),
        quantised_bytes=constant_bytes(result),
        trials=_chosen((*trials, *found.trials), method, len(found.floats)),
        layers=tuple(_layers(measured.graph, result.graph, method, found)),
    )
    return Quantised(
        model,
        report,
        samples.held_out,
        tuple(float_outputs),
        (*(samples.warnings if method.calibration else ()), *tried.refusals),
    )


def _bench(who: Quantising, measured: ir.Model, samples: SplitSamples, float_outputs: Outputs) -> Bench:
    """Returns where to try; `measured` ends with what is given to what chooses and sorts."""
    model, want = model_bytes(measured), float_outputs
    names = tuple(value.name for value in measured.graph.outputs if value.name)
    if not frozenset(names) <= want[0].keys():
        want = who.workers.evaluate(who.quantiser, model, samples.held_out, who.options)
    return Bench(who.workers, who.quantiser, who.options, model, names, samples, want)


def _ranking_bench(who: Quantising, measured: ir.Model, bench: Bench) -> Bench:
    """Returns where layers are ranked: by what goes into a last Softmax or Sigmoid, which hides most errors."""
    model = measured.clone()
    for i, output in enumerate(model.graph.outputs):
        maker = output.producer()
        if maker is not None and maker.op_type in _SQUASHING and maker.inputs[0] is not None:
            model.graph.outputs[i] = maker.inputs[0]
    names = tuple(value.name for value in model.graph.outputs if value.name)
    if names == bench.names or len({*names}) < len(bench.names):
        return bench
    as_bytes = model_bytes(model)
    want = who.workers.evaluate(who.quantiser, as_bytes, bench.samples.held_out, who.options)
    return replace(bench, model=as_bytes, names=names, want=want)


def _methods(graph: ir.Graph, wanted: Wanted) -> Iterator[Method]:
    """Yields the ways to quantise a model."""
    matmuls = weighted_matmuls(graph)
    if wanted.to == "int4":
        if not matmuls:
            raise ModelError("the model has no MatMul by constant weights to quantise to int4", hint="--quantise int8")
        yield Method("blocks", "", matmuls)
        return
    for calibration in CALIBRATIONS if wanted.calibration is None else (wanted.calibration,):
        yield Method("static", calibration, all_layers(graph))
    if wanted.calibration is None and is_mostly_matmuls(graph):
        yield Method("dynamic", "", matmuls)


def _tried(who: Quantising, bench: Bench, methods: Iterable[Method]) -> Tried:
    """Returns the method that is most accurate with all of its layers quantised, and what became of the others.

    Raises:
        BuildRefusedError: none works.
    """
    found: list[tuple[Accuracy, Method]] = []
    refusals: list[str] = []
    for method in methods:
        try:
            ready = _with_ranges(who, bench, method)
            who.progress(f"{method.name}, all layers")
            found.append((bench.accuracy(ready), ready))
        except BuildRefusedError as err:
            refusals.append(f"{method.name} quantisation was left out: {err}")
    if not found:
        raise BuildRefusedError("; ".join(refusals))
    found.sort(key=lambda each: -each[0].sqnr_db)  # the first of equals stays first
    return Tried(found[0][1], tuple(reported(method, 0, accuracy) for accuracy, method in found), tuple(refusals))


def _with_ranges(who: Quantising, bench: Bench, method: Method) -> Method:
    if not method.calibration:
        return method
    who.progress(f"ranges by {method.calibration}")
    samples = bench.samples.calibration
    return replace(method, ranges=who.workers.calibrate(who.quantiser, bench.model, samples, method.calibration))


def _chosen(trials: Sequence[QuantisationTrial], method: Method, num_float: int) -> tuple[QuantisationTrial, ...]:
    return tuple(replace(t, chosen=(t.name, t.num_float) == (method.name, num_float)) for t in trials)


def _layers(graph: ir.Graph, result: ir.Graph, method: Method, found: FloatLayers) -> Iterator[QuantisedLayer]:
    """Yields what became of each layer, as the result shows it."""
    in_method = {layer.name for layer in method.layers}
    as_before = _computed_in_float(result)
    for layer in all_layers(graph):
        reason = ""
        if layer.name not in in_method:
            reason = f"{method.form} quantisation is for MatMul by constant weights"
        elif layer.name in (found.floats or ()):
            reason = f"one of the {len(found.floats or ())} layers that cost most accuracy"
        elif layer.name in as_before:
            reason = "no layer beside it is quantised, or it has no form in integers"
        yield QuantisedLayer(layer.name, layer.op, not reason, reason, found.alone_db.get(layer.name))


def _computed_in_float(result: ir.Graph) -> set[str]:
    """Returns the names of the nodes of a quantised model whose first value comes from no DequantizeLinear."""
    return {
        node.name or ""
        for node in result
        if (maker := node.inputs[0].producer() if node.inputs and node.inputs[0] is not None else None) is None
        or maker.op_type != "DequantizeLinear"
    }


def _not_accurate(best: QuantisationTrial, method: Method, wanted: Wanted) -> CheckError:
    return CheckError(
        f"quantised to {wanted.to} no part of the model is accurate enough: with all {len(method.layers)} layers "
        f"quantised {best.output!r} has {best.sqnr_db:.1f} dB, {wanted.least_db:g} were asked for",
        hint="more and more representative samples, or a lower --quantise-tolerance",
    )
