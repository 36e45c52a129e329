# SPDX-License-Identifier: Apache-2.0
"""y = If(c){f} else {g} -> y = If(c){f'} else {g'}: each branch goes through the whole list, as a model of its own.

What a branch captures is an input there, and a constant that it captures is one of its own, so that constants fold and
operators merge in it as in the main graph. Constants that stay as they are stay outside, where both branches have them.

Conditions: all outputs of the branch are computed in it. Inner branches first; bodies of Loop and Scan are left alone.

Source: ONNX If.
"""

from collections.abc import Callable

import onnx_ir as ir

from nndeploy.graph.branches import BRANCHES, is_choice, model_of_branch
from nndeploy.graph.edits import let_go
from nndeploy.graph.nodes import captured_values, is_constant
from nndeploy.graph.operators import graphs_entered_without_inputs, graphs_within
from nndeploy.passes.model_pass import ModelPass


class OptimiseBranches(ModelPass):
    """Runs passes on the branches of If."""

    name = "optimise-branches"

    def __init__(self, optimise: Callable[[ir.Model], int]) -> None:
        """`optimise` rewrites a model in place and returns how many places it changed."""
        self._optimise = optimise

    def rewrite(self, model: ir.Model) -> int:
        """Rewrites the branches in place; returns how many places changed in them."""
        return sum(
            self._rewrite_branch(node, name, model)
            for graph in reversed(tuple(graphs_entered_without_inputs(model.graph)))
            for node in tuple(graph)
            if is_choice(node)
            for name in BRANCHES
        )

    def _rewrite_branch(self, node: ir.Node, name: str, model: ir.Model) -> int:
        branch = node.attributes[name].as_graph()
        alone = model_of_branch(model, branch)
        if len(alone.graph.outputs) != len(branch.outputs):
            return 0
        count = self._optimise(alone)
        if count:
            _put_back(alone.graph, branch, model)
            node.attributes[name] = ir.AttrGraph(name, alone.graph)
            let_go(branch)
        return count


def _put_back(graph: ir.Graph, branch: ir.Graph, model: ir.Model) -> None:
    """Lets a graph read what the branch that it takes the place of captured."""
    captured = captured_values(branch)
    outer = [value for value in captured if not is_constant(value)]
    for inside, outside in zip(graph.inputs, outer, strict=True):
        inside.replace_all_uses_with(outside)
    graph.inputs.clear()
    constants = {value.name: value for value in captured if is_constant(value)}
    for name, inside in tuple(graph.initializers.items()):
        if name in constants and constants[name].const_value is inside.const_value:
            inside.replace_all_uses_with(constants[name])
            del graph.initializers[name]
    _make_names_unique(graph, branch, model)


def _make_names_unique(graph: ir.Graph, branch: ir.Graph, model: ir.Model) -> None:
    """Gives new names to values and nodes that are called as others outside of the branch."""
    inside = set(graphs_within(branch))
    outside = [one for one in graphs_within(model.graph) if one not in inside]
    values = {value.name for one in outside for value in _values_of(one)}
    nodes = {node.name for one in outside for node in one}
    own = {value.name for one in graphs_within(graph) for value in _values_of(one)}
    for one in graphs_within(graph):
        for value in tuple(_values_of(one)):
            if value.name and value.name in values:
                value.name = _fresh(value.name, values | own)
                own.add(value.name)
        for node in one:
            if node.name in nodes:
                node.name = _fresh(node.name or node.op_type, nodes)
            nodes.add(node.name)


def _values_of(graph: ir.Graph) -> list[ir.Value]:
    made = [output for node in graph for output in node.outputs]
    return [*graph.inputs, *graph.initializers.values(), *made]


def _fresh(name: str, taken: set[str | None]) -> str:
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
