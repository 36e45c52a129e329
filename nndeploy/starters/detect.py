# SPDX-License-Identifier: Apache-2.0
"""From an image to boxes around things, with points or masks: a YOLO or RT-DETR, as ultralytics exports it; faces."""

import json
from typing import NamedTuple

from nndeploy.errors import DataError
from nndeploy.processors.builtin.masks import MOST
from nndeploy.starters.faces import faces
from nndeploy.starters.images import asked_for, image_input, label_list, labels, layout, normalise, plain, size_of
from nndeploy.starters.model_folder import ModelFolder, quoted
from nndeploy.values.types import Dim

BOX = 4
CHOSEN = 6
"""Columns of a model that chooses among its boxes itself: the box, score, class."""
RT_DETR = "RTDETRDecoder"
"""What the metadata call the head of a model that takes images whatever becomes of their proportions."""
MOST_POINTS = 1 << 10
MOST_CHOSEN = 300
"""Rows of YOLOv10, whose first exports say nothing in their metadata."""
_MASKS = """\
    { use = "masks", in = ["rest", "protos", "boxes", "transform"] },
    { use = "encode-map", in = ["masks"], out = ["mask"] },
"""
_MASKS_SINK = """
[[sink]]
name = "masks"
kind = "images"    # for each pixel the number of the thing that covers it, counted from 1 as in the lines, or 0
fields = ["mask"]
"""


def detect(files: ModelFolder) -> str:
    """Returns the TOML.

    Raises:
        DataError: the model takes no image, or gives something else than rows of boxes and scores.
    """
    of_faces = faces(files)
    if of_faces is not None:
        return of_faces
    image, names = image_input(files), labels(files)
    height, width = size_of(files, image)
    fitted = "resize" if files.metadata.get("head") == RT_DETR else "letterbox"
    beside = _beside(files)
    output, steps = _rows(files, len(names), beside, f"width = {width}, height = {height}")
    fields = ["labels", "boxes", "scores", *beside.fields]
    protos = f', {quoted(beside.maps)} = "protos"' if beside.maps else ""
    to = "things/    # things/boxes.jsonl, things/masks/" if protos else "boxes.jsonl"
    pixels = normalise(files, image)
    return f"""\
# Images to boxes around what is in them, with names and scores.
#   nndeploy compile {files.model} --pipeline {files.out} -o detect.nnd
#   nndeploy run detect.nnd --input photos/ --output {to}

[source]
kind = "images"

[[level]]

[[level.pipeline]]
name = "detect"
inputs = {{ {quoted(image.name)} = "tensor" }}
outputs = {{ {quoted(output)} = "output"{protos} }}

[[level.pipeline.loader]]
workers = 2
steps = [
    {{ use = "decode" }},
    {{ use = "{fitted}", width = {width}, height = {height}, antialias = false, out = ["small", "transform"] }},
    {pixels},
    {layout(image)},
]

[[level.pipeline.post]]
steps = [
{steps}
    {{ use = "map-back" }},
    {{ use = "labels", labels = {label_list(names, "    ")} }},
{_MASKS if protos else ""}]

[[sink]]
name = "boxes"
kind = "json-lines"
fields = {json.dumps(fields)}
{_MASKS_SINK if protos else ""}"""


class _Beside(NamedTuple):
    """What a model says of each box beside its classes: in how many columns, and the steps and fields that come of it.

    `maps` is the output of which, by these columns, masks are made.
    """

    columns: int = 0
    steps: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    maps: str = ""


def _beside(files: ModelFolder) -> _Beside:
    """Returns what the model's metadata say.

    Raises:
        DataError: they are not what ultralytics writes, or the model is not what they say.
    """
    match plain(files, "kpt_shape"):
        case None:
            return _masks(files) if files.metadata.get("task") == "segment" else _Beside()
        case [int(count), (2 | 3) as values] if 0 < count <= MOST_POINTS:
            keypoints = f'use = "keypoints", values = {values}'
            moved = 'use = "map-back", in = ["keypoints", "transform"], out = ["keypoints"]'
            return _Beside(count * values, (keypoints, moved), ("keypoints", "visible"))
        case other:
            raise DataError(
                f"'kpt_shape' in the model's metadata is no number of points: {other}", where=str(files.model)
            )


def _masks(files: ModelFolder) -> _Beside:
    for name, kind in files.outputs.items():
        match kind.shape:
            case (_, int(count), _, _):
                return _Beside(count, maps=name)
    raise DataError("no output has the maps that masks are made of", where=str(files.model))


def _rows(files: ModelFolder, num_names: int, beside: _Beside, size: str) -> tuple[str, str]:
    """Returns the output with rows of boxes, and the steps that choose among them.

    Raises:
        DataError: there is no such output, or it does not have the classes that have names.
    """
    hint = "the metadata of an export by ultralytics name the classes"
    if not num_names:
        raise DataError("nothing says which classes the model knows", where=str(files.model), hint=hint)
    is_rt_detr = files.metadata.get("head") == RT_DETR
    says_chosen = is_rt_detr or plain(files, "end2end") is True or asked_for(files, "nms")
    for name, kind in files.outputs.items():
        steps = _steps(kind.shape or (), num_names, says_chosen, beside)
        if steps and is_rt_detr:
            steps = [f'{steps[0]}, form = "centres", unit = "fractions", {size}']
        if steps:
            return name, "\n".join(f"    {{ {step} }}," for step in steps)
    shown = ", ".join(f"{name!r} {kind}" for name, kind in files.outputs.items())
    told = f"no output has rows of a box and {num_names} scores: {shown}"
    raise DataError(told, where=str(files.model), hint="write the pipeline by hand: nndeploy help processors")


def _steps(shape: tuple[Dim, ...], num_names: int, says_chosen: bool, beside: _Beside) -> list[str]:
    """Returns the steps for an output of this shape, (1, rows, columns) in one order or the other; [] without rows."""
    if len(shape) != 3:
        return []
    rest = beside.columns
    if shape[2] == CHOSEN and not rest and (says_chosen or shape[1] == MOST_CHOSEN):
        return ['use = "boxes-from-detections", threshold = 0.25']
    for extra, objectness, iou in ((0, "false", 0.7), (1, "true", 0.45)):  # as the packages of YOLOv8 and YOLOv5
        width = BOX + extra + num_names + rest
        for axis, order in ((1, "columns"), (2, "rows")):
            if shape[axis] == width and shape[3 - axis] != width:
                boxes = f'use = "boxes-from-rows", order = "{order}", objectness = {objectness}, threshold = 0.25'
                nms = f'use = "nms", iou = {iou}'
                if not rest:
                    return [boxes, nms]
                most = f", max = {MOST}" if beside.maps else ""
                return [f"{boxes}, rest = {rest}", f'{nms}, also = ["rest"]{most}', *beside.steps]
    return []
