# SPDX-License-Identifier: Apache-2.0
"""From an image to boxes around things, and points on them: the pipeline of a YOLO, as ultralytics exports it."""

import json

from nndeploy.errors import DataError
from nndeploy.starters.images import asked_for, image_input, label_list, labels, layout, normalise, plain, size_of
from nndeploy.starters.model_folder import ModelFolder, quoted
from nndeploy.values.types import Dim

BOX = 4
CHOSEN = 6
"""Columns of a model that chooses among its boxes itself: corners, score, class."""
MOST_POINTS = 1 << 10
MOST_CHOSEN = 300
"""Rows of YOLOv10, whose first exports say nothing in their metadata."""


def detect(files: ModelFolder) -> str:
    """Returns the TOML.

    Raises:
        DataError: the model takes no image, or gives something else than rows of boxes and scores.
    """
    image, names = image_input(files), labels(files)
    points = _points(files)
    output, steps = _rows(files, len(names), points)
    fields = ["labels", "boxes", "scores", *(["keypoints", "visible"] if points else [])]
    height, width = size_of(files, image)
    pixels = normalise(files, image)
    return f"""\
# Images to boxes around what is in them, with names and scores.
#   nndeploy compile {files.model} --pipeline {files.out} -o detect.nnd
#   nndeploy run detect.nnd --input photos/ --output boxes.jsonl

[source]
kind = "images"

[[level]]

[[level.pipeline]]
name = "detect"
inputs = {{ {quoted(image.name)} = "tensor" }}
outputs = {{ {quoted(output)} = "output" }}

[[level.pipeline.loader]]
workers = 2
steps = [
    {{ use = "decode" }},
    {{ use = "letterbox", width = {width}, height = {height}, out = ["small", "transform"] }},
    {pixels},
    {layout(image)},
]

[[level.pipeline.post]]
steps = [
{steps}
    {{ use = "map-back" }},
    {{ use = "labels", labels = {label_list(names, "    ")} }},
]

[[sink]]
kind = "json-lines"
fields = {json.dumps(fields)}
"""


def _points(files: ModelFolder) -> tuple[int, int] | None:
    """Returns how many keypoints a box has, and how many numbers each, None where it has none.

    Raises:
        DataError: the metadata are not what ultralytics writes.
    """
    match plain(files, "kpt_shape"):
        case None:
            return None
        case [int(count), (2 | 3) as values] if 0 < count <= MOST_POINTS:
            return count, values
        case other:
            raise DataError(
                f"'kpt_shape' in the model's metadata is no number of points: {other}", where=str(files.model)
            )


def _rows(files: ModelFolder, num_names: int, points: tuple[int, int] | None) -> tuple[str, str]:
    """Returns the output with rows of boxes, and the steps that choose among them.

    Raises:
        DataError: there is no such output, or it does not have the classes that have names.
    """
    hint = "the metadata of an export by ultralytics name the classes"
    if not num_names:
        raise DataError("nothing says which classes the model knows", where=str(files.model), hint=hint)
    says_chosen = plain(files, "end2end") is True or asked_for(files, "nms")
    for name, kind in files.outputs.items():
        steps = _steps(kind.shape or (), num_names, says_chosen, points)
        if steps:
            return name, "\n".join(f"    {{ {step} }}," for step in steps)
    shown = ", ".join(f"{name!r} {kind}" for name, kind in files.outputs.items())
    told = f"no output has rows of a box and {num_names} scores: {shown}"
    raise DataError(told, where=str(files.model), hint="write the pipeline by hand: nndeploy help processors")


def _steps(shape: tuple[Dim, ...], num_names: int, says_chosen: bool, points: tuple[int, int] | None) -> list[str]:
    """Returns the steps for an output of this shape, (1, rows, columns) in one order or the other; [] without rows."""
    if len(shape) != 3:
        return []
    if shape[2] == CHOSEN and not points and (says_chosen or shape[1] == MOST_CHOSEN):
        return ['use = "boxes-from-detections", threshold = 0.25']
    rest = points[0] * points[1] if points else 0
    for extra, objectness in ((0, "false"), (1, "true")):
        width = BOX + extra + num_names + rest
        for axis, order in ((1, "columns"), (2, "rows")):
            if shape[axis] == width and shape[3 - axis] != width:
                boxes = f'use = "boxes-from-rows", order = "{order}", objectness = {objectness}, threshold = 0.25'
                nms = 'use = "nms", iou = 0.45'
                if points is None:
                    return [boxes, nms]
                return [
                    f"{boxes}, rest = {rest}",
                    f'{nms}, also = ["rest"]',
                    f'use = "keypoints", values = {points[1]}',
                    'use = "map-back", in = ["keypoints", "transform"], out = ["keypoints"]',
                ]
    return []
