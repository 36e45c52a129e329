# SPDX-License-Identifier: Apache-2.0
"""From an image to a grey PNG of its size: how far each pixel is, or the number of what it belongs to."""

from nndeploy.errors import DataError
from nndeploy.starters.images import image_input, labels, layout, normalise, resize_filter, size_of, step
from nndeploy.starters.model_folder import ModelFolder, quoted

BYTE = 256
"""Classes that a PNG of 8 bits can tell."""
MOST_SHOWN = 20
"""Names of classes that are listed; a file with more has them anyway."""


def depth(files: ModelFolder) -> str:
    """Returns the TOML.

    Raises:
        DataError: the model takes no image, or gives no map of one number for each pixel.
    """
    output = next((name for name, shape in _maps(files) if len(shape) == 3 or shape[1] == 1), None)
    if output is None:
        raise _misfit(files, "depths", "float32[N,height,width] or float32[N,1,height,width]")
    what = (
        "Images to how far each pixel is: grey PNGs of 16 bits, the least number of each black, the largest white.",
    )
    return _pipeline(files, "depth", "depths", output, what, "", "deep = true, spread = true")


def segment(files: ModelFolder) -> str:
    """Returns the TOML.

    Raises:
        DataError: the model takes no image, gives no scores of classes for each pixel, or has other classes than names.
    """
    found = next(((name, shape[1]) for name, shape in _maps(files) if len(shape) == 4 and shape[1] != 1), None)
    if found is None:
        raise _misfit(files, "scores of classes for each pixel", "float32[N,classes,height,width]")
    (output, count), names = found, labels(files)
    if names and isinstance(count, int) and count != len(names):
        told = f"there are names of {len(names)} classes, but the model has {count}"
        raise DataError(told, where=str(files.model), hint="put the config.json of this model beside it")
    listed = [f"  {number} {name}" for number, name in enumerate(names[:MOST_SHOWN])]
    what = ("Images to the class of each pixel: grey PNGs of the numbers of classes.", *listed)
    deep = "deep = true" if max(len(names), count if isinstance(count, int) else 0) > BYTE else ""
    best = step("class-map", 'in = ["map"]', 'out = ["map"]', "axis = -3")
    return _pipeline(files, "segment", "classes", output, what, f"    {best},\n", deep)


def _maps(files: ModelFolder) -> list[tuple[str, tuple[object, ...]]]:
    """Returns the outputs that may be maps, with their sizes."""
    kinds = files.outputs.items()
    return [(name, kind.shape) for name, kind in kinds if kind.dtype.startswith("float") and len(kind.shape or ()) > 2]  # type: ignore[misc]


def _misfit(files: ModelFolder, what: str, wanted: str) -> DataError:
    shown = ", ".join(f"{name!r} {kind}" for name, kind in files.outputs.items())
    return DataError(f"the model gives no {what} but {shown}", where=str(files.model), hint=f"{wanted} is needed")


def _pipeline(
    files: ModelFolder, name: str, folder: str, output: str, what: tuple[str, ...], between: str, encoded: str
) -> str:
    image, (height, width) = image_input(files), size_of(files, image_input(files))
    resized = step(
        "resize", f"width = {width}", f"height = {height}", *resize_filter(files), 'out = ["small", "transform"]'
    )
    pixels = normalise(files, image)
    rest = [pixels, layout(image)] if pixels else [layout(image, 'in = ["small"]', 'out = ["tensor"]')]
    steps = "\n".join(f"    {one}," for one in (step("decode"), resized, *rest))
    encode = step("encode-map", 'in = ["map"]', *[encoded] * bool(encoded), f'out = ["{name}"]')
    told = "\n".join(f"# {line}" for line in what)
    return f"""\
{told}
#   nndeploy compile {files.model} --pipeline {files.out} -o {name}.nnd
#   nndeploy run {name}.nnd --input photos/ --output {folder}/

[source]
kind = "images"

[[level]]

[[level.pipeline]]
name = "{name}"
inputs = {{ {quoted(image.name)} = "tensor" }}
outputs = {{ {quoted(output)} = "map" }}

# The whole image, whatever becomes of its proportions.
[[level.pipeline.loader]]
workers = 2
steps = [
{steps}
]

[[level.pipeline.post]]
workers = 2
steps = [
    {{ use = "map-to-image", whole = true }},
{between}    {encode},
]

[[sink]]
kind = "images"
fields = ["{name}"]
"""
