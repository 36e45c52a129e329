# SPDX-License-Identifier: Apache-2.0
"""Which indices are known to be in range, or can be looked at before a call.

OpenVINO gives zeros for those of Gather that are not, and does not say which one of GatherElements and ScatterND is.

    proven     by `nndeploy.backend_kit.spans`
    inputs     of the model, and what only moves all of their elements: the session compares them (`input_values.py`)
"""

from collections.abc import Mapping

import onnx_ir as ir

from nndeploy.backend_kit.spans import KEEPING, Spans, size_of_axis
from nndeploy.graph.indexing import INDEXED, TUPLES, Indexed
from nndeploy.graph.operators import int_attribute, operand
from nndeploy.values.types import DimRange


def indexed_inputs(graph: ir.Graph) -> dict[str, int]:
    """Returns the size of the smallest axis that each input indexes, but those which bodies index."""
    found: dict[str, int] = {}
    for node in graph:
        for one in INDEXED.get((node.domain, node.op_type), ()):
            source, size = _input_of(_at(node, one.indices)), _size_of(node, one)
            if one.axis != TUPLES and source is not None and source.name and isinstance(size, int):
                found[source.name] = min(size, found.get(source.name, size))
    return found


def unproven_index(
    node: ir.Node, main: ir.Graph | ir.Function | None, spans: Spans, ranges: Mapping[str, DimRange]
) -> str:
    """Returns why an index may be out of range unseen, or ""; `main` is no body."""
    for one in INDEXED.get((node.domain, node.op_type), ()):
        indices, size = _at(node, one.indices), _size_of(node, one)
        if indices is None:
            continue
        low, high = spans.of(indices)
        is_input = node.graph is main and one.axis != TUPLES and _input_of(indices) is not None
        if max(high, -low - 1) >= _least(size, ranges) and not (is_input and isinstance(size, int)):
            return f"OpenVINO does not tell which index of {node.op_type} is out of range"
    return ""


def _least(size: int | str | None, ranges: Mapping[str, DimRange]) -> int:
    """Returns how large an axis is at least; one without elements has other errors."""
    if isinstance(size, int):
        return size
    return ranges[size].min if size is not None and size in ranges else 1


def _input_of(value: ir.Value | None) -> ir.Value | None:
    """Returns the input of the model whose elements are those of a value."""
    while value is not None and not value.is_graph_input():
        producer = value.producer()
        if producer is None or producer.op_type not in KEEPING:
            return None
        value = producer.inputs[0]
    return value if value is not None and value.dtype in (ir.DataType.INT32, ir.DataType.INT64) else None


def _at(node: ir.Node, number: int) -> ir.Value | None:
    return node.inputs[number] if number < len(node.inputs) else None


def _size_of(node: ir.Node, one: Indexed) -> int | str | None:
    """Returns the size of the axis that indices count along, of tuples the least one."""
    if one.axis == TUPLES:
        return _least_size(node, one.data)
    return size_of_axis(_at(node, one.data), int_attribute(node, one.axis, 0) if one.axis else 0)


def _least_size(scatter: ir.Node, at: int) -> int | None:
    """Returns the least size of the axes that the tuples of a ScatterND index; 0 where one is not known."""
    data, indices = operand(scatter, at), operand(scatter, 1)
    if data is None or data.shape is None or indices is None or indices.shape is None or not indices.shape:
        return 0
    depth = indices.shape[-1]
    sizes = data.shape[:depth] if isinstance(depth, int) else (None,)
    return min((size if isinstance(size, int) else 0 for size in sizes), default=0)
