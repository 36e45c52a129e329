# SPDX-License-Identifier: Apache-2.0
"""Shapes, elements and bytes of values under one binding of symbolic sizes; unknown sizes count as 1."""

import math
from collections.abc import Mapping

import onnx_ir as ir

UNKNOWN_DIM = 1


class Sizes:
    """Shapes and bytes of values under one binding of symbolic sizes."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self._shapes = shapes

    def shape(self, value: ir.Value | None) -> tuple[int, ...]:
        """Returns the shape of a value, () where nothing is known of it."""
        if value is None:
            return ()
        if value.name is not None and value.name in self._shapes:
            return self._shapes[value.name]
        if value.shape is None:
            return ()
        return tuple(dim if isinstance(dim, int) else UNKNOWN_DIM for dim in value.shape)

    def elements(self, value: ir.Value | None) -> int:
        """Returns how many elements a value has, 0 where it is absent."""
        return 0 if value is None else math.prod(self.shape(value))

    def bytes(self, value: ir.Value | None) -> int:
        """Returns how many bytes a value has, 0 where they are not known."""
        if value is None or value.dtype is None or value.dtype == ir.DataType.STRING:
            return 0
        return math.ceil(self.elements(value) * value.dtype.itemsize)
