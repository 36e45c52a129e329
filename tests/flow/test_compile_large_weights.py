# SPDX-License-Identifier: Apache-2.0
"""Models whose weights do not travel in messages, and those that none can hold: here small ones, and small messages."""

import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from compile_with import compile_with

from nndeploy import compile_model, load_bundle
from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.reader import open_bundle
from nndeploy.compiler import placement_choice
from nndeploy.frontend import stored_weights

ort = pytest.importorskip("onnxruntime")

NETWORK = """<ir_version: 8, opset_import: ["" : 17]>
net (float[N,3,16,16] x, bool keep) => (float[N,40] y) {
    c = Conv<pads = [1, 1, 1, 1]>(x, filter)
    n = BatchNormalization(c, scale, shift, mean, variance)
    r = Relu(n)
    p = GlobalAveragePool(r)
    f = Flatten(p)
    m = MatMul(f, first)
    h = BODY
    y = MatMul(h, second)
}
"""
PLAIN = "Where(keep, m, row)"
WITH_BODIES = """If (keep) <
    then_branch = kept () => (float[N,1536] a) { a = Add(m, row) },
    else_branch = dropped () => (float[N,1536] b) { b = Mul(m, row) }>"""
SMALL_MESSAGE = 64 << 10
"""What is tested here has more than 600 KiB of weights."""
SHAPES = {
    "filter": (64, 3, 3, 3), "scale": (64,), "shift": (64,), "mean": (64,), "variance": (64,), "first": (64, 1536),
    "second": (1536, 40), "row": (1536,),
}  # fmt: skip


def network(folder: Path, body: str = PLAIN, *, external: bool = True) -> Path:
    rng = np.random.default_rng(4)
    proto = onnx.parser.parse_model(NETWORK.replace("BODY", body))
    arrays = {name: rng.uniform(0.1, 1, shape).astype(np.float32) for name, shape in SHAPES.items()}
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    path = folder / "net.onnx"
    onnx.save(proto, path, save_as_external_data=external, location="net.weights", size_threshold=0)
    return path


def inputs() -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(5).normal(size=(2, 3, 16, 16)).astype(np.float32), "keep": np.array(True)}


def by_the_library(model: Path) -> np.ndarray:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, inputs())[0]


def compiled(model: Path, out: Path, backend: str) -> Manifest:
    compile_with(model, out, backends=(backend,), objective="priority", keep_fallback=False)
    with open_bundle(out) as bundle:
        return bundle.manifest


@pytest.mark.parametrize("backend", ["native", "openvino", "onnxruntime"])
def test_where_weights_lie_while_a_model_is_compiled_changes_no_byte(backend, tmp_path, monkeypatch) -> None:
    model = network(tmp_path)
    embedded = compiled(model, tmp_path / "embedded.nnd", backend)
    monkeypatch.setattr(stored_weights, "MIN_MODEL_BYTES", SMALL_MESSAGE)
    stored = compiled(model, tmp_path / "stored.nnd", backend)
    assert stored.members == embedded.members
    with load_bundle(tmp_path / "stored.nnd") as program:
        np.testing.assert_allclose(program.run(inputs())["y"], by_the_library(model), rtol=1e-4)


@pytest.mark.parametrize(("body", "external"), [(PLAIN, True), (WITH_BODIES, False)], ids=["plain", "bodies"])
def test_what_no_message_holds_gives_the_librarys_numbers(body, external, tmp_path, monkeypatch) -> None:
    for limit in ("MIN_MODEL_BYTES", "MAX_EMBEDDED_BYTES"):
        monkeypatch.setattr(stored_weights, limit, SMALL_MESSAGE)
    monkeypatch.setattr(placement_choice, "MAX_RACED_BYTES", SMALL_MESSAGE)
    model, out, asked = network(tmp_path, body, external=external), tmp_path / "net.nnd", list[str]()
    report = compile_model(model, out, events=lambda _, detail: asked.append(detail))
    assert {check.output for check in report.checks if check.scope == "whole" and check.ok} == {"y"}
    assert not [warning for warning in report.warnings if "failed" in warning]
    assert [(one.chosen, one.median_ms) for one in report.candidates][:1] == [(True, None)], "predicted, not measured"
    assert {one.name: one.predicted_ms > report.candidates[0].predicted_ms for one in report.candidates[1:]} == {
        "openvino": True, "onnxruntime": True,
    }, "who cannot win"  # fmt: skip
    assert [line for line in asked if line.startswith("asking")] == ["asking native", "asking onnxruntime"]
    with open_bundle(out) as bundle:
        variants = bundle.manifest.submodels[0].variants
    assert [one.backend for one in variants] == ["native", "onnxruntime"]
    with load_bundle(out) as program:
        np.testing.assert_allclose(program.run(inputs())["y"], by_the_library(model), rtol=1e-4)
    assert str(tempfile.gettempdir()).encode() not in out.read_bytes()
