# SPDX-License-Identifier: Apache-2.0
"""Cases of values between elements, of sound, and of boxes."""

from collections.abc import Iterator
from itertools import product

import numpy as np
from onnx import TensorProto

from oracle.cases.case import Case, Fixed, floats, one

F32, F64, F16 = np.float32, np.float64, np.float16
MODES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric")


def cases() -> Iterator[Case]:
    yield from _resized()
    yield from _resized_otherwise()
    yield from _sampled()
    yield from _regions()
    yield from _sound()
    yield from _boxes()


def _sizes(*values: int) -> Fixed:
    return Fixed(np.array(values, np.int64))


def _scales(*values: float) -> Fixed:
    return Fixed(np.array(values, F32))


def _resized() -> Iterator[Case]:
    for mode, at, out in product(("nearest", "linear", "cubic"), MODES, ((3, 7), (8, 2), (1, 1))):
        x = floats(1, 1, 4, 5)
        yield one("Resize", 19, x, None, None, _sizes(1, 1, *out), mode=mode, coordinate_transformation_mode=at)
    for mode, at, scale in product(("nearest", "linear", "cubic"), MODES[:4], (2.0, 0.5)):
        x = floats(1, 2, 4, 6)
        yield one("Resize", 13, x, None, _scales(1, 1, scale, scale), mode=mode, coordinate_transformation_mode=at)
    for near, scale in product(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"), (1.5, 2.0, 0.7)):
        yield one(
            "Resize", 18, floats(1, 1, 3, 4), None, _scales(1, 1, scale, scale), mode="nearest", nearest_mode=near
        )
    for mode, scale in product(("linear", "cubic"), (0.6, 0.5, 1.5)):
        yield one("Resize", 18, floats(1, 1, 5, 6), None, _scales(1, 1, scale, scale), mode=mode, antialias=1)
    for outside, a in ((1, -0.5), (0, -0.5), (1, -0.75)):
        yield one(
            "Resize", 13, floats(1, 1, 4, 4), None, _scales(1, 1, 2, 1.5), mode="cubic", exclude_outside=outside,
            cubic_coeff_a=a,
        )  # fmt: skip


def _resized_otherwise() -> Iterator[Case]:
    x = floats(1, 1, 4, 4)
    roi = Fixed(np.array([0, 0, 0.25, -0.5, 1, 1, 0.75, 1.5], F32))
    for mode in ("linear", "nearest", "cubic"):
        yield one(
            "Resize", 13, x, roi, None, _sizes(1, 1, 3, 6), mode=mode,
            coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=9.0,
        )  # fmt: skip
    for policy, axes in product(("not_larger", "not_smaller"), (None, [2, 3])):
        out = _sizes(7, 8) if axes else _sizes(1, 1, 7, 8)
        yield one(
            "Resize", 18, floats(1, 1, 2, 4), None, None, out, keep_aspect_ratio_policy=policy, axes=axes,
            mode="nearest",
        )  # fmt: skip
    yield one("Resize", 18, x, None, _scales(0.5, 2), axes=[3, 2], mode="linear")
    yield one("Resize", 19, floats(1, 1, 4, 3, dtype=F64), None, _scales(1, 1, 2, 2), mode="linear")
    yield one("Resize", 19, floats(1, 1, 4, 3, dtype=F16), None, _scales(1, 1, 2, 2), mode="linear")
    yield one("Resize", 13, floats(2, 1, 5), None, _scales(1, 1, 2), mode="linear")
    yield one("Resize", 13, floats(1, 1, 2, 3, 2), None, _scales(1, 1, 2, 1, 1.5), mode="linear")
    yield one("Resize", 13, floats(3, 4), None, _scales(2, 0.5), mode="linear", note="rank 2")
    yield one(
        "Resize", 13, np.arange(12, dtype=np.uint8).reshape(1, 1, 3, 4), None, _scales(1, 1, 2, 2), mode="nearest"
    )
    yield one("Resize", 13, x, None, None, np.array([1, 1, 6, 2]), mode="linear", note="sizes are an input")
    for mode in ("nearest", "linear"):
        yield one("Resize", 10, x, _scales(1, 1, 2, 0.5), mode=mode)
        yield one("Resize", 11, x, _scales(), _scales(1, 1, 2, 2), mode=mode)
        yield one("Resize", 11, x, _scales(), _scales(), _sizes(1, 1, 3, 6), mode=mode)
        yield one("Upsample", 7, x, scales=[1.0, 1.0, 2.0, 1.5], mode=mode)
        yield one("Upsample", 9, x, _scales(1, 1, 1.5, 2), mode=mode)
    for near in ("floor", "ceil", "round_prefer_floor"):
        yield one(
            "Resize", 11, x, _scales(), _scales(1, 1, 1.5, 0.6), coordinate_transformation_mode="tf_half_pixel_for_nn",
            nearest_mode=near,
        )  # fmt: skip
    yield one("Upsample", 1, x, height_scale=2.0, width_scale=1.5)
    yield one("Upsample", 1, x, height_scale=2.0, width_scale=3.0, mode="bilinear")


def _sampled() -> Iterator[Case]:
    grid = floats(1, 3, 4, 2) / F32(2) + F32(0.01)
    for mode, pad, corners in product(("linear", "nearest", "cubic"), ("zeros", "border", "reflection"), (0, 1)):
        yield one("GridSample", 20, floats(1, 2, 4, 5), grid, mode=mode, padding_mode=pad, align_corners=corners)
    for mode in ("bilinear", "nearest", "bicubic"):
        yield one("GridSample", 16, floats(1, 1, 4, 5), grid, mode=mode)
    for mode, pad in product(("linear", "nearest"), ("zeros", "border", "reflection")):
        yield one(
            "GridSample", 22, floats(1, 1, 2, 3, 2), floats(1, 2, 2, 2, 3) / F32(2) + F32(0.01), mode=mode,
            padding_mode=pad,
        )  # fmt: skip
    yield one("GridSample", 20, floats(1, 2, 4, 5, dtype=F64), grid.astype(F64))
    for corners in (0, 1):
        yield one("AffineGrid", 20, floats(2, 2, 3), _sizes(2, 1, 3, 4), align_corners=corners)
        yield one("AffineGrid", 20, floats(1, 3, 4), _sizes(1, 1, 2, 3, 2), align_corners=corners)


def _regions() -> Iterator[Case]:
    rois = np.array([[0, 0, 4, 4], [1, 2, 5, 7], [-1, -1, 3, 2], [2.5, 1.25, 2.75, 1.5]], F32)
    batches = np.array([0, 1, 0, 1])
    for opset, ratio in product((10, 16), (0, 2)):
        yield one(
            "RoiAlign", opset, floats(2, 2, 8, 6), rois, batches, output_height=2, output_width=3, sampling_ratio=ratio
        )
    for mode in ("half_pixel", "output_half_pixel"):
        yield one(
            "RoiAlign", 22, floats(2, 1, 6, 6), rois, batches, spatial_scale=0.5, coordinate_transformation_mode=mode,
            output_height=2, output_width=2,
        )  # fmt: skip
    yield one("RoiAlign", 16, floats(2, 1, 6, 6), rois, np.array([0, 1, 0, 2]), note="batch out of range")


def _sound() -> Iterator[Case]:
    for onesided, inverse in ((0, 0), (1, 0), (0, 1)):
        yield one("DFT", 20, floats(2, 5, 1), onesided=onesided, inverse=inverse)
        yield one("DFT", 17, floats(2, 6, 1), axis=1, onesided=onesided, inverse=inverse)
    yield one("DFT", 20, floats(2, 5, 2), inverse=1)
    yield one("DFT", 20, floats(2, 4, 3, 2), None, Fixed(np.array(1)))
    yield one("DFT", 20, floats(2, 4, 3, 2), None, Fixed(np.array(-3)))
    for length in (3, 5, 8):
        yield one("DFT", 20, floats(1, 5, 1), Fixed(np.array(length)))
        yield one("DFT", 17, floats(1, 5, 2), Fixed(np.array(length)), inverse=1)
    yield one("DFT", 20, floats(1, 4, 1, dtype=F64))
    yield one("DFT", 20, floats(1, 4, 2), onesided=1, inverse=1)
    yield one("DFT", 20, floats(1, 4, 2), Fixed(np.array(7)), onesided=1, inverse=1)
    for onesided in (0, 1):
        yield one(
            "STFT", 17, floats(1, 12, 1), Fixed(np.array(4)), Fixed(np.abs(floats(5))), Fixed(np.array(5)),
            onesided=onesided,
        )  # fmt: skip
    yield one("STFT", 17, floats(2, 9, 1), Fixed(np.array(2)), None, Fixed(np.array(4)))
    yield one("STFT", 17, floats(1, 8, 2), Fixed(np.array(3)), Fixed(np.abs(floats(4))), onesided=0)
    for name, periodic in product(("HannWindow", "HammingWindow", "BlackmanWindow"), (0, 1)):
        yield one(name, 17, np.array(7), periodic=periodic)
    yield one("HannWindow", 17, np.array(4, np.int32), output_datatype=TensorProto.DOUBLE)
    yield one(
        "MelWeightMatrix", 17, *(np.array(v, np.int64) for v in (6, 32, 8000)), np.array(100.0, F32),
        np.array(3600.0, F32),
    )  # fmt: skip


def _boxes() -> Iterator[Case]:
    boxes = np.array(
        [[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]], F32
    )
    scores = np.array([[[0.9, 0.75, 0.6, 0.95, 0.5, 0.3], [0.1, 0.9, 0.9, 0.2, 0.8, 0.8]]], F32)
    most, iou, least = Fixed(np.array(3)), Fixed(np.array(0.5, F32)), Fixed(np.array(0.35, F32))
    for opset in (10, 11):
        yield one("NonMaxSuppression", opset, boxes, scores, most, iou, least)
    yield one("NonMaxSuppression", 11, boxes, scores, most, iou)
    yield one("NonMaxSuppression", 11, boxes, scores, most)
    yield one("NonMaxSuppression", 11, boxes, scores)
    yield one("NonMaxSuppression", 11, boxes[..., [2, 3, 0, 1]], scores, most, iou, note="corners the other way")
    centred = np.array(
        [[
            [0.5, 0.5, 1, 1], [0.5, 0.6, 1, 1], [0.5, 0.4, 1, 1], [0.5, 10.5, 1, 1], [0.5, 10.6, 1, 1],
            [0.5, 100.5, 1, 1],
        ]],
        F32,
    )  # fmt: skip
    yield one("NonMaxSuppression", 11, centred, scores, most, iou, least, center_point_box=1)
    yield one(
        "NonMaxSuppression", 11, np.repeat(boxes[:, :1], 4, 1), np.full((1, 1, 4), 0.9, F32), most, iou,
        note="equal boxes and scores",
    )  # fmt: skip
    yield one("NonMaxSuppression", 11, np.zeros((1, 0, 4), F32), np.zeros((1, 2, 0), F32), most, iou, note="no boxes")
