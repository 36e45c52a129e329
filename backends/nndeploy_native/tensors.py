# SPDX-License-Identifier: Apache-2.0
"""Tensors as steps see them: a shape as ONNX counts it, in one of two layouts.

    plain     (N, C, H, W) in the order of ONNX, any rank, float32 (inputs of whole numbers as they are)
    blocked   (N, ceil(C / c), H, W, c): channels in blocks of one vector, rank 4 only, of the kernels' precision

Law: lanes of a blocked tensor beyond its last channel hold anything; no kernel reads one into a channel.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from nndeploy.values.size import Dim, fixed, is_fixed, product
from nndeploy_native.isa import Isa

Array: TypeAlias = npt.NDArray[Any]
Shape: TypeAlias = tuple[Dim, ...]


class Layout(StrEnum):
    """How elements lie in memory."""

    PLAIN = "plain"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Tensor:
    """All elements of the value `name`, seen in `shape`: plain tensors of one name may differ in shape.

    `element` is "fp32", or "int32" or "int64" of an input that is plain.
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

    def memory_shape(self, lanes: int) -> Shape:
        """Returns the shape of the tensor's memory."""
        if not self.is_blocked:
            return self.shape
        batch, channels, height, width = self.shape
        return (batch, padded(channels, lanes) // lanes, height, width, lanes)

    def num_bytes(self, isa: Isa) -> Dim:
        """Returns the bytes that the tensor takes, padding included."""
        return (isa.elem_bytes if self.is_blocked else 4) * product(self.memory_shape(isa.lanes))


def fixed_shape(shape: Shape) -> tuple[int, ...]:
    """Returns the sizes of a shape as numbers.

    Raises:
        UndecidedError: one depends on the inputs.
    """
    return tuple(map(fixed, shape))


@overload
def padded(size: int, multiple: int) -> int: ...
@overload
def padded(size: Dim, multiple: int) -> Dim: ...
def padded(size: Dim, multiple: int) -> Dim:
    """Returns the size rounded up to a multiple."""
    return -(-size // multiple) * multiple


def places_in_memory(tensor: Tensor, lanes: int) -> Array:
    """Returns, for each element in the order of ONNX, its place in memory, counted in floats."""
    if not tensor.is_blocked:
        return np.arange(fixed(tensor.size), dtype=np.int64)
    shape = fixed_shape(tensor.shape)
    n, c, h, w = np.indices(shape, sparse=True)
    _, channels, height, width = shape
    blocks = padded(channels, lanes) // lanes
    vectors = ((n * blocks + c // lanes) * height + h) * width + w
    return (vectors * lanes + c % lanes).reshape(-1).astype(np.int64)


def blocked_array(array: Array, lanes: int) -> Array:
    """Returns (N, C, H, W) as (N, ceil(C / lanes), H, W, lanes), padded with zeros."""
    batch, channels, height, width = array.shape
    full = np.zeros((batch, padded(channels, lanes), height, width), np.float32)
    full[:, :channels] = array
    return np.ascontiguousarray(full.reshape(batch, -1, lanes, height, width).transpose(0, 1, 3, 4, 2))
