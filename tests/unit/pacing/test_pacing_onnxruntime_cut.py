# SPDX-License-Identifier: Apache-2.0
"""Long operators of ONNX Runtime in parts: the same numbers, only where it is worth it, and points in between."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnx.reference
import onnx_ir as ir
import pytest
from nndeploy_onnxruntime import cut_operators as cutting
from nndeploy_onnxruntime.build import build
from nndeploy_onnxruntime.cut_operators import cut_operators

import nndeploy
from nndeploy.cli.main import run_command
from nndeploy.plugin.interface import BuildOptions
from nndeploy.values.types import DimRange

HEADER = '<ir_version: 8, opset_import: ["": 17]>'
SHAPES = {
    "w": (256, 64, 3, 3), "b": (256,), "m": (512, 256), "t": (256, 512), "c": (256,), "r": (1, 256), "s": (1,),
    "large": (1024, 1024),
}  # fmt: skip


@pytest.fixture
def short_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever takes more than 20 us is cut, into parts of about that."""
    monkeypatch.setattr(cutting, "LONG_NS", 20_000.0)


def model_of(text: str, *names: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f"{HEADER} {text}")
    dice = np.random.default_rng(0)
    for name in names:
        weights = dice.standard_normal(SHAPES[name]).astype(np.float32) / 16
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    return onnx.shape_inference.infer_shapes(model)


def cut(model: onnx.ModelProto) -> tuple[int, onnx.ModelProto]:
    made = ir.from_proto(model)
    count = cut_operators(made)
    found = ir.to_proto(made)
    onnx.checker.check_model(found, full_check=True)
    return count, found


def kinds(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


CONV = "g (float[1,64,12,12] x) => (float[1,256,10,10] y) { %s }"
PRODUCT = "g (float[8,512] a) => (float[8,256] y) { %s }"
CASES = [
    (CONV % "y = Conv(x, w, b)", ("w", "b"), ["Conv"] * 4 + ["Concat"]),
    (CONV % "v = Conv(x, w) y = Relu(v)", ("w",), ["Conv", "Relu"] * 4 + ["Concat"]),
    (CONV % "v = Conv(x, w) y = Mul(v, v)", ("w",), ["Conv"] * 4 + ["Concat", "Mul"]),
    (PRODUCT % "y = MatMul(a, m)", ("m",), ["MatMul"] * 2 + ["Concat"]),
    (PRODUCT % "v = Gemm<transB=1, alpha=0.5>(a, t, c) y = Tanh(v)", ("t", "c"), ["Gemm", "Tanh"] * 2 + ["Concat"]),
    (PRODUCT % "y = Gemm<beta=2.0>(a, m, r)", ("m", "r"), ["Gemm"] * 2 + ["Concat"]),
    (PRODUCT % "y = Gemm(a, m, s)", ("m", "s"), ["Gemm"] * 2 + ["Concat"]),
]


@pytest.mark.usefixtures("short_is_long")
@pytest.mark.parametrize(("text", "names", "found"), CASES)
def test_parts_give_what_the_whole_gives(text: str, names: tuple[str, ...], found: list[str]) -> None:
    model = model_of(text, *names)
    count, parts = cut(model)
    assert count == 1
    assert kinds(parts) == found
    assert not {one.name for one in parts.graph.initializer} & {"w", "m", "t"}  # nobody reads the whole any more
    (given,) = model.graph.input
    shape = [dim.dim_value for dim in given.type.tensor_type.shape.dim]
    inputs = {given.name: np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    (want,) = onnx.reference.ReferenceEvaluator(model).run(None, inputs)
    (got,) = onnx.reference.ReferenceEvaluator(parts).run(None, inputs)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)  # a part's sums may be in another order
    assert [one.name for one in parts.graph.output] == ["y"]


@pytest.mark.usefixtures("short_is_long")
@pytest.mark.parametrize(("text", "names"), [
    ("g (float[1,128,12,12] x) => (float[1,256,10,10] y) { y = Conv<group=2>(x, w) }", ("w",)),
    ("g (float[1,64,12,12] x, float[256] b) => (float[1,256,10,10] y) { y = Conv(x, w, b) }", ("w",)),
    ("g (float[8,512] a, float[512,256] m) => (float[8,256] y) { y = MatMul(a, m) }", ()),
    ("g (float[8,4] a) => (float[8,256] y) { v = Concat<axis=0>(u, u) y = MatMul(a, v) }", ()),
])  # fmt: skip
def test_of_what_too_little_is_known_stays_whole(text: str, names: tuple[str, ...]) -> None:
    if "Concat" in text:
        text = text.replace("=> (float[8,256] y)", "=> (float[8,256] y) <float[2,256] u>")
        model = onnx.parser.parse_model(f"{HEADER} {text}")
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((2, 256), np.float32), "u"))
    else:
        model = model_of(text, *names)
    assert cut(model)[0] == 0


def test_what_is_short_or_joined_at_a_cost_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cut(model_of(CONV % "y = Conv(x, w)", "w"))[0] == 0  # 0.3 ms
    monkeypatch.setattr(cutting, "LONG_NS", 20_000.0)
    monkeypatch.setattr(cutting, "MOST_COST", 1e-4)
    assert cut(model_of(CONV % "y = Conv(x, w)", "w"))[0] == 0


def test_what_is_long_at_the_least_size_is_cut() -> None:
    model = ir.from_proto(model_of("g (float[n,64,34,34] x) => (float[n,256,32,32] y) { y = Conv(x, w) }", "w"))
    assert cut_operators(model.clone()) == 1
    assert cut_operators(model.clone(), {"n": DimRange(1, 8, 1)}) == 1
    short = ir.from_proto(model_of("g (float[n,64,12,12] x) => (float[n,256,10,10] y) { y = Conv(x, w) }", "w"))
    assert cut_operators(short.clone(), {"n": DimRange(1, 8, 1)}) == 0
    assert cut_operators(short.clone(), {"n": DimRange(8, 8, 8)}) == 1


def test_parts_are_whole_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "LONG_NS", 1.0)
    _, parts = cut(model_of(CONV % "y = Conv(x, w)", "w"))
    sizes = [one.dims[0] for one in parts.graph.initializer]
    assert sizes == [64, 64, 64, 64]


@pytest.mark.usefixtures("short_is_long")
def test_an_artifact_is_cut_only_where_it_will_be_paced(tmp_path: Path) -> None:
    model = ir.from_proto(model_of(CONV % "y = Conv(x, w)", "w"))
    found = {}
    for pace in (False, True):
        folder = tmp_path / str(pace)
        folder.mkdir()
        artifact = build(model, BuildOptions(pace=pace), folder)
        found[pace] = onnx.load_from_string(bytes(artifact.files["model.onnx"]))
    assert kinds(found[False]).count("Conv") == 1
    assert kinds(found[True]).count("Conv") == 4
    assert [node.op_type for node in model.graph] == ["Conv"]  # whoever asked keeps the model as it was


def test_a_run_sleeps_between_the_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "g (float[96,1024] a) => (float[96,1024] y) { v = MatMul(a, large) y = Relu(v) }"
    onnx.save(model_of(text, "large"), tmp_path / "m.onnx")
    options = nndeploy.CompileOptions(backends=("onnxruntime",), pace=True, objective="priority")
    nndeploy.compile_model(tmp_path / "m.onnx", tmp_path / "m.nnd", options)
    arguments = ["pace", str(tmp_path / "m.nnd"), "--pace-total", "30ms", "--runs", "2", "--threads", "1", "--json"]
    assert run_command(arguments) == 0
    shown = json.loads(capsys.readouterr().out)
    assert sum("/part" in point["name"] and point["delay_us"] > 0 for point in shown["points"]) >= 2
