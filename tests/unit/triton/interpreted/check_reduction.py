# SPDX-License-Identifier: Apache-2.0
"""Reductions, softmax and normalisations."""

import numpy as np
import pytest
from against_oracle import check, random_values, reals, whole
from hypothesis import given
from hypothesis import strategies as st

FLOATS = st.sampled_from(["float32", "float16"])


@st.composite
def reductions(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    shape = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple))
    axes = draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    return shape, tuple(sorted(axes)), draw(st.integers(0, 1))


@given(reductions(), st.sampled_from(["L1", "L2", "Max", "Mean", "Min", "Sum", "SumSquare"]), FLOATS, st.booleans())
def test_reductions_agree(case: tuple, name: str, dtype: str, tiny_tiles: bool) -> None:
    shape, axes, keepdims = case
    x = random_values(3, dtype, *shape)
    magnitude = float(np.sum(x.astype(np.float64) ** 2) + abs(x).sum())
    body = f"y = Reduce{name} <keepdims = {keepdims}> (x, axes)"
    check(body, {"x": x}, {"axes": whole(*axes)}, tiny_tiles=tiny_tiles, magnitude=magnitude, depth=x.size)


@pytest.mark.parametrize("name", ["ReduceMax", "ReduceMin"])
def test_nan_wins_a_reduction(name: str) -> None:
    x = np.array([[1, np.nan, 3], [4, 5, 6]], np.float32)
    check(f"y = {name} (x, axes)", {"x": x}, {"axes": whole(1)}, exact=True)


@pytest.mark.parametrize("name", ["GlobalAveragePool", "GlobalMaxPool"])
@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (1, 40, 1, 1), (2, 3, 11), (1, 2, 70, 70)])
def test_global_pooling_agrees(name: str, shape: tuple[int, ...]) -> None:
    check(f"y = {name} (x)", {"x": reals(*shape)}, num_launches=1, magnitude=5.0, depth=8)


@st.composite
def softmax_cases(draw: st.DrawFn) -> tuple[tuple[int, ...], int]:
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple))
    return shape, draw(st.integers(-len(shape), len(shape) - 1))


@given(softmax_cases(), st.sampled_from(["Softmax", "LogSoftmax"]), FLOATS, st.booleans())
def test_softmax_agrees(case: tuple, name: str, dtype: str, tiny_tiles: bool) -> None:
    shape, axis = case
    x = (random_values(5, "float32", *shape) * 20).astype(dtype)
    shifted = abs(x.astype(np.float64) - x.max(axis=axis, keepdims=True))
    magnitude = 1 + shifted * (np.exp(-shifted) if name == "Softmax" else 1)
    body = f"y = {name} <axis = {axis}> (x)"
    check(body, {"x": x}, tiny_tiles=tiny_tiles, num_launches=1, magnitude=magnitude, depth=32)


def test_softmax_of_an_old_opset_runs_over_all_axes_from_its_axis() -> None:
    check("y = Softmax (x)", {"x": reals(2, 3, 4)}, opset=11, depth=32)


def test_masked_places_of_a_softmax_are_0_even_where_a_whole_block_is_masked() -> None:
    x = np.full((2, 70), -np.inf, np.float32)
    x[0, 65:], x[1, :3] = 1.0, 2.0
    check("y = Softmax (x)", {"x": x}, tiny_tiles=True, depth=1)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple), st.integers(1, 3), FLOATS, st.booleans())
def test_layer_normalisation_agrees(shape: tuple[int, ...], num_axes: int, dtype: str, has_shift: bool) -> None:
    first = max(0, len(shape) - num_axes)
    x, scale, shift = (random_values(seed, dtype, *(shape if seed == 0 else shape[first:])) for seed in range(3))
    body = f"y = LayerNormalization <axis = {first}, epsilon = 0.01> (x, s{', b' if has_shift else ''})"
    magnitude = 100 * (1 + np.broadcast_to(abs(scale), shape)) * float(1 + abs(x).max())
    check(body, {"x": x}, {"s": scale, "b": shift}, num_launches=1, magnitude=magnitude, depth=64)


SPELLED_OUT = """mean = ReduceMean <axes = [-1]> (x) d = Sub (x, mean) q = {square} v = ReduceMean <axes = [-1]> (q)
    e = Add (v, epsilon) s = Sqrt (e) """
CONSTANTS = {
    "scale": reals(48, seed=1), "shift": reals(48, seed=2), "epsilon": np.array(1e-5, np.float32),
    "two": np.array(2, np.float32),
}  # fmt: skip


@pytest.mark.parametrize("square", ["Mul (d, d)", "Pow (d, two)"])
@pytest.mark.parametrize("tail", [
    "y = Div (d, s)", "n = Div (d, s) y = Mul (n, scale)", "n = Div (d, s) m = Mul (scale, n) y = Add (m, shift)",
])  # fmt: skip
def test_layer_normalisation_that_is_spelled_out_is_one_launch(square: str, tail: str) -> None:
    body = SPELLED_OUT.format(square=square) + tail
    check(body, {"x": reals(4, 6, 48)}, CONSTANTS, opset=17, num_launches=1, magnitude=60.0, depth=48)


def test_a_spelled_out_normalisation_that_is_looked_into_stays_apart() -> None:
    body = SPELLED_OUT.format(square="Mul (d, d)") + "y = Div (d, s)"
    check(body, {"x": reals(4, 48)}, CONSTANTS, outputs="y, v", opset=17, magnitude=60.0, depth=16)


def test_instance_and_group_normalisation_scale_by_channel() -> None:
    body = """i = InstanceNormalization <epsilon = 0.001> (x, s, b)
        g = GroupNormalization <num_groups = 3, epsilon = 0.001> (x, s, b)"""
    check(
        body, {"x": reals(2, 6, 5, 4)}, {"s": reals(6, seed=1), "b": reals(6, seed=2)},
        outputs="i, float[2,6,5,4] g", opset=21, tiny_tiles=True, num_launches=2, magnitude=60.0, depth=40,
    )  # fmt: skip


def test_root_mean_square_normalisation_takes_no_mean_off() -> None:
    body, x = "y = RMSNormalization <epsilon = 0.0001> (x, s)", reals(3, 33) + 2
    check(body, {"x": x}, {"s": reals(33, seed=1)}, opset=23, num_launches=1, magnitude=20.0, depth=33)
