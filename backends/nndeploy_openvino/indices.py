# SPDX-License-Identifier: Apache-2.0
"""Which indices are known to be in range, or can be looked at before a call.

OpenVINO gives zeros for those of Gather that are not, and does not say which one of GatherElements and ScatterND is.

    proven     constants, and what is computed from constants, truths and places within limits that hold for any values
    inputs     of the model, and what only moves all of their elements: the session compares them (`input_values.py`)
"""

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import TypeAlias

import onnx_ir as ir

from nndeploy.backend_kit.query import constant_of
from nndeploy.graph.indexing import INDEXED, TUPLES, Indexed
from nndeploy.graph.operators import int_attribute, operand
from nndeploy.values.types import DimRange

Span: TypeAlias = tuple[float, float]
"""The least and the largest number that a value may hold."""

ANY: Span = (-inf, inf)
MAX_DEPTH = 64
"""Operators in a row that are looked through."""

_KEEPING = frozenset({"Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Cast"})
"""Operators that give each element of their first input once."""
_TAKING = frozenset({"Expand", "Tile", "Slice", "Split", "Gather", "GatherElements", "GatherND"})
"""Operators that give elements of their first input."""
_LIMITS: Mapping[ir.DataType, Span] = {
    ir.DataType.UINT8: (0, 2**8 - 1), ir.DataType.INT8: (-(2**7), 2**7 - 1), ir.DataType.UINT16: (0, 2**16 - 1),
    ir.DataType.INT16: (-(2**15), 2**15 - 1),
}  # fmt: skip
_WHOLE = frozenset({
    ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.UINT8, ir.DataType.UINT16,
    ir.DataType.BOOL,
})  # fmt: skip


def indexed_inputs(graph: ir.Graph) -> dict[str, int]:
    """Returns the size of the smallest axis that each input indexes, but those which bodies index."""
    found: dict[str, int] = {}
    for node in graph:
        for one in INDEXED.get((node.domain, node.op_type), ()):
            source, size = _input_of(_at(node, one.indices)), _size_of(node, one)
            if one.axis != TUPLES and source is not None and source.name and isinstance(size, int):
                found[source.name] = min(size, found.get(source.name, size))
    return found


class Spans:
    """Between which numbers the values of one model lie, whatever its inputs are; worked out once for each."""

    def __init__(self, ranges: Mapping[str, DimRange]) -> None:
        """Takes the ranges of symbolic sizes."""
        self._ranges = ranges
        self._known: dict[int, Span] = {}
        self._depth = 0

    def unproven(self, node: ir.Node, main: ir.Graph | ir.Function | None) -> str:
        """Returns why an index may be out of range unseen, or ""; `main` is no body."""
        for one in INDEXED.get((node.domain, node.op_type), ()):
            indices, size = _at(node, one.indices), _size_of(node, one)
            if indices is None:
                continue
            low, high = self.of(indices)
            is_input = node.graph is main and one.axis != TUPLES and _input_of(indices) is not None
            if max(high, -low - 1) >= self._least(size) and not (is_input and isinstance(size, int)):
                return f"OpenVINO does not tell which index of {node.op_type} is out of range"
        return ""

    def _least(self, size: int | str | None) -> int:
        """Returns how large an axis is at least; one without elements has other errors."""
        if isinstance(size, int):
            return size
        return self._ranges[size].min if size is not None and size in self._ranges else 1

    def of(self, value: ir.Value | None) -> Span:
        """Returns the span of a value of integers or truths."""
        if value is None or self._depth > MAX_DEPTH:
            return ANY
        if id(value) not in self._known:
            self._depth += 1
            self._known[id(value)] = self._found(value)
            self._depth -= 1
        return self._known[id(value)]

    def _found(self, value: ir.Value) -> Span:
        if (constant := constant_of(value)) is not None:
            numbers = constant.numpy()
            return (float(numbers.min()), float(numbers.max())) if numbers.size else (0, 0)
        if value.dtype == ir.DataType.BOOL:
            return (0, 1)
        producer = value.producer()
        rule = None if producer is None or value.dtype not in _WHOLE else _RULES.get(producer.op_type)
        found = ANY if producer is None or rule is None else rule(self, producer)
        limits = _LIMITS.get(value.dtype) if value.dtype is not None else None
        return found if limits is None else (max(found[0], limits[0]), min(found[1], limits[1]))


def _first(spans: Spans, node: ir.Node) -> Span:
    source = operand(node, 0)
    return spans.of(source) if source is not None and source.dtype in _WHOLE else ANY


def _place(_: Spans, node: ir.Node) -> Span:
    size = _axis_of(operand(node, 0), int_attribute(node, "axis", -1 if node.op_type == "TopK" else 0))
    return (0, size - 1) if isinstance(size, int) else (0, inf)


def _remainder(spans: Spans, node: ir.Node) -> Span:
    low, high = spans.of(operand(node, 1))
    return (0, high - 1) if low > 0 and not int_attribute(node, "fmod", 0) else ANY


def _clipped(spans: Spans, node: ir.Node) -> Span:
    (low, high), least, most = _first(spans, node), operand(node, 1), operand(node, 2)
    floor = -inf if least is None else spans.of(least)[0]
    ceiling = inf if most is None else spans.of(most)[1]
    return min(max(low, floor), ceiling), min(max(high, floor), ceiling)


def _bounded(pick: Callable[[Iterable[float]], float]) -> Callable[[Spans, ir.Node], Span]:
    def span(spans: Spans, node: ir.Node) -> Span:
        found = [spans.of(value) for value in node.inputs]
        return pick(low for low, _ in found), pick(high for _, high in found)

    return span


def _union(spans: Spans, node: ir.Node) -> Span:
    found = [spans.of(value) for value in node.inputs[node.op_type == "Where" :]]
    return min(low for low, _ in found), max(high for _, high in found)


def _sum(spans: Spans, node: ir.Node) -> Span:
    (low, high), (least, most) = (spans.of(value) for value in node.inputs)
    return (low + least, high + most) if node.op_type == "Add" else (low - most, high - least)


def _product(spans: Spans, node: ir.Node) -> Span:
    ends = [a * b for a in spans.of(node.inputs[0]) for b in spans.of(node.inputs[1])]
    return ANY if any(end != end for end in ends) else (min(ends), max(ends))


_RULES: Mapping[str, Callable[[Spans, ir.Node], Span]] = {
    **dict.fromkeys(_KEEPING | _TAKING, _first),
    **dict.fromkeys(("Add", "Sub"), _sum),
    **dict.fromkeys(("ArgMax", "ArgMin", "TopK"), _place),
    **dict.fromkeys(("Concat", "Where"), _union),
    "Mul": _product,
    "Mod": _remainder,
    "Clip": _clipped,
    "Max": _bounded(max),
    "Min": _bounded(min),
}


def _input_of(value: ir.Value | None) -> ir.Value | None:
    """Returns the input of the model whose elements are those of a value."""
    while value is not None and not value.is_graph_input():
        producer = value.producer()
        if producer is None or producer.op_type not in _KEEPING:
            return None
        value = producer.inputs[0]
    return value if value is not None and value.dtype in (ir.DataType.INT32, ir.DataType.INT64) else None


def _at(node: ir.Node, number: int) -> ir.Value | None:
    return node.inputs[number] if number < len(node.inputs) else None


def _size_of(node: ir.Node, one: Indexed) -> int | str | None:
    """Returns the size of the axis that indices count along, of tuples the least one."""
    if one.axis == TUPLES:
        return _least_size(node, one.data)
    return _axis_of(_at(node, one.data), int_attribute(node, one.axis, 0) if one.axis else 0)


def _least_size(scatter: ir.Node, at: int) -> int | None:
    """Returns the least size of the axes that the tuples of a ScatterND index; 0 where one is not known."""
    data, indices = operand(scatter, at), operand(scatter, 1)
    if data is None or data.shape is None or indices is None or indices.shape is None or not indices.shape:
        return 0
    depth = indices.shape[-1]
    sizes = data.shape[:depth] if isinstance(depth, int) else (None,)
    return min((size if isinstance(size, int) else 0 for size in sizes), default=0)


def _axis_of(value: ir.Value | None, axis: int) -> int | str | None:
    if value is None or value.shape is None or not -len(value.shape) <= axis < len(value.shape):
        return None
    size = value.shape[axis]
    return size if isinstance(size, int) else size.value
