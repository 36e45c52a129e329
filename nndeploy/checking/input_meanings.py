# SPDX-License-Identifier: Apache-2.0
"""What the numbers in an input stand for, by who reads them: rows of a table, axes, steps, or sizes.

    ids -> Cast -> Add(offsets up to 13) -> Gather(table of 20 rows)      ->  below 7
    edges [2, E] -> Gather(edges, 0) -> Gather(x [N, 8])                  ->  below N
    size [2] -> Cast -> Resize(x, , , size)                               ->  height and width

Followed through what moves integers or adds constants to them, and into bodies. Negative indices count from the end, so
only the largest matters.
"""

from collections.abc import Iterator

import onnx_ir as ir

from nndeploy.checking.likely_sizes import COUNT, IMAGE
from nndeploy.graph.constants import constant_array
from nndeploy.graph.known_sizes import KnownSizes, Shape
from nndeploy.graph.nodes import bodies
from nndeploy.graph.operators import int_attribute, operand
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
_COUNTS = {
    ("CenterCropPad", 1): IMAGE, ("ConstantOfShape", 0): COUNT, ("Expand", 1): COUNT, ("OneHot", 1): COUNT,
    ("Range", 1): COUNT, ("Reshape", 1): COUNT, ("Resize", 3): IMAGE, ("Tile", 1): COUNT, ("TopK", 1): COUNT,
}  # fmt: skip
"""(Operator, which input) -> what the elements of that input are."""
AXES, STEPS = "axes", "steps"
_PARAMETERS = {
    ("Pad", 3): AXES, ("Slice", 3): AXES, ("Slice", 4): STEPS, ("Squeeze", 1): AXES, ("Unsqueeze", 1): AXES,
}  # fmt: skip
"""(Operator, which input) -> what its elements are: axes are all different, a step is not 0."""
_MAX_COUNTS = 8
_MAX_VISITED = 1000


def index_limits(graph: ir.Graph, known: KnownSizes) -> dict[str, tuple[Dim, ...]]:
    """Returns for each such input the numbers of rows that its largest element must be below."""
    found = {value.name: tuple(_rows(value, known)) for value in graph.inputs if value.name and _is_whole(value)}
    return {name: rows for name, rows in found.items() if rows}


def _is_whole(value: ir.Value) -> bool:
    return value.dtype is not None and value.dtype.is_integer()


def counting_inputs(graph: ir.Graph) -> dict[ir.Value, str]:
    """Returns the inputs of few elements that become sizes inside the model, and of which kind these are."""
    found = {value: _kind_of_count(value) for value in graph.inputs if 0 < _num_elements(value) <= _MAX_COUNTS}
    return {value: kind for value, kind in found.items() if kind}


def _kind_of_count(value: ir.Value) -> str:
    readers = ((node.op_type, index) for node, index, _ in _readers(value) if node.domain == "")
    return next((_COUNTS[reader] for reader in readers if reader in _COUNTS), "")


def parameter_inputs(graph: ir.Graph) -> dict[str, str]:
    """Returns the inputs whose elements are axes or steps, and which of the two."""
    found = {
        value.name: next(filter(None, (_parameter(node, index) for node, index, _ in _readers(value))), "")
        for value in graph.inputs
        if value.name and _is_whole(value)
    }
    return {name: kind for name, kind in found.items() if kind}


def _parameter(node: ir.Node, index: int) -> str:
    if index == 1 and (node.op_type.startswith("Reduce") or node.op_type == "CumSum"):
        return AXES
    return _PARAMETERS.get((node.op_type, index), "")


def _num_elements(value: ir.Value) -> int:
    """Returns how many numbers a list of fixed length, or one number, has; 0 for everything else."""
    if value.shape is None or len(value.shape) > 1 or value.dtype in (None, ir.DataType.BOOL, ir.DataType.STRING):
        return 0
    size = value.shape[0] if len(value.shape) else 1
    return size if isinstance(size, int) else 0


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
    elif _parameter(node, index) == AXES:
        yield len(table)


def _along(node: ir.Node, table: Shape, known: KnownSizes) -> Iterator[Dim]:
    if not node.op_type.endswith("ND"):
        axis = int_attribute(node, "axis", 0)
        yield from (table[axis],) if -len(table) <= axis < len(table) else ()
        return
    places, batch = known.shape(operand(node, 1)) or (0,), int_attribute(node, "batch_dims", 0)
    count = places[-1]
    yield from table[batch : batch + count] if isinstance(count, int) else ()
