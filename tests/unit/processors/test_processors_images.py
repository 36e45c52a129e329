# SPDX-License-Identifier: Apache-2.0
"""Images: sizes, transforms that lead back, numbers for models, crops; each against a direct computation."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from nndeploy.errors import InputError, UsageError
from nndeploy.processors.builtin.crop_quads import CropQuads, perspective, size_of_quad
from nndeploy.processors.builtin.letterbox import Letterbox
from nndeploy.processors.builtin.map_back import MapBack
from nndeploy.processors.builtin.resize import Resize

sides = st.integers(1, 60)


def picture(width=9, height=6, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def encoded(image, kind="PNG", **options) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image).save(file, kind, **options)
    return file.getvalue()


def test_decode_gives_upright_rgb(step) -> None:
    image = picture()
    assert np.array_equal(step("decode")({"data": encoded(image)})["image"], image)
    exif = Image.Exif()
    exif[0x0112] = 6
    assert step("decode")({"data": encoded(image, "JPEG", exif=exif)})["image"].shape == (9, 6, 3)
    grey = Image.new("L", (3, 2), 7)
    file = io.BytesIO()
    grey.save(file, "PNG")
    assert step("decode")({"data": file.getvalue()})["image"].tolist() == [[[7, 7, 7]] * 3] * 2


@pytest.mark.parametrize("data", [b"", b"hello", encoded(picture())[:40], 3])
def test_decode_refuses_what_is_no_image(step, data) -> None:
    with pytest.raises(InputError, match="step 'decode'"):
        step("decode")({"data": data})


def test_encode_image_is_undone_by_decode(step) -> None:
    image = picture()
    data = step("encode-image")({"image": image})["data"]
    assert np.array_equal(step("decode")({"data": data})["image"], image)
    flat = np.full((8, 8, 3), 90, np.uint8)
    data = step("encode-image", format="jpeg", quality=95)({"image": flat})["data"]
    assert data.startswith(b"\xff\xd8")
    assert abs(step("decode")({"data": data})["image"].astype(int) - 90).max() <= 1


@pytest.mark.parametrize("image", [np.zeros((2, 2)), np.zeros((2, 2, 3)), np.zeros((0, 2, 3), np.uint8), [1]])
def test_what_is_no_image_is_refused_with_its_shape(step, image) -> None:
    with pytest.raises(InputError, match=r"image (is|are) (uint8 \(height|empty)"):
        step("resize", width=2, height=2)({"image": image})


def test_resize_gives_the_size_and_the_transform(step) -> None:
    made = step("resize", width=18, height=3)({"image": picture()})
    assert made["image"].shape == (3, 18, 3)
    assert made["transform"].tolist() == [2, 0.5, 0, 0, 9, 6]
    same = picture()
    assert step("resize", width=9, height=6)({"image": same})["image"] is same


def test_resize_takes_all_pixels_under_one(step) -> None:
    stripes = np.zeros((8, 80, 3), np.uint8)
    stripes[:, ::2] = 255
    small = step("resize", width=10, height=2)({"image": stripes})["image"]
    assert abs(small.astype(int) - 127).max() <= 12  # a filter of two pixels a side would give 0 or 255


# what OpenCV 5.0 gives: cv2.resize(image, size) of numbers that are 37 x their place, by 256
OPENCV = {
    (3, 4): "4b70954e739851769b567ba0597ea35c81a66186ab658aaf688db26d92b77095ba739872",
    (9, 2): (
        "072c5150759aa75a7fc4224754799eaacf2d72974a577ca1a1c6eb1d4267678cb1a17196a9395e6a8fb4c1b4438991616d92a2b7dcc1"
    ),
    (11, 8): (
        "00254a32577c7987acc02a4fa92b504d729793b93b94b924385d6b678cb29abfe404294e365b807d8bb0c42e53ad2f54"
        "51769b98bc3f98bd283c616f6b90b59ec3e8092e543c61868290b5c93459b3355a567ca19dc2449ec32e4267747196bb"
        "a4c9ed0f345942668b8896bbcf3a5fb83a5f5c81a6a3c84aa3c933476c7a779bc1a9cef3153a5f476c918e9cc1d43f64"
        "be40656287aca8cd50a9ce394d72807ca1c6afd4f91a3f644d729793a1c6da456ac3466b678cb1aed355afd43f527785"
        "82a7ccb4d9fe20456a52779d8ca7cc774a706e4b706d92b7b47d5bb4714458708b87ad83badf7424496e567ba086abd0"
        "2a4e732a4f747196bbb73a5fb823485c6a8f8bb04abee308"
    ),
}


@pytest.mark.parametrize("size", OPENCV)
def test_without_antialiasing_the_bytes_are_those_of_opencv(step, size) -> None:
    image = (np.arange(5 * 7 * 3).reshape(5, 7, 3) * 37 % 256).astype(np.uint8)
    made = step("resize", width=size[0], height=size[1], antialias=False)({"image": image})["image"]
    assert made.tobytes().hex() == OPENCV[size]


@given(sides, sides, sides, sides)
def test_without_antialiasing_the_two_nearest_middles_are_taken(width, height, to_width, to_height) -> None:
    image = picture(width, height)
    found = Resize(to_width, to_height, antialias=False)(image)[0]
    want = [
        [bilinear(image, (x + 0.5) * width / to_width, (y + 0.5) * height / to_height) for x in range(to_width)]
        for y in range(min(to_height, 4))
    ]
    assert abs(found[:4] - np.array(want)).max() <= 1


@pytest.mark.parametrize("use", [{"use": "resize", "width": 2, "height": 2}, {"use": "scale", "width": 2}])
def test_only_bilinear_goes_without_antialiasing(step, use) -> None:
    with pytest.raises(UsageError, match='"bilinear", not "box"'):
        step(use.pop("use"), **use, antialias=False, filter="box")


def test_pad_fills_up_to_a_least_size(step) -> None:
    image = picture()
    padded = step("pad", width=12, height=4, fill=7)({"tensor": image})["tensor"]
    assert padded.dtype == np.uint8
    assert np.array_equal(padded[:, :9], image)
    assert (padded[:, 9:] == 7).all()
    assert step("pad", width=9)({"tensor": image})["tensor"] is image
    assert step("pad", height=8)({"tensor": image.astype(np.float32)})["tensor"].shape == (8, 9, 3)
    with pytest.raises(InputError, match=r"padded is \(H, W, C\)"):
        step("pad", width=3)({"tensor": np.zeros(3)})


def test_turn_undoes_the_likeliest_angle_where_it_is_sure(step) -> None:
    image = picture()
    for quarters in range(4):
        likely = np.where(np.arange(4) == quarters, 0.95, 0.01)[np.newaxis]
        turned = np.rot90(image, -quarters)
        found = step("turn", angles=[0, 90, 180, 270])({"image": turned, "probabilities": likely})["image"]
        assert np.array_equal(found, image)
    upside_down = {"image": image, "probabilities": [0.2, 0.8]}
    assert step("turn")(upside_down)["image"] is image
    assert np.array_equal(step("turn", threshold=0.5)(upside_down)["image"], image[::-1, ::-1])
    with pytest.raises(InputError, match="2 angles, but 3 probabilities"):
        step("turn")({"image": image, "probabilities": [0.2, 0.7, 0.1]})
    with pytest.raises(UsageError, match="must be 0, 90, 180 or 270"):
        step("turn", angles=[0, 45])


@given(sides, sides, sides, sides, st.booleans(), st.sampled_from(["centre", "top-left"]))
def test_a_letterbox_keeps_proportions_and_maps_back_exactly(
    width, height, to_width, to_height, enlarge, place
) -> None:
    image = np.full((height, width, 3), 200, np.uint8)
    found, transform = Letterbox(to_width, to_height, (1, 2, 3), place, enlarge)(image)
    assert found.shape == (to_height, to_width, 3)
    is_image = (found == 200).all(axis=2)
    rows, columns = np.flatnonzero(is_image.any(axis=1)), np.flatnonzero(is_image.any(axis=0))
    inside = (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
    assert is_image.sum() == len(rows) * len(columns)
    assert (found[~is_image] == (1, 2, 3)).all()
    scale = min(to_width / width, to_height / height, 1 if not enlarge else np.inf)
    assert abs(len(columns) - width * scale) <= 0.5 or len(columns) == 1
    assert abs(len(rows) - height * scale) <= 0.5 or len(rows) == 1
    back = MapBack(clip=False)(np.array([inside], np.float32), transform)
    np.testing.assert_allclose(back, [[0, 0, width, height]], atol=1e-4)


@given(sides, sides, sides, sides, st.lists(st.tuples(*[st.floats(0, 1)] * 4), max_size=5))
def test_boxes_map_back_to_where_they_were(width, height, to_width, to_height, fractions) -> None:
    image = np.zeros((height, width, 3), np.uint8)
    boxes = np.array(fractions, np.float64).reshape(-1, 4) * (width, height, width, height)
    _, transform = Letterbox(to_width, to_height)(image)
    there = boxes * np.tile(transform[:2], 2) + np.tile(transform[2:4], 2)
    back = MapBack()(there.astype(np.float32), transform)
    assert back.shape == boxes.shape
    np.testing.assert_allclose(back, boxes, atol=1e-3)


def test_map_back_takes_any_points_and_clips(step) -> None:
    transform = np.array([2, 2, 10, 0, 100, 50], np.float64)
    quads = np.array([[[10, 0], [210, 0], [400, 400], [0, 100]]], np.float32)
    fields = {"quads": quads, "transform": transform}
    back = step("map-back", **{"in": ["quads", "transform"], "out": ["quads"]})(fields)["quads"]
    assert back.tolist() == [[[0, 0], [100, 0], [100, 50], [0, 50]]]
    assert step("map-back", clip=False)({"boxes": quads, "transform": transform})["boxes"][0, 2].tolist() == [195, 200]
    assert step("map-back")({"boxes": [], "transform": transform})["boxes"].shape == (0,)
    with pytest.raises(InputError, match="six finite numbers"):
        step("map-back")({"boxes": quads, "transform": np.zeros(6)})
    with pytest.raises(InputError, match=r"last axis must be x, y"):
        step("map-back")({"boxes": np.zeros((2, 3)), "transform": transform})


@pytest.mark.parametrize(("parameters", "size"), [
    ({"width": 18}, (18, 12)), ({"height": 12}, (18, 12)), ({"longest": 90}, (90, 60)),
    ({"longest_at_most": 90}, (9, 6)), ({"longest_at_most": 3}, (3, 2)),
    ({"longest_at_most": 100, "multiple": 32}, (32, 32)), ({"height": 64, "multiple": 32}, (96, 64)),
    ({"height": 12, "width_at_most": 10}, (10, 12)), ({"longest": 1}, (1, 1)),
])  # fmt: skip
def test_scale_keeps_proportions(step, parameters, size) -> None:
    made = step("scale", **parameters)({"image": picture()})
    assert made["image"].shape == (size[1], size[0], 3)
    assert made["transform"].tolist() == [size[0] / 9, size[1] / 6, 0, 0, 9, 6]


def test_normalise_is_the_formula(step) -> None:
    image = picture()
    mean, std = [0.4, 0.5, 0.6], [0.2, 0.3, 0.4]
    found = step("normalise", mean=mean, std=std, divide_by=255)({"image": image})["tensor"]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, (image / 255.0 - mean) / std, rtol=1e-5, atol=1e-6)
    one = step("normalise", mean=[127], std=[128])({"image": image})["tensor"]
    np.testing.assert_allclose(one, (image - 127.0) / 128, atol=1e-6)
    with pytest.raises(InputError, match="mean has 2 numbers, the image 3 channels"):
        step("normalise", mean=[1, 2])({"image": image})


def test_normalise_takes_frames_of_features(step) -> None:
    frames = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = step("normalise", mean=[1, 2, 3], std=[2, 4, 8])({"image": frames})["tensor"]
    np.testing.assert_allclose(found, (frames - [1, 2, 3]) / [2, 4, 8])
    assert step("normalise")({"image": frames[:0]})["tensor"].shape == (0, 3)
    with pytest.raises(InputError, match="std has 2 numbers, the frames 3 channels"):
        step("normalise", std=[1, 2])({"image": frames})
    with pytest.raises(InputError, match=r"is \(H, W, C\) or \(N, C\) of numbers, this is float32 \(3\)"):
        step("normalise")({"image": frames[0]})


def test_layout_moves_axes_and_channels(step) -> None:
    image = picture()
    made = step("layout", **{"in": ["image"]})({"image": image})["tensor"]
    assert made.shape == (1, 3, 6, 9)
    assert made.flags.c_contiguous
    assert np.array_equal(made[0, 2], image[:, :, 2])
    swapped = step("layout", channels="BGR", order="HWC", batch=False)({"tensor": image})["tensor"]
    assert np.array_equal(swapped, image[:, :, ::-1])
    with pytest.raises(InputError, match=r"before layout is \(H, W, C\)"):
        step("layout")({"tensor": made})


def test_layout_gives_brightness_as_one_channel(step) -> None:
    image = np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [10, 10, 10]]], np.float32)
    made = step("layout", channels="L")({"tensor": image})["tensor"]
    assert made.shape == (1, 1, 2, 2)
    assert made.dtype == np.float32
    np.testing.assert_allclose(made[0, 0], [[76.245, 149.685], [29.07, 10]], rtol=1e-6)
    with pytest.raises(InputError, match=r"brightness is made of \(H, W, 3\)"):
        step("layout", channels="L")({"tensor": made[0]})


def test_to_image_undoes_normalise_and_layout(step) -> None:
    image = picture()
    fields = {"image": image}
    for name, parameters in (("normalise", {"divide_by": 255}), ("layout", {"channels": "BGR"})):
        fields |= step(name, **parameters)(fields)
    assert np.array_equal(step("to-image", channels="BGR")(fields)["image"], image)
    grey = step("to-image", multiply=1, add=10)({"tensor": np.array([[[[-20, 3.4], [np.nan, 900]]]])})["image"]
    assert grey[:, :, 0].tolist() == [[0, 13], [0, 255]]
    assert np.array_equal(grey[:, :, 0], grey[:, :, 2])
    with pytest.raises(InputError, match="one or three channels"):
        step("to-image")({"tensor": np.zeros((2, 5, 5))})


def test_crop_takes_the_pixels_that_a_box_touches(step) -> None:
    image = picture(20, 10)
    boxes = [[1.2, 2.0, 4.0, 5.5], [-5, -5, 3, 3], [18, 8, 99, 99], [30, 30, 40, 40], [5, 5, 5, 5], [7, 7, 6, 6]]
    crops = step("crop")({"image": image, "boxes": boxes})["crops"]
    assert np.array_equal(crops[0], image[2:6, 1:4])
    assert np.array_equal(crops[1], image[:3, :3])
    assert np.array_equal(crops[2], image[8:, 18:])
    assert [crop.shape for crop in crops[3:]] == [(1, 1, 3)] * 3
    assert step("crop")({"image": image, "boxes": []})["crops"] == []


def test_crop_can_widen_and_square(step) -> None:
    image = picture(40, 40)
    boxes = np.array([[10, 10, 20, 14]], np.float32)
    assert np.array_equal(step("crop", margin=0.5)({"image": image, "boxes": boxes})["crops"][0], image[8:16, 5:25])
    assert np.array_equal(step("crop", square=True)({"image": image, "boxes": boxes})["crops"][0], image[7:17, 10:20])


def bilinear(image, x, y):
    """Returns the pixel at a point, between centres, edges continued; black outside."""
    height, width = image.shape[:2]
    if not (0 <= x < width and 0 <= y < height):
        return np.zeros(3)
    x, y = x - 0.5, y - 0.5
    left, top = int(np.floor(x)), int(np.floor(y))
    total = np.zeros(3)
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        weight = abs(1 - i - (x - left)) * abs(1 - j - (y - top))
        total += weight * image[min(max(top + j, 0), height - 1), min(max(left + i, 0), width - 1)].astype(float)
    return total


@pytest.mark.parametrize("quad", [
    [[2, 3], [22, 3], [22, 11], [2, 11]], [[3.5, 2.25], [24.5, 6.5], [22.25, 15.75], [1.5, 10.5]],
    [[5, 2], [25, 0.5], [28, 17], [2, 12]], [[-4, -3], [14, 2], [12, 12], [-3, 9]],
])  # fmt: skip
def test_crop_quads_is_a_direct_bilinear_lookup(step, quad) -> None:
    image = picture(30, 20)
    crop = step("crop-quads")({"image": image, "quads": [quad]})["crops"][0]
    corners = np.array(quad, np.float64)
    width, height = size_of_quad(corners, 99)
    assert crop.shape == (height, width, 3)
    a, b, c, d, e, f, g, h = perspective((width, height), corners)
    want = np.zeros(crop.shape)
    for row in range(height):
        for column in range(width):
            x, y = column + 0.5, row + 0.5
            depth = g * x + h * y + 1
            want[row, column] = bilinear(image, (a * x + b * y + c) / depth, (d * x + e * y + f) / depth)
    assert abs(crop - want).max() <= 1  # rounded


@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(-50, 50)), min_size=4, max_size=4))
def test_the_perspective_meets_the_corners(points) -> None:
    quad = np.array(points)
    size = size_of_quad(quad, 99)
    found = perspective(size, quad)
    if found is None:
        return
    a, b, c, d, e, f, g, h = found
    for (x, y), corner in zip(((0, 0), (size[0], 0), size, (0, size[1])), quad, strict=True):
        depth = g * x + h * y + 1
        if max(map(abs, found)) < 1e4 and abs(depth) > 1e-3:
            np.testing.assert_allclose([(a * x + b * y + c) / depth, (d * x + e * y + f) / depth], corner, atol=1e-4)


def test_lines_that_run_downwards_are_laid_down(step) -> None:
    image = picture(30, 60)
    quad = [[2, 3], [12, 3], [12, 43], [2, 43]]
    fields = {"image": image, "quads": [quad, [[1, 1]] * 4]}
    laid, point = step("crop-quads")(fields)["crops"]
    assert np.array_equal(laid, np.rot90(image[3:43, 2:12]))
    assert point.shape == (1, 1, 3)
    assert np.array_equal(step("crop-quads", upright_above=9)(fields)["crops"][0], image[3:43, 2:12])


@settings(max_examples=30)
@given(st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 8), max_size=2))
def test_any_quadrilateral_gives_a_crop(quads) -> None:
    crops = CropQuads()(picture(), np.array(quads, np.float32).reshape(-1, 4, 2))
    assert len(crops) == len(quads)
    assert all(crop.size for crop in crops)


def test_a_constant_is_the_same_with_every_record(step) -> None:
    rate = step("constant", value=16000, dtype="int64", out=["sr"])
    assert rate({})["sr"].dtype == np.int64
    assert rate({})["sr"].shape == ()
    matrix = step("constant", value=[[1, 2.5], [3, 4]])({})["value"]
    assert matrix.tolist() == [[1, 2.5], [3, 4]]
    with pytest.raises(ValueError, match="read-only"):
        matrix[0, 0] = 9
