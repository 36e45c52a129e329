# SPDX-License-Identifier: Apache-2.0
"""Detectors' outputs become boxes, and overlapping ones go; held against plain loops in float64."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nndeploy.errors import InputError, UsageError
from nndeploy.processors.builtin.nms import Nms

coordinates = st.integers(0, 12).map(float)
boxes_of_two = st.lists(st.tuples(*[coordinates] * 4), min_size=0, max_size=14)


def overlap(a, b) -> float:
    """Returns intersection over union, one number after the other."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    common = width * height if width > 0 and height > 0 else 0.0
    area = [max(x1 - x0, 0) * max(y1 - y0, 0) for x0, y0, x1, y1 in (a, b)]
    union = sum(area) - common
    return common / union if union > 0 else 0.0


def greedy(boxes, scores, classes, iou, across) -> list[int]:
    """Returns what stays by the definition: best first, each against all that were taken."""
    taken: list[int] = []
    for i in sorted(range(len(boxes)), key=lambda i: (-scores[i], i)):
        rivals = (j for j in taken if across or classes[j] == classes[i])
        if all(overlap(boxes[i], boxes[j]) <= iou for j in rivals):
            taken.append(i)
    return taken


@settings(max_examples=300)
@given(boxes_of_two, st.data(), st.sampled_from([0.0, 0.3, 0.5, 1.0]), st.booleans())
def test_nms_is_the_greedy_definition(boxes, data, iou, across) -> None:
    count = len(boxes)
    scores = data.draw(st.lists(st.integers(0, 5).map(lambda n: n / 8), min_size=count, max_size=count))
    classes = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    array = np.array(boxes, np.float32).reshape(-1, 4)
    kept, best, kinds = Nms(iou, across_classes=across)(array, np.array(scores, np.float32), classes)
    want = greedy(array.astype(float).tolist(), scores, classes, iou, across)
    assert kept.tolist() == array[want].tolist()
    assert best.tolist() == [scores[i] for i in want]
    assert kinds.tolist() == [classes[i] for i in want]


def test_nms_takes_at_most_so_many_above_a_threshold(step) -> None:
    fields = {
        "boxes": [[0, 0, 1, 1], [5, 5, 6, 6], [9, 9, 10, 10]], "scores": [0.2, 0.9, 0.5], "classes": [0, 0, 0],
    }  # fmt: skip
    assert step("nms", max=2)(fields)["scores"].tolist() == pytest.approx([0.9, 0.5])
    assert step("nms", threshold=0.6)(fields)["scores"].tolist() == pytest.approx([0.9])
    empty = step("nms")({"boxes": [], "scores": [], "classes": []})
    assert [empty[name].shape for name in ("boxes", "scores", "classes")] == [(0, 4), (0,), (0,)]


@pytest.mark.parametrize(("fields", "message"), [
    ({"boxes": [[0, 0, 1, 1]], "scores": [1, 2], "classes": [0]}, "there are 1 boxes, 2 scores and 1 classes"),
    ({"boxes": [[0, 0, 1]], "scores": [1], "classes": [0]}, r"boxes must be \(N, 4\)"),
    ({"boxes": [[0, 0, 1, np.nan]], "scores": [1], "classes": [0]}, "NaN or infinity"),
    ({"boxes": [["a"] * 4], "scores": [1], "classes": [0]}, "boxes must be numbers, this is a list"),
    ({"boxes": [[1], [1, 2]], "scores": [1], "classes": [0]}, "boxes must be numbers"),
])  # fmt: skip
def test_boxes_that_are_none_are_refused(step, fields, message) -> None:
    with pytest.raises(InputError, match=message):
        step("nms")(fields)


def test_boxes_and_scores_become_sure_boxes(step) -> None:
    fields = {
        "boxes": np.array([[[0, 0, 0.5, 0.5], [0.25, 0.5, 1, 1], [0, 0, 1, 1]]], np.float32),
        "scores": np.array([[[0.1, 0.9, 0.0], [0.8, 0.1, 0.1], [0.2, 0.1, 0.7]]], np.float32),
    }
    found = step("boxes", unit="fractions", width=320, height=240, background=0)(fields)
    assert found["boxes"].tolist() == [[0, 0, 160, 120], [0, 0, 320, 240]]
    assert found["scores"].tolist() == pytest.approx([0.9, 0.7])
    assert found["classes"].tolist() == [0, 1]
    all_of_them = step("boxes", threshold=0.0)(fields)
    assert all_of_them["classes"].tolist() == [1, 0, 2]
    assert step("boxes", threshold=0.95)(fields)["boxes"].shape == (0, 4)


def test_boxes_can_be_written_in_other_forms(step) -> None:
    fields = {"boxes": [[10, 20, 4, 6]], "scores": [0.9]}
    assert step("boxes", form="centres")(fields)["boxes"].tolist() == [[8, 17, 12, 23]]
    assert step("boxes", form="corner-and-size")(fields)["boxes"].tolist() == [[10, 20, 14, 26]]
    with pytest.raises(InputError, match="there are 1 boxes, but scores are float32"):
        step("boxes")({"boxes": [[0, 0, 1, 1]], "scores": [0.1, 0.2]})
    with pytest.raises(InputError, match="background is column 3"):
        step("boxes", background=3)(fields)


def test_rows_of_a_yolo(step) -> None:
    rows = np.array([[10, 10, 4, 2, 0.5, 0.1, 0.9], [20, 20, 2, 2, 0.9, 0.8, 0.3], [0, 0, 1, 1, 1, 0, 0]], np.float32)
    found = step("boxes-from-rows", threshold=0.4)({"output": rows[np.newaxis]})
    assert found["boxes"].tolist() == [[8, 9, 12, 11], [19, 19, 21, 21]]
    assert found["scores"].tolist() == pytest.approx([0.45, 0.72])
    assert found["classes"].tolist() == [1, 0]
    without = np.delete(rows, 4, axis=1).T[np.newaxis]
    found = step("boxes-from-rows", threshold=0.85, order="columns", objectness=False)({"output": without})
    assert found["boxes"].tolist() == [[8, 9, 12, 11]]
    with pytest.raises(InputError, match="must have more than 5 columns"):
        step("boxes-from-rows")({"output": rows[:, :5]})


def test_points_stay_with_their_boxes(step) -> None:
    """Against ultralytics' own suppression of a pose model's output they are the same to 6e-5 pixels."""
    rows = np.array([
        [10, 10, 4, 4, 0.5, 1, 2, 0.9, 3, 4, 0.1], [30, 30, 4, 4, 0.9, 5, 6, 0.2, 7, 8, 0.3],
        [30, 31, 4, 4, 0.8, 0, 0, 0, 0, 0, 0], [50, 50, 4, 4, 0.1, 0, 0, 0, 0, 0, 0],
    ], np.float32)  # fmt: skip
    record = step("boxes-from-rows", order="columns", objectness=False, rest=6)({"output": rows.T[np.newaxis]})
    assert record["rest"].shape == (3, 6)
    record |= step("nms", also=["rest"])(record)
    assert record["scores"].tolist() == pytest.approx([0.9, 0.5])
    record |= step("keypoints")(record)
    assert record["keypoints"].tolist() == [[[5, 6], [7, 8]], [[1, 2], [3, 4]]]
    assert record["visible"].ravel().tolist() == pytest.approx([0.2, 0.3, 0.9, 0.1])
    flat = step("keypoints", values=2)(record)
    assert (flat["keypoints"].shape, flat["visible"].min()) == ((2, 3, 2), 1)
    none = step("keypoints")(
        step("nms", also=["rest"])({"boxes": [], "scores": [], "classes": [], "rest": rows[:0, 5:]})
    )
    assert (none["keypoints"].shape, none["visible"].shape) == ((0, 2, 2), (0, 2))


@pytest.mark.parametrize(("name", "parameters", "fields"), [
    ("nms", {"also": ["rest"]}, {"boxes": [[0, 0, 1, 1]], "scores": [1], "classes": [0], "rest": np.zeros((2, 6))}),
    ("nms", {"also": ["rest"]}, {"boxes": [[0, 0, 1, 1]], "scores": [1], "classes": [0], "rest": 1}),
    ("keypoints", {}, {"rest": np.zeros((2, 7), np.float32)}),
    ("keypoints", {}, {"rest": np.zeros((2, 0), np.float32)}),
    ("boxes-from-rows", {"rest": 6, "objectness": False}, {"output": np.zeros((2, 10), np.float32)}),
])  # fmt: skip
def test_rows_that_do_not_fit_are_refused(step, name, parameters, fields) -> None:
    with pytest.raises(InputError):
        step(name, **parameters)(fields)


def test_nms_keeps_each_field_once() -> None:
    for also in (("boxes",), ("rest", "rest")):
        with pytest.raises(UsageError):
            Nms(also=also)


def test_rows_of_a_yolo_that_chooses_itself(step) -> None:
    rows = np.array([[8, 9, 12, 11, 0.9, 1], [1, 2, 3, 4, 0.3, 0], [0, 0, 0, 0, 0, 0]], np.float32)
    found = step("boxes-from-detections", threshold=0.5)({"output": rows[np.newaxis]})
    assert [found[name].tolist() for name in ("boxes", "classes")] == [[[8, 9, 12, 11]], [1]]
    assert found["scores"].tolist() == pytest.approx([0.9])
    assert step("boxes-from-detections")({"output": rows})["classes"].tolist() == [1, 0]
    for wrong in (rows[:, :5], rows + np.float32(0.5)):
        with pytest.raises(InputError):
            step("boxes-from-detections")({"output": wrong})
    of_image = {"form": "centres", "unit": "fractions", "width": 200, "height": 100}
    centred = [[0.5, 0.5, 0.2, 0.4, 0.9, 1]]
    assert step("boxes-from-detections", **of_image)({"output": centred})["boxes"].tolist() == [[80, 30, 120, 70]]


def test_a_grid_is_decoded_cell_by_cell(step) -> None:
    rng = np.random.default_rng(5)
    grid = rng.random((1, 8, 3, 4), np.float32)
    grid[0, 1:5] = rng.normal(size=(4, 3, 4))
    found = step("boxes-from-grid", width=352, height=176, threshold=0.6)({"output": grid})
    want = []
    for row in range(3):
        for column in range(4):
            objectness, x, y, w, h, *scores = grid[0, :, row, column].tolist()
            score = objectness**0.6 * max(scores) ** 0.4
            if score > 0.6:
                centre = (column + np.tanh(x)) / 4 * 352, (row + np.tanh(y)) / 3 * 176
                half = 352 / (1 + np.exp(-w)) / 2, 176 / (1 + np.exp(-h)) / 2
                corners = (centre[0] - half[0], centre[1] - half[1], centre[0] + half[0], centre[1] + half[1])
                want.append((corners, score, int(np.argmax(scores))))
    assert want
    np.testing.assert_allclose(found["boxes"], [corners for corners, _, _ in want], rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(found["scores"], [score for _, score, _ in want], rtol=1e-5)
    assert found["classes"].tolist() == [kind for _, _, kind in want]
    with pytest.raises(InputError, match=r"must be \(5 \+ classes, rows, columns\)"):
        step("boxes-from-grid", width=1, height=1)({"output": grid[0, :5]})


def faces_by_definition(head, grids, width, height, threshold):
    """Returns box, score and points of each face, cell by cell, as the packages of both models compute them."""
    found = []
    for stride, (likely, boxes, points) in grids.items():
        columns, rows = width // stride, height // stride
        for i in range(len(boxes)):
            cell = i * columns * rows // len(boxes)
            x, y = cell % columns, cell // columns
            score = likely[i][0] if head == "scrfd" else math.sqrt(math.prod(min(max(one, 0), 1) for one in likely[i]))
            if score < threshold:
                continue
            a, b, c, d = boxes[i]
            box = (x - a, y - b, x + c, y + d)
            if head == "yunet":
                w, h = math.exp(c), math.exp(d)
                box = (x + a - w / 2, y + b - h / 2, x + a + w / 2, y + b + h / 2)
            spots = [[(x + px) * stride, (y + py) * stride] for px, py in zip(*[iter(points[i])] * 2, strict=True)]
            found.append(([edge * stride for edge in box], score, spots))
    return found


@pytest.mark.parametrize(("head", "at_once"), [("scrfd", 2), ("yunet", 1), ("scrfd", 1)])
def test_faces_are_what_the_grids_of_each_head_mean(step, head, at_once) -> None:
    """Of whole models insightface's SCRFD gives the same faces to the last bit, OpenCV's YuNet to 4e-4 pixels."""
    rng = np.random.default_rng(at_once)
    width, height, num_likely = 96, 64, 1 if head == "scrfd" else 2
    grids = {
        stride: [rng.uniform(-0.2, 1.2, (n, columns)).astype(np.float32) for columns in (num_likely, 4, 10)]
        for stride in (8, 16, 32)
        for n in [at_once * (width // stride) * (height // stride)]
    }
    values = [likely[np.newaxis, :, [i]] for i in range(num_likely) for likely, _, _ in grids.values()]
    values += [grid[kind] for kind in (1, 2) for grid in grids.values()]
    make = step("faces-from-grids", head=head, width=width, height=height, threshold=0.6)
    found = make(dict(zip(make.takes, values, strict=True)))
    want = faces_by_definition(head, {k: [v.tolist() for v in g] for k, g in grids.items()}, width, height, 0.6)
    assert 0 < len(want) < sum(len(grid[1]) for grid in grids.values())
    for name, i, tolerance in (("boxes", 0, 1e-4), ("scores", 1, 1e-6), ("keypoints", 2, 1e-4)):
        np.testing.assert_allclose(found[name], [one[i] for one in want], rtol=1e-6, atol=tolerance)
    assert found["classes"].tolist() == [0] * len(want)
    nobody = step("faces-from-grids", head=head, width=width, height=height, threshold=1.0)
    likely = [0 * value for value in values]
    none = nobody(dict(zip(make.takes, likely, strict=True)))
    assert [none[name].shape for name in ("boxes", "scores", "keypoints")] == [(0, 4), (0,), (0, 5, 2)]


def test_grids_that_are_not_those_of_the_image_are_refused(step) -> None:
    make = step("faces-from-grids", width=64, height=64, strides=[8], points=False)
    assert (make.takes, make.gives) == (("scores-8", "boxes-8"), ("boxes", "scores", "classes"))
    for scores, boxes in ((64, 63), (65, 65), (0, 0)):
        with pytest.raises(InputError):
            make({"scores-8": np.zeros((scores, 1), np.float32), "boxes-8": np.zeros((boxes, 4), np.float32)})
    with pytest.raises(InputError):
        make({"scores-8": np.zeros((64, 2), np.float32), "boxes-8": np.zeros((64, 4), np.float32)})
    for strides in ([], [8, 8]):
        with pytest.raises(UsageError):
            step("faces-from-grids", strides=strides)


def test_the_last_pixel_of_a_box_may_belong_to_it(step) -> None:
    """Of 3 and 4 pixels 2 are common, of edges 1 of 2 and 3: 2 / 5 and 1 / 4."""
    fields = {"boxes": [[0, 0, 2, 0.5], [1, 0, 4, 0.5]], "scores": [0.9, 0.8], "classes": [0, 0]}
    assert len(step("nms", iou=0.3)(fields)["boxes"]) == 2
    kept = step("nms", iou=0.3, inclusive=True)(fields)["boxes"]
    assert kept.tolist() == [[0, 0, 2, 0.5]]
