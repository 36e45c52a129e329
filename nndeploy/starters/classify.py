# SPDX-License-Identifier: Apache-2.0
"""From an image to the names of its likeliest classes."""

from nndeploy.errors import DataError
from nndeploy.starters.images import image_input, label_list, labels, normalise, resize_filter, size_of
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
        DataError: the model takes no image, gives no scores of classes, or has other classes than it has names.
    """
    image, (output, count) = image_input(files), _scores(files)
    height, width = size_of(files, image)
    names = labels(files)
    if names and count not in (None, len(names)):
        told = f"there are names of {len(names)} classes, but the model has {count}"
        raise DataError(told, where=str(files.model), hint="put the config.json of this model beside it")
    is_sure = files.metadata.get("task") == "classify" or any(word in output.lower() for word in SURE)
    pixels = normalise(files, image)
    softmax = "" if is_sure else SOFTMAX
    field = "probabilities" if is_sure else "scores"
    return f"""\
# Images to the names of their likeliest classes.
#   nndeploy compile {files.model} --pipeline {files.out} -o classify.nnd
#   nndeploy run classify.nnd --input photos/ --output classes.jsonl

[source]
kind = "images"

[[level]]

[[level.pipeline]]
name = "classify"
inputs = {{ {quoted(image.name)} = "{"tensor" if pixels else "small"}" }}
outputs = {{ {quoted(output)} = "{field}" }}

[[level.pipeline.loader]]
workers = 2
steps = [
    {{ use = "decode" }},
    # The whole image, whatever becomes of its proportions.
    {{ use = "resize", width = {width}, height = {height}{resize_filter(files)}, out = ["small", "transform"] }},
    {pixels}{"," * bool(pixels)}
    {image.layout if pixels else image.layout.replace('"layout"', '"layout", in = ["small"], out = ["small"]')},
]

[[level.pipeline.post]]

{softmax}[[level.pipeline.post.steps]]
use = "top-k"
k = {min(5, count or 5)}
{f"labels = {label_list(names)}" if names else "# labels = [...]    # names of the classes, in the model's order"}

[[sink]]
kind = "json-lines"
fields = ["labels", "scores"]
""".replace("    \n", "")


def _scores(files: ModelFolder) -> tuple[str, int | None]:
    """Returns the output with scores of classes, and how many there are."""
    for name, kind in files.outputs.items():
        shape = kind.shape or ()
        if kind.dtype.startswith("float") and len(shape) == 2:
            return name, shape[1] if isinstance(shape[1], int) else None
    raise DataError("the model gives no scores of classes", where=str(files.model), hint="float32[N,classes] is needed")
