# SPDX-License-Identifier: Apache-2.0
"""Models whose weights no protobuf message can hold: here small ones, for which the message was made smaller."""

import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import pytest

from nndeploy import compile_model, load_bundle
from nndeploy.frontend import load

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
SHAPES = {
    "filter": (64, 3, 3, 3), "scale": (64,), "shift": (64,), "mean": (64,), "variance": (64,), "first": (64, 1536),
    "second": (1536, 40), "row": (1536,),
}  # fmt: skip


@pytest.fixture(autouse=True)
def small_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that holds 64 KiB of weights: what is tested here has more than 600 KiB."""
    monkeypatch.setattr(load, "MAX_EMBEDDED_BYTES", 64 << 10)


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


@pytest.mark.parametrize(("body", "external"), [(PLAIN, True), (WITH_BODIES, False)], ids=["plain", "bodies"])
def test_they_compile_to_a_bundle_that_gives_the_librarys_numbers(body, external, tmp_path) -> None:
    model, out = network(tmp_path, body, external=external), tmp_path / "net.nnd"
    report = compile_model(model, out)
    (submodel,) = report.submodels
    assert submodel.backend == "onnxruntime"
    assert "more than 2 GiB" in submodel.refusals["native"]
    assert {check.output for check in report.checks if check.scope == "whole" and check.ok} == {"y"}
    with load_bundle(out) as program:
        np.testing.assert_allclose(program.run(inputs())["y"], by_the_library(model), rtol=1e-4)
    assert str(tempfile.gettempdir()).encode() not in out.read_bytes()
