# SPDX-License-Identifier: Apache-2.0
"""Tensors as steps see them: a shape as ONNX counts it, in one of two layouts.

    plain     (N, C, H, W) in the order of ONNX, any rank, any element
    blocked   (N, ceil(C / c), H, W, c): channels in blocks of one vector of the box, rank 4 only, float32 kept in the
              precision of the box

Law: lanes of a blocked tensor beyond its last channel hold anything; no kernel reads one into a channel.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import numpy.typing as npt

from nndeploy.values.size import Dim, fixed, is_fixed, may_be_equal, product

Array: TypeAlias = npt.NDArray[Any]
Shape: TypeAlias = tuple[Dim, ...]


class Layout(StrEnum):
    """How elements lie in memory."""

    PLAIN = "plain"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Tensor:
    """All elements of the value `name`, seen in `shape`: plain tensors of one name may differ in shape.

    `element` is one of `plan.DTYPES`: "fp32", or another where the tensor is plain.
    """

    name: str
    shape: Shape
    layout: Layout = Layout.PLAIN
    element: str = "fp32"

    @property
    def is_blocked(self) -> bool:
        """Whether channels lie in blocks."""
        return self.layout is Layout.BLOCKED

    @property
    def size(self) -> Dim:
        """The number of elements, without padding."""
        return product(self.shape)

    @property
    def channels(self) -> int:
        """The channels of an image (N, C, H, W), which are the same in every call.

        Raises:
            UndecidedError: they are not.
        """
        return fixed(self.shape[1])

    @property
    def is_column(self) -> bool:
        """Whether it is an image (N, C, H, W) that is one pixel wide, and higher."""
        return self.shape[3] == 1 != self.shape[2]

    @property
    def is_fixed(self) -> bool:
        """Whether the shape is the same in every call."""
        return is_fixed(self.shape)


def may_be_same(first: Shape, second: Shape) -> bool:
    """Whether two shapes are the same for some sizes of the inputs; the table of a call tells for these."""
    return len(first) == len(second) and all(map(may_be_equal, first, second))


def fixed_shape(shape: Shape) -> tuple[int, ...]:
    """Returns the sizes of a shape as numbers.

    Raises:
        UndecidedError: one depends on the inputs.
    """
    return tuple(map(fixed, shape))
