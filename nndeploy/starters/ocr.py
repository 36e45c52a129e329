# SPDX-License-Identifier: Apache-2.0
"""From an image to the texts in it: PP-OCR's detector of lines, its recogniser of one, and its classifier of angles.

Source: PaddleOCR, tools/infer and configs/det, configs/rec: how pixels are resized and filled up, and the thresholds.
"""

from nndeploy.errors import DataError
from nndeploy.files.whole_files import read_regular
from nndeploy.processors.text_lines import TextLines
from nndeploy.starters.images import image_input, label_list, step
from nndeploy.starters.model_folder import MAX_JSON, ModelFolder, quoted
from nndeploy.values.types import TensorType

HEIGHT = 48
"""The height of a line of text in pixels for recognisers that take any, as those since PP-OCRv3 want it."""
LEAST_WIDTH, MOST_WIDTH = 320, 3200
"""Pixels of a line as PaddleOCR hands it to a recogniser; a shorter one is filled up."""
ANGLE_WIDTH, NUM_ANGLES = 192, 2
"""Pixels of a line and classes of PP-OCR's classifier of angles: 0 and 180 degrees."""
CONFIG = "inference.yml"
"""What PaddleOCR writes beside a model: characters and thresholds."""
THRESHOLDS = {"thresh": "threshold", "box_thresh": "box-threshold", "unclip_ratio": "unclip"}
"""What it calls parameters of `text-boxes`."""
FILES = ("ppocr_keys_v1.txt", "dict.txt", "en_dict.txt", "keys.txt", "characters.txt")
"""What a file of a recogniser's characters is usually called."""


def ocr(*models: ModelFolder) -> str:
    """Returns the TOML for a detector, a recogniser and, where there is one, a classifier of angles, in any order.

    Sizes, thresholds and pixels are those of PaddleOCR.

    Raises:
        DataError: they are no such models, or nothing says which characters the recogniser knows.
    """
    find, read, *others = sorted(models, key=_rank, reverse=True)
    likely, image = _ends(find, 4, "probabilities of pixels")
    characters, line = _ends(read, 3, "probabilities of characters")
    names, has_space = _characters(read, read.outputs[characters])
    height = image_input(read).height or HEIGHT
    turn = _turn(others[0]) if others else ""
    others_first = "".join(f"#   nndeploy compile {one.model} -o {_bundle(one)}\n" for one in (*others, read))
    return f"""\
# Images to the lines of text in them. The other bundles stand beside that of the detector.
{others_first}\
#   nndeploy compile {find.model} --pipeline {find.out} -o ocr.nnd
#   nndeploy run ocr.nnd --input photos/ --output texts.jsonl

[source]
kind = "images"

[[level]]

[[level.pipeline]]
name = "find"
inputs = {{ {quoted(image)} = "tensor" }}
outputs = {{ {quoted(likely)} = "likely" }}

# ImageNet's mean and deviation in the order of PP-OCR's channels, blue first.
[[level.pipeline.loader]]
workers = 2
steps = [
    {{ use = "decode" }},
    {{ use = "scale", longest-at-most = 960, multiple = 32, antialias = false, out = ["small", "transform"] }},
    {{ use = "normalise", in = ["small"], divide-by = 255, mean = [0.406, 0.456, 0.485], std = [0.225, 0.224, 0.229] }},
    {{ use = "layout", channels = "BGR" }},
]

[[level.pipeline.post]]
steps = [
    {_text_boxes(find)},
    {{ use = "map-back", in = ["quads", "transform"], out = ["quads"] }},
    {{ use = "crop-quads" }},
]
{turn}
[[level]]

[[level.pipeline]]
name = "read"
model = {quoted(_bundle(read))}
each = "{"upright" if turn else "crops"}"
part = "crop"
inputs = {{ {quoted(line)} = "line" }}
outputs = {{ {quoted(characters)} = "characters" }}

# Short lines are filled up, as when the model was trained.
[[level.pipeline.loader]]
{_line_steps(height, f"width-at-most = {MOST_WIDTH}", LEAST_WIDTH)}

[[level.pipeline.post]]

[[level.pipeline.post.steps]]
use = "ctc"
in = ["characters"]
space = {str(has_space).lower()}
characters = {names}

# Lines that are hardly text go.
[[level]]

[[level.pipeline]]
name = "choose"
runners = 0

[[level.pipeline.post]]
steps = [{{ use = "above", threshold = 0.5, also = ["text", "quads"] }}]

[[sink]]
kind = "json-lines"
fields = ["text", "score", "quads"]
"""


def _text_boxes(files: ModelFolder) -> str:
    """Returns the step that finds lines, with what its model's config says."""
    said = files.yaml(CONFIG, "PostProcess")
    numbers = ((ours, said.get(theirs)) for theirs, ours in THRESHOLDS.items())
    given = [f"{name} = {number}" for name, number in numbers if type(number) in (int, float)]
    return step("text-boxes", 'in = ["likely"]', 'out = ["quads", "quad-scores"]', *given)


def _turn(files: ModelFolder) -> str:
    """Returns the level that turns lines which are upside down."""
    angles, line = _ends(files, 2, "probabilities of angles")
    if (files.outputs[angles].shape or ())[-1] != NUM_ANGLES:
        told = f"the model tells not two angles but {files.outputs[angles]}"
        raise DataError(told, where=str(files.model), hint="name PP-OCR's classifier of 0 and 180 degrees")
    image = image_input(files)
    width = image.width or ANGLE_WIDTH
    return f"""
[[level]]

[[level.pipeline]]
name = "turn"
model = {quoted(_bundle(files))}
each = "crops"
part = "crop"
inputs = {{ {quoted(line)} = "line" }}
outputs = {{ {quoted(angles)} = "angles" }}

[[level.pipeline.loader]]
{_line_steps(image.height or HEIGHT, f"width-at-most = {width}", width)}

[[level.pipeline.post]]
steps = [{{ use = "turn", in = ["crop", "angles"], out = ["upright"] }}]
"""


def _line_steps(height: int, most: str, least: int) -> str:
    return f"""\
steps = [
    {{ use = "scale", height = {height}, {most}, antialias = false, in = ["crop"], out = ["line", "line-transform"] }},
    {{ use = "normalise", in = ["line"], out = ["line"], divide-by = 255, mean = [0.5], std = [0.5] }},
    {{ use = "pad", in = ["line"], out = ["line"], width = {least} }},
    {{ use = "layout", in = ["line"], out = ["line"], channels = "BGR" }},
]"""


def _bundle(files: ModelFolder) -> str:
    return files.model.with_suffix(".nnd").name


def _rank(files: ModelFolder) -> int:
    return max((len(kind.shape or ()) for kind in files.outputs.values()), default=0)


def _ends(files: ModelFolder, rank: int, what: str) -> tuple[str, str]:
    """Returns the output of a rank, and the input that takes an image."""
    image = image_input(files)
    for name, kind in files.outputs.items():
        if kind.dtype.startswith("float") and len(kind.shape or ()) == rank and image.order == "CHW":
            return name, image.name
    hint = "name PP-OCR's detector and recogniser, and its classifier of angles if there is one"
    raise DataError(f"the model gives no {what}", where=str(files.model), hint=hint)


def _characters(files: ModelFolder, output: TensorType) -> tuple[str, bool]:
    """Returns the characters as TOML, and whether a space is one more class of the model."""
    text, path = files.metadata.get("character"), files.found(*FILES)
    said = files.yaml(CONFIG, "PostProcess").get("character_dict")
    if text is not None:
        texts = tuple(text.removesuffix("\n").split("\n"))
        shown = label_list(list(texts))
    elif isinstance(said, list) and said:
        texts = tuple(map(str, said))
        shown = label_list(list(texts))
    elif path is not None:
        texts, shown = (
            TextLines.from_parameter(path.name, lambda _: read_regular(path, MAX_JSON)).texts,
            files.named(path),
        )
    else:
        hint = f"put them beside it, one a line, in {FILES[1]}, or PaddleOCR's {CONFIG}"
        raise DataError("nothing says which characters it knows", where=str(files.model), hint=hint)
    count = output.shape[-1] if output.shape else None
    if isinstance(count, int) and count not in (len(texts) + 1, len(texts) + 2):
        told = f"there are {len(texts)} characters, but the model has {count} classes, of which one is none of them"
        raise DataError(told, where=str(files.model), hint="take the characters that belong to this model")
    return shown, count == len(texts) + 2
