# SPDX-License-Identifier: Apache-2.0
"""Quantised tensors as float32 tensors of whole numbers, for rewriting operators on them into float32 arithmetic.

A quantised tensor q with zero point z stands for the whole numbers r = q - z. What an operator makes is clipped so
that q fits its type, and written as q only where somebody else reads it:

    r = Min(Max(Round(v), lowest - z), highest - z)        q = Cast(r + z)

Law: r is exact, for whole numbers up to 2^24 are float32 numbers; so q is what integer arithmetic gives.
Source: ONNX QuantizeLinear, opset 10 to 25 (round half to even, saturate).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from nndeploy.query import constant_of

Floats = npt.NDArray[np.float32]

INTEGERS = frozenset({
    ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT16, ir.DataType.UINT16, ir.DataType.INT32,
})  # fmt: skip
OLDEST_OPSET = 11
"""Round is there since operator set 11."""

Reshape = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class _Whole:
    """The float32 tensor r of a quantised one, and the zero point that was taken off: a constant or a value."""

    value: ir.Value
    zero: ir.Value | None


class QuantisedGraph:
    """Makes float32 nodes in one graph; `at` is the node that is being replaced, in front of which they go."""

    def __init__(self, graph: ir.Graph) -> None:
        self._graph = graph
        self._wholes: dict[int, _Whole] = {}
        self._made: list[ir.Node] = []
        self._let_go: list[ir.Value] = []
        self._num_constants = 0
        self.at: ir.Node | None = None

    def op(self, op_type: str, inputs: Sequence[ir.Value], attributes: Sequence[ir.Attr] = ()) -> ir.Value:
        """Returns the output of a new node."""
        assert self.at is not None, "the caller says where"
        node = ir.Node("", op_type, inputs, attributes, name=f"{self.at.name}/{op_type}{len(self._made)}")
        self._graph.insert_before(self.at, node)
        self._made.append(node)
        return node.outputs[0]

    def cast(self, value: ir.Value, to: ir.DataType) -> ir.Value:
        """Returns `value` as another type."""
        return self.op("Cast", [value], [ir.AttrInt64("to", int(to))])

    def floats(self, array: "npt.NDArray[np.generic]") -> ir.Value:
        """Returns a new float32 constant."""
        assert self.at is not None, "the caller says where"
        self._num_constants += 1
        name = f"{self.at.name}/constant{self._num_constants}"
        tensor = ir.tensor(np.asarray(array, np.float32), name=name)
        value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)
        self._graph.register_initializer(value)
        return value

    def whole(self, value: ir.Value, zero: ir.Value | None, reshape: Reshape = lambda array: array) -> ir.Value:
        """Returns r of a quantised value; `reshape` brings a zero point of one axis to where that axis is."""
        known = self._wholes.get(id(value))
        if known is not None and same_constant(known.zero, zero):
            return known.value
        constant, shift = array_of(value), zero_array(zero)
        if constant is not None and shift is not None:
            return self.floats(constant.astype(np.float32) - reshape(shift))
        found = self.cast(value, ir.DataType.FLOAT)
        if shift is None and zero is not None:
            return self.op("Sub", [found, self.cast(zero, ir.DataType.FLOAT)])
        return found if shift is None or not shift.any() else self.op("Sub", [found, self.floats(reshape(shift))])

    def quantised(
        self, value: ir.Value, zero: ir.Value | None, to: ir.DataType, reshape: Reshape = lambda array: array
    ) -> ir.Value:
        """Returns q of scaled float32 values that are not whole yet; `zero` is a constant."""
        shift = zero_array(zero)
        assert shift is not None, "the caller has looked"
        limits = np.iinfo(to.numpy())
        rounded = self.op("Round", [value])
        low = self.op("Max", [rounded, self.floats(limits.min - reshape(shift))])
        whole = self.op("Min", [low, self.floats(limits.max - reshape(shift))])
        shifted = self.op("Add", [whole, self.floats(reshape(shift))]) if shift.any() else whole
        found = self.cast(shifted, to)
        self.remember(found, whole, zero)
        return found

    def remember(self, value: ir.Value, whole: ir.Value, zero: ir.Value | None) -> None:
        """Notes that `whole` is r of the quantised `value`, so that whoever reads it need not compute it."""
        self._wholes[id(value)] = _Whole(whole, zero)

    def replace_by(self, outputs: Sequence[ir.Value]) -> None:
        """Puts `outputs`, which take over names and types, in the place of the first outputs of the node `at`."""
        assert self.at is not None, "the caller says where"
        old_outputs = list(self.at.outputs[: len(outputs)])
        for old, new in zip(old_outputs, outputs, strict=True):
            if not new.is_initializer():
                new.name, new.type, new.shape, old.name = old.name, old.type, old.shape, None
        ir.convenience.replace_all_uses_with(old_outputs, list(outputs), replace_graph_outputs=True)
        self._let_go += [value for value in self.at.inputs if value is not None and value.is_initializer()]
        self._graph.remove(self.at, safe=True)
        self.at = None

    def remove_unread(self) -> None:
        """Removes nodes that were made and constants that were let go where nobody reads them."""
        for node in reversed(self._made):
            if not any(output.uses() or output.is_graph_output() for output in node.outputs):
                self._let_go += [value for value in node.inputs if value is not None and value.is_initializer()]
                self._graph.remove(node, safe=True)
        for value in self._let_go:
            if value.name and not value.uses() and not value.is_graph_output() and not value.is_graph_input():
                self._graph.initializers.pop(value.name, None)


def array_of(value: ir.Value | None) -> "npt.NDArray[np.generic] | None":
    """Returns the numbers of a constant, None for any other value."""
    tensor = None if value is None else constant_of(value)
    return None if tensor is None else tensor.numpy()


def zero_array(zero: ir.Value | None) -> Floats | None:
    """Returns a zero point as float32 (0 where it is left out), None where it is no constant."""
    if zero is None:
        return np.zeros((), np.float32)
    found = array_of(zero)
    return None if found is None else found.astype(np.float32)


def same_constant(one: ir.Value | None, other: ir.Value | None) -> bool:
    """Returns whether two zero points are the same value, or constants that are equal everywhere."""
    if one is other:
        return True
    ours, theirs = zero_array(one), zero_array(other)
    return (
        ours is not None
        and theirs is not None
        and ours.size == theirs.size
        and bool(np.all(ours.ravel() == theirs.ravel()))
    )


def on_axis(axis: int, rank: int) -> Reshape:
    """Returns what brings a vector to `axis` of a tensor of `rank`; a scalar stays one."""

    def reshape(array: Floats) -> Floats:
        if array.size == 1:
            return array.reshape(())
        shape = [1] * rank
        shape[axis] = array.size
        return array.reshape(shape)

    return reshape
