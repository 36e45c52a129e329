# SPDX-License-Identifier: Apache-2.0
"""Resize in its many modes."""

import numpy as np
import pytest
from against_oracle import check, reals, whole

COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
SIZES = [((3, 4), (6, 8)), ((4, 6), (2, 3)), ((5, 5), (7, 3)), ((4, 3), (4, 9)), ((3, 3), (1, 1))]


@pytest.mark.parametrize(("size", "out", "attributes"), [
    *((size, out, f'mode = "{mode}", coordinate_transformation_mode = "{coordinates}"')
      for mode in ("nearest", "linear", "cubic") for coordinates in COORDINATES for size, out in SIZES),
    *(((4, 5), (7, 8), f'mode = "nearest", nearest_mode = "{nearest}"')
      for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")),
    *(((9, 7), (4, 5), f'mode = "{mode}", antialias = {smooth}, exclude_outside = {outside}')
      for mode, smooth, outside in (("linear", 1, 0), ("linear", 1, 1), ("cubic", 1, 0), ("cubic", 0, 1),
                                    ("cubic", 1, 1))),
])  # fmt: skip
def test_resize_agrees(size: tuple, out: tuple, attributes: str) -> None:
    body, constants = f"y = Resize <{attributes}> (x, , , sizes)", {"sizes": whole(1, 2, *out)}
    check(body, {"x": reals(1, 2, *size)}, constants, opset=19, num_launches=1, magnitude=20.0, depth=32)


def test_given_scales_count_rather_than_the_ratio_of_sizes() -> None:
    scales = {"s": np.array([1, 1, 1.5, 1.9], np.float32)}
    body = 'y = Resize <mode = "linear"> (x, , s)'
    check(body, {"x": reals(1, 1, 3, 3)}, scales, opset=19, magnitude=20.0, depth=16)


def test_upsample_of_an_old_opset_takes_the_place_to_the_left_and_above() -> None:
    scales = {"s": np.array([1, 1, 2, 2], np.float32)}
    check("y = Upsample (x, s)", {"x": reals(1, 2, 2, 3)}, scales, opset=9, exact=True)
