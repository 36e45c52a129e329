# SPDX-License-Identifier: Apache-2.0
"""How many rows there are to choose from for each input of integers that chooses rows of a table, or an axis.

    ids -> Cast -> Add(offsets up to 13) -> Gather(table of 20 rows)      ->  below 7
    edges [2, E] -> Gather(edges, 0) -> Gather(x [N, 8])                  ->  below N

Followed through what moves integers or adds constants to them, and into bodies. Negative indices count from the end, so
only the largest matters.
"""

from collections.abc import Iterator

import onnx_ir as ir

from nndeploy.graph.constants import constant_array
from nndeploy.graph.known_sizes import KnownSizes, Shape
from nndeploy.graph.operators import bodies, int_attribute, operand
from nndeploy.values.size import Dim

_MOVING = frozenset(
    {
        "Cast", "Clip", "Concat", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Max", "Min",
        "Pad", "Reshape", "ReverseSequence", "Slice", "Split", "Squeeze", "Sum", "Tile", "Transpose", "Unsqueeze",
        "Where",
    }
)  # fmt: skip
_PLACES = frozenset(
    {("Gather", 1), ("GatherElements", 1), ("GatherND", 1), ("Scatter", 1), ("ScatterElements", 1), ("ScatterND", 1)}
)
_EMBEDDED = {0: 2, 1: 4}
"""Which table each input of EmbedLayerNormalization chooses from."""
_MAX_VISITED = 1000


def index_limits(graph: ir.Graph, known: KnownSizes) -> dict[str, tuple[Dim, ...]]:
    """Returns for each such input the numbers of rows that its largest element must be below."""
    found = {value.name: tuple(_rows(value, known)) for value in graph.inputs if value.name and _is_whole(value)}
    return {name: rows for name, rows in found.items() if rows}


def _is_whole(value: ir.Value) -> bool:
    return value.dtype is not None and value.dtype.is_integer()


def sizes_of_images(graph: ir.Graph) -> frozenset[str]:
    """Returns the inputs whose elements are heights and widths that a Resize makes images of."""
    return frozenset(
        value.name
        for value in graph.inputs
        if value.name and any((node.op_type, index) == ("Resize", 3) for node, index, _ in _readers(value))
    )


def _rows(value: ir.Value, known: KnownSizes) -> Iterator[Dim]:
    for node, index, added in _readers(value):
        yield from (rows - added for rows in _chosen_from(node, index, known))


def _readers(value: ir.Value) -> Iterator[tuple[ir.Node, int, int]]:
    """Yields who reads the elements of a value, as which input, and how much was added to them at most."""
    waiting, seen = [(value, 0)], {value}
    while waiting and len(seen) < _MAX_VISITED:
        current, added = waiting.pop()
        for node, index in current.uses():
            yield node, index, added
            more = added + _added(node, index)
            for following in _following(node, index):
                if following not in seen:
                    seen.add(following)
                    waiting.append((following, more))


def _following(node: ir.Node, index: int) -> Iterator[ir.Value]:
    """Yields the values that hold the same integers as a node's input, or some of them, moved by a constant."""
    moved = node.op_type in _MOVING and (node.op_type, index) not in _PLACES
    if moved or (node.op_type in ("Add", "Sub") and constant_array(operand(node, 1 - index)) is not None):
        yield from node.outputs
    elif node.op_type in ("Loop", "Scan"):
        yield from (body.inputs[index] for body in bodies(node) if index < len(body.inputs))


def _added(node: ir.Node, index: int) -> int:
    """Returns what a node adds at most to the integers of one input."""
    constant = constant_array(operand(node, 1 - index)) if node.op_type in ("Add", "Sub") else None
    if constant is None or not constant.size:
        return 0
    return int(constant.max()) if node.op_type == "Add" else -int(constant.min())


def _chosen_from(node: ir.Node, index: int, known: KnownSizes) -> Iterator[Dim]:
    """Yields how many rows a node chooses from by its input at `index`."""
    table = known.shape(operand(node, 0)) or ()
    if (node.op_type, index) in _PLACES:
        yield from _along(node, table, known)
    elif node.op_type == "GatherBlockQuantized" and index == 1:
        yield from table[int_attribute(node, "gather_axis", 0) :][:1]
    elif node.op_type == "EmbedLayerNormalization" and index in _EMBEDDED:
        yield from (known.shape(operand(node, _EMBEDDED[index])) or ())[:1]
    elif index == 1 and (node.op_type.startswith("Reduce") or node.op_type in ("CumSum", "Squeeze")):
        yield len(table)


def _along(node: ir.Node, table: Shape, known: KnownSizes) -> Iterator[Dim]:
    if not node.op_type.endswith("ND"):
        axis = int_attribute(node, "axis", 0)
        yield from (table[axis],) if -len(table) <= axis < len(table) else ()
        return
    places, batch = known.shape(operand(node, 1)) or (0,), int_attribute(node, "batch_dims", 0)
    count = places[-1]
    yield from table[batch : batch + count] if isinstance(count, int) else ()
