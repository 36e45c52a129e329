# SPDX-License-Identifier: Apache-2.0
"""Quantised tensors as float32 tensors of whole numbers, for rewriting operators on them into float32 arithmetic.

A quantised tensor q with zero point z stands for the whole numbers r = q - z. What an operator makes is clipped so
that q fits its type, and written as q only where somebody else reads it:

    r = Min(Max(Round(v), lowest - z), highest - z)        q = Cast(r + z)

Law: r is exact, for whole numbers up to 2^24 are float32 numbers; so q is what integer arithmetic gives.
Source: ONNX QuantizeLinear, opset 10 to 25 (round half to even, saturate).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nndeploy_tensorrt.transforms.node_maker import Floats, NodeMaker, array_of

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


class QuantisedGraph(NodeMaker):
    """Makes nodes on whole numbers; it remembers which quantised value stands for which of them."""

    def __init__(self, graph: ir.Graph) -> None:
        super().__init__(graph)
        self._wholes: dict[int, _Whole] = {}

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
    if ours is None or theirs is None or ours.size != theirs.size:
        return False
    return bool(np.all(ours.ravel() == theirs.ravel()))


def on_axis(axis: int, rank: int) -> Reshape:
    """Returns what brings a vector to `axis` of a tensor of `rank`; a scalar stays one."""

    def reshape(array: Floats) -> Floats:
        if array.size == 1:
            return array.reshape(())
        shape = [1] * rank
        shape[axis] = array.size
        return array.reshape(shape)

    return reshape
