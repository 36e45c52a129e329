# SPDX-License-Identifier: Apache-2.0
"""From an image or a text to the names of its likeliest classes."""

from dataclasses import dataclass

from nndeploy.errors import DataError
from nndeploy.starters.embed import tokenize
from nndeploy.starters.images import (
    image_input,
    label_list,
    labels,
    layout,
    normalise,
    resize_filter,
    size_of,
    step,
)
from nndeploy.starters.model_folder import ModelFolder, quoted

SURE = ("prob", "softmax")
"""What names of outputs have in them whose numbers are probabilities."""

SOFTMAX = """\
[[level.pipeline.post.steps]]
use = "softmax"    # not for a model whose numbers add up to 1

"""


def classify(files: ModelFolder) -> str:
    """Returns the TOML.

    Raises:
        DataError: the model takes neither an image nor tokens, gives no scores of classes, or has other classes than it
            has names.
        MissingInputError: it takes tokens, and there is no tokenizer.
    """
    made = _of_texts(files) if "input_ids" in files.inputs else _of_images(files)
    (output, count), names = _scores(files), labels(files)
    if names and count not in (None, len(names)):
        told = f"there are names of {len(names)} classes, but the model has {count}"
        raise DataError(told, where=str(files.model), hint="put the config.json of this model beside it")
    is_sure = files.metadata.get("task") == "classify" or any(word in output.lower() for word in SURE)
    steps = "\n".join(f"    {one}" for one in made.steps)
    return f"""\
# {made.what} to the names of their likeliest classes.
#   nndeploy compile {files.model} --pipeline {files.out} -o classify.nnd
#   nndeploy run classify.nnd --input {made.example} --output classes.jsonl

[source]
kind = "{made.kind}"

[[level]]

[[level.pipeline]]
name = "classify"
{made.inputs}outputs = {{ {quoted(output)} = "{"probabilities" if is_sure else "scores"}" }}

[[level.pipeline.loader]]
workers = 2
steps = [
{steps}
]

[[level.pipeline.post]]

{"" if is_sure else SOFTMAX}[[level.pipeline.post.steps]]
use = "top-k"
k = {min(5, count or 5)}
{f"labels = {label_list(names)}" if names else "# labels = [...]    # names of the classes, in the model's order"}

[[sink]]
kind = "json-lines"
fields = ["labels", "scores"]
"""


@dataclass(frozen=True, slots=True)
class _Begin:
    """What stands before the model: the kind of source, the line that names inputs, if any, and the steps."""

    what: str
    example: str
    kind: str
    inputs: str
    steps: tuple[str, ...]


def _of_texts(files: ModelFolder) -> _Begin:
    return _Begin("Texts", "texts.txt", "lines", "", (tokenize(files),))


def _of_images(files: ModelFolder) -> _Begin:
    image, (height, width) = image_input(files), size_of(files, image_input(files))
    resize = step(
        "resize", f"width = {width}", f"height = {height}", *resize_filter(files), 'out = ["small", "transform"]'
    )
    begin = (step("decode") + ",", "# The whole image, whatever becomes of its proportions.", resize + ",")
    pixels = normalise(files, image)
    field = "tensor" if pixels else "small"
    rest = [pixels, layout(image)] if pixels else [layout(image, 'in = ["small"]', 'out = ["small"]')]
    steps = (*begin, *(f"{one}," for one in rest))
    return _Begin("Images", "photos/", "images", f'inputs = {{ {quoted(image.name)} = "{field}" }}\n', steps)


def _scores(files: ModelFolder) -> tuple[str, int | None]:
    """Returns the output with scores of classes, and how many there are."""
    for name, kind in files.outputs.items():
        shape = kind.shape or ()
        if kind.dtype.startswith("float") and len(shape) == 2 and shape[1] != 1:
            return name, shape[1] if isinstance(shape[1], int) else None
    hint = "float32[N,classes] is needed; `new rerank` is for one score of two texts"
    raise DataError("the model gives no scores of classes", where=str(files.model), hint=hint)
