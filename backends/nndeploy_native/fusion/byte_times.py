# SPDX-License-Identifier: Apache-2.0
"""saturated(round(scaled bytes * floats, one a channel) + zero)  =>  one pass over bytes.

So the gates of squeeze-and-excitation need no floats of the image. The scales of what is read and of what is made are
one factor, as of lines of bytes (`byte_lines`): a number just between two bytes may become the other.
"""

from typing import NamedTuple

import numpy as np

from nndeploy.values.size import product
from nndeploy_native.expressions import Domain, Expression
from nndeploy_native.fusion.byte_lines import RANGES
from nndeploy_native.steps.bytes import MOST_FACTOR, ByteTimes
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.step import NativeStep
from nndeploy_native.tensors import Shape, Tensor


def fuse_byte_times(steps: list[NativeStep]) -> list[NativeStep]:
    """Returns the steps with such elementwise ones as passes over bytes."""
    return [times_of(step) or step if isinstance(step, Elementwise) else step for step in steps]


def times_of(step: Elementwise) -> ByteTimes | None:
    """Returns the pass over bytes that a step is; None where it is none."""
    element, operands = step.output.element, step.operands
    if element not in RANGES or step.domain is not Domain.FLOAT32 or len(operands) != 2 or step.output.is_blocked:
        return None
    image = next((number for number, one in enumerate(operands) if _is_image(one, step.output)), -1)
    if image < 0 or not _is_of_channels(operands[1 - image], step.output.shape):
        return None
    x, by = operands[image].tensor, operands[1 - image].tensor
    assert x is not None
    assert by is not None
    match step.expression:
        case (str(name), ("add", ("round", tuple(rounded)), ("const", int(zero) | float(zero)))):
            pass
        case (str(name), ("round", tuple(rounded))):
            zero = 0
        case _:
            return None
    found, (least, most) = _read(rounded, image), RANGES[element]
    if name != f"saturated_{element}" or found is None or not found.times or not least <= zero <= most:
        return None
    if zero != int(zero) or found.zero != int(found.zero) or not abs(found.factor) < MOST_FACTOR:
        return None
    return ByteTimes(step.output, x, by, int(found.zero), float(np.float32(found.factor)), int(zero))


class _Scaled(NamedTuple):
    """(bytes - zero) * factor, and whether that is times the floats."""

    zero: float
    factor: float
    times: bool


def _is_image(one: Operand, output: Tensor) -> bool:
    tensor = one.tensor
    return tensor is not None and tensor.element in RANGES and not tensor.is_blocked and one.shape == output.shape


def _is_of_channels(one: Operand, shape: Shape) -> bool:
    """Whether an operand is plain floats, one a channel of each image (N, ..., C) or of all."""
    tensor = one.tensor
    if tensor is None or tensor.element != "fp32" or tensor.is_blocked or len(one.shape) != len(shape):
        return False
    return (
        len(shape) > 2
        and one.shape[-1] == shape[-1]
        and product(one.shape[1:-1]) == 1
        and one.shape[0] in (1, shape[0])
    )


def _read(expression: Expression, image: int) -> _Scaled | None:
    match expression:
        case ("operand", number) if number == image:
            return _Scaled(0.0, 1.0, times=False)
        case ("sub", ("operand", number), ("const", int(zero) | float(zero))) if number == image:
            return _Scaled(zero, 1.0, times=False)
        case ("mul", tuple(value), ("const", int(by) | float(by))):
            return _by(_read(value, image), by)
        case ("div", tuple(value), ("const", int(by) | float(by))) if by:
            return _by(_read(value, image), 1 / by)
        case ("mul", tuple(value), ("operand", number)) | ("mul", ("operand", number), tuple(value)) if number != image:
            found = _read(value, image)
            return None if found is None or found.times else found._replace(times=True)
    return None


def _by(found: _Scaled | None, factor: float) -> _Scaled | None:
    return None if found is None else found._replace(factor=found.factor * factor)
