# SPDX-License-Identifier: Apache-2.0
"""From an image to boxes around things: the pipeline of a YOLO, as ultralytics exports it."""

from nndeploy.errors import DataError
from nndeploy.starters.images import image_input, label_list, labels, layout, normalise, size_of
from nndeploy.starters.model_folder import ModelFolder, quoted
from nndeploy.values.types import Dim

BOX = 4
FINAL = (300, 6)
"""Sizes of what YOLOv10 gives: corners, score and class of boxes among which is nothing left to choose."""


def detect(files: ModelFolder) -> str:
    """Returns the TOML.

    Raises:
        DataError: the model takes no image, or gives something else than rows of boxes and scores.
    """
    image, names = image_input(files), labels(files)
    output, order, has_objectness = _rows(files, len(names))
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
    {{ use = "boxes-from-rows", order = "{order}", objectness = {str(has_objectness).lower()}, threshold = 0.25 }},
    {{ use = "nms", iou = 0.45 }},
    {{ use = "map-back" }},
    {{ use = "labels", labels = {label_list(names, "    ")} }},
]

[[sink]]
kind = "json-lines"
fields = ["labels", "boxes", "scores"]
"""


def _rows(files: ModelFolder, num_names: int) -> tuple[str, str, bool]:
    """Returns the output with rows of boxes, whether these are `rows` or `columns`, and whether they have objectness.

    Raises:
        DataError: there is no such output, or it does not have the classes that have names.
    """
    hint = "the metadata of an export by ultralytics name the classes"
    if not num_names:
        raise DataError("nothing says which classes the model knows", where=str(files.model), hint=hint)
    for name, kind in files.outputs.items():
        found = _form(kind.shape or (), num_names)
        if found is not None:
            return name, *found
    shown = ", ".join(f"{name!r} {kind}" for name, kind in files.outputs.items())
    told = f"no output has rows of a box and {num_names} scores: {shown}"
    raise DataError(told, where=str(files.model), hint="write the pipeline by hand: nndeploy help processors")


def _form(shape: tuple[Dim, ...], num_names: int) -> tuple[str, bool] | None:
    """Returns order and objectness of (1, rows, columns) by the only axis that has as many sizes as a row."""
    if len(shape) != 3 or shape[1:] == FINAL:
        return None
    for extra, has_objectness in ((0, False), (1, True)):
        width = BOX + extra + num_names
        for axis, order in ((1, "columns"), (2, "rows")):
            if shape[axis] == width and shape[3 - axis] != width:
                return order, has_objectness
    return None
