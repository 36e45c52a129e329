# SPDX-License-Identifier: Apache-2.0
"""Facts about nodes of the main graph that partitioning needs: what a node reads, what it produces.

A node with a body (If, Loop, Scan, SequenceMap) also reads the outer values that its bodies capture; the nodes
inside bodies stay with their node.
"""

from collections.abc import Iterator

import onnx_ir as ir


def node_name(node: ir.Node) -> str:
    """Returns the node's name; the frontend gave every node of the main graph a unique one."""
    assert node.name, "the frontend names every node"
    return node.name


def operator(node: ir.Node) -> str:
    """Returns `Op` or `domain::Op`."""
    return f"{node.domain}::{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def bodies(node: ir.Node) -> Iterator[ir.Graph]:
    """Yields the graphs among the node's attributes."""
    for attribute in node.attributes.data.values():  # the dict itself: this is asked of every node by every pass
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.as_graph()
        elif attribute.type == ir.AttributeType.GRAPHS:
            yield from attribute.as_graphs()


def values_read(node: ir.Node) -> list[ir.Value]:
    """Returns the values that a node reads, those captured by its bodies included, each once, in order."""
    read: dict[int, ir.Value] = {id(value): value for value in node.inputs if value is not None}
    for body in bodies(node):
        for value in captured_values(body):
            read.setdefault(id(value), value)
    return list(read.values())


def captured_values(body: ir.Graph) -> list[ir.Value]:
    """Returns the outer values that a body (or a body inside it) reads."""
    inside = {id(value) for value in (*body.inputs, *body.initializers.values())}
    captured: dict[int, ir.Value] = {}
    for node in body:
        for value in values_read(node):
            if id(value) not in inside:
                captured.setdefault(id(value), value)
        inside.update(id(value) for value in node.outputs)
    for value in body.outputs:
        if id(value) not in inside:
            captured.setdefault(id(value), value)
    return list(captured.values())


def is_constant(value: ir.Value) -> bool:
    """Returns whether the value is an initializer: available everywhere, so no edge between regions."""
    return value.is_initializer()
