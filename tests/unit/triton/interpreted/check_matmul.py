# SPDX-License-Identifier: Apache-2.0
"""Matrix products: batches, broadcasting, transposed and sliced sides, Gemm, epilogues."""

import numpy as np
import pytest
from against_oracle import check, random_values, reals
from hypothesis import given
from hypothesis import strategies as st


@st.composite
def sides(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    m, n, k = (draw(st.integers(1, 40)) for _ in range(3))
    batch = draw(st.lists(st.integers(1, 3), max_size=2).map(tuple))
    left = tuple(draw(st.sampled_from([1, size])) for size in batch)
    right = tuple(draw(st.sampled_from([1, size])) for size in batch)[draw(st.integers(0, len(batch))) :]
    kind = draw(st.sampled_from(["matrices", "matrices", "left vector", "right vector"]))
    return ((k,) if kind == "left vector" else (*left, m, k)), ((k,) if kind == "right vector" else (*right, k, n))


@given(sides(), st.sampled_from(["float32", "float16"]), st.booleans())
def test_matmul_agrees(shapes: tuple, dtype: str, tiny_tiles: bool) -> None:
    inputs = {
        name: random_values(seed, dtype, *shape) for seed, (name, shape) in enumerate(zip("ab", shapes, strict=True))
    }
    check("y = MatMul (a, b)", inputs, tiny_tiles=tiny_tiles, magnitude="y", depth=shapes[0][-1])


@pytest.mark.parametrize("flip", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("bias", [(), (6,), (5, 1), (5, 6), (1, 1)])
def test_gemm_agrees_in_one_launch(flip: tuple[int, int], bias: tuple[int, ...]) -> None:
    inputs = {"a": reals(*((7, 5) if flip[0] else (5, 7))), "b": reals(*((6, 7) if flip[1] else (7, 6)), seed=1)}
    body = f"g = Gemm <transA = {flip[0]}, transB = {flip[1]}, alpha = 0.5, beta = 2.0> (a, b, c) y = Relu (g)"
    check(body, inputs, {"c": np.asarray(reals(*bias, seed=2))}, num_launches=1, magnitude=40.0, depth=7)


def test_attention_takes_transposed_sides_without_a_copy() -> None:
    body = """qt = Transpose <perm = [0, 2, 1, 3]> (q) kt = Transpose <perm = [0, 2, 3, 1]> (k)
        vt = Transpose <perm = [0, 2, 1, 3]> (v) s = MatMul (qt, kt) d = Mul (s, scale) p = Softmax <axis = -1> (d)
        y = MatMul (p, vt)"""
    inputs = {name: reals(2, 5, 3, 8, seed=seed) for seed, name in enumerate("qkv")}
    check(body, inputs, {"scale": np.array(0.25, np.float32)}, num_launches=6, magnitude=40.0, depth=64)


def test_a_linear_layer_of_many_axes_is_one_launch_with_bias_residual_and_activation() -> None:
    shapes = {"x": (2, 3, 4, 16), "w": (16, 9), "b": (9,), "r": (2, 3, 4, 9)}
    arrays = {name: random_values(seed, "float16", *shape) for seed, (name, shape) in enumerate(shapes.items())}
    body, constants = "m = MatMul (x, w) s = Add (b, m) t = Add (s, r) y = Relu (t)", ("w", "b")
    check(
        body, {name: a for name, a in arrays.items() if name not in constants}, {n: arrays[n] for n in constants},
        num_launches=1, magnitude=60.0, depth=16,
    )  # fmt: skip
