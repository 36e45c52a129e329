# SPDX-License-Identifier: Apache-2.0
"""No library trades numbers for speed: each setting is really set, and what it is there for comes out right."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest
from nndeploy_onnxruntime import library as onnxruntime_library
from nndeploy_onnxruntime.build import build
from nndeploy_onnxruntime.evaluate import evaluate
from nndeploy_onnxruntime.open_session import open_session
from nndeploy_openvino import library as openvino_library
from onnx import TensorProto, helper, numpy_helper

from nndeploy.jobs import tasks
from nndeploy.plugin.interface import BuildOptions, OpenOptions
from nndeploy.target.target import Target, host_target, unmet

SIZE, WIDTH, BLOCK = 256, 32, 32


@pytest.fixture(name="random")
def random_numbers() -> np.random.Generator:
    return np.random.default_rng(16)


def computed(backend: str, model: onnx.ModelProto, sample: dict[str, Any]) -> dict[str, Any]:
    """Returns what a backend's artifact of the whole model gives."""
    built = tasks.build(backend, ir.from_proto(model), host_target(), BuildOptions(), [sample])
    assert not built.not_run
    return built.outputs[0]


def four_bits(random: np.random.Generator) -> tuple[onnx.ModelProto, "np.ndarray[Any, Any]"]:
    """Returns a product with 4-bit weights, and the weights as float64."""
    steps = random.integers(0, 16, (WIDTH, SIZE)).astype(np.uint8)
    packed = (steps[:, 0::2] | (steps[:, 1::2] << 4)).reshape(WIDTH, SIZE // BLOCK, BLOCK // 2)
    scales = (random.random(WIDTH * SIZE // BLOCK) * 0.1 + 0.01).astype(np.float32)
    node = helper.make_node(
        "MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=SIZE, N=WIDTH, bits=4, block_size=BLOCK
    )
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, SIZE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, WIDTH])],
        [numpy_helper.from_array(packed, "w"), numpy_helper.from_array(scales, "s")],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    weights = (steps.astype(np.float64) - 8).reshape(WIDTH, -1, BLOCK) * scales.reshape(WIDTH, -1, 1)
    return helper.make_model(graph, opset_imports=imports, ir_version=10), weights.reshape(WIDTH, SIZE).T


def four_bits_dequantised(random: np.random.Generator) -> tuple[onnx.ModelProto, "np.ndarray[Any, Any]"]:
    """Returns the same as a float product of dequantised weights, which ONNX Runtime makes a MatMulNBits of."""
    steps = random.integers(-8, 8, (SIZE, WIDTH)).astype(np.int8)
    scales = (random.random((SIZE // BLOCK, WIDTH)) * 0.1 + 0.01).astype(np.float32)
    text = f"""<ir_version: 10, opset_import: ["" : 21]> g (float[4,{SIZE}] x) => (float[4,{WIDTH}] y) {{
      d = DequantizeLinear<axis = 0, block_size = {BLOCK}>(w, s)
      y = MatMul(x, d)
    }}"""
    model = onnx.parser.parse_model(text)
    packed = helper.make_tensor("w", TensorProto.INT4, steps.shape, steps.flatten().tolist())
    model.graph.initializer.extend([packed, numpy_helper.from_array(scales, "s")])
    return model, steps.astype(np.float64) * np.repeat(scales, BLOCK, axis=0)


@pytest.mark.parametrize("backend", ["openvino", "onnxruntime"])
@pytest.mark.parametrize("made", [four_bits, four_bits_dequantised], ids=["MatMulNBits", "DequantizeLinear"])
def test_activations_before_weights_of_four_bits_are_not_rounded(
    backend: str, made: Any, random: np.random.Generator
) -> None:
    model, weights = made(random)
    x = random.standard_normal((4, SIZE)).astype(np.float32)
    want = x @ weights
    off = np.abs(computed(backend, model, {"x": x})["y"] - want).max() / np.abs(want).max()
    assert off < 1e-5  # 1.5% with activations of 8 bits


def test_products_of_eight_bits_do_not_saturate(random: np.random.Generator) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 21]> g (uint8[8,{SIZE}] x) => (int32[8,{WIDTH}] y) {{
      y = MatMulInteger(x, w)
    }}"""
    model = onnx.parser.parse_model(text)
    weights = random.integers(-127, 128, (SIZE, WIDTH)).astype(np.int8)
    weights[:, 0] = 127
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    x = random.integers(0, 256, (8, SIZE)).astype(np.uint8)
    x[0] = 255
    want = x.astype(np.int32) @ weights.astype(np.int32)
    np.testing.assert_array_equal(computed("onnxruntime", model, {"x": x})["y"], want)
    np.testing.assert_array_equal(evaluate(model.SerializeToString(), [{"x": x}], ())[0]["y"], want)


def test_quantised_products_give_what_their_definition_says(random: np.random.Generator) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 21]> g (float[8,{SIZE}] x) => (float[8,{WIDTH}] y)
      <float s = {{0.01}}, uint8 z = {{128}}, int8 zw = {{0}}, float t = {{0.5}}> {{
      a = QuantizeLinear(x, s, z)
      b = DequantizeLinear(a, s, z)
      c = DequantizeLinear(w, s, zw)
      d = MatMul(b, c)
      e = QuantizeLinear(d, t, z)
      y = DequantizeLinear(e, t, z)
    }}"""
    model = onnx.parser.parse_model(text)
    weights = random.integers(-127, 128, (SIZE, WIDTH)).astype(np.int8)
    weights[:, 0] = 127
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    steps = random.integers(0, 256, (8, SIZE)).astype(np.int32) - 128
    steps[0] = 127
    want = np.clip(np.rint(steps @ weights.astype(np.int32) * 1e-4 / 0.5), -128, 127) * 0.5
    off = np.abs(computed("onnxruntime", model, {"x": (steps * 0.01).astype(np.float32)})["y"] - want)
    assert off.max() <= 0.5  # one step, where a sum lies between two
    assert (off > 0).mean() < 0.01


SHARED_WEIGHTS = {
    "one DequantizeLinear": "d = DequantizeLinear(w, s, z) a = Mul(x, d) y = Add(a, d)",
    "weights": "d = DequantizeLinear(w, s, z) e = DequantizeLinear(w, s, z) a = Mul(x, d) y = Add(a, e)",
    "a zero point": "d = DequantizeLinear(w, s, z) e = DequantizeLinear(v, s, z) a = Mul(x, d) y = Add(a, e)",
    "nothing": "d = DequantizeLinear(w, s) e = DequantizeLinear(v, s, z) a = Mul(x, d) y = Add(a, e)",
}


@pytest.mark.parametrize("nodes", SHARED_WEIGHTS.values(), ids=list(SHARED_WEIGHTS))
def test_int8_weights_that_nodes_share_are_no_reason_to_refuse(nodes: str) -> None:
    weights = "int8[3] w = {127, -128, 5}, int8[3] v = {127, -128, 5}, float s = {0.5}, int8 z = {0}"
    text = f'<ir_version: 10, opset_import: ["" : 21]> g (float[3] x) => (float[3] y) <{weights}> {{ {nodes} }}'
    model = onnx.parser.parse_model(text)
    before = model.SerializeToString()
    got = computed("onnxruntime", model, {"x": np.ones(3, np.float32)})["y"]
    np.testing.assert_array_equal(got, np.array([127, -128, 5], np.float32))
    assert model.SerializeToString() == before


def test_integer_products_that_share_weights_are_built_and_are_a_reference(random: np.random.Generator) -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]> g (uint8[2,8] x, uint8[2,8] v) => (int32[2,4] y, int32[2,4] u)
      <uint8 a = {3}, int8 b = {0}> {
      y = MatMulInteger(x, w, a, b)
      u = MatMulInteger(v, w, a, b)
    }"""
    model = onnx.parser.parse_model(text)
    weights = random.integers(-127, 128, (8, 4)).astype(np.int8)
    weights[0] = 127
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    x, v = random.integers(0, 256, (2, 2, 8)).astype(np.uint8)
    want = [(each.astype(np.int32) - 3) @ weights.astype(np.int32) for each in (x, v)]
    for got in (
        computed("onnxruntime", model, {"x": x, "v": v}),
        evaluate(model.SerializeToString(), [{"x": x, "v": v}], ())[0],
    ):
        np.testing.assert_array_equal(got["y"], want[0])
        np.testing.assert_array_equal(got["u"], want[1])


@pytest.mark.parametrize("saturates", [True, False], ids=["AVX2", "VNNI"])
def test_every_setting_of_onnxruntime_is_set(saturates: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime_library, "saturates", lambda: saturates)
    options, asked = onnxruntime_library.session_options(1), onnxruntime_library.exact_settings()
    assert {key: options.get_session_config_entry(key) for key in asked} == asked
    assert asked[onnxruntime_library.EXACT_PRODUCTS] == str(int(saturates))
    assert len(asked) > len(onnxruntime_library.EXACT) > 0


@pytest.mark.parametrize(("arch", "flags", "saturates"), [
    ("x86_64", ("avx2", "fma"), True), ("x86_64", ("avx2", "avx512_vnni"), False),
    ("x86_64", ("avx2", "avx_vnni"), False), ("aarch64", ("asimd",), False),
])  # fmt: skip
def test_products_of_eight_bits_saturate_where_x86_has_no_vnni(
    arch: str, flags: tuple[str, ...], saturates: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnxruntime_library, "host_target", lambda: Target("box", arch, flags))
    assert onnxruntime_library.saturates() == saturates


def int8_convolution(activations: str, random: np.random.Generator) -> onnx.ModelProto:
    text = f"""<ir_version: 8, opset_import: ["" : 10]> g ({activations}[1,4,9,9] x) => ({activations}[1,8,7,7] y)
      <float s = {{0.1}}, {activations} z = {{1}}, float t = {{0.01}}, int8 u = {{0}}> {{
      y = QLinearConv(x, s, z, w, t, u, s, z)
    }}"""
    model = onnx.parser.parse_model(text)
    weights = random.integers(-127, 128, (8, 4, 3, 3)).astype(np.int8)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return model


@pytest.mark.parametrize("activations", ["int8", "uint8"])
def test_weights_of_int8_stay_and_are_made_exact_where_they_are_opened(
    activations: str, random: np.random.Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = int8_convolution(activations, random)
    x = random.integers(0, 100, (1, 4, 9, 9)).astype(activations)
    want = evaluate(model.SerializeToString(), [{"x": x}], ())[0]["y"]
    artifact = build(ir.from_proto(model), BuildOptions(), tmp_path)
    (member,) = artifact.files.values()
    kept = onnx.load_from_string(bytes(member))
    assert {one.data_type for one in kept.graph.initializer if len(one.dims) == 4} == {TensorProto.INT8}
    needs_vnni = "machines" in artifact.requires
    assert needs_vnni == (activations == "int8")  # products of two int8 have no exact kernel elsewhere
    assert bool(unmet(artifact.requires, Target("box", "x86_64", ("avx2",)))) == needs_vnni
    assert not unmet(artifact.requires, Target("box", "x86_64", ("avx2", "avx_vnni")))
    for saturates in (False,) if needs_vnni else (False, True):
        monkeypatch.setattr(onnxruntime_library, "saturates", lambda saturates=saturates: saturates)
        session = open_session({"model.onnx": memoryview(bytes(member))}, OpenOptions(threads=1))
        np.testing.assert_array_equal(session.run({"x": x})["y"], want)


def test_a_reference_is_optimised_where_it_has_no_kernel_otherwise() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float[2] y) <float s = {0.5}> {
      v = Identity(w) d = DequantizeLinear(v, s) y = Add(x, d)
    }"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.INT4, [2], [3, -4]))
    got = evaluate(model.SerializeToString(), [{"x": np.zeros(2, np.float32)}], ())[0]["y"]
    np.testing.assert_array_equal(got, [1.5, -2])


@pytest.mark.parametrize(("precision", "type_name"), [("fp32", "f32"), ("bf16", "bf16")])
def test_every_setting_of_openvino_is_set(precision: str, type_name: str) -> None:
    library = openvino_library.openvino()
    x = library.opset13.parameter([2, 4], np.float32)
    network = library.Model([library.opset13.relu(x)], [x])
    asked = openvino_library.configuration(1, precision)
    compiled = openvino_library.core().compile_model(network, "CPU", asked)
    said = {key: compiled.get_property(key) for key in openvino_library.EXACT}
    types = {key: value.get_type_name() for key, value in said.items() if key.endswith("PRECISION")}
    assert types == dict.fromkeys(types, "f32")
    assert len(types) == 3
    assert said["DYNAMIC_QUANTIZATION_GROUP_SIZE"] == 0
    assert said["CPU_DENORMALS_OPTIMIZATION"] is False
    assert said["CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE"] == 1.0
    if precision == "fp32":
        assert compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name() == type_name
        assert compiled.get_property("EXECUTION_MODE_HINT") == library.properties.hint.ExecutionMode.ACCURACY
