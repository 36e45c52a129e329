# SPDX-License-Identifier: Apache-2.0
"""Real trained models: each compiles, and its bundle gives the outputs that ship with its sample."""

from typing import Any

import numpy as np
import pytest
from compile_with import compile_with

import nndeploy
from nndeploy.errors import NndeployError

RUN = ("micro_kws_qdq", "random_forest_iris", "unsw_nb15_mlp_w2a2")
LONG = (
    "ppocr_det_mobile_v2", "ppocr_rec_en_mobile_v2", "silero_vad_v5", "mobilenet_v2_quant", "magika_standard_v3_3",
    "basic_pitch", "unet_stress_field", "fsmn_vad_online", "nnsplit_en", "ultraface_rfb320", "fastestdet",
    "silero_vad_v2_mini",
)  # fmt: skip
"""Those whose compile takes long."""
QUANTISED = ("mobilenet_v2_quant", "micro_kws_qdq")


def assert_agree(name: str, got: Any, want: Any) -> None:
    got = np.asarray(got)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if name in QUANTISED:  # a step rounded differently in an early layer is several steps in the last
        got, want = got.astype(np.float64).ravel(), want.astype(np.float64).ravel()
        assert got @ want >= 0.99 * np.linalg.norm(got) * np.linalg.norm(want)
        assert got.argmax() == want.argmax()
    else:
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-4 * max(1.0, float(np.abs(want).max())))


@pytest.mark.parametrize("name", [*RUN, *(pytest.param(name, marks=pytest.mark.slow) for name in LONG)])
def test_a_real_model_compiles_and_agrees_with_its_sample(name, models_folder, real_sample, tmp_path) -> None:
    inputs, outputs = real_sample(name)
    report = compile_with(models_folder / f"{name}.onnx", tmp_path / "m.nnd", objective="latency", samples=[inputs])
    whole = [check for check in report.checks if check.scope == "whole"]
    assert whole
    assert all(check.ok for check in whole)
    assert report.share_of("reference") == 0, "the last resort is far too slow for a real network"
    with nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        got = program.run(inputs)
    for output, want in outputs.items():
        assert_agree(name, got[output], want)


def test_an_unknown_operator_is_refused_with_one_line_that_names_it(models_folder, tmp_path) -> None:
    with pytest.raises(NndeployError, match=r"com\.microsoft\.extensions::\w+.*--custom-ops") as refusal:
        nndeploy.compile_model(models_folder / "superres_ortext.onnx", tmp_path / "m.nnd")
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "m.nnd").exists()


def test_a_library_of_operators_makes_its_model_run(models_folder, real_sample, tmp_path) -> None:
    extensions = pytest.importorskip("onnxruntime_extensions", reason="onnxruntime-extensions is not installed")
    inputs, outputs = real_sample("superres_ortext")
    library = extensions.get_library_path()
    model, bundle = models_folder / "superres_ortext.onnx", tmp_path / "m.nnd"
    compile_with(model, bundle, samples=[inputs], custom_op_libraries=(library,))
    with nndeploy.load_bundle(bundle, nndeploy.LoadOptions(custom_op_libraries=(library,))) as program:
        got = program.run(inputs)
    assert bytes(got["image_out"][:4]) == bytes(outputs["image_out"][:4]), "the same kind of picture file"
    with pytest.raises(NndeployError, match="--custom-ops"):
        nndeploy.load_bundle(bundle)
