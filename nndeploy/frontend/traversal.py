# SPDX-License-Identifier: Apache-2.0
"""Ways through an ONNX model: every graph, every node, in a fixed order, a node before its bodies."""

from collections.abc import Iterable, Iterator

import onnx


def nodes_of(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yields every node of a model: of its graph, of all bodies, of its functions."""
    yield from nodes_below(model.graph.node)
    for function in model.functions:
        yield from nodes_below(function.node)


def nodes_below(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yields the nodes and those of their bodies."""
    for node in nodes:
        yield node
        for graph in bodies_of(node):
            yield from nodes_below(graph.node)


def graphs_of(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """Yields the graph and all bodies inside."""
    yield graph
    for node in graph.node:
        for body in bodies_of(node):
            yield from graphs_of(body)


def bodies_of(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Yields the graphs in a node's attributes: the branches of an If, the body of a Loop or Scan."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs
