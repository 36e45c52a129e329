# SPDX-License-Identifier: Apache-2.0
"""Forms of operators that a library gets wrong are refused, with the reason, and only those."""

import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest

import nndeploy
from nndeploy.jobs import tasks
from nndeploy.plugin.interface import BuildOptions
from nndeploy.target.target import host_target

HEADER = '<ir_version: 10, opset_import: ["" : 21]> '

INFINITE_MASK = """g (bool[2,4] hidden, float[2,4] x) => (float[2,1] y)
  <float low = {-inf}, float zero = {0}, int64[1] a = {1}> {
  mask = Where(hidden, low, zero)
  scores = Add(x, mask)
  y = ReduceMax(scores, a)
}"""
FINITE = "g (float[2,4] x) => (float[2,1] y) <int64[1] a = {1}> { y = ReduceMax(x, a) }"
FILLED = """g (float[2,4] x) => (float[2,1] y) <int64[2] s = {2, 4}, int64[1] a = {1}> {
  low = ConstantOfShape<value = float[1] {-inf}>(s)
  z = Max(x, low)
  y = ReduceMin(z, a)
}"""
UNPOOL = (
    "g (float[1,1,2,2] x, int64[1,1,2,2] i%s) => (float[a,b,c,d] y) { y = MaxUnpool<kernel_shape = [2,2]>(x, i%s) }"
)
TRUTHS = "g (bool[%s] x) => (bool y) { y = ReduceMax<keepdims = 0>(x) }"
DFT = "g (float[1,8,2] x) => (float[1,8,2] y) <int64 a = {1}> { y = DFT<inverse = %d>(x, , a) }"


def refusals(backend: str, text: str) -> list[str]:
    model = ir.from_proto(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(HEADER + text)))
    return [said.reason for said in tasks.supports(backend, model, host_target(), BuildOptions()) if not said.ok]


@pytest.mark.parametrize(("backend", "text", "reason"), [
    ("openvino", INFINITE_MASK, "the largest float for ReduceMax of infinities"),
    ("openvino", FILLED, "the largest float for ReduceMin of infinities"), ("openvino", FINITE, ""),
    ("onnxruntime", UNPOOL % (", int64[4] o", ", o"), "indices of MaxUnpool"), ("onnxruntime", UNPOOL % ("", ""), ""),
    ("onnxruntime", DFT % 1, "inverse DFT"), ("onnxruntime", DFT % 0, ""),
    ("onnxruntime", TRUTHS % "N", "no ReduceMax of no truth values"), ("onnxruntime", TRUTHS % "3", ""),
])  # fmt: skip
def test_a_form_that_comes_out_wrong_is_refused(backend: str, text: str, reason: str) -> None:
    said = refusals(backend, text)
    assert len(said) == bool(reason)
    assert not reason or reason in said[0]


def test_a_row_that_a_mask_hides_has_no_largest_score(tmp_path) -> None:  # type: ignore[no-untyped-def]
    nndeploy.compile_model(
        onnx.parser.parse_model(HEADER + INFINITE_MASK),
        tmp_path / "m.nnd",
        nndeploy.CompileOptions(keep_fallback=False),
    )
    hidden = np.array([[True] * 4, [False] * 4])
    with nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        got = program.run({"hidden": hidden, "x": np.arange(8, dtype=np.float32).reshape(2, 4)})["y"]
    assert got.tolist() == [[-np.inf], [7.0]]


def test_what_the_reference_gives_counts_where_the_model_declares_another_rank(tmp_path) -> None:  # type: ignore[no-untyped-def]
    text = "g (float[3,4,5] x, int64[2] axes) => (float[3] y) { all = Abs(axes) y = ReduceSum<keepdims = 0>(x, all) }"
    model = onnx.parser.parse_model(HEADER + text)
    report = nndeploy.compile_model(
        model, tmp_path / "m.nnd", nndeploy.CompileOptions(backends=("onnxruntime",), keep_fallback=False)
    )
    assert any("'y'" in line and "float32[3]" in line for line in report.warnings)
    with nndeploy.load_bundle(tmp_path / "m.nnd") as program:
        got = program.run({"x": np.ones((3, 4, 5), np.float32), "axes": np.array([2, 1])})["y"]
    assert got.tolist() == [20.0] * 3
