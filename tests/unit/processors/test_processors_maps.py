# SPDX-License-Identifier: Apache-2.0
"""Maps of masks, classes and depths: back to the image that came in, and into a PNG; held against plain loops."""

import io
import math

import numpy as np
import pytest

from nndeploy.errors import InputError, UsageError
from nndeploy.processors.builtin.encode_map import EncodeMap
from nndeploy.processors.builtin.map_to_image import MapToImage
from nndeploy.processors.builtin.masks import Masks

PIL = pytest.importorskip("PIL.Image", reason="the extra vision is not installed")
TRANSFORM = np.array([0.6, 0.5, 3, 2, 31, 22], np.float64)
"""Of an image of 31 x 22 pixels in one of 24 x 16, behind 3 and 2 that are not its own."""


def at(values, y, x):
    """Returns a map at a place, in its own numbers: linear between the middles of these, as it is beyond them."""
    height, width = values.shape
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    down, across = y - top, x - left
    upper = values[top][left] * (1 - across) + values[top][right] * across
    return upper * (1 - down) + (values[bottom][left] * (1 - across) + values[bottom][right] * across) * down


def in_map(transform, stride, y, x):
    """Returns where the middle of a pixel of the image that came in lies in a map."""
    scale_x, scale_y, left, top, _, _ = transform.tolist()
    return ((y + 0.5) * scale_y + top) / stride - 0.5, ((x + 0.5) * scale_x + left) / stride - 0.5


@pytest.mark.parametrize("stride", [1, 4])
def test_a_map_is_linear_between_its_numbers_at_the_pixels_of_the_image(stride) -> None:
    maps = np.random.default_rng(0).standard_normal((2, 16 // stride, 24 // stride)).astype(np.float32)
    found = MapToImage(stride)(maps, TRANSFORM)
    want = [
        [[at(one.astype(float), *in_map(TRANSFORM, stride, y, x)) for x in range(31)] for y in range(22)]
        for one in maps
    ]
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-6)


def test_the_nearest_number_of_a_map_is_the_one_that_covers_the_pixel() -> None:
    classes = np.random.default_rng(1).integers(0, 9, (4, 6))
    found = MapToImage(4, "nearest")(classes, TRANSFORM)
    assert found.dtype == classes.dtype
    for y in range(22):
        for x in range(31):
            row, column = ((y + 0.5) * 0.5 + 2) // 4, ((x + 0.5) * 0.6 + 3) // 4
            assert found[y, x] == classes[min(int(row), 3), min(int(column), 5)]


def test_a_map_of_the_whole_covers_the_image_whatever_the_model_saw() -> None:
    maps = np.random.default_rng(5).random((2, 6, 10), np.float32)
    resized = np.array([3.0, 0.25, 0, 0, 20, 12])
    found = MapToImage(whole=True)(maps, resized)
    np.testing.assert_array_equal(found, MapToImage()(maps, np.array([0.5, 0.5, 0, 0, 20, 12])))
    with pytest.raises(UsageError, match="exclude each other"):
        MapToImage(stride=2, whole=True)


def test_a_pixel_is_of_the_best_thing_whose_mask_covers_it_within_its_box() -> None:
    dice = np.random.default_rng(2)
    protos, rest = dice.standard_normal((5, 4, 6)), dice.standard_normal((6, 5))
    corners = dice.uniform(-4, 35, (6, 2, 2))
    boxes = np.concatenate([corners.min(1), corners.max(1)], 1)
    boxes[4] = [9, 9, 2, 2]  # no box
    found = Masks()(rest, protos[None], boxes, TRANSFORM)
    maps = np.einsum("nk,khw->nhw", rest, protos)
    for y in range(22):
        for x in range(31):
            covering = [
                number
                for number, (left, top, right, bottom) in enumerate(boxes, 1)
                if left <= x < right and top <= y < bottom and at(maps[number - 1], *in_map(TRANSFORM, 4, y, x)) > 0
            ]
            assert found[y, x] == min(covering, default=0), (y, x)
    assert len(np.unique(found)) > 4


def test_without_boxes_nothing_is_covered() -> None:
    found = Masks()(np.zeros((0, 5), np.float32), np.ones((5, 4, 6), np.float32), [], TRANSFORM)
    assert found.shape == (22, 31)
    assert not found.any()


@pytest.mark.parametrize(("rest", "protos", "boxes"), [
    (np.ones((1, 4)), np.ones((5, 4, 6)), np.ones((1, 4))), (np.ones((2, 5)), np.ones((5, 4, 6)), np.ones((1, 4))),
    (np.ones((1, 5)), np.ones((5, 4)), np.ones((1, 4))), (np.ones((1, 5)), np.ones((5, 0, 6)), np.ones((1, 4))),
    (np.ones((256, 5)), np.ones((5, 4, 6)), np.ones((256, 4))),
    (np.ones((1, 5)), np.ones((5, 4, 6)), np.full((1, 4), math.nan)),
])  # fmt: skip
def test_masks_of_other_numbers_are_refused(rest, protos, boxes) -> None:
    with pytest.raises(InputError):
        Masks()(rest, protos, boxes, TRANSFORM)


def read(data):
    return np.asarray(PIL.open(io.BytesIO(data)))


def test_a_map_is_a_grey_picture_of_its_numbers() -> None:
    numbers = np.arange(12).reshape(1, 3, 4)
    assert read(EncodeMap()(numbers)).tolist() == numbers[0].tolist()
    assert read(EncodeMap(deep=True)(numbers * 5000)).tolist() == (numbers[0] * 5000).tolist()
    assert read(EncodeMap()(numbers.astype(np.float32))).tolist() == numbers[0].tolist()


@pytest.mark.parametrize(("deep", "most"), [(False, 255), (True, 65535)])
def test_depths_are_spread_over_what_the_picture_holds(deep, most) -> None:
    depths = np.array([[-3.0, 1.0], [0.25, 5.0]], np.float32)
    want = [[round((depth + 3) / 8 * most) for depth in row] for row in depths.tolist()]
    assert read(EncodeMap(deep, spread=True)(depths)).tolist() == want
    assert not read(EncodeMap(deep, spread=True)(np.full((2, 3), 7.0))).any()


@pytest.mark.parametrize("numbers", [
    [[256]], [[-1]], [[0.5]], [[math.nan]], [1, 2], np.zeros((2, 3, 3)), np.zeros((0, 3)), [["a"]],
])  # fmt: skip
def test_a_map_that_a_picture_cannot_hold_is_refused(numbers) -> None:
    with pytest.raises(InputError):
        EncodeMap()(numbers)


@pytest.mark.parametrize("values", [[1.0, 2.0], np.zeros((0, 4)), np.zeros((1 << 20, 2, 2), np.uint8), [["a"]]])
def test_another_value_is_no_map(values) -> None:
    transform = np.array([1, 1, 0, 0, 100, 100], np.float64)
    with pytest.raises(InputError):
        MapToImage(1)(values, transform)
