# SPDX-License-Identifier: Apache-2.0
"""An image that cannot become the model's input is refused before anything is built."""

import pytest

from nndeploy.bundle.manifest import ImageInput, NamedType
from nndeploy.errors import UsageError
from nndeploy.frontend.image_input import check_image_fits
from nndeploy.values.types import SequenceType, TensorType, ValueType


def image(channels: str = "L", layout: str = "NCHW", name: str = "x") -> ImageInput:
    numbers = (1.0,) * len(channels)
    return ImageInput(name, 2, 3, channels, layout, numbers, numbers)


def tensor(*shape: int | str | None) -> list[NamedType]:
    return [NamedType("x", TensorType("float32", shape))]


@pytest.mark.parametrize(("described", "inputs"), [
    (image(), tensor("N", 1, 2, 3)), (image(), tensor(4, 1, "H", None)),
    (image(), [NamedType("x", TensorType("float32", None))]), (image("RGB", "NHWC"), tensor(1, 2, 3, 3)),
])  # fmt: skip
def test_what_fits_passes(described: ImageInput, inputs: list[NamedType]) -> None:
    check_image_fits(described, inputs)


@pytest.mark.parametrize(("described", "kind", "message"), [
    (image(), TensorType("float32", ("N", 1, 3, 2)), r"an image becomes x\[1,1,2,3\], but the input is float32"),
    (image("RGB"), TensorType("float32", ("N", 1, 2, 3)), r"an image becomes x\[1,3,2,3\], but"),
    (image("RGB", "NHWC"), TensorType("float32", ("N", 3, 2, 3)), r"an image becomes x\[1,2,3,3\], but"),
    (image(), TensorType("float32", (2, 3)), "but the input is float32"),
    (image(), SequenceType(TensorType("float32", (1, 1, 2, 3))), "but the input is seq"),
    (image(name="y"), TensorType("float32", (1, 1, 2, 3)), "no input is named 'y'"),
])  # fmt: skip
def test_what_does_not_fit_says_why(described: ImageInput, kind: ValueType, message: str) -> None:
    with pytest.raises(UsageError, match=f"image_input: .*{message}"):
        check_image_fits(described, [NamedType("x", kind)])
