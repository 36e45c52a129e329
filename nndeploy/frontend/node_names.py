# SPDX-License-Identifier: Apache-2.0
"""Names for nodes: every node of a model gets one of its own, so that reports, refusals and pins can name it.

A node that has a name keeps it (the first of several that share it); one without gets `<operator>_<its index in its
graph>` and, where that is taken, a number behind it. The same model gives the same names. Values keep their names.
"""

from collections.abc import Iterable, Iterator

import onnx

from nndeploy.frontend.free_names import FreeNames
from nndeploy.frontend.traversal import bodies_of


def name_nodes(model: onnx.ModelProto) -> None:
    """Gives every node of the graph, of all bodies and of all functions a name that no other node has, in place."""
    nodes = [*_numbered(model.graph.node)]
    for function in model.functions:
        nodes += _numbered(function.node)
    free_name = FreeNames(node.name for _, node in nodes if node.name)
    kept: set[str] = set()
    for index, node in nodes:
        if not node.name or node.name in kept:
            node.name = free_name(node.name or f"{node.op_type}_{index}")
        kept.add(node.name)


def _numbered(nodes: Iterable[onnx.NodeProto]) -> Iterator[tuple[int, onnx.NodeProto]]:
    """Yields (index in its graph, node), a node before the nodes of its bodies."""
    for index, node in enumerate(nodes):
        yield index, node
        for body in bodies_of(node):
            yield from _numbered(body.node)
