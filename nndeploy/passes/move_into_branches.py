# SPDX-License-Identifier: Apache-2.0
"""z = g(If(c){x} else {y}) -> z = If(c){g(x)} else {g(y)}, where x and y differ in rank.

Exporters write an If for what drops an axis of size one where it has that size: nothing behind it has a rank that is
known, so no backend can plan it. In its branch each of the two ways has one, and what follows from it folds there.

Conditions: both ranks are known; what depends on the If is at most 256 nodes with at most six Ifs among them, as the
copies double with each. Nothing is computed twice in a run.

Source: ONNX If, whose branches may give other shapes.
"""

from collections.abc import Sequence

import onnx_ir as ir

from nndeploy.graph.branches import BRANCHES, branches_of
from nndeploy.graph.edits import GraphEdits, let_go
from nndeploy.graph.nodes import bodies, values_read
from nndeploy.graph.operators import graphs_within
from nndeploy.passes.model_pass import NodePass

MAX_NODES = 256
MAX_CHOICES = 6


class MoveIntoBranches(NodePass):
    """Moves what depends on an If into its branches."""

    name = "move-into-branches"
    ops = frozenset({"If"})

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether what depends on the If was moved."""
        graph, branches = node.graph, branches_of(node)
        if not isinstance(graph, ir.Graph) or not any(map(_differ_in_rank, *(one.outputs for one in branches))):
            return False
        moved = _dependents(node, graph)
        inside = [inner for one in moved for body in bodies(one) for part in graphs_within(body) for inner in part]
        num_choices = sum(one.op_type == "If" for one in (*moved, *inside))
        if not moved or len(moved) + len(inside) > MAX_NODES or num_choices > MAX_CHOICES:
            return False
        made = {value for one in (node, *moved) for value in one.outputs}
        leaving = [value for value in graph.outputs if value in made]
        results = [_extended(branch, node, moved, leaving, edits) for branch in branches]
        for branch, outputs in zip(branches, results, strict=True):
            branch.outputs.clear()
            branch.outputs.extend(outputs)
        _replace(node, moved, leaving, graph)
        return True


def _differ_in_rank(first: ir.Value, second: ir.Value) -> bool:
    return first.shape is not None and second.shape is not None and len(first.shape) != len(second.shape)


def _dependents(node: ir.Node, graph: ir.Graph) -> list[ir.Node]:
    """Returns the nodes of a graph that read what a node makes, or what such a node makes, in order."""
    made, found = set(node.outputs), list[ir.Node]()
    for one in graph:
        if one is not node and not made.isdisjoint(values_read(one)):
            found.append(one)
            made.update(one.outputs)
    return found


def _extended(
    branch: ir.Graph, node: ir.Node, moved: Sequence[ir.Node], leaving: Sequence[ir.Value], edits: GraphEdits
) -> list[ir.Value]:
    """Puts a copy of nodes behind a branch; returns what stands there for each of the values that leave the graph."""
    made = {value for one in moved for value in one.outputs}
    entering = list(dict.fromkeys(value for one in moved for value in values_read(one) if value not in made))
    outputs = [value for value in leaving if value in made]
    copy = ir.GraphView(entering, outputs, nodes=moved, opset_imports=branch.opset_imports, name="moved").clone()
    copies = dict(zip(outputs, copy.outputs, strict=True))
    copy.outputs.clear()
    here = dict(zip(node.outputs, branch.outputs, strict=True))
    for outside, inside in zip(entering, list(copy.inputs), strict=True):
        inside.replace_all_uses_with(here.get(outside, outside))
    copy.inputs.clear()
    for part in graphs_within(copy):
        for value in (*part.initializers.values(), *(output for one in part for output in one.outputs)):
            if value.name:
                value.name = edits.fresh_value_name(value.name)
        for one in part:
            one.name = edits.fresh_node_name(one.name or one.op_type)
    nodes = list(copy)
    copy.remove(nodes)
    branch.extend(nodes)
    return [copies[value] if value in made else here[value] for value in leaving]


def _replace(node: ir.Node, moved: Sequence[ir.Node], leaving: Sequence[ir.Value], graph: ir.Graph) -> None:
    """Removes an If and what depends on it; an If with the same branches gives what leaves the graph."""
    outputs = [ir.Value(name=value.name, type=value.type, shape=value.shape) for value in leaving]
    for number, value in enumerate(graph.outputs):
        if value in leaving:
            graph.outputs[number] = outputs[leaving.index(value)]
    branches, condition, name = branches_of(node), node.inputs[0], node.name
    for one in moved:
        for body in bodies(one):
            let_go(body)
    graph.remove([node, *moved], safe=True)
    attributes = [ir.AttrGraph(*pair) for pair in zip(BRANCHES, branches, strict=True)]
    graph.append(ir.Node("", "If", [condition], attributes, outputs=outputs, name=name))
