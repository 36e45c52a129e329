# SPDX-License-Identifier: Apache-2.0
"""A node that computes nothing anybody reads -> nothing; the same for initializers and functions.

Runs from the end of each graph to its start, bodies included, so that one run removes whole chains. A value that only
a body reads is read. Inputs of a graph stay, read or not, and so do initializers that a caller may override.

Source: ONNX IR: operators have no side effects.
"""

from collections.abc import Iterator

import onnx_ir as ir

from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.nodes import bodies
from nndeploy.graph.operators import graphs_within
from nndeploy.passes.model_pass import ModelPass


class EliminateDeadCode(ModelPass):
    """Removes nodes, initializers and functions that do not contribute to any output."""

    name = "eliminate-dead-code"
    enters_bodies = True

    def rewrite(self, model: ir.Model) -> int:
        """Rewrites the model in place; returns how many nodes, initializers and functions it removed."""
        edits = GraphEdits(model)
        count = _remove_unread_nodes(model.graph, edits)
        count += sum(_remove_unread_initializers(graph) for graph in self.graphs(model))
        return count + _remove_uncalled_functions(model)


def _remove_unread_nodes(graph: ir.Graph, edits: GraphEdits) -> int:
    count = 0
    for node in reversed(tuple(graph)):
        if any(output.uses() or output.is_graph_output() for output in node.outputs):
            count += sum(_remove_unread_nodes(body, edits) for body in bodies(node))
        else:
            edits.remove(node)
            count += 1
    return count


def _remove_unread_initializers(graph: ir.Graph) -> int:
    unread = [
        name
        for name, value in graph.initializers.items()
        if not (value.uses() or value.is_graph_output() or value.is_graph_input())
    ]
    for name in unread:
        del graph.initializers[name]
    return len(unread)


def _remove_uncalled_functions(model: ir.Model) -> int:
    called = set(_functions_called(model))
    uncalled = [identifier for identifier in model.functions if identifier not in called]
    for identifier in uncalled:
        del model.functions[identifier]
    return len(uncalled)


def _functions_called(model: ir.Model) -> Iterator[tuple[str, str, str]]:
    seen: set[tuple[str, str, str]] = set()
    waiting = [model.graph]
    while waiting:
        for node in (node for graph in graphs_within(waiting.pop()) for node in graph):
            identifier = node.op_identifier()
            if identifier in model.functions and identifier not in seen:
                seen.add(identifier)
                waiting.append(model.functions[identifier].graph)
                yield identifier
