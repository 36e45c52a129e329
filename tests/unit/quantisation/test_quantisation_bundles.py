# SPDX-License-Identifier: Apache-2.0
"""Float32 models compiled with `quantise`: accurate enough, much smaller, told in the report, the same every time."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from quantised_models import ZOO, compiled, convolutions, images, zoo_samples

import nndeploy
from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.report import QuantisationReport, Report, report_from_json, report_to_json
from nndeploy.compiler.accuracy_against_float32 import with_accuracy
from nndeploy.errors import CheckError, InputError, ModelError, UsageError
from nndeploy.frontend.load import load_model
from nndeploy.jobs.workers import InProcessWorkers
from nndeploy.plugin.interface import BuildOptions
from nndeploy.quantisation.accuracy import worst_accuracy

INT8 = {"quantise": "int8", "calibration": "min-max"}


def found_in(report: Report) -> QuantisationReport:
    """Returns what a report tells of quantisation, which it must."""
    assert report.quantisation is not None
    return report.quantisation


def decibels(model: Path | onnx.ModelProto, bundle: Path, samples: list[dict[str, np.ndarray]]) -> float:
    """Returns the worst ratio of signal to noise of a bundle's outputs against its float32 model's."""
    proto = onnx.load(model) if isinstance(model, Path) else model
    want = InProcessWorkers().evaluate("onnxruntime", proto.SerializeToString(), samples, BuildOptions())
    with nndeploy.load_bundle(bundle) as program:
        got = [program.run(sample) for sample in samples]
    return worst_accuracy(got, want, want[0]).sqnr_db


def test_a_network_of_convolutions_becomes_a_quarter_as_large_and_stays_accurate(tmp_path: Path) -> None:
    samples = images(8)
    found = found_in(compiled(convolutions(), tmp_path / "q.nnd", samples, **INT8))
    assert found.quantised_bytes < 0.28 * found.float_bytes
    assert (found.form, found.calibration) == ("static", "min-max")
    assert (found.num_calibration, found.num_held_out) == (6, 2)
    assert all(layer.quantised for layer in found.layers)
    (trial,) = found.trials
    assert trial.chosen
    assert trial.sqnr_db > found.least_db
    assert decibels(convolutions(), tmp_path / "q.nnd", images(12)[8:]) > found.least_db
    compiled(convolutions(), tmp_path / "float.nnd", samples)
    assert (tmp_path / "q.nnd").stat().st_size < 0.5 * (tmp_path / "float.nnd").stat().st_size


def test_the_same_model_and_samples_give_the_same_bundle(tmp_path: Path) -> None:
    for name in ("a", "b"):
        compiled(convolutions(2), tmp_path / name, images(4), **INT8)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_layers_beside_an_outlier_stay_float_and_no_others(tmp_path: Path) -> None:
    model = convolutions(outlier_behind=2)
    report = compiled(model, tmp_path / "q.nnd", images(8), **INT8)
    found = found_in(report)
    floats = {layer.name for layer in found.layers if not layer.quantised}
    assert {"c2", "c3"} <= floats <= {"c2", "r2", "c3", "r3"}
    assert all("cost most accuracy" in layer.reason for layer in found.layers if layer.name in ("c2", "c3"))
    alone = {layer.name: layer.alone_db for layer in found.layers}
    assert max(alone["c2"], alone["c3"]) < min(alone["c0"], alone["c1"], alone["c4"])
    assert [t.chosen for t in found.trials].count(True) == 1
    chosen = next(trial for trial in found.trials if trial.chosen)
    assert chosen.num_float == len([layer for layer in found.layers if layer.reason.startswith("one of the")])
    assert all(t.sqnr_db < found.least_db for t in found.trials if t.num_float < chosen.num_float)
    assert decibels(model, tmp_path / "q.nnd", images(4)) > found.least_db
    assert report_from_json(report_to_json(report)) == report


def test_a_small_mobilenet_is_quantised_with_its_residual_sums(tmp_path: Path) -> None:
    samples = zoo_samples("mobilenet_v2", 8)
    found = found_in(compiled(ZOO / "mobilenet_v2.onnx", tmp_path / "q.nnd", samples, quantise="int8"))
    assert {trial.name for trial in found.trials} == {"static min-max", "static percentile", "static entropy"}
    best = max(found.trials, key=lambda trial: trial.sqnr_db)
    assert best.chosen
    assert {layer.op for layer in found.layers if layer.quantised} >= {"Conv", "Add"}
    assert decibels(ZOO / "mobilenet_v2.onnx", tmp_path / "q.nnd", samples) > found.least_db


def test_products_of_a_transformer_get_ranges_when_they_run_where_that_is_more_accurate(tmp_path: Path) -> None:
    samples = zoo_samples("bert", 4)
    found = found_in(compiled(ZOO / "bert.onnx", tmp_path / "q.nnd", samples, quantise="int8"))
    assert found.form == "dynamic"
    assert {layer.op for layer in found.layers if layer.quantised} == {"MatMul"}
    assert any("products" in layer.reason or "MatMul" in layer.reason for layer in found.layers if not layer.quantised)
    assert decibels(ZOO / "bert.onnx", tmp_path / "q.nnd", samples) > 40


def test_weights_of_products_in_4_bits(tmp_path: Path) -> None:
    samples = zoo_samples("bert", 4)
    found = found_in(compiled(ZOO / "bert.onnx", tmp_path / "q.nnd", samples, quantise="int4"))
    assert (found.to, found.form, found.calibration) == ("int4", "blocks", "")
    assert found.quantised_bytes < found.float_bytes
    assert decibels(ZOO / "bert.onnx", tmp_path / "q.nnd", samples) > found.least_db


def test_boxes_that_are_chosen_are_measured_before_the_choice(tmp_path: Path) -> None:
    found = found_in(compiled(ZOO / "kept_boxes.onnx", tmp_path / "q.nnd", zoo_samples("kept_boxes", 4), **INT8))
    assert all(trial.sqnr_db > 0 for trial in found.trials)


@pytest.mark.slow
def test_a_face_detector_is_quantised_whole(models_folder: Path, real_sample, tmp_path: Path) -> None:
    real, _ = real_sample("ultraface_rfb320")
    samples = [{"input": np.roll(real["input"], shift, -1)} for shift in (0, 40, 80, 120)]
    model = models_folder / "ultraface_rfb320.onnx"
    found = found_in(compiled(model, tmp_path / "q.nnd", samples, **INT8))
    assert all(layer.quantised for layer in found.layers)
    assert found.trials[0].sqnr_db > 25
    assert found.quantised_bytes < 0.36 * found.float_bytes  # its anchors stay float
    assert decibels(model, tmp_path / "q.nnd", samples[:1]) > 25


def test_the_report_tells_the_bundle_s_own_error_and_the_speed_of_both_models(tmp_path: Path) -> None:
    model, samples = convolutions(2), images(8)
    report = compiled(model, tmp_path / "q.nnd", samples, **INT8, objective="latency")
    found = found_in(report)
    assert found.bundle_db == pytest.approx(decibels(model, tmp_path / "q.nnd", samples[3::4]), abs=0.1)
    assert found.float_ms > 0
    assert found.quantised_ms > 0
    assert report_from_json(report_to_json(report)) == report
    with open_bundle(tmp_path / "q.nnd") as bundle:
        told = report_from_json(bundle.report())
    assert told.quantisation == found


@pytest.mark.parametrize(("noise", "is_right"), [(0.0, True), (0.05, True), (0.3, False)], ids=[
    "as float32", "as the quantised model", "as neither",
])  # fmt: skip
def test_a_bundle_that_is_further_off_than_was_allowed_is_not_written(noise: float, is_right: bool) -> None:
    want = np.ones((1, 100), np.float32)
    packing = SimpleNamespace(
        quantisation=QuantisationReport("int8", "static", "min-max", 20.0, 3, 1, 400, 100, (), ()),
        loaded=load_model(convolutions(1)),
        options=SimpleNamespace(pipeline=None),
        float_outputs=({"scores": want},),
        original=SimpleNamespace(outputs=({"scores": want * np.float32(1.05)},)),
    )
    got = [{"scores": want * np.float32(1 + noise)}]
    if is_right:
        assert with_accuracy(packing, got).bundle_db == pytest.approx(200 if noise == 0 else 26, abs=0.1)
    else:
        with pytest.raises(CheckError, match=r"'scores' has 10\.5 dB against float32, not 26\.0 dB"):
            with_accuracy(packing, got)


def test_a_limit_that_nothing_keeps_ends_the_compile(tmp_path: Path) -> None:
    with pytest.raises(
        CheckError, match="quantised to int8 no part of the model is accurate enough: with all 5 layers"
    ):
        compiled(convolutions(1), tmp_path / "q.nnd", images(4), **INT8, quantise_tolerance=150.0)
    assert not (tmp_path / "q.nnd").exists()


NO_PRODUCT = '<ir_version: 8, opset_import: ["": 18]> g (float[3] image) => (float[3] y) { y = Relu(image) }'


@pytest.mark.parametrize(
    ("model", "reason"),
    [(ZOO / "resnet18_fp16.onnx", "computes in float16, --quantise takes float32"),
     (ZOO / "resnet18_qdq_tensor.onnx", "already quantised"), (ZOO / "bert_dynamic_int8.onnx", "already quantised"),
     (ZOO / "llama_int4_qdq.onnx", "already quantised"),
     (onnx.parser.parse_model(NO_PRODUCT), "no convolution or product by constant float32 weights")],
    ids=["float16", "qdq", "dynamic", "int4", "no product"],
)  # fmt: skip
def test_a_model_that_is_none_to_quantise_is_refused(model, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=reason):
        compiled(model, tmp_path / "q.nnd", images(2), quantise="int8")


def test_int4_is_for_matrix_products(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no MatMul by constant weights"):
        compiled(convolutions(1), tmp_path / "q.nnd", images(4), quantise="int4")


@pytest.mark.parametrize("samples", [None, []])
def test_without_samples_nothing_is_quantised(samples, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--quantise needs samples"):
        compiled(convolutions(1), tmp_path / "q.nnd", samples, quantise="int8")


def test_samples_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="sample 1"):
        compiled(convolutions(1), tmp_path / "q.nnd", [*images(1), *images(1, size=8)], quantise="int8")


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"quantise": "int9"}, "did you mean 'int8'"),
     ({"quantise": "int8", "calibration": "minmax"}, "did you mean 'min-max'"),
     ({"quantise": "int4", "calibration": "min-max"}, "int4 leaves activations as they are"),
     ({"calibration": "min-max"}, "are for --quantise"), ({"quantise_tolerance": 30.0}, "are for --quantise"),
     ({"quantise": "int8", "quantise_tolerance": 0.0}, "ratio above 0 dB")],
    ids=str,
)  # fmt: skip
def test_options_that_contradict_each_other_are_refused(options, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        nndeploy.CompileOptions(**options)
