# SPDX-License-Identifier: Apache-2.0
"""Drawings: lines where the boxes are, names that can be read, the picture itself untouched."""

import numpy as np
import pytest

from nndeploy.errors import InputError
from nndeploy.processors.builtin.draw import COLOURS


@pytest.fixture
def canvas():
    return np.zeros((100, 160, 3), np.uint8)


def is_drawn(image):
    return (image != 0).any(axis=2)


def test_a_box_is_drawn_on_its_border_and_nowhere_else(step, canvas) -> None:
    made = step("draw", show=["boxes"], line=1)({"image": canvas, "boxes": [[20, 30, 60, 70]]})["image"]
    drawn = is_drawn(made)
    assert drawn[30, 20:61].all()
    assert drawn[70, 20:61].all()
    assert drawn[30:71, 20].all()
    assert drawn[30:71, 60].all()
    assert not drawn[31:70, 21:60].any()
    assert drawn.sum() == 2 * 41 + 2 * 39
    assert tuple(made[30, 40]) == COLOURS[0]
    assert not canvas.any()


def test_quads_are_drawn_along_their_sides(step, canvas) -> None:
    quad = [[10, 10], [50, 30], [50, 60], [10, 40]]
    drawn = is_drawn(step("draw", show=["quads"], line=1)({"image": canvas, "quads": [quad]})["image"])
    for x, y in ((10, 10), (30, 20), (50, 30), (50, 45), (30, 50), (10, 25)):
        assert drawn[y - 1 : y + 2, x - 1 : x + 2].any()
    assert not drawn[30:40, 20:40].any()


def test_a_label_has_its_own_colour_and_stands_above_its_box(step, canvas) -> None:
    fields = {"image": canvas, "boxes": [[20, 50, 60, 90], [90, 50, 130, 90]], "labels": ["cat", "dog"]}
    made = step("draw", show=["boxes", "labels"])(fields)["image"]
    assert is_drawn(made[36:49, 21:40]).any()
    colours = [tuple(made[89, x].tolist()) for x in (20, 90)]
    assert colours[0] != colours[1]
    assert set(colours) < set(COLOURS)
    fields["labels"] = ["dog", "cat"]
    again = step("draw", show=["boxes", "labels"])(fields)["image"]
    assert [tuple(again[89, x].tolist()) for x in (20, 90)] == colours[::-1]


def test_what_sticks_out_is_moved_into_the_picture(step, canvas) -> None:
    fields = {
        "image": canvas, "boxes": [[-50, -50, 500, 500]], "labels": ["a label\nthat 中 is long" * 9], "scores": [1],
    }  # fmt: skip
    made = step("draw", letters=200)(fields)["image"]
    assert made.shape == canvas.shape
    assert is_drawn(made).any()


def test_labels_alone_stand_in_the_corner(step, canvas) -> None:
    fields = {"image": canvas, "labels": ["cat", "dog"], "scores": np.array([0.9, 0.1])}
    drawn = is_drawn(step("draw", show=["labels", "scores"])(fields)["image"])
    assert drawn[:20, :40].any()
    assert not drawn[60:].any()
    one = step("draw", show=["labels"])({"image": canvas, "labels": "read this"})["image"]
    assert is_drawn(one).any()


def test_nothing_found_is_the_picture(step, canvas) -> None:
    fields = {"image": canvas, "boxes": np.zeros((0, 4)), "labels": [], "scores": []}
    assert not step("draw")(fields)["image"].any()


@pytest.mark.parametrize(("change", "message"), [
    ({"labels": ["a"]}, "there are 1 labels, but 2 scores"),
    ({"labels": ["a"] * 3, "scores": [1] * 3}, "there are 2 shapes, but 3 labels or scores"),
    ({"boxes": [[0, 0, 1, np.inf]] * 2}, "NaN or infinity"),
    ({"image": 3}, "an image is uint8"),
])  # fmt: skip
def test_what_does_not_go_together_is_refused(step, canvas, change, message) -> None:
    fields = {"image": canvas, "boxes": [[0, 0, 1, 1]] * 2, "labels": ["a", "b"], "scores": [1, 1], **change}
    with pytest.raises(InputError, match=message):
        step("draw")(fields)
