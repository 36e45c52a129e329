# SPDX-License-Identifier: Apache-2.0
"""Resize in its many modes against ONNX's own evaluator on float64."""

import numpy as np
import onnx_ir as ir
import pytest
from float64_reference import assert_close, onnx_shape, random_values
from gpu_on_numpy import model_of, run_on_gpu
from onnx.reference import ReferenceEvaluator

COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
SIZES = [((3, 4), (6, 8)), ((4, 6), (2, 3)), ((5, 5), (7, 3)), ((4, 3), (4, 9)), ((3, 3), (1, 1))]


def resize_model(dtype: str, shape: tuple, out: tuple, attributes: str) -> ir.Model:
    return model_of(
        f"""<ir_version: 10, opset_import: ["": 19]>
        g ({onnx_shape(dtype, shape)} x, int64[4] sizes) => ({onnx_shape(dtype, (*shape[:2], *out))} y) {{
          y = Resize <{attributes}> (x, , , sizes)
        }}""",
        {"sizes": np.array([*shape[:2], *out], np.int64)},
    )


@pytest.mark.parametrize(("size", "out"), SIZES)
@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_agrees_with_onnx(mode: str, coordinates: str, size: tuple, out: tuple) -> None:
    if mode == "cubic" and coordinates == "pytorch_half_pixel" and out == (1, 1):
        pytest.skip("onnx's evaluator reads at -0.5 where its specification says 0 for an output of one element")
    shape = (1, 2, *size)
    attributes = f'mode = "{mode}", coordinate_transformation_mode = "{coordinates}"'
    check(shape, out, attributes)


@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_nearest_modes_agree_with_onnx(nearest: str) -> None:
    check((1, 1, 4, 5), (7, 8), f'mode = "nearest", nearest_mode = "{nearest}"')


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("more", ["antialias = 1", "exclude_outside = 1", "antialias = 1, exclude_outside = 1"])
def test_antialiasing_and_excluded_places_agree_with_onnx(mode: str, more: str) -> None:
    if mode == "linear" and more == "exclude_outside = 1":
        more = "exclude_outside = 0"
    check((1, 1, 9, 7), (4, 5), f'mode = "{mode}", {more}')


def check(shape: tuple, out: tuple, attributes: str) -> None:
    x = random_values(0, "float32", *shape)
    (want,) = ReferenceEvaluator(ir.to_proto(resize_model("double", shape, out, attributes))).run(
        None, {"x": x.astype(np.float64)}
    )
    got = run_on_gpu(resize_model("float32", shape, out, attributes), {"x": x}, num_launches=1)["y"]
    assert_close(got, want, 20.0, depth=32)


def test_given_scales_count_rather_than_the_ratio_of_sizes() -> None:
    x = random_values(0, "float32", 1, 1, 3, 3)
    text = """<ir_version: 10, opset_import: ["": 19]>
        g ({t}[1,1,3,3] x, float[4] scales) => ({t}[1,1,4,5] y) {{ y = Resize <mode = "linear"> (x, , scales) }}"""
    scales = {"scales": np.array([1, 1, 1.5, 1.9], np.float32)}
    (want,) = ReferenceEvaluator(ir.to_proto(model_of(text.format(t="double"), scales))).run(
        None, {"x": x.astype("f8")}
    )
    assert_close(run_on_gpu(model_of(text.format(t="float"), scales), {"x": x})["y"], want, 20.0, depth=16)


def test_upsample_of_an_old_opset_takes_the_place_to_the_left_and_above() -> None:
    x = random_values(0, "float32", 1, 2, 2, 3)
    model = model_of(
        """<ir_version: 5, opset_import: ["": 9]>
        g (float[1,2,2,3] x, float[4] scales) => (float[1,2,4,6] y) { y = Upsample (x, scales) }""",
        {"scales": np.array([1, 1, 2, 2], np.float32)},
    )
    np.testing.assert_array_equal(run_on_gpu(model, {"x": x})["y"], x.repeat(2, axis=2).repeat(2, axis=3))
