# SPDX-License-Identifier: Apache-2.0
"""A branch of an If as a model of its own: what it captures are inputs, the constants that it reads are its own.

Law: the model computes what the branch does; what came in stays as it is, and weights are shared, not copied.
"""

import onnx_ir as ir

from nndeploy.graph.nodes import captured_values, is_constant

BRANCHES = ("then_branch", "else_branch")
"""The attributes of If, in the order of true and false."""


def branches_of(node: ir.Node) -> tuple[ir.Graph, ir.Graph]:
    """Returns the graph that runs where the condition is true, and the other."""
    then, otherwise = (node.attributes[name].as_graph() for name in BRANCHES)
    return then, otherwise


def is_choice(node: ir.Node) -> bool:
    """Returns whether a node is ONNX's If."""
    return node.op_type == "If" and node.domain in ("", "ai.onnx")


def model_of_branch(model: ir.Model, branch: ir.Graph) -> ir.Model:
    """Returns a branch as a model; outputs that the branch does not compute, or gives twice, are left out."""
    captured = captured_values(branch)
    constants = [value for value in captured if is_constant(value)]
    outputs = {id(value): value for value in branch.outputs if value.producer() in set(branch)}
    view = ir.GraphView(
        [value for value in captured if not is_constant(value)],
        list(outputs.values()),
        nodes=list(branch),
        initializers=(*constants, *branch.initializers.values()),
        opset_imports=model.graph.opset_imports,
        name=branch.name or "branch",
    )
    graph = view.clone()
    for value in graph.inputs:
        value.const_value = None
    return ir.Model(graph, ir_version=model.ir_version, functions=list(model.functions.values()))
