# SPDX-License-Identifier: Apache-2.0
"""Whether images, made as the user describes, fit the model: told before anything is built."""

from collections.abc import Sequence

from nndeploy.bundle.manifest import ImageInput, NamedType
from nndeploy.bundle.manifest_check import check_image_input
from nndeploy.errors import BundleError, UsageError
from nndeploy.values.types import TensorType


def check_image_fits(image: ImageInput, inputs: Sequence[NamedType]) -> None:
    """Checks that an image becomes one of the inputs.

    Raises:
        UsageError: no input has that name, or the input has other sizes.
    """
    try:
        check_image_input(image, inputs)
    except BundleError as err:
        raise UsageError(err.what, where=err.where, hint=err.hint) from err
    kind = next(named.type for named in inputs if named.name == image.name)
    channels, plane = (len(image.channels),), (image.height, image.width)
    sizes = (*channels, *plane) if image.layout == "NCHW" else (*plane, *channels)
    if not isinstance(kind, TensorType) or not _can_be(kind.shape, sizes):
        made = ",".join(map(str, sizes))
        raise UsageError(f"an image becomes {image.name}[1,{made}], but the input is {kind}", where="image_input")


def _can_be(shape: Sequence[int | str | None] | None, sizes: Sequence[int]) -> bool:
    """Returns whether a tensor may have these sizes behind its first axis."""
    if shape is None:
        return True
    return len(shape) == 1 + len(sizes) and all(
        dim == size for dim, size in zip(shape[1:], sizes, strict=True) if isinstance(dim, int)
    )
