# SPDX-License-Identifier: Apache-2.0
"""Operators that only rearrange elements: exact, for every element type, and without needless launches."""

from functools import partial

import numpy as np
import pytest
from against_oracle import check, reals, whole
from hypothesis import given
from hypothesis import strategies as st

ANY_TYPE = ["float32", "float16", "int64", "int32", "uint8", "bool"]
check_exactly = partial(check, exact=True)


def any_values(dtype: str, *shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 251).astype(dtype)


@given(st.permutations(range(4)), st.lists(st.integers(1, 5), min_size=4, max_size=4), st.sampled_from(ANY_TYPE))
def test_transpose(axes: list[int], shape: list[int], dtype: str) -> None:
    check_exactly(f"y = Transpose <perm = {axes}> (x)", {"x": any_values(dtype, *shape)})


@st.composite
def slices(draw: st.DrawFn) -> tuple[list[int], ...]:
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    axes = sorted(draw(st.sets(st.integers(0, len(shape) - 1), min_size=1)))
    bound = st.integers(-8, 8) | st.sampled_from([2**31 - 1, -(2**31), 2**63 - 1, -(2**63) + 1])
    starts, ends = ([draw(bound) for _ in axes] for _ in range(2))
    return shape, starts, ends, axes, [draw(st.sampled_from([1, 1, 2, 3, -1, -2])) for _ in axes]


@given(slices(), st.sampled_from(ANY_TYPE))
def test_slice(case: tuple, dtype: str) -> None:
    shape, *parameters = case
    constants = {name: whole(*numbers) for name, numbers in zip("seat", parameters, strict=True)}
    check_exactly("y = Slice (x, s, e, a, t)", {"x": any_values(dtype, *shape)}, constants)


@pytest.mark.parametrize("dtype", ANY_TYPE)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat_and_split(dtype: str, axis: int) -> None:
    shapes = {0: ((2, 3, 4), (5, 3, 4)), 1: ((2, 3, 4), (2, 1, 4)), -1: ((2, 3, 4), (2, 3, 6))}[axis]
    inputs = {name: any_values(dtype, *shape) for name, shape in zip("ab", shapes, strict=True)}
    body = f"y = Concat <axis = {axis}> (a, b) c, d = Split <axis = {axis}> (y, sizes)"
    check_exactly(body, inputs, {"sizes": whole(*(shape[axis] for shape in shapes))}, outputs="y, c, d")


X = any_values("float32", 2, 6, 3, 5)


@pytest.mark.parametrize(("body", "inputs", "constants", "outputs", "num_launches"), [
    ("y = Reshape (x, shape) z = Identity (x) u = Unsqueeze (y, axes)", {"x": any_values("float32", 2, 3, 4)},
     {"shape": whole(-1, 4), "axes": whole(1)}, "y, z, u", 0),
    ("y = Neg (x) c = Identity (k)", {"x": any_values("float32", 3)}, {"k": whole(1, 2, 3, 4)}, "y, c", None),
    ("a = Reshape (x, apart) b = Transpose <perm = [0, 2, 1, 3, 4]> (a) y = Reshape (b, together)", {"x": X},
     {"apart": whole(2, 2, 3, 3, 5), "together": whole(2, 6, 3, 5)}, "y", 1),
    *((f'y = DepthToSpace <blocksize = 2, mode = "{mode}"> (x) z = SpaceToDepth <blocksize = 2> (y)',
       {"x": any_values("float32", 2, 12, 3, 4)}, {}, "y, z", None) for mode in ("DCR", "CRD")),
    ("y = Pad (x, pads)", {"x": any_values("float32", 4, 5)}, {"pads": whole(-1, 2, -1, -1)}, "y", None),
    ("y = Expand (x, shape) z = Tile (x, repeats)", {"x": any_values("float32", 2, 1, 3)},
     {"shape": whole(2, 4, 1), "repeats": whole(2, 1, 3)}, "y, z", None),
    ("t = Transpose (x) y = Add (t, z)", {"x": reals(3, 4), "z": reals(4, 3, seed=1)}, {}, "y", 1),
    ("y = Relu (x) c = Concat <axis = 0> (x, z)",
     {"x": np.zeros((0, 4), np.float32), "z": any_values("float32", 2, 4)}, {}, "y, c", None),
])  # fmt: skip
def test_elements_are_moved_without_needless_launches(body, inputs, constants, outputs, num_launches) -> None:
    check_exactly(body, inputs, constants, outputs=outputs, num_launches=num_launches)


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3), st.sampled_from(["constant", "reflect", "edge", "wrap"]),
    st.sampled_from(["float32", "float16", "int64"]), st.data(),
)  # fmt: skip
def test_pad(shape: list[int], mode: str, dtype: str, data: st.DataObject) -> None:
    at_most = [size - 1 if mode == "reflect" else 3 for size in shape]
    pads = [data.draw(st.integers(0, at_most[axis % len(shape)])) for axis in range(2 * len(shape))]
    constants = {"pads": whole(*pads), "value": np.array(0 if dtype == "int64" else 7.5, dtype)}
    check_exactly(f'y = Pad <mode = "{mode}"> (x, pads, value)', {"x": any_values(dtype, *shape)}, constants)


@pytest.mark.parametrize("indices", [[0, 2, 1, 2], [1], [-1, -3], [[0, 1], [2, 0]], 2, [0, 1, 2], [2, 1, 0]])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_gather_with_constant_indices(indices: list[int] | int, axis: int, dtype: str) -> None:
    constants = {"i": np.array(indices, np.int64)}
    check_exactly(f"y = Gather <axis = {axis}> (x, i)", {"x": any_values(dtype, 3, 3, 3)}, constants)
