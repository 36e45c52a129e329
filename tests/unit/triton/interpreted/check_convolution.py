# SPDX-License-Identifier: Apache-2.0
"""Convolutions (general, grouped, depthwise, pointwise, 1-D, transposed) against float64, with epilogues."""

import numpy as np
import pytest
from float64_reference import (
    ACTIVATIONS,
    activation_text,
    assert_close,
    convolution,
    onnx_shape,
    random_values,
    transposed_convolution,
)
from gpu_on_numpy import model_of, run_on_gpu
from hypothesis import given
from hypothesis import strategies as st


@st.composite
def cases(draw: st.DrawFn) -> dict[str, object]:
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    kernel = draw(st.sampled_from([(1, 1), (3, 3), (2, 3), (5, 5), (1, 3)]))
    dilation = draw(st.sampled_from([(1, 1), (2, 1)]))
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilation, strict=True)]
    return {
        "dtype": draw(st.sampled_from(["float32", "float16"])), "groups": groups,
        "channels": groups * draw(st.integers(1, 9)), "outputs": groups * draw(st.integers(1, 20)),
        "size": (reach[0] + draw(st.integers(0, 7)), reach[1] + draw(st.integers(0, 7))),
        "batch": draw(st.integers(1, 2)), "kernel": kernel, "stride": draw(st.sampled_from([(1, 1), (2, 2), (3, 1)])),
        "dilation": dilation, "pads": tuple(draw(st.integers(0, 2)) for _ in range(4)), "bias": draw(st.booleans()),
        "activation": draw(st.sampled_from(sorted(ACTIVATIONS))), "tiny_tiles": draw(st.booleans()),
        "seed": draw(st.integers(0, 99)),
    }  # fmt: skip


@given(cases())
def test_convolution_agrees_with_float64(case: dict) -> None:
    dtype, groups, seed = case["dtype"], case["groups"], case["seed"]
    x = random_values(seed, dtype, case["batch"], case["channels"], *case["size"])
    weights = random_values(seed + 1, dtype, case["outputs"], case["channels"] // groups, *case["kernel"])
    bias = random_values(seed + 2, dtype, case["outputs"])
    geometry = case["stride"], case["pads"], case["dilation"], groups
    want, magnitude = convolution(x, weights, *geometry), convolution(abs(x), abs(weights), *geometry)
    if case["bias"]:
        want = want + bias[:, None, None].astype(np.float64)
    want, magnitude = ACTIVATIONS[case["activation"]](want), (magnitude + 4) * (1 + abs(want))
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g ({onnx_shape(dtype, x.shape)} x, {onnx_shape(dtype, weights.shape)} w, {onnx_shape(dtype, bias.shape)} b,
           {onnx_shape(dtype, ())} zero, {onnx_shape(dtype, ())} six) => ({onnx_shape(dtype, want.shape)} y) {{
          c = Conv <group = {groups}, pads = {list(case["pads"])}, strides = {list(case["stride"])},
                    dilations = {list(case["dilation"])}> (x, w{", b" if case["bias"] else ""})
          {activation_text(case["activation"], "c", "y")}
        }}""",
        {"w": weights, "b": bias, "zero": np.array(0, dtype), "six": np.array(6, dtype)},
    )
    got = run_on_gpu(model, {"x": x}, tiny_tiles=case["tiny_tiles"], num_launches=1)["y"]
    assert_close(got, want, magnitude, depth=weights[0].size)


@pytest.mark.parametrize("multiplier", [1, 2, 3])
def test_depthwise_convolution_with_a_multiplier_agrees_with_float64(multiplier: int) -> None:
    x, weights = random_values(0, "float32", 2, 5, 7, 6), random_values(1, "float32", 5 * multiplier, 1, 3, 3)
    want = convolution(x, weights, (2, 1), (1, 1, 1, 1), groups=5)
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g ({onnx_shape("float32", x.shape)} x, {onnx_shape("float32", weights.shape)} w)
        => ({onnx_shape("float32", want.shape)} y) {{
          y = Conv <group = 5, pads = [1, 1, 1, 1], strides = [2, 1]> (x, w)
        }}""",
        {"w": weights},
    )
    assert_close(run_on_gpu(model, {"x": x}, num_launches=1)["y"], want, 30.0, depth=9)


@pytest.mark.parametrize(("mode", "pads"), [("SAME_UPPER", (0, 0, 1, 1)), ("SAME_LOWER", (1, 1, 0, 0))])
def test_automatic_padding_puts_the_odd_element_where_onnx_says(mode: str, pads: tuple[int, int, int, int]) -> None:
    x, weights = random_values(0, "float32", 1, 2, 6, 6), random_values(1, "float32", 3, 2, 2, 2)
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g (float[1,2,6,6] x, float[3,2,2,2] w) => (float[1,3,6,6] y) {{ y = Conv <auto_pad = "{mode}"> (x, w) }}""",
        {"w": weights},
    )
    assert_close(run_on_gpu(model, {"x": x})["y"], convolution(x, weights, pads=pads), 30.0, depth=8)


@pytest.mark.parametrize("pads", [(0, 0, 0, 1), (0, 0, 2, 0), (1, 0, 0, 0)])
def test_padding_of_a_pointwise_convolution_is_not_overlooked(pads: tuple[int, int, int, int]) -> None:
    x = random_values(0, "float32", 2, 4, 3, 3)
    depth, point = random_values(1, "float32", 4, 1, 1, 1), random_values(2, "float32", 3, 4, 1, 1)
    want = convolution(convolution(x, depth, groups=4), point, pads=pads)
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g (float[2,4,3,3] x, float[4,1,1,1] d, float[3,4,1,1] p) => ({onnx_shape("float32", want.shape)} y) {{
          m = Conv <group = 4> (x, d)
          y = Conv <pads = {list(pads)}> (m, p)
        }}""",
        {"d": depth, "p": point},
    )
    assert_close(run_on_gpu(model, {"x": x}, num_launches=2)["y"], want, 40.0, depth=4)


def test_a_convolution_over_time_is_one_over_an_image_of_one_row() -> None:
    x, weights = random_values(0, "float32", 2, 4, 17), random_values(1, "float32", 6, 4, 5)
    residual = random_values(2, "float32", 2, 6, 9)
    model = model_of(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[2,4,17] x, float[6,4,5] w, float[2,6,9] r) => (float[2,6,9] y) {
          c = Conv <pads = [2, 2], strides = [2]> (x, w)
          s = Add(c, r)
          y = Relu(s)
        }""",
        {"w": weights},
    )
    want = convolution(x[:, :, None], weights[:, :, None], (1, 2), (0, 2, 0, 2))[:, :, 0] + residual
    got = run_on_gpu(model, {"x": x, "r": residual}, num_launches=1)["y"]
    assert_close(got, np.maximum(want, 0), 40.0, depth=20)


@st.composite
def transposed_cases(draw: st.DrawFn) -> dict[str, object]:
    groups, stride = draw(st.sampled_from([1, 2])), draw(st.sampled_from([(1, 1), (2, 2), (3, 2)]))
    kernel = draw(st.sampled_from([(2, 2), (3, 3), (4, 3)]))
    return {
        "dtype": draw(st.sampled_from(["float32", "float16"])), "groups": groups,
        "channels": groups * draw(st.integers(1, 5)), "outputs": groups * draw(st.integers(1, 6)),
        "size": (draw(st.integers(2, 5)), draw(st.integers(2, 6))), "kernel": kernel, "stride": stride,
        "dilation": draw(st.sampled_from([(1, 1), (1, 2)])), "pads": tuple(draw(st.integers(0, 1)) for _ in range(4)),
        "output_padding": tuple(draw(st.integers(0, step - 1)) for step in stride), "bias": draw(st.booleans()),
        "seed": draw(st.integers(0, 99)),
    }  # fmt: skip


@given(transposed_cases())
def test_transposed_convolution_agrees_with_float64(case: dict) -> None:
    dtype, groups, seed = case["dtype"], case["groups"], case["seed"]
    x = random_values(seed, dtype, 2, case["channels"], *case["size"])
    weights = random_values(seed + 1, dtype, case["channels"], case["outputs"] // groups, *case["kernel"])
    bias = random_values(seed + 2, dtype, case["outputs"])
    geometry = case["stride"], case["pads"], case["dilation"], case["output_padding"], groups
    want = transposed_convolution(x, weights, *geometry)
    magnitude = transposed_convolution(abs(x), abs(weights), *geometry) + 4
    want = want + bias[:, None, None].astype(np.float64) if case["bias"] else want
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g ({onnx_shape(dtype, x.shape)} x, {onnx_shape(dtype, weights.shape)} w, {onnx_shape(dtype, bias.shape)} b)
        => ({onnx_shape(dtype, want.shape)} y) {{
          y = ConvTranspose <group = {groups}, pads = {list(case["pads"])}, strides = {list(case["stride"])},
              dilations = {list(case["dilation"])}, output_padding = {list(case["output_padding"])}>
              (x, w{", b" if case["bias"] else ""})
        }}""",
        {"w": weights, "b": bias},
    )
    got = run_on_gpu(model, {"x": x}, num_launches=1)["y"]
    assert_close(got, want, magnitude, depth=case["channels"] * weights[0, 0].size)


def test_a_transposed_convolution_to_a_given_size_pads_as_onnx_says() -> None:
    x, weights = random_values(0, "float32", 1, 2, 4, 4), random_values(1, "float32", 2, 3, 3, 3)
    model = model_of(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[1,2,4,4] x, float[2,3,3,3] w) => (float[1,3,8,8] y) {
          y = ConvTranspose <strides = [2, 2], output_shape = [8, 8]> (x, w)
        }""",
        {"w": weights},
    )
    full = transposed_convolution(x, weights, (2, 2), (0, 0, 0, 0), (1, 1), (0, 0), 1)
    assert_close(run_on_gpu(model, {"x": x})["y"], full[:, :, 1:, 1:], 40.0, depth=18)


def test_a_convolution_writes_its_part_of_a_concat_and_reads_its_part_of_a_split() -> None:
    x, weights = random_values(0, "float32", 2, 6, 4, 4), random_values(1, "float32", 5, 3, 3, 3)
    model = model_of(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[2,6,4,4] x, float[5,3,3,3] w) => (float[2,8,4,4] y) {
          left, right = Split <axis = 1, num_outputs = 2> (x)
          c = Conv <pads = [1, 1, 1, 1]> (right, w)
          a = Relu (c)
          y = Concat <axis = 1> (left, a)
        }""",
        {"w": weights},
    )
    want = np.concatenate([x[:, :3], np.maximum(convolution(x[:, 3:], weights, pads=(1, 1, 1, 1)), 0)], axis=1)
    assert_close(run_on_gpu(model, {"x": x}, num_launches=2)["y"], want, 60.0, depth=27)
