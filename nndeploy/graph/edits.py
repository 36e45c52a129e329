# SPDX-License-Identifier: Apache-2.0
"""The few ways in which a pass may change a graph, so that names, uses and order stay right.

A rewrite keeps the last node of a pattern and turns it into the result (`become`), so that the value which others
read keeps its name, type and place; what led to it is removed (`remove`). New constants are initializers with fresh
names. A value that only bodies read is read: onnx-ir counts uses inside bodies like any other.

Law: after each edit every value that is read is produced before, or captured, and no removed node reads anything.
"""

from collections.abc import Iterable, Sequence

import onnx_ir as ir

from nndeploy.graph.constants import Array, sizes_of
from nndeploy.graph.nodes import bodies
from nndeploy.graph.operators import graphs_within, is_standard, opset_of


class GraphEdits:
    """Edits one model; made anew for each run of a pass, because it remembers the names in use."""

    def __init__(self, model: ir.Model) -> None:
        self.model = model
        self.opset = opset_of(model)
        self._value_names: set[str] | None = None
        self._node_names: set[str] | None = None

    def is_standard(self, node: ir.Node) -> bool:
        """Returns whether the node is an operator of ONNX's own domain with the meaning that ONNX gives it."""
        return is_standard(node, self.model)

    def constant(self, graph: ir.Graph, array: Array, name: str) -> ir.Value:
        """Returns a new initializer of `graph` that holds `array`, named after `name`."""
        name = self.fresh_value_name(name)
        tensor = ir.tensor(array, name=name)
        value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)
        graph.register_initializer(value)
        return value

    def fresh_value_name(self, name: str) -> str:
        """Returns `name`, or `name_1` and so on where a value of the model has it."""
        if self._value_names is None:
            self._value_names = set(_names_of_values(self.model))
        return _fresh(name, self._value_names)

    def fresh_node_name(self, name: str) -> str:
        """Returns `name`, or `name_1` and so on where a node of the model has it."""
        if self._node_names is None:
            self._node_names = {node.name for graph in _all_graphs(self.model) for node in graph if node.name}
        return _fresh(name, self._node_names)

    def insert_before(
        self, node: ir.Node, op_type: str, inputs: Sequence[ir.Value], name: str, attributes: Sequence[ir.Attr] = ()
    ) -> ir.Value:
        """Returns the output of a new node before `node`, of the type and shape of `node`'s output, named `name`."""
        kind = node.outputs[0]
        shape = kind.shape.copy() if kind.shape is not None else None
        output = ir.Value(name=self.fresh_value_name(name), type=kind.type, shape=shape)
        node_name = self.fresh_node_name(f"{node.name}/{op_type}" if node.name else output.name or op_type)
        node.prepend(ir.Node("", op_type, inputs, attributes, outputs=[output], name=node_name))
        return output

    def become(
        self,
        node: ir.Node,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        attributes: Iterable[ir.Attr] = (),
        *,
        named_after: ir.Node | None = None,
    ) -> None:
        """Turns `node` into another one of ONNX's own operators with one output, which stays what it is.

        Further outputs, which nobody reads, are dropped. `named_after` is a node that the caller removes next: its
        name and metadata go on in `node`.
        """
        node.op_type, node.domain = op_type, ""
        node.resize_outputs(1)
        node.attributes.clear()
        for attribute in attributes:
            node.attributes.add(attribute)
        node.resize_inputs(len(inputs))
        for index, value in enumerate(inputs):
            node.replace_input_with(index, value)
        if named_after is not None:
            node.name = named_after.name
            node.metadata_props.update(named_after.metadata_props)

    def become_constants(self, node: ir.Node, tensors: Sequence[ir.TensorProtocol]) -> None:
        """Replaces a node by initializers that hold its outputs, under the same names.

        A node whose only output is an output of the graph becomes a Constant instead: an output comes from a node.
        """
        graph = node.graph
        assert graph is not None, "the node was removed before"
        if node.outputs[0].is_graph_output():
            self.become(node, "Constant", (), (ir.AttrTensor("value", tensors[0]),))
            return
        constants = [_constant_like(*pair) for pair in zip(node.outputs, tensors, strict=True)]
        for output, constant in zip(node.outputs, constants, strict=True):
            output.replace_all_uses_with(constant)
        self.remove(node)
        for constant in constants:
            if constant.name:
                graph.register_initializer(constant)

    def remove(self, node: ir.Node) -> None:
        """Removes a node whose outputs nobody reads, and whatever its bodies read of the graph outside.

        Raises:
            ValueError: one of its outputs is read, or is an output of the graph.
        """
        assert node.graph is not None, "the node was removed before"
        node.graph.remove(node, safe=True)
        for body in bodies(node):
            let_go(body)

    def bypass(self, node: ir.Node, *replacements: ir.Value) -> bool:
        """Removes a node whose outputs always equal `replacements`, one by one; returns whether it did.

        Outputs beyond the replacements are not read. Where an output is an output of the graph, its replacement takes
        over its name and place. That cannot be done (and nothing changes) when the replacement is not computed in the
        same graph, or is an output already.
        """
        pairs = list(zip(node.outputs, replacements, strict=False))
        if not all(_can_become_output(new, node) for old, new in pairs if old.is_graph_output()):
            return False
        for old, new in pairs:
            if old.is_graph_output():
                _take_over_output(old, new)
            else:
                _learn(new, old)
            old.replace_all_uses_with(new)
        self.remove(node)
        return True


def _constant_like(output: ir.Value, tensor: ir.TensorProtocol) -> ir.Value:
    kind, shape = ir.TensorType(tensor.dtype), ir.Shape(sizes_of(tensor))
    return ir.Value(name=output.name, type=kind, shape=shape, const_value=tensor)


def _fresh(name: str, taken: set[str]) -> str:
    candidate, number = name, 0
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    taken.add(candidate)
    return candidate


def _all_graphs(model: ir.Model) -> Iterable[ir.Graph]:
    return graphs_within(model.graph)


def _names_of_values(model: ir.Model) -> Iterable[str]:
    for graph in _all_graphs(model):
        yield from graph.initializers
        yield from (value.name for value in graph.inputs if value.name)
        yield from (value.name for node in graph for value in node.outputs if value.name)


def let_go(body: ir.Graph) -> None:
    """Lets the nodes of a body that was removed read nothing any more."""
    for graph in graphs_within(body):
        for node in graph:
            for index in range(len(node.inputs)):
                node.replace_input_with(index, None)


def _can_become_output(value: ir.Value, node: ir.Node) -> bool:
    producer = value.producer()
    return producer is not None and producer.graph is node.graph and not value.is_graph_output()


def _take_over_output(output: ir.Value, replacement: ir.Value) -> None:
    graph = output.graph
    assert graph is not None, "an output belongs to its graph"
    replacement.name, output.name = output.name, None
    replacement.type = output.type or replacement.type
    replacement.shape = output.shape or replacement.shape
    for index, value in enumerate(graph.outputs):
        if value is output:
            graph.outputs[index] = replacement


def _learn(replacement: ir.Value, output: ir.Value) -> None:
    if replacement.producer() is None:
        return
    replacement.type = replacement.type or output.type
    replacement.shape = replacement.shape or output.shape
