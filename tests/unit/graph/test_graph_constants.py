# SPDX-License-Identifier: Apache-2.0
"""Reading constants and rounding results back."""

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_harness import examples, graph

from nndeploy.graph.constants import constant_array, constant_flag, constant_ints, per_channel, rounded

FLOATS = [np.float16, np.float32, np.float64, ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", FLOATS)
def test_numbers_of_the_type_come_back_as_they_are(dtype: type) -> None:
    numbers = np.array([0.0, 1.0, -1.5, float(ml_dtypes.finfo(dtype).max)])
    result = rounded(numbers, np.dtype(dtype))
    assert result is not None
    assert result.dtype == dtype
    assert result.astype(np.float64).tolist() == numbers.tolist()


@pytest.mark.parametrize(("numbers", "dtype"), [
    # overflows
    ([1.0, 1e5], np.float16), ([1.0, np.inf], np.float32), ([1.0, np.nan], np.float64),
    # vanishes
    ([1e-8, 2e-8], np.float16), ([1e39], np.float32),
])  # fmt: skip
def test_what_does_not_fit_is_refused(numbers: list[float], dtype: type) -> None:
    assert rounded(np.array(numbers), np.dtype(dtype)) is None


def test_channel_that_vanishes_is_refused_where_channels_count() -> None:
    weights = np.array([[1.0, 2.0], [1e-8, 2e-8]])
    assert rounded(weights, np.dtype(np.float16)) is not None
    assert rounded(weights, np.dtype(np.float16), axis=0) is None
    assert rounded(weights.T, np.dtype(np.float16), axis=1) is None
    assert rounded(weights.T, np.dtype(np.float16), axis=0) is not None


def test_dead_channel_of_a_float_network_is_no_loss() -> None:
    assert rounded(np.array([[1.0], [1e-42]]), np.dtype(np.float32), axis=0) is not None


@examples(200)
@given(numbers=st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=4), dtype=st.sampled_from(FLOATS))
def test_accepted_error_is_below_two_steps_of_the_largest(numbers: list[float], dtype: type) -> None:
    result = rounded(np.array(numbers), np.dtype(dtype))
    if result is not None:
        step = float(ml_dtypes.finfo(dtype).eps)
        error = np.abs(result.astype(np.float64) - np.array(numbers)).max()
        assert error <= max(2 * step * np.abs(numbers).max(), 2.0**-120)


@pytest.mark.parametrize(("shape", "is_per_channel"), [
    ((), True), ((1,), True), ((1, 1, 1, 1), True), ((3, 1, 1), True), ((1, 3, 1, 1), True), ((3,), False),
    ((3, 1), False), ((2, 3, 1, 1), False), ((1, 1, 1, 1, 1), False), ((1, 3, 1, 1, 1), False),
])  # fmt: skip
def test_constant_beside_four_axes_and_three_channels(shape: tuple[int, ...], is_per_channel: bool) -> None:
    result = per_channel(np.ones(shape), 3, 4)
    assert (result is not None) == is_per_channel
    if result is not None:
        assert result.shape == (3,)


def test_last_axis_is_the_channel_of_a_matrix() -> None:
    result = per_channel(np.array([1.0, 2.0, 3.0]), 3, 2)
    assert result is not None
    assert result.tolist() == [1.0, 2.0, 3.0]


def test_only_small_integers_are_parameters() -> None:
    model = graph("(float[2] x) => (float[2] y) <int64[2] a = {1, 2}, float b = {1}, int8 c = {1}> { y = Relu(x) }")
    values = model.graph.initializers
    assert constant_ints(values["a"]) == (1, 2)
    assert constant_ints(values["b"]) is None
    assert constant_ints(values["c"]) is None
    assert constant_ints(None) is None
    large = ir.Value(name="large", const_value=ir.tensor(np.zeros(2000, np.int64)))
    model.graph.register_initializer(large)
    assert constant_ints(large) is None
    assert constant_array(large) is not None


def test_value_of_a_node_is_constant_only_where_the_node_is() -> None:
    model = graph("(float[2] x) => (float[2] y, bool c) { y = Relu(x) c = Constant<value = bool {1}>() }")
    assert constant_array(model.graph.outputs[0]) is None
    assert constant_flag(model.graph.outputs[1]) is True
