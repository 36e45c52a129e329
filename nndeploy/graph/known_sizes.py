# SPDX-License-Identifier: Apache-2.0
"""What is known of the sizes of a model's values, and of the elements of its small integer tensors."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import onnx_ir as ir

from nndeploy.graph.constants import constant_array, constant_ints
from nndeploy.values.size import Dim, symbol
from nndeploy.values.size_text import size_in
from nndeploy.values.types import DimRange

Shape: TypeAlias = tuple[Dim, ...]
"""Sizes of a tensor, or the elements of an integer tensor of rank 0 or 1."""

MAX_ELEMENTS = 64


class KnownSizes:
    """What is known of the values of a model; grows while nodes are visited in order."""

    def __init__(self, opset: int, ranges: Mapping[str, DimRange]) -> None:
        """`ranges` are those of symbols of the inputs, by name."""
        self.opset = opset
        self._ranges = ranges
        self._shapes: dict[ir.Value, Shape] = {}
        self._elements: dict[ir.Value, Shape] = {}

    def size_of(self, text: str) -> Dim:
        """Returns the size that a dimension of the inputs stands for."""
        return size_in(text, self._ranges)

    def shape(self, value: ir.Value | None) -> Shape | None:
        """Returns the sizes of a tensor, None where not even its rank is known."""
        if value is None or value.shape is None:
            return self._shapes.get(value) if value is not None else None
        if value not in self._shapes:
            is_outside = value.is_graph_input() or value.is_initializer()
            self._shapes[value] = tuple(
                dim if isinstance(dim, int) else self._symbol(value, axis, dim, is_outside)
                for axis, dim in enumerate(value.shape)
            )
        return self._shapes[value]

    def elements(self, value: ir.Value | None) -> Shape | None:
        """Returns the elements of a tensor of integers or truths, of rank 0 or 1; None where they are not known."""
        if value is None or not self._is_list(value):
            return None
        if value not in self._elements and value.dtype == ir.DataType.BOOL:
            truth = constant_array(value)
            return None if truth is None or truth.size > MAX_ELEMENTS else tuple(map(int, truth.reshape(-1)))
        return self._elements[value] if value in self._elements else constant_ints(value)

    def learn_shape(self, value: ir.Value, shape: Shape) -> None:
        """Takes what a rule gives; what the model says stays where it is a number, or has another rank."""
        said = value.shape
        if said is not None and len(said) != len(shape):
            return
        dims = tuple(said) if said is not None else (None,) * len(shape)
        self._shapes[value] = tuple(
            dim if isinstance(dim, int) else found for dim, found in zip(dims, shape, strict=True)
        )

    def learn_elements(self, value: ir.Value, elements: Shape) -> None:
        """Takes the elements of an integer tensor, after its shape; of one with more axes nothing is kept."""
        if len(elements) <= MAX_ELEMENTS and self._is_list(value):
            self._elements[value] = elements

    def _is_list(self, value: ir.Value) -> bool:
        shape = self.shape(value)
        return shape is not None and len(shape) <= 1

    def _symbol(self, value: ir.Value, axis: int, dim: ir.SymbolicDim, is_outside: bool) -> Dim:
        if is_outside and dim.value is not None:
            return self.size_of(dim.value)
        return symbol(f"{value.name}.{axis}")


Rule: TypeAlias = Callable[[ir.Node, KnownSizes], None]
"""How the sizes of a node's outputs follow from those of its inputs; one that finds nothing says nothing."""
