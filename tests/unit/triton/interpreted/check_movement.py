# SPDX-License-Identifier: Apache-2.0
"""Operators that only rearrange elements: exact, for every element type, and without needless launches."""

import numpy as np
import onnx_ir as ir
import pytest
from float64_reference import onnx_shape, random_values
from gpu_on_numpy import model_of, run_on_gpu
from hypothesis import given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator


def check_exactly(
    text: str, inputs: dict[str, np.ndarray], constants: dict[str, np.ndarray] | None = None,
    num_launches: int | None = None,
) -> None:  # fmt: skip
    """Checks a model against what ONNX's own evaluator says, bit by bit."""
    model = model_of(text, constants)
    names = [value.name or "" for value in model.graph.outputs]
    wanted = ReferenceEvaluator(ir.to_proto(model)).run(None, inputs)
    got = run_on_gpu(model, inputs, num_launches=num_launches)
    for name, want in zip(names, wanted, strict=True):
        assert got[name].dtype == want.dtype
        np.testing.assert_array_equal(got[name], want)


ANY_TYPE = ["float32", "float16", "int64", "int32", "uint8", "bool"]


def any_values(dtype: str, *shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 251).astype(dtype)


@given(st.permutations(range(4)), st.lists(st.integers(1, 5), min_size=4, max_size=4), st.sampled_from(ANY_TYPE))
def test_transpose(axes: list[int], shape: list[int], dtype: str) -> None:
    x = any_values(dtype, *shape)
    moved = [shape[axis] for axis in axes]
    check_exactly(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g ({onnx_shape(dtype, shape)} x) => ({onnx_shape(dtype, moved)} y) {{ y = Transpose <perm = {axes}> (x) }}""",
        {"x": x},
    )


@st.composite
def slices(draw: st.DrawFn) -> tuple[list[int], ...]:
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    axes = sorted(draw(st.sets(st.integers(0, len(shape) - 1), min_size=1)))
    bound = st.integers(-8, 8) | st.sampled_from([2**31 - 1, -(2**31), 2**63 - 1, -(2**63) + 1])
    starts, ends = ([draw(bound) for _ in axes] for _ in range(2))
    steps = [draw(st.sampled_from([1, 1, 2, 3, -1, -2])) for _ in axes]
    for place, axis in enumerate(axes):  # onnx's evaluator slices as Python does, which differs from ONNX here
        starts[place] = max(starts[place], -shape[axis]) if steps[place] < 0 else starts[place]
    return shape, starts, ends, axes, steps


@given(slices(), st.sampled_from(ANY_TYPE))
def test_slice(case: tuple, dtype: str) -> None:
    shape, starts, ends, axes, steps = case
    parameters = {"s": starts, "e": ends, "a": axes, "t": steps}
    check_exactly(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g ({onnx_shape(dtype, shape)} x, int64[{len(axes)}] s, int64[{len(axes)}] e, int64[{len(axes)}] a,
           int64[{len(axes)}] t) => ({onnx_shape(dtype, ["?" for _ in shape]).replace("?", "N")} y) {{
          y = Slice (x, s, e, a, t)
        }}""",
        {"x": any_values(dtype, *shape)},
        {name: np.array(value, np.int64) for name, value in parameters.items()},
    )


def test_a_backward_slice_from_before_the_first_element_begins_at_the_first() -> None:
    x = any_values("float32", 3)
    model = model_of(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[3] x, int64[1] s, int64[1] e, int64[1] a, int64[1] t) => (float[1] y) { y = Slice (x, s, e, a, t) }""",
        {name: np.array([value], np.int64) for name, value in (("s", -9), ("e", -(2**63) + 1), ("a", 0), ("t", -1))},
    )
    np.testing.assert_array_equal(run_on_gpu(model, {"x": x})["y"], x[:1])


@pytest.mark.parametrize("dtype", ANY_TYPE)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_concat_and_split(dtype: str, axis: int) -> None:
    shapes = {0: ((2, 3, 4), (5, 3, 4)), 1: ((2, 3, 4), (2, 1, 4)), -1: ((2, 3, 4), (2, 3, 6))}[axis]
    whole = np.concatenate([np.zeros(shape) for shape in shapes], axis=axis).shape
    sizes = [shape[axis] for shape in shapes]
    check_exactly(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g ({onnx_shape(dtype, shapes[0])} a, {onnx_shape(dtype, shapes[1])} b, int64[2] sizes)
        => ({onnx_shape(dtype, whole)} y, {onnx_shape(dtype, shapes[0])} c, {onnx_shape(dtype, shapes[1])} d) {{
          y = Concat <axis = {axis}> (a, b)
          c, d = Split <axis = {axis}> (y, sizes)
        }}""",
        {"a": any_values(dtype, *shapes[0]), "b": any_values(dtype, *shapes[1])},
        {"sizes": np.array(sizes, np.int64)},
    )


def test_a_reshape_is_no_launch_and_an_output_may_be_an_input() -> None:
    check_exactly(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[2,3,4] x, int64[2] shape, int64[1] axes) => (float[6,4] y, float[2,3,4] z, float[6,1,4] u) {
          y = Reshape (x, shape)
          z = Identity (x)
          u = Unsqueeze (y, axes)
        }""",
        {"x": any_values("float32", 2, 3, 4)},
        {"shape": np.array([-1, 4], np.int64), "axes": np.array([1], np.int64)},
        num_launches=0,
    )


def test_an_output_may_be_a_constant() -> None:
    check_exactly(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[3] x, int64[4] k) => (float[3] y, int64[4] c) { y = Neg (x) c = Identity (k) }""",
        {"x": any_values("float32", 3)},
        {"k": np.array([1, 2, 3, 4], np.int64)},
    )


def test_a_channel_shuffle_is_one_launch() -> None:
    check_exactly(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[2,6,3,5] x, int64[5] apart, int64[4] together) => (float[2,6,3,5] y) {
          a = Reshape (x, apart)
          b = Transpose <perm = [0, 2, 1, 3, 4]> (a)
          y = Reshape (b, together)
        }""",
        {"x": any_values("float32", 2, 6, 3, 5)},
        {"apart": np.array([2, 2, 3, 3, 5], np.int64), "together": np.array([2, 6, 3, 5], np.int64)},
        num_launches=1,
    )


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space_and_back(mode: str) -> None:
    check_exactly(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g (float[2,12,3,4] x) => (float[2,3,6,8] y, float[2,12,3,4] z) {{
          y = DepthToSpace <blocksize = 2, mode = "{mode}"> (x)
          z = SpaceToDepth <blocksize = 2> (y)
        }}""",
        {"x": any_values("float32", 2, 12, 3, 4)},
    )


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3), st.sampled_from(["constant", "reflect", "edge", "wrap"]),
    st.sampled_from(["float32", "float16", "int64"]), st.data(),
)  # fmt: skip
def test_pad(shape: list[int], mode: str, dtype: str, data: st.DataObject) -> None:
    at_most = [size - 1 if mode == "reflect" else 3 for size in shape]
    pads = [data.draw(st.integers(0, at_most[axis % len(shape)])) for axis in range(2 * len(shape))]
    value = 0 if dtype == "int64" else 7.5
    out = [size + pads[axis] + pads[axis + len(shape)] for axis, size in enumerate(shape)]
    check_exactly(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g ({onnx_shape(dtype, shape)} x, int64[{len(pads)}] pads, {onnx_shape(dtype, ())} value)
        => ({onnx_shape(dtype, out)} y) {{ y = Pad <mode = "{mode}"> (x, pads, value) }}""",
        {"x": any_values(dtype, *shape)},
        {"pads": np.array(pads, np.int64), "value": np.array(value, dtype)},
    )


def test_a_negative_pad_cuts() -> None:
    x = any_values("float32", 4, 5)
    model = model_of(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[4,5] x, int64[4] pads) => (float[2,6] y) { y = Pad (x, pads) }""",
        {"pads": np.array([-1, 2, -1, -1], np.int64)},
    )
    np.testing.assert_array_equal(run_on_gpu(model, {"x": x})["y"], np.pad(x[1:3, :4], ((0, 0), (2, 0))))


@pytest.mark.parametrize("indices", [[0, 2, 1, 2], [1], [-1, -3], [[0, 1], [2, 0]], 2, [0, 1, 2], [2, 1, 0]])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_gather_with_constant_indices(indices: list[int] | int, axis: int, dtype: str) -> None:
    places = np.array(indices, np.int64)
    shape = [3, 3, 3]
    out = np.take(np.zeros(shape), places, axis=axis).shape
    check_exactly(
        f"""<ir_version: 10, opset_import: ["": 20]>
        g ({onnx_shape(dtype, shape)} x, {onnx_shape("int64", places.shape)} i) => ({onnx_shape(dtype, out)} y) {{
          y = Gather <axis = {axis}> (x, i)
        }}""",
        {"x": any_values(dtype, *shape)},
        {"i": places},
    )


def test_expand_and_tile() -> None:
    check_exactly(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[2,1,3] x, int64[3] shape, int64[3] repeats) => (float[2,4,3] y, float[4,1,9] z) {
          y = Expand (x, shape)
          z = Tile (x, repeats)
        }""",
        {"x": any_values("float32", 2, 1, 3)},
        {"shape": np.array([2, 4, 1], np.int64), "repeats": np.array([2, 1, 3], np.int64)},
    )


def test_an_elementwise_reader_takes_a_transposed_input_without_a_copy() -> None:
    x, z = random_values(0, "float32", 3, 4), random_values(1, "float32", 4, 3)
    check_exactly(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[3,4] x, float[4,3] z) => (float[4,3] y) { t = Transpose (x) y = Add (t, z) }""",
        {"x": x, "z": z},
        num_launches=1,
    )


def test_tensors_without_elements() -> None:
    check_exactly(
        """<ir_version: 10, opset_import: ["": 20]>
        g (float[0,4] x, float[2,4] z) => (float[0,4] y, float[2,4] c) { y = Relu (x) c = Concat <axis = 0> (x, z) }""",
        {"x": np.zeros((0, 4), np.float32), "z": any_values("float32", 2, 4)},
    )
