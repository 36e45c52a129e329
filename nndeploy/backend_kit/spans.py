# SPDX-License-Identifier: Apache-2.0
"""Between which numbers integers of a model lie, and which of them follow from shapes, whatever the inputs hold.

Worked out from constants, truths, places (ArgMax, TopK), narrow types and limits that hold for any values. For plugin
authors: what a library does not check may be proven.
"""

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import TypeAlias

import onnx_ir as ir

from nndeploy.backend_kit.query import constant_of
from nndeploy.graph.nodes import bodies
from nndeploy.graph.operators import int_attribute, operand

Span: TypeAlias = tuple[float, float]
"""The least and the largest number that a value may hold."""

ANY: Span = (-inf, inf)
MAX_DEPTH = 64
"""Operators in a row that are looked through."""

KEEPING = frozenset({"Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Cast"})
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


class Spans:
    """The spans of one model's values; each is worked out once."""

    def __init__(self) -> None:
        self._known: dict[int, Span] = {}
        self._follows: dict[int, bool] = {}
        self._depth = 0

    def of(self, value: ir.Value | None) -> Span:
        """Returns the span of a value of integers or truths."""
        if value is None or self._depth > MAX_DEPTH:
            return ANY
        if id(value) not in self._known:
            self._depth += 1
            self._known[id(value)] = self._found(value)
            self._depth -= 1
        return self._known[id(value)]

    def follows_from_shapes(self, value: ir.Value) -> bool:
        """Returns whether a value depends on shapes and constants alone."""
        if id(value) not in self._follows:
            self._follows[id(value)] = False  # a value that depends on itself through a body does not
            self._depth += 1
            self._follows[id(value)] = self._depth <= MAX_DEPTH and self._is_made_of_shapes(value)
            self._depth -= 1
        return self._follows[id(value)]

    def _is_made_of_shapes(self, value: ir.Value) -> bool:
        producer = value.producer()
        if constant_of(value) is not None or (producer is not None and producer.op_type in ("Shape", "Size")):
            return True
        sources = [] if producer is None or any(bodies(producer)) else [v for v in producer.inputs if v is not None]
        return bool(sources) and all(self.follows_from_shapes(source) for source in sources)

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
    size = size_of_axis(operand(node, 0), int_attribute(node, "axis", -1 if node.op_type == "TopK" else 0))
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
    **dict.fromkeys(KEEPING | _TAKING, _first),
    **dict.fromkeys(("Add", "Sub"), _sum),
    **dict.fromkeys(("ArgMax", "ArgMin", "TopK"), _place),
    **dict.fromkeys(("Concat", "Where"), _union),
    "Mul": _product,
    "Mod": _remainder,
    "Clip": _clipped,
    "Max": _bounded(max),
    "Min": _bounded(min),
}


def size_of_axis(value: ir.Value | None, axis: int) -> int | str | None:
    """Returns the size of an axis, None where it is not known or there is none."""
    if value is None or value.shape is None or not -len(value.shape) <= axis < len(value.shape):
        return None
    size = value.shape[axis]
    return size if isinstance(size, int) else size.value
