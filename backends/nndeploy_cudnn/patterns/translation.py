# SPDX-License-Identifier: Apache-2.0
"""What a pattern needs to read a node and to write operations: typed values, constants, attributes.

Law: a value is float16, bfloat16 or float32 and of known size, or a constant; everything else is a refusal.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import onnx_ir as ir

from nndeploy.backend_kit.query import constant_of
from nndeploy.values.types import DimRange
from nndeploy_cudnn.ladder import size_of
from nndeploy_cudnn.operations import Array, Operation, Value
from nndeploy_cudnn.views import ITEM_BYTES, Dims

T = TypeVar("T", int, float, str)

MAX_RANK = 8  # Source: cudnn_graph_v9.h, CUDNN_DIM_MAX


class NotTakenError(Exception):
    """A node is not taken; `str(refusal)` is the reason, one line."""


class Translation:
    """Collects the operations of nodes; `ranges` gives the sizes of symbolic dimensions."""

    def __init__(self, ranges: Mapping[str, DimRange]) -> None:
        self.operations: list[Operation] = []
        self._ranges = ranges
        self._values: dict[int, Value] = {}
        self._num_made = 0

    def add(self, operation: Operation) -> None:
        """Appends an operation."""
        self.operations.append(operation)

    def value(self, found: ir.Value | None) -> Value:
        """Returns the tensor that an input or output of a node stands for; always the same object.

        Raises:
            NotTakenError: its size is not fixed, or cuDNN does not compute with its type.
        """
        if found is None:
            raise NotTakenError("a needed input is missing")
        if id(found) not in self._values:
            self._values[id(found)] = self._typed(found)
        return self._values[id(found)]

    def known(self, found: ir.Value) -> Value | None:
        """Returns the tensor of a value that a pattern asked for, None for any other."""
        return self._values.get(id(found))

    def optional(self, node: ir.Node, index: int) -> Value | None:
        """Returns an input that may be absent."""
        return None if _input(node, index) is None else self.value(_input(node, index))

    def made(self, dims: Sequence[int], dtype: str) -> Value:
        """Returns a new value for something in between."""
        self._num_made += 1
        return Value(f"#{self._num_made}", tuple(dims), dtype)

    def constant(self, elements: Array, dtype: str = "float32") -> Value:
        """Returns a value whose elements are known."""
        self._num_made += 1
        return Value(f"#{self._num_made}", tuple(elements.shape), dtype, in_dtype(elements, dtype))

    def scalar(self, number: float) -> Value:
        """Returns a float32 scalar: cuDNN computes in float32, so it is not rounded to the type of the values."""
        return self.constant(np.array(number))

    def _typed(self, found: ir.Value) -> Value:
        constant = constant_of(found)
        dims = self._dims(found, constant)
        dtype = found.dtype if constant is None else constant.dtype
        name = "" if dtype is None else dtype.numpy().name
        if name not in ITEM_BYTES:
            said = name or "of no known type"
            raise NotTakenError(f"{found.name!r} is {said}; only float32, float16 and bfloat16 are taken")
        if len(dims) > MAX_RANK:
            raise NotTakenError(f"{found.name!r} has {len(dims)} axes; cuDNN takes {MAX_RANK}")
        if 0 in dims:
            raise NotTakenError(f"{found.name!r} is empty")
        return Value(found.name or "", dims, name, None if constant is None else constant.numpy())

    def _dims(self, found: ir.Value, constant: ir.TensorProtocol | None) -> Dims:
        shape = found.shape if constant is None else constant.shape
        if shape is None:
            raise NotTakenError(f"the shape of {found.name!r} is not known, cuDNN plans fixed sizes")
        return tuple(self._size(size, found.name or "") for size in shape)

    def _size(self, size: "int | ir.SymbolicDimProtocol", name: str) -> int:
        if isinstance(size, int):
            return size
        found, known = size_of(size.value, self._ranges), self._ranges.get(size.value or "")
        if isinstance(found, int):
            return found
        said = "?" if size.value is None else f"{size.value}" + (f" ({known})" if known else "")
        raise NotTakenError(f"the size {said} of {name!r} is not fixed, cuDNN plans fixed sizes (see --shape)")


def input_of(node: ir.Node, index: int) -> ir.Value:
    """Returns an input that must be there.

    Raises:
        NotTakenError: it is not.
    """
    found = _input(node, index)
    if found is None:
        raise NotTakenError(f"input {index} is missing")
    return found


def numbers_of(node: ir.Node, index: int, default: Sequence[float] | None = None) -> list[float]:
    """Returns the elements of an input that is a constant, or of `default` where it is absent.

    Raises:
        NotTakenError: the input is not known now.
    """
    found = _input(node, index)
    if found is None:
        if default is None:
            raise NotTakenError(f"input {index} is missing")
        return list(default)
    constant = constant_of(found)
    if constant is None:
        raise NotTakenError(f"{found.name!r} is not a constant; cuDNN's plans are made for fixed ones")
    return [number.item() for number in np.atleast_1d(constant.numpy()).reshape(-1)]


def integers_of(node: ir.Node, index: int, default: Sequence[int] | None = None) -> list[int]:
    """Returns the elements of a constant input as ints; see `numbers_of`."""
    return [int(number) for number in numbers_of(node, index, default)]


def attribute(node: ir.Node, name: str, default: T) -> T:
    """Returns an attribute of the type of `default`, or `default`."""
    found = node.attributes.get(name)
    return default if found is None else type(default)(found.value)


def attribute_ints(node: ir.Node, name: str, default: Sequence[int]) -> tuple[int, ...]:
    """Returns an attribute that is a list of ints, or `default`."""
    found = node.attributes.get(name)
    return tuple(default) if found is None else tuple(int(number) for number in found.as_ints())


def opset_of(node: ir.Node) -> int:
    """Returns the version of ONNX's operator set that a node is of."""
    if node.version is not None:
        return node.version
    imports = {} if node.graph is None else node.graph.opset_imports
    return imports.get("", imports.get("ai.onnx", 1 << 30))


def only_output(node: ir.Node) -> ir.Value:
    """Returns the first output of a node whose others nobody reads.

    Raises:
        NotTakenError: a further output is used.
    """
    for output in node.outputs[1:]:
        if output.name and (output.uses() or output.is_graph_output()):
            raise NotTakenError(f"output {output.name!r} is used, only the first is made")
    return node.outputs[0]


def axis_within(axis: int, rank: int) -> int:
    """Returns an axis counted from the front.

    Raises:
        NotTakenError: there is no such axis.
    """
    if not -rank <= axis < rank:
        raise NotTakenError(f"axis {axis} of {rank}")
    return axis % rank


def num_elements(dims: Sequence[int]) -> int:
    """Returns the product of the dims."""
    return math.prod(dims)


def in_dtype(elements: Array, dtype: str) -> Array:
    """Returns elements rounded to `dtype`; bfloat16 is ml_dtypes'."""
    if dtype == "bfloat16":
        import ml_dtypes

        return elements.astype(ml_dtypes.bfloat16)
    return elements.astype(dtype)


def _input(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None
