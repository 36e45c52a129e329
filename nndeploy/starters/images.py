# SPDX-License-Identifier: Apache-2.0
"""What pipelines of images share: the input that takes one, its size, how pixels become numbers, names of classes."""

import ast
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nndeploy.errors import DataError
from nndeploy.starters.model_folder import ModelFolder, quoted, whole

DEFAULT_SIDE = 224
FILTERS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
"""What a preprocessor_config.json calls by number, as Pillow does."""
MAX_LABELS = 1 << 16
MAX_METADATA = 1 << 20


@dataclass(frozen=True, slots=True)
class ImageOf:
    """An input that takes one image: sizes in pixels where they are fixed, else None; one channel is grey."""

    name: str
    dtype: str
    order: str
    channels: int
    height: int | None
    width: int | None


def step(name: str, *parameters: str) -> str:
    """Returns the table of a step."""
    return f"{{ {', '.join([f'use = {quoted(name)}', *parameters])} }}"


def layout(image: ImageOf, *fields: str) -> str:
    """Returns the step that puts axes in the model's order; `fields` are its other parameters."""
    order, grey = ['order = "HWC"'] * (image.order == "HWC"), ['channels = "L"'] * (image.channels == 1)
    return step("layout", *fields, *order, *grey)


def image_input(files: ModelFolder) -> ImageOf:
    """Returns the only input of a model, which takes an image.

    Raises:
        DataError: there are others, or it takes something else.
    """
    for name, kind in files.inputs.items():
        shape = kind.shape or ()
        for order, channel, plane in (("CHW", 1, (2, 3)), ("HWC", 3, (1, 2))):
            if len(files.inputs) == 1 and len(shape) == 4 and shape[channel] in (1, 3):
                height, width = (size if isinstance(size := shape[axis], int) else None for axis in plane)
                return ImageOf(name, kind.dtype, order, 3 if shape[channel] == 3 else 1, height, width)
    shown = ", ".join(f"{name!r} {kind}" for name, kind in files.inputs.items())
    hint = "one input float32[N,3,height,width] or float32[N,height,width,3] is needed"
    raise DataError(f"the model takes no image but {shown or 'nothing'}", where=str(files.model), hint=hint)


def size_of(files: ModelFolder, image: ImageOf) -> tuple[int, int]:
    """Returns height and width: the model's own, else what the files beside it say, else the usual ones."""
    said, timm = files.json("preprocessor_config.json"), _timm(files).get("input_size")
    for one in (plain(files, "imgsz"), said.get("crop_size"), said.get("size"), timm, DEFAULT_SIDE):
        height, width = _sides(one)
        if height and width:
            break
    return image.height or height or DEFAULT_SIDE, image.width or width or DEFAULT_SIDE


def _sides(said: object) -> tuple[int | None, int | None]:
    """Returns height and width as a file says them: one number, a list that ends in both, or a table."""
    if isinstance(said, Mapping):
        side = said.get("shortest_edge")
        said = [said.get("height", side), said.get("width", side)]
    height, width = said[-2:] if isinstance(said, list) and len(said) > 1 else (said, said)
    return whole(height, 1 << 15), whole(width, 1 << 15)


def resize_filter(files: ModelFolder) -> list[str]:
    """Returns the parameter of a step that resizes, where the files beside the model say how."""
    number = files.json("preprocessor_config.json").get("resample")
    name = FILTERS[number] if type(number) is int and 0 <= number < len(FILTERS) else _timm(files).get("interpolation")
    return [f'filter = "{name}"'] if name in FILTERS and name != "bilinear" else []


def normalise(files: ModelFolder, image: ImageOf) -> str:
    """Returns the step that makes numbers of pixels, "" where the model takes them as they are."""
    if image.dtype == "uint8":
        return ""
    said = files.json("preprocessor_config.json")
    parameters = []
    factor = said.get("rescale_factor", 1 / 255)
    if said.get("do_rescale", True) is True and isinstance(factor, float) and factor > 0:
        parameters.append(f"divide-by = {_shown(1 / factor)}")
    if said.get("do_normalize", True) is True:
        for key, names in (("mean", ("image_mean", "mean")), ("std", ("image_std", "std"))):
            numbers = said.get(names[0], _timm(files).get(names[1]))
            if isinstance(numbers, list) and numbers and all(isinstance(one, int | float) for one in numbers):
                parameters.append(f"{key} = [{', '.join(_shown(float(one)) for one in numbers)}]")
    return step("normalise", 'in = ["small"]', *parameters)


def _shown(number: float) -> str:
    near = round(number)
    return str(near) if abs(number - near) < 1e-9 * abs(near or 1) else repr(number)


def _timm(files: ModelFolder) -> dict[str, Any]:
    """Returns what timm notes of an image in its config.json."""
    found = files.json("config.json").get("pretrained_cfg")
    return found if isinstance(found, dict) else {}


def labels(files: ModelFolder) -> list[str]:
    """Returns the names of classes: those in the model's metadata, else in config.json, [] where nobody says.

    Raises:
        DataError: the metadata are not what ultralytics writes.
    """
    named = plain(files, "names")
    if named is not None:
        return _in_order(named, str(files.model))
    found = files.json("config.json").get("id2label")
    return _in_order(found, "config.json") if isinstance(found, Mapping) else []


def plain(files: ModelFolder, key: str) -> object:
    """Returns what the model's metadata say as Python's constants, as ultralytics writes: {0: 'person'}, [640, 640]."""
    text = files.metadata.get(key)
    if text is None:
        return None
    try:
        if len(text) > MAX_METADATA:
            raise ValueError(f"it has {len(text)} characters")
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError) as err:
        told = f"{key!r} in the model's metadata cannot be read: {err}"
        raise DataError(told, where=str(files.model)) from err


def asked_for(files: ModelFolder, option: str) -> bool:
    """Returns whether the export was asked for an option, as ultralytics writes in the metadata."""
    told = plain(files, "args")
    return isinstance(told, Mapping) and told.get(option) is True


def _in_order(names: object, where: str) -> list[str]:
    found = dict(enumerate(names)) if isinstance(names, list) else names
    if isinstance(found, Mapping) and 0 < len(found) <= MAX_LABELS:
        by_number = {str(number): name for number, name in found.items()}
        ordered = [by_number.get(str(number)) for number in range(len(by_number))]
        if all(isinstance(name, str) and name for name in ordered):
            return [str(name) for name in ordered]
    raise DataError("its names of classes are no texts by number from 0 on", where=where)


def label_list(names: list[str], indent: str = "") -> str:
    """Returns names as a list of TOML, on as many lines as it needs."""
    text = textwrap.fill(", ".join(map(quoted, names)), 116, break_long_words=False, break_on_hyphens=False)
    return f"[{text}]" if "\n" not in text else f"[\n{textwrap.indent(text, indent + '    ')},\n{indent}]"
