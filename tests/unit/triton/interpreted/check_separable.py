# SPDX-License-Identifier: Apache-2.0
"""The fused depthwise + pointwise convolution against float64: one launch, any sizes, activations, residual."""

import numpy as np
from float64_reference import (
    ACTIVATIONS,
    EPSILON,
    activation_text,
    assert_close,
    convolution,
    onnx_shape,
    random_values,
)
from gpu_on_numpy import model_of, run_on_gpu
from hypothesis import given
from hypothesis import strategies as st


@st.composite
def cases(draw: st.DrawFn) -> dict[str, object]:
    kernel = draw(st.sampled_from([(3, 3), (5, 5), (7, 7), (3, 1), (1, 5)]))
    dilation = draw(st.sampled_from([1, 1, 2]))
    reach = ((kernel[0] - 1) * dilation + 1, (kernel[1] - 1) * dilation + 1)
    pads = tuple(draw(st.integers(0, reach[axis % 2] // 2)) for axis in range(4))
    height = draw(st.integers(max(1, reach[0] - pads[0] - pads[2]), reach[0] + 6))
    width = draw(st.integers(max(1, reach[1] - pads[1] - pads[3]), reach[1] + 9))
    return {
        "dtype": draw(st.sampled_from(["float32", "float16"])), "batch": draw(st.integers(1, 3)),
        "channels": draw(st.integers(2, 40)), "outputs": draw(st.integers(1, 40)), "size": (height, width),
        "kernel": kernel, "stride": draw(st.sampled_from([(1, 1), (2, 2), (1, 2)])), "dilation": (dilation, dilation),
        "pads": pads, "inner_bias": draw(st.booleans()), "outer_bias": draw(st.booleans()),
        "inner": draw(st.sampled_from(["", "Relu", "Clip", "HardSwish", "Swish"])),
        "outer": draw(st.sampled_from(["", "Relu", "Clip", "HardSwish", "Swish"])),
        "residual": draw(st.sampled_from(["", "tile", "row"])), "tiny_tiles": draw(st.booleans()),
        "seed": draw(st.integers(0, 99)),
    }  # fmt: skip


@given(cases())
def test_fused_separable_convolution_agrees_with_float64(case: dict) -> None:
    dtype, seed, channels, outputs = case["dtype"], case["seed"], case["channels"], case["outputs"]
    x = random_values(seed, dtype, case["batch"], channels, *case["size"])
    depth_weights = random_values(seed + 1, dtype, channels, 1, *case["kernel"])
    point_weights = random_values(seed + 2, dtype, outputs, channels, 1, 1)
    biases = random_values(seed + 3, dtype, channels), random_values(seed + 4, dtype, outputs)
    middle = convolution(x, depth_weights, case["stride"], case["pads"], case["dilation"], channels)
    magnitude = convolution(abs(x), abs(depth_weights), case["stride"], case["pads"], case["dilation"], channels)
    if case["inner_bias"]:
        middle, magnitude = (a + b[:, None, None] for a, b in ((middle, biases[0]), (magnitude, abs(biases[0]))))
    middle = ACTIVATIONS[case["inner"]](middle)
    want = convolution(middle, point_weights)
    # what lies between is rounded to the dtype once before the matrix product
    rounded = EPSILON[dtype] / EPSILON["float32"] * convolution(abs(middle), abs(point_weights))
    magnitude = 2 * convolution(magnitude, abs(point_weights)) + rounded + 1
    if case["outer_bias"]:
        want = want + biases[1][:, None, None].astype(np.float64)
    rest = {"tile": want.shape, "row": (case["batch"], outputs, 1, 1), "": (1,)}[case["residual"]]
    residual = random_values(seed + 5, dtype, *rest)
    if case["residual"]:
        want = want + residual.astype(np.float64)
    want = ACTIVATIONS[case["outer"]](want)
    magnitude = magnitude * (1 + np.abs(want))  # x * sigmoid(x) scales its error by x
    got = run_on_gpu(
        separable_model(case, x, want, residual, depth_weights, point_weights, biases), {"x": x, "r": residual},
        tiny_tiles=case["tiny_tiles"], num_launches=1,
    )["y"]  # fmt: skip
    assert_close(got, want, magnitude, depth=channels + 49)


def separable_model(case, x, want, residual, depth_weights, point_weights, biases):
    dtype, pads, strides, dilations = case["dtype"], list(case["pads"]), list(case["stride"]), list(case["dilation"])
    inner_bias = ", bd" if case["inner_bias"] else ""
    outer_bias = ", bp" if case["outer_bias"] else ""
    text = f"""<ir_version: 10, opset_import: ["": 20]>
    g ({onnx_shape(dtype, x.shape)} x, {onnx_shape(dtype, residual.shape)} r,
       {onnx_shape(dtype, depth_weights.shape)} wd, {onnx_shape(dtype, point_weights.shape)} wp,
       {onnx_shape(dtype, biases[0].shape)} bd, {onnx_shape(dtype, biases[1].shape)} bp,
       {onnx_shape(dtype, ())} zero, {onnx_shape(dtype, ())} six) => ({onnx_shape(dtype, want.shape)} y) {{
      d = Conv <group = {case["channels"]}, pads = {pads}, strides = {strides}, dilations = {dilations}>
          (x, wd{inner_bias})
      {activation_text(case["inner"], "d", "a")}
      p = Conv (a, wp{outer_bias})
      s = {"Add(p, r)" if case["residual"] else "Identity(p)"}
      {activation_text(case["outer"], "s", "y")}
    }}"""
    constants = {"wd": depth_weights, "wp": point_weights, "bd": biases[0], "bp": biases[1]}
    constants |= {"zero": np.array(0, dtype), "six": np.array(6, dtype)}
    return model_of(text, constants)


def test_a_middle_that_somebody_else_reads_is_not_fused_away() -> None:
    x = random_values(0, "float32", 1, 4, 5, 5)
    constants = {"wd": random_values(1, "float32", 4, 1, 3, 3), "wp": random_values(2, "float32", 2, 4, 1, 1)}
    model = model_of(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[1,4,5,5] x, float[4,1,3,3] wd, float[2,4,1,1] wp) => (float[1,4,3,3] d, float[1,2,3,3] y) {
          d = Conv <group = 4> (x, wd)
          y = Conv (d, wp)
        }""",
        constants,
    )
    got = run_on_gpu(model, {"x": x}, num_launches=2)
    middle = convolution(x, constants["wd"], groups=4)
    assert_close(got["d"], middle, 20.0, depth=9)
    assert_close(got["y"], convolution(middle, constants["wp"]), 80.0, depth=13)
