# SPDX-License-Identifier: Apache-2.0
"""Text: regions and their rectangles against plain searches, lines on maps with known rectangles, CTC."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nndeploy.errors import InputError, UsageError
from nndeploy.processors.builtin.ctc import Ctc
from nndeploy.processors.builtin.text_boxes import TextBoxes, mean_inside
from nndeploy.processors.regions import Rectangle, convex_hull, corner_points, regions_of, runs_of, smallest_rectangle
from nndeploy.processors.text_lines import TextLines

masks = st.integers(1, 12).flatmap(
    lambda width: st.lists(st.lists(st.booleans(), min_size=width, max_size=width), min_size=1, max_size=12)
)


def flooded(mask) -> list[set[tuple[int, int]]]:
    """Returns the connected regions by walking from pixel to pixel, corners included."""
    left = {(y, x) for y, x in np.argwhere(mask).tolist()}
    regions = []
    while left:
        region, border = set(), [min(left)]
        while border:
            y, x = border.pop()
            if (y, x) in left:
                left.remove((y, x))
                region.add((y, x))
                border += [(y + i, x + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        regions.append(region)
    return regions


@settings(max_examples=300)
@given(masks)
def test_regions_are_what_a_walk_finds(rows) -> None:
    mask = np.array(rows, np.bool_)
    runs = runs_of(mask)
    found = [
        {(int(runs.rows[i]), x) for i in members for x in range(runs.starts[i], runs.ends[i])}
        for members in regions_of(runs)
    ]
    assert sorted(map(sorted, found)) == sorted(map(sorted, flooded(mask)))


def test_a_long_snake_is_one_region() -> None:
    mask = np.zeros((199, 50), np.bool_)
    mask[::2] = True
    mask[1::4, -1] = mask[3::4, 0] = True
    assert len(list(regions_of(runs_of(mask)))) == 1
    mask[101, :] = False
    assert len(list(regions_of(runs_of(mask)))) == 2


@given(masks)
def test_the_smallest_rectangle_holds_every_pixel_and_no_turn_of_it_is_smaller(rows) -> None:
    mask = np.array(rows, np.bool_)
    runs = runs_of(mask)
    for members in regions_of(runs):
        points = corner_points(runs, members)
        found = smallest_rectangle(points)
        offsets = (points - found.centre) @ found.axes.T
        assert (np.abs(offsets) <= found.sizes / 2 + 1e-9).all()
        np.testing.assert_allclose(found.axes @ found.axes.T, np.eye(2), atol=1e-12)
        area = found.sizes.prod()
        for angle in np.linspace(0, math.pi / 2, 91):
            turned = points @ np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
            assert np.ptp(turned, axis=0).prod() >= area - 1e-6


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=25))
def test_the_hull_is_convex_and_has_every_point_inside(points) -> None:
    array = np.array(points, np.float64)
    hull = convex_hull(array)
    if len(hull) < 3:
        return
    for a, b in zip(hull, np.roll(hull, -1, axis=0), strict=True):
        sides = (b[0] - a[0]) * (array[:, 1] - a[1]) - (b[1] - a[1]) * (array[:, 0] - a[0])
        assert (sides >= -1e-9).all()


def filled(shape, centre, size, angle):
    """Returns a map with one at pixels whose centres are inside a turned rectangle."""
    y, x = np.indices(shape) + 0.5
    across = (x - centre[0]) * math.cos(angle) + (y - centre[1]) * math.sin(angle)
    down = -(x - centre[0]) * math.sin(angle) + (y - centre[1]) * math.cos(angle)
    return ((np.abs(across) <= size[0] / 2) & (np.abs(down) <= size[1] / 2)).astype(np.float32)


def test_an_upright_line_is_found_exactly(step) -> None:
    likely = np.zeros((1, 1, 40, 100), np.float32)
    likely[0, 0, 10:20, 30:70] = 0.9
    found = step("text-boxes", unclip=0)({"probabilities": likely})
    assert found["quads"].tolist() == [[[30, 10], [70, 10], [70, 20], [30, 20]]]
    assert found["scores"].tolist() == pytest.approx([0.9])
    grown = step("text-boxes", unclip=1.5)({"probabilities": likely})["quads"][0]
    distance = 40 * 10 * 1.5 / (2 * (40 + 10))
    np.testing.assert_allclose(
        grown,
        np.array([[30, 10], [70, 10], [70, 20], [30, 20]]) + distance * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]),
        atol=1e-4,
    )


@pytest.mark.parametrize("degrees", [-40, -20, -5, 5, 12, 30, 44])
def test_a_turned_line_is_found_with_its_corners_in_order(step, degrees) -> None:
    angle = math.radians(degrees)
    likely = filled((200, 240), (120, 100), (120, 24), angle)
    quad = step("text-boxes", unclip=0)({"probabilities": likely})["quads"][0]
    half = np.array([[-60, -12], [60, -12], [60, 12], [-60, 12]])
    turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    np.testing.assert_allclose(quad, half @ turn + (120, 100), atol=2.5)


@pytest.mark.parametrize("degrees", [0, 10, 33, 80])
def test_a_score_is_the_mean_of_the_pixels_whose_centres_are_inside(degrees) -> None:
    likely = np.random.default_rng(degrees).random((40, 50), np.float32)
    angle = math.radians(degrees)
    axes = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    rectangle = Rectangle(np.array([24.3, 19.8]), axes, np.array([21.0, 11.0]))
    inside = filled(likely.shape, rectangle.centre, rectangle.sizes, angle) > 0
    assert mean_inside(likely, rectangle) == pytest.approx(likely[inside].mean(dtype=np.float64))
    assert mean_inside(likely, Rectangle(np.array([5.0, 5.0]), axes, np.array([0.1, 0.1]))) == 0


def test_lines_come_in_reading_order_and_weak_or_small_ones_go(step) -> None:
    likely = np.zeros((100, 200), np.float32)
    for top, left, value in ((60, 10, 0.8), (12, 110, 0.8), (10, 10, 0.8), (62, 110, 0.8), (35, 10, 0.5)):
        likely[top : top + 10, left : left + 60] = value
    likely[90:92, 5:60] = 0.9
    likely[95, 5] = 0.9
    found = step("text-boxes", unclip=0)({"probabilities": likely})
    assert found["quads"][:, 0].tolist() == [[10, 10], [110, 12], [10, 60], [110, 62]]
    everything = step("text-boxes", unclip=0, box_threshold=0.0, min_size=0.0)({"probabilities": likely})
    assert len(everything["quads"]) == 7
    assert len(step("text-boxes", max=1)({"probabilities": likely})["quads"]) == 1


def test_no_text_is_no_quads(step) -> None:
    found = step("text-boxes")({"probabilities": np.zeros((1, 1, 32, 32), np.float32)})
    assert found["quads"].shape == (0, 4, 2)
    assert found["scores"].shape == (0,)
    assert step("crop-quads")({"image": np.zeros((9, 9, 3), np.uint8), **found})["crops"] == []
    with pytest.raises(InputError, match=r"probabilities must be \(H, W\)"):
        step("text-boxes")({"probabilities": np.zeros((2, 32, 32), np.float32)})


@settings(max_examples=50)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_any_map_gives_quads_inside_of_it(height, width, seed, share) -> None:
    likely = (np.random.default_rng(seed).random((height, width)) < share).astype(np.float32)
    quads, scores = TextBoxes(box_threshold=0.0, min_size=0.0)(likely)
    assert len(quads) == len(scores)
    assert (quads >= 0).all()
    assert (quads <= (width, height)).all()


CHARACTERS = TextLines(("a", "b"))


def path_of(numbers, classes=3):
    steps = np.full((len(numbers), classes), 0.1, np.float32)
    steps[np.arange(len(numbers)), numbers] = 0.8
    return steps


@pytest.mark.parametrize("numbers", list(itertools.product(range(3), repeat=5))[::7])
@pytest.mark.parametrize("blank", [0, 1, -1])
def test_ctc_merges_repeats_then_drops_blanks(numbers, blank) -> None:
    place = 2 if blank == -1 else blank
    letters = iter("ab")
    names = ["" if i == place else next(letters) for i in range(3)]
    want = "".join(names[number] for number, _ in itertools.groupby(numbers))
    text, score = Ctc(CHARACTERS, blank=blank)(path_of(list(numbers))[np.newaxis])
    assert text == want
    assert score == (pytest.approx(0.8) if want else 0.0)


def test_unsure_texts_go_with_what_belongs_to_them(step) -> None:
    above = step("above", threshold=0.5, also=["text", "quads"])
    quads = np.arange(24).reshape(3, 4, 2)
    found = above({"score": [0.9, 0.2, 0.5], "text": ["a", "b", "c"], "quads": quads})
    assert (found["score"], found["text"]) == ([0.9, 0.5], ["a", "c"])
    assert np.array_equal(found["quads"], quads[[0, 2]])
    nothing = above({"score": [], "text": [], "quads": np.zeros((0, 4, 2))})
    assert (nothing["score"], nothing["text"], nothing["quads"].shape) == ([], [], (0, 4, 2))
    assert step("above")({"score": np.array([0.4, 0.6], np.float32)})["score"].tolist() == [np.float32(0.6)]
    with pytest.raises(InputError, match="2 scores, but text is a list"):
        above({"score": [0.9, 0.2], "text": ["a"], "quads": quads})
    with pytest.raises(UsageError, match="other fields than score"):
        step("above", also=["score"])


def test_ctc_takes_its_characters_from_a_file(step, tmp_path) -> None:
    (tmp_path / "letters.txt").write_text("x\ny\n", encoding="utf-8")
    ctc = step("ctc", characters="letters.txt", space=True)
    assert ctc({"probabilities": path_of([1, 0, 1, 3, 2], 4)})["text"] == "xx y"
    assert ctc({"probabilities": np.zeros((0, 4), np.float32)}) == {"text": "", "score": 0.0}
    with pytest.raises(InputError, match=r"probabilities must be \(steps, 4\), are float32 \(5, 3\)"):
        ctc({"probabilities": path_of([1, 0, 1, 0, 2])})
