# SPDX-License-Identifier: Apache-2.0
"""Windowed pooling against float64: padding, ceil_mode, dilation, what a mean counts."""

import itertools

import numpy as np
import pytest
from float64_reference import assert_close, onnx_shape, random_values
from gpu_on_numpy import model_of, run_on_gpu
from hypothesis import assume, given
from hypothesis import strategies as st


def pooled(x, kernel, strides, pads, dilations, out, kind, counts):
    """Returns the pooling of (N, C, H, W), element by element, as ONNX words it."""
    result = np.zeros((*x.shape[:2], *out))
    for row, column in itertools.product(range(out[0]), range(out[1])):
        inside, num_padded = [], 0
        for i, j in itertools.product(range(kernel[0]), range(kernel[1])):
            at = row * strides[0] - pads[0] + i * dilations[0], column * strides[1] - pads[1] + j * dilations[1]
            if all(0 <= place < size for place, size in zip(at, x.shape[2:], strict=True)):
                inside.append(x[:, :, at[0], at[1]].astype(np.float64))
            elif at[0] < x.shape[2] + pads[2] and at[1] < x.shape[3] + pads[3]:
                num_padded += 1
        if kind == "MaxPool":
            result[:, :, row, column] = np.max(inside, axis=0)
        else:
            result[:, :, row, column] = np.sum(inside, axis=0) / (len(inside) + (num_padded if counts else 0))
    return result


@st.composite
def cases(draw: st.DrawFn) -> dict[str, object]:
    kind = draw(st.sampled_from(["MaxPool", "AveragePool"]))
    kernel = draw(st.sampled_from([(2, 2), (3, 3), (1, 3), (4, 2)]))
    return {
        "kind": kind, "kernel": kernel, "strides": draw(st.sampled_from([(1, 1), (2, 2), (2, 1), (3, 3)])),
        "pads": tuple(draw(st.integers(0, kernel[axis % 2] - 1)) for axis in range(4)),
        "dilations": draw(st.sampled_from([(1, 1), (2, 1)])) if kind == "MaxPool" else (1, 1),
        "ceil": draw(st.integers(0, 1)), "counts": draw(st.integers(0, 1)) if kind == "AveragePool" else 0,
        "size": (draw(st.integers(4, 9)), draw(st.integers(4, 9))),
        "dtype": draw(st.sampled_from(["float32", "float16"])),
    }  # fmt: skip


@given(cases())
def test_pooling_agrees_with_float64(case: dict) -> None:
    x = random_values(0, case["dtype"], 2, 3, *case["size"])
    attributes = {
        "kernel_shape": list(case["kernel"]), "strides": list(case["strides"]), "pads": list(case["pads"]),
        "ceil_mode": case["ceil"],
    }  # fmt: skip
    if case["kind"] == "MaxPool":
        attributes["dilations"] = list(case["dilations"])
    else:
        attributes["count_include_pad"] = case["counts"]
    given_attributes = ", ".join(f"{name} = {value}" for name, value in attributes.items())
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 19]>
        g ({onnx_shape(case["dtype"], x.shape)} x) => ({onnx_shape(case["dtype"], ["N", "C", "H", "W"])} y) {{
          y = {case["kind"]} <{given_attributes}> (x)
        }}"""
    )
    out = tuple(int(size) for size in model.graph.outputs[0].shape[2:])
    windows = [range(size) for size in out]
    reach = [(k - 1) * d for k, d in zip(case["kernel"], case["dilations"], strict=True)]
    assume(
        all(  # a window that lies in the padding as a whole has no largest element
            any(
                0 <= o * case["strides"][a] - case["pads"][a] + i * case["dilations"][a] < x.shape[2 + a]
                for i in range(case["kernel"][a])
            )
            for a in range(2)
            for o in windows[a]
        )
    )
    assert len(reach) == 2
    want = pooled(
        x, case["kernel"], case["strides"], case["pads"], case["dilations"], out, case["kind"], case["counts"]
    )
    assert_close(run_on_gpu(model, {"x": x}, tiny_tiles=True, num_launches=1)["y"], want, 5.0, depth=16)


def test_pooling_over_time_and_padding_of_same_size() -> None:
    x = random_values(0, "float32", 2, 3, 11)
    model = model_of(
        """<ir_version: 10, opset_import: ["": 19]>
        g (float[2,3,11] x) => (float[2,3,6] y) {
          y = MaxPool <kernel_shape = [3], strides = [2], auto_pad = "SAME_UPPER"> (x)
        }"""
    )
    want = np.stack([x[:, :, max(0, 2 * i - 1) : 2 * i + 2].max(axis=2) for i in range(6)], axis=2)
    np.testing.assert_array_equal(run_on_gpu(model, {"x": x})["y"], want)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_large_window_and_nan(dtype: str) -> None:
    x = random_values(0, dtype, 1, 2, 13, 13)
    x[0, 0, 6, 6] = np.nan
    model = model_of(
        f"""<ir_version: 10, opset_import: ["": 19]>
        g ({onnx_shape(dtype, x.shape)} x) => ({onnx_shape(dtype, x.shape)} y) {{
          y = MaxPool <kernel_shape = [13, 13], pads = [6, 6, 6, 6]> (x)
        }}"""
    )
    got = run_on_gpu(model, {"x": x}, num_launches=1)["y"]
    assert np.isnan(got[0, 0]).all()
    want = pooled(x[:, 1:], (13, 13), (1, 1), (6, 6, 6, 6), (1, 1), (13, 13), "MaxPool", 0)
    np.testing.assert_array_equal(got[:, 1:].astype(np.float64), want)
