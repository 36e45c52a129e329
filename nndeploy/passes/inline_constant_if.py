# SPDX-License-Identifier: Apache-2.0
"""y = If(true){z} else {...} -> the nodes of the branch that is taken, every reader of y reads z.

Exporters write an If for every branch of the traced program, also where the condition follows from shapes. The other
branch goes, and with it what it read. Runs in bodies too.

Conditions: the condition is constant; an output of the If that is an output of its graph is computed in the branch,
by a node of its own. Names that occur elsewhere in the model are made unique.

Source: ONNX If.
"""

from collections import Counter
from collections.abc import Iterable

import onnx_ir as ir

from nndeploy.graph.constants import constant_flag
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import graphs_within, operand
from nndeploy.passes.model_pass import NodePass


class InlineConstantIf(NodePass):
    """Replaces an If whose condition is known by its branch."""

    name = "inline-constant-if"
    enters_bodies = True
    ops = frozenset({"If"})

    def graphs(self, model: ir.Model) -> Iterable[ir.Graph]:
        """Returns the graphs, inner ones first: their nodes may move out."""
        return reversed(tuple(super().graphs(model)))

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the branch took the node's place."""
        condition = constant_flag(operand(node, 0))
        if condition is None or node.graph is None:
            return False
        branch = node.attributes["then_branch" if condition else "else_branch"].as_graph()
        if not _can_replace(node, branch):
            return False
        results = list(branch.outputs)
        branch.outputs.clear()
        _make_names_unique(node, branch, edits)
        _move_initializers(branch, node.graph)
        nodes = list(branch)
        branch.remove(nodes)
        node.prepend(nodes)
        return edits.bypass(node, *results)


def _can_replace(node: ir.Node, branch: ir.Graph) -> bool:
    if len(branch.outputs) != len(node.outputs):
        return False
    pairs = zip(node.outputs, branch.outputs, strict=True)
    named = [result for output, result in pairs if output.is_graph_output()]
    return len(set(named)) == len(named) and all(_is_computed_in(result, branch) for result in named)


def _is_computed_in(value: ir.Value, graph: ir.Graph) -> bool:
    producer = value.producer()
    return producer is not None and producer.graph is graph


def _make_names_unique(node: ir.Node, branch: ir.Graph, edits: GraphEdits) -> None:
    values, nodes = _count_names(edits.model.graph)
    for value in (*branch.initializers.values(), *(output for inner in branch for output in inner.outputs)):
        if value.name and values[value.name] > 1:
            value.name = edits.fresh_value_name(value.name)
    for inner in branch:
        if not inner.name or nodes[inner.name] > 1:
            inner.name = edits.fresh_node_name(inner.name or f"{node.name}/{inner.op_type}")


def _count_names(graph: ir.Graph) -> tuple[Counter[str | None], Counter[str | None]]:
    values, nodes = Counter[str | None](), Counter[str | None]()
    for part in graphs_within(graph):
        values.update(value.name for value in {*part.inputs, *part.initializers.values()})
        for node in part:
            nodes[node.name] += 1
            values.update(output.name for output in node.outputs)
    return values, nodes


def _move_initializers(branch: ir.Graph, graph: ir.Graph) -> None:
    for name, value in tuple(branch.initializers.items()):
        del branch.initializers[name]
        graph.register_initializer(value)
