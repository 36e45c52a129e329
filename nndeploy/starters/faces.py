# SPDX-License-Identifier: Apache-2.0
"""From an image to faces and five points of each: SCRFD as insightface exports it, YuNet as OpenCV's zoo has it."""

import json
from typing import NamedTuple

from nndeploy.processors.builtin.faces_from_grids import FacesFromGrids
from nndeploy.starters.images import image_input, layout, step
from nndeploy.starters.model_folder import ModelFolder, quoted
from nndeploy.values.types import TensorType

SIDE = 640
"""Width and height in pixels for models that take any: what insightface takes by default."""
STRIDES = (8, 16, 32, 64, 128)
"""Pixels of a cell; most models have the first three."""
_YUNET = tuple(f"{kind}_{stride}" for kind in ("cls", "obj", "bbox", "kps") for stride in STRIDES[:3])
_SCRFD = (1, 4, 10)
"""Columns of scores, boxes and points, in the order of the outputs."""


class _Head(NamedTuple):
    """How a model was trained, and what its package takes by default."""

    name: str
    pixels: str
    channels: str
    threshold: float
    iou: float
    inclusive: bool


_HEADS = {
    "scrfd": _Head("SCRFD", 'use = "normalise", in = ["small"], mean = [127.5], std = [128]', "RGB", 0.5, 0.4, True),
    "yunet": _Head("YuNet", 'use = "normalise", in = ["small"]', "BGR", 0.9, 0.3, False),
}


def faces(files: ModelFolder) -> str | None:
    """Returns the TOML, None where the outputs are those of neither model.

    Raises:
        DataError: the outputs are, but the model takes no image.
    """
    if set(files.outputs) == set(_YUNET):
        return _pipeline(files, _YUNET, FacesFromGrids("yunet"))
    for strides in (STRIDES[:3], STRIDES):
        for columns in (_SCRFD[:2], _SCRFD):
            wanted = [number for number in columns for _ in strides]
            if len(wanted) == len(files.outputs) and all(map(_has_columns, files.outputs.values(), wanted)):
                head = FacesFromGrids(strides=strides, points=columns == _SCRFD)
                return _pipeline(files, tuple(files.outputs), head)
    return None


def _has_columns(kind: TensorType, number: int) -> bool:
    """Returns whether an output may be rows of so many columns; a model for images of any size may not say them."""
    shape = kind.shape or ()
    if not kind.dtype.startswith("float") or len(shape) not in (2, 3):
        return False
    return shape[-1] == number or not isinstance(shape[-1], int)


def _pipeline(files: ModelFolder, names: tuple[str, ...], head: FacesFromGrids) -> str:
    image, of = image_input(files), _HEADS[head.head]
    size = (f"width = {image.width or SIDE}", f"height = {image.height or SIDE}")
    outputs = "\n".join(f"{quoted(name)} = {quoted(field)}" for name, field in zip(names, head.takes, strict=True))
    given = [f'head = "{head.head}"', *size, f"threshold = {of.threshold}"]
    given += [f"strides = {list(head.strides)}"] * (head.strides != STRIDES[:3])
    given += ["points = false"] * (not head.points)
    moved = step("map-back", 'in = ["keypoints", "transform"]', 'out = ["keypoints"]', "clip = false")
    steps = [
        step("faces-from-grids", *given),
        step("map-back", "clip = false"),
        *[moved] * head.points,
        step("nms", f"iou = {of.iou}", *['also = ["keypoints"]'] * head.points, *["inclusive = true"] * of.inclusive),
    ]
    shown = "\n".join(f"    {one}," for one in steps)
    corner = ('place = "top-left"', "fill = [0, 0, 0]")
    fitted = step("letterbox", *size, *corner, "antialias = false", 'out = ["small", "transform"]')
    return f"""\
# Images to the faces in them, by {of.name}, and to points of each: eyes, nose, corners of the mouth.
#   nndeploy compile {files.model} --pipeline {files.out} -o faces.nnd
#   nndeploy run faces.nnd --input photos/ --output faces.jsonl

[source]
kind = "images"

[[level]]

[[level.pipeline]]
name = "faces"
inputs = {{ {quoted(image.name)} = "tensor" }}

[level.pipeline.outputs]
{outputs}

[[level.pipeline.loader]]
workers = 2
steps = [
    {{ use = "decode" }},
    {fitted},
    {{ {of.pixels} }},
    {layout(image, *[f'channels = "{of.channels}"'] * (of.channels != "RGB"))},
]

# Boxes may reach beyond the image; `clip = true` cuts them.
[[level.pipeline.post]]
steps = [
{shown}
]

[[sink]]
kind = "json-lines"
fields = {json.dumps(["boxes", "scores", *["keypoints"] * head.points])}
"""
