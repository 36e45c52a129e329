# SPDX-License-Identifier: Apache-2.0
"""Windowed pooling: padding, ceil_mode, dilation, what a mean counts."""

import numpy as np
import pytest
from against_oracle import check, evaluated, random_values, reals, text_of
from gpu_on_numpy import model_of
from hypothesis import assume, given, reject
from hypothesis import strategies as st
from oracle.registry import InvalidError, UnspecifiedError


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, str, tuple[int, int]]:
    kind = draw(st.sampled_from(["MaxPool", "AveragePool"]))
    kernel = draw(st.sampled_from([[2, 2], [3, 3], [1, 3], [4, 2]]))
    strides = draw(st.sampled_from([[1, 1], [2, 2], [2, 1], [3, 3]]))
    pads = [draw(st.integers(0, kernel[axis % 2] - 1)) for axis in range(4)]
    dilations = draw(st.sampled_from([[1, 1], [2, 1]])) if kind == "MaxPool" else []
    more = f"dilations = {dilations}" if dilations else f"count_include_pad = {draw(st.integers(0, 1))}"
    body = f"""y = {kind} <kernel_shape = {kernel}, strides = {strides}, pads = {pads},
        ceil_mode = {draw(st.integers(0, 1))}, {more}> (x)"""
    return body, draw(st.sampled_from(["float32", "float16"])), (draw(st.integers(4, 9)), draw(st.integers(4, 9)))


@given(cases())
def test_pooling_agrees(case: tuple) -> None:
    body, dtype, size = case
    x = {"x": random_values(0, dtype, 2, 3, *size)}
    shape = tuple(model_of(text_of(body, x, "y", 19)).graph.outputs[0].shape or ())
    try:  # a window that lies in the padding as a whole has no largest element
        assume(evaluated(body, x, "y", 19)["y"].shape == shape)
    except (InvalidError, UnspecifiedError):
        reject()
    check(body, x, opset=19, tiny_tiles=True, num_launches=1, magnitude=5.0)


def test_pooling_over_time_and_padding_of_same_size() -> None:
    body = 'y = MaxPool <kernel_shape = [3], strides = [2], auto_pad = "SAME_UPPER"> (x)'
    check(body, {"x": reals(2, 3, 11)}, opset=19, exact=True)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_large_window_and_nan(dtype: str) -> None:
    x = random_values(0, dtype, 1, 2, 13, 13)
    x[0, 0, 6, 6] = np.nan
    body = "y = MaxPool <kernel_shape = [13, 13], pads = [6, 6, 6, 6]> (x)"
    check(body, {"x": x}, opset=19, num_launches=1, exact=True)
