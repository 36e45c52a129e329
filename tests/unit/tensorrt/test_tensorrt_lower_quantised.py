# SPDX-License-Identifier: Apache-2.0
"""Quantised operators as float arithmetic: the same numbers, and only where TensorRT has no kernel.

The wanted numbers come from ONNX Runtime's integer kernels, which the operators of com.microsoft define.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from nndeploy_onnxruntime.library import exact_settings
from nndeploy_tensorrt.transforms.lower_quantised import LowerQuantised

ort = pytest.importorskip("onnxruntime")

Model = Callable[..., ir.Model]
INTEGER_OPERATORS = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger"}

U = "uint8 z = {117}"
CASES: dict[str, str] = {
    "quantize and dequantize": f"""
        g (float[2,5] x) => (float[2,5] y) <float s = {{0.05}}, {U}>
        {{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }}""",
    "without zero point, as uint8": """
        g (float[2,5] x) => (float[2,5] y) <float s = {0.05}>
        { q = QuantizeLinear(x, s) y = DequantizeLinear(q, s) }""",
    "int8 around another number": """
        g (float[2,5] x) => (float[2,5] y) <float s = {0.05}, int8 z = {-7}>
        { q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }""",
    "int16": """
        g (float[2,5] x) => (float[2,5] y) <float s = {0.0005}, int16 z = {-7}>
        { q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }""",
    "one scale for each channel": """
        g (float[2,3,4] x) => (float[2,3,4] y) <float[3] s = {0.05, 0.1, 0.2}, uint8[3] z = {3, 0, 255}>
        { q = QuantizeLinear<axis=1>(x, s, z) y = DequantizeLinear<axis=1>(q, s, z) }""",
    "two scales for one quantised tensor": f"""
        g (float[2,5] x) => (float[2,5] y) <float s = {{0.05}}, float t = {{0.5}}, {U}, uint8 other = {{9}}>
        {{
            q = QuantizeLinear(x, s, z)
            a = DequantizeLinear(q, t, z)
            b = DequantizeLinear(q, s, other)
            y = Add(a, b)
        }}""",
    "quantised input": f"""
        g (uint8[2,5] x) => (float[2,5] y) <float s = {{0.05}}, {U}> {{ y = DequantizeLinear(x, s, z) }}""",
    "quantised output": f"""
        g (float[2,5] x) => (uint8[2,5] y) <float s = {{0.05}}, {U}> {{ y = QuantizeLinear(x, s, z) }}""",
    "bias of 32 bits": """
        g (float[2,3] x) => (float[2,3] y) <float s = {0.001}, int32[3] b = {100000, -7, 2147483647}>
        { d = DequantizeLinear(b, s) y = Add(x, d) }""",
    "bias of 32 bits that is an output": """
        g (float[2,3] x) => (float[2,3] y, float[3] d) <float s = {0.001}, int32[3] b = {100000, -7, 2147483647}>
        { d = DequantizeLinear(b, s) y = Add(x, d) }""",
    "convolution": f"""
        g (uint8[1,2,5,5] x) => (uint8[1,3,5,5] y)
        <float sx = {{0.02}}, {U}, uint8[3,2,3,3] w = {{{{W}}}}, float sw = {{0.03}}, uint8 zw = {{130}},
         float sy = {{0.15}}, uint8 zy = {{128}}, int32[3] b = {{900, -300, 20}}>
        {{ y = QLinearConv<pads=[1,1,1,1]>(x, sx, z, w, sw, zw, sy, zy, b) }}""",
    "convolution with a scale for each filter": f"""
        g (uint8[1,2,5,5] x) => (uint8[1,3,3,3] y)
        <float sx = {{0.02}}, {U}, int8[3,2,3,3] w = {{{{S}}}}, float[3] sw = {{0.03, 0.01, 0.2}},
         int8[3] zw = {{0, 0, 0}}, float sy = {{0.15}}, uint8 zy = {{128}}>
        {{ y = QLinearConv(x, sx, z, w, sw, zw, sy, zy) }}""",
    "grouped and strided convolution": f"""
        g (uint8[1,2,5,5] x) => (uint8[1,2,2,2] y)
        <float sx = {{0.02}}, {U}, uint8[2,1,3,3] w = {{{{D}}}}, float sw = {{0.03}}, uint8 zw = {{130}},
         float sy = {{0.15}}, uint8 zy = {{128}}>
        {{ y = QLinearConv<group=2, strides=[2,2]>(x, sx, z, w, sw, zw, sy, zy) }}""",
    "matrix product": f"""
        g (uint8[4,6] x) => (uint8[4,3] y)
        <float sx = {{0.02}}, {U}, uint8[6,3] w = {{{{M}}}}, float sw = {{0.03}}, uint8 zw = {{130}},
         float sy = {{0.15}}, uint8 zy = {{128}}>
        {{ y = QLinearMatMul(x, sx, z, w, sw, zw, sy, zy) }}""",
    "matrix product of integers": f"""
        g (uint8[4,6] x) => (int32[4,3] y) <{U}, uint8[6,3] w = {{{{M}}}}, uint8 zw = {{130}}>
        {{ y = MatMulInteger(x, w, z, zw) }}""",
    "matrix product of integers, a zero point for each column": f"""
        g (uint8[4,6] x) => (int32[4,3] y) <{U}, uint8[6,3] w = {{{{M}}}}, uint8[3] zw = {{130, 0, 255}}>
        {{ y = MatMulInteger(x, w, z, zw) }}""",
    "convolution of integers": f"""
        g (uint8[1,2,5,5] x) => (int32[1,3,5,5] y) <{U}, uint8[3,2,3,3] w = {{{{W}}}}, uint8 zw = {{130}}>
        {{ y = ConvInteger<pads=[1,1,1,1]>(x, w, z, zw) }}""",
    "dynamic quantisation": """
        g (float[2,5] x) => (uint8[2,5] y, float s, uint8 z) { y, s, z = DynamicQuantizeLinear(x) }""",
    "dynamic quantisation before a matrix product": """
        g (float[4,6] x) => (float[4,3] y) <uint8[6,3] w = {{M}}, uint8 zw = {130}>
        {
            q, s, z = DynamicQuantizeLinear(x)
            i = MatMulInteger(q, w, z, zw)
            f = Cast<to=1>(i)
            y = Mul(f, s)
        }""",
    "sum": f"""
        g (uint8[2,5] x) => (uint8[2,5] y)
        <float sx = {{0.02}}, {U}, uint8[5] b = {{0, 255, 7, 130, 131}}, float sb = {{0.1}}, uint8 zb = {{130}},
         float sy = {{0.15}}, uint8 zy = {{128}}>
        {{ y = com.microsoft.QLinearAdd(x, sx, z, b, sb, zb, sy, zy) }}""",
    "product": f"""
        g (uint8[2,5] x) => (uint8[2,5] y)
        <float sx = {{0.02}}, {U}, uint8[5] b = {{0, 255, 7, 130, 131}}, float sb = {{0.1}}, uint8 zb = {{130}},
         float sy = {{0.15}}, uint8 zy = {{128}}>
        {{ y = com.microsoft.QLinearMul(x, sx, z, b, sb, zb, sy, zy) }}""",
    "global average": f"""
        g (uint8[1,2,5,5] x) => (uint8[1,2,1,1] y) <float sx = {{0.02}}, {U}, float sy = {{0.01}}, uint8 zy = {{128}}>
        {{ y = com.microsoft.QLinearGlobalAveragePool(x, sx, z, sy, zy) }}""",
    "average with padding": f"""
        g (uint8[1,2,5,5] x) => (uint8[1,2,5,5] y) <float sx = {{0.02}}, {U}, float sy = {{0.015}}, uint8 zy = {{128}}>
        {{ y = com.microsoft.QLinearAveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(x, sx, z, sy, zy) }}""",
    "leaky relu": f"""
        g (uint8[2,5] x) => (uint8[2,5] y) <float sx = {{0.02}}, {U}, float sy = {{0.015}}, uint8 zy = {{128}}>
        {{ y = com.microsoft.QLinearLeakyRelu<alpha = 0.1>(x, sx, z, sy, zy) }}""",
    "sigmoid": f"""
        g (uint8[2,5] x) => (uint8[2,5] y) <float sx = {{0.02}}, {U}, float sy = {{0.00390625}}, uint8 zy = {{0}}>
        {{ y = com.microsoft.QLinearSigmoid(x, sx, z, sy, zy) }}""",
    "concatenation": f"""
        g (uint8[2,5] x) => (uint8[2,10] y)
        <float sx = {{0.02}}, {U}, float sb = {{0.1}}, uint8 zb = {{130}}, float sy = {{0.15}}, uint8 zy = {{128}}>
        {{ y = com.microsoft.QLinearConcat<axis=1>(sy, zy, x, sx, z, x, sb, zb) }}""",
}  # fmt: skip


def filled(text: str) -> str:
    """Puts numbers in the place of {W}, {S}, {D} and {M}: weights of every size and sign, always the same."""
    random = np.random.default_rng(5)
    for mark, low, high, count in (("W", 0, 256, 54), ("S", -128, 128, 54), ("D", 0, 256, 18), ("M", 0, 256, 18)):
        numbers = ", ".join(map(str, random.integers(low, high, count)))
        text = text.replace("{{" + mark + "}}", "{" + numbers + "}").replace("{" + mark + "}", "{" + numbers + "}")
    return text


def feed(model: ir.Model) -> dict[str, "np.ndarray[Any, Any]"]:
    random = np.random.default_rng(7)
    given = {}
    for value in model.graph.inputs:
        assert value.shape is not None
        shape = value.shape.numpy()
        real = random.normal(0, 4, shape).astype(np.float32)
        given[value.name or ""] = real if value.dtype == ir.DataType.FLOAT else random.integers(0, 256, shape, np.uint8)
    return given


def outputs(model: ir.Model, given: Mapping[str, "np.ndarray[Any, Any]"]) -> list["np.ndarray[Any, Any]"]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL  # exact products are made there alone
    options.log_severity_level = 4
    for key, value in exact_settings().items():
        options.add_session_config_entry(key, value)
    data = ir.to_proto(model).SerializeToString()
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(given)))


def lowered(model: ir.Model) -> int:
    return LowerQuantised()(model, lambda _node: True)


@pytest.mark.parametrize("name", CASES)
def test_numbers_do_not_change(model: Model, name: str) -> None:
    original = model(filled(CASES[name]))
    changed = original.clone()
    assert lowered(changed) > 0
    assert not {node.op_type for node in changed.graph} & INTEGER_OPERATORS
    assert not [node for node in changed.graph if "QLinear" in node.op_type]
    given = feed(original)
    for want, got in zip(outputs(original, given), outputs(changed, given), strict=True):
        assert got.dtype == want.dtype
        if want.dtype == np.uint8 and name in ("sigmoid", "average with padding"):
            assert (
                np.abs(got.astype(int) - want.astype(int)).max() <= 1
            )  # the library's tables and sums differ by a step
        else:
            np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_inputs_and_outputs_keep_their_names_and_types(model: Model, name: str) -> None:
    original = model(filled(CASES[name]))
    changed = original.clone()
    lowered(changed)
    for kind in ("inputs", "outputs"):
        before = [(v.name, v.type, str(v.shape)) for v in getattr(original.graph, kind)]
        assert [(v.name, v.type, str(v.shape)) for v in getattr(changed.graph, kind)] == before


def test_flat_input_is_quantised_without_a_division_by_zero(model: Model) -> None:
    original = model(CASES["dynamic quantisation before a matrix product"].replace("{{M}}", "{" + "1, " * 17 + "1}"))
    changed = original.clone()
    lowered(changed)
    given = {"x": np.zeros((4, 6), np.float32)}
    assert np.array_equal(outputs(changed, given)[0], np.zeros((4, 3), np.float32))


def test_nothing_is_converted_between_two_quantised_operators(model: Model) -> None:
    changed = model(filled("""
        g (float[1,2,5,5] x) => (float[1,3,3,3] y)
        <float s = {0.05}, uint8 z = {117}, uint8[3,2,3,3] w = {{W}}, float sw = {0.03}, uint8 zw = {130}>
        {
            q = QuantizeLinear(x, s, z)
            c = QLinearConv(q, s, z, w, sw, zw, s, z)
            y = DequantizeLinear(c, s, z)
        }"""))  # fmt: skip
    assert lowered(changed) == 3
    assert "Cast" not in {node.op_type for node in changed.graph}


@pytest.mark.parametrize(
    "text",
    ["""g (float[2,5] x) => (float[2,5] y) <float s = {0.05}, int8 z = {0}>
           { q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }""",
     """g (float16[2,5] x) => (uint8[2,5] y) <float16 s = {10854}, uint8 z = {7}> { y = QuantizeLinear(x, s, z) }""",
     """g (float[2,5] x, float s) => (uint8[2,5] y) <uint8 z = {7}> { y = QuantizeLinear(x, s, z) }""",
     """g (uint8[2,4] x) => (float[2,4] y) <float[2,2] s = {1,2,3,4}, uint8[2,2] z = {7,7,7,7}>
           { y = DequantizeLinear<axis=1, block_size=2>(x, s, z) }""",
     """g (uint8[1,5,5,2] x) => (uint8[1,1,1,2] y) <float s = {0.5}, uint8 z = {7}>
           { y = com.microsoft.QLinearGlobalAveragePool<channels_last=1>(x, s, z, s, z) }""",
     """g (uint8[2,3] x, uint8[3,2] w, uint8[2] z) => (int32[2,2] y) { y = MatMulInteger(x, w, z) }""",
     "g (float[2] x) => (float[2] y) { y = Relu(x) }"],
    ids=["int8 around zero", "half", "scale not constant", "blocks", "channels last", "rows", "not quantised"],
)  # fmt: skip
def test_what_cannot_or_need_not_be_lowered_is_left(model: Model, text: str) -> None:
    found = model(text)
    before = ir.to_proto(found).SerializeToString(deterministic=True)
    assert lowered(found) == 0
    assert ir.to_proto(found).SerializeToString(deterministic=True) == before


def test_only_allowed_nodes_are_touched(model: Model) -> None:
    found = model(CASES["quantize and dequantize"])
    assert LowerQuantised()(found, lambda node: node.op_type == "DequantizeLinear") == 1
    assert "QuantizeLinear" in {node.op_type for node in found.graph}
    given = feed(found)
    np.testing.assert_array_equal(outputs(found, given)[0], outputs(model(CASES["quantize and dequantize"]), given)[0])


def test_operator_set_without_round_is_left(model: Model) -> None:
    assert lowered(model(CASES["quantize and dequantize"], opset=10)) == 0


def test_constants_that_nobody_reads_any_more_are_gone(model: Model) -> None:
    found = model(filled(CASES["convolution"]))
    lowered(found)
    assert all(value.uses() for value in found.graph.initializers.values())
