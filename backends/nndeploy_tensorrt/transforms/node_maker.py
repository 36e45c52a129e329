# SPDX-License-Identifier: Apache-2.0
"""Makes nodes in front of one that is being replaced, and puts their results in its place.

Law: a value that others read keeps its name and type; what was made and nobody reads is removed again.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from nndeploy.backend_kit.query import constant_of

Floats = npt.NDArray[np.float32]

MADE_HERE = "nndeploy.tensorrt.made"
"""Metadata of a node that one of this backend's transforms made, so that a later one may touch it."""


class NodeMaker:
    """Makes float32 nodes in one graph; `at` is the node that is being replaced."""

    def __init__(self, graph: ir.Graph) -> None:
        self._graph = graph
        self._made: list[ir.Node] = []
        self._let_go: list[ir.Value] = []
        self._num_constants = 0
        self.at: ir.Node | None = None

    def op(self, op_type: str, inputs: Sequence[ir.Value], attributes: Sequence[ir.Attr] = ()) -> ir.Value:
        """Returns the output of a new node."""
        assert self.at is not None, "the caller says where"
        node = ir.Node("", op_type, inputs, attributes, name=f"{self.at.name}/{op_type}{len(self._made)}")
        node.metadata_props[MADE_HERE] = self.at.name or ""
        self._graph.insert_before(self.at, node)
        self._made.append(node)
        return node.outputs[0]

    def cast(self, value: ir.Value, to: ir.DataType) -> ir.Value:
        """Returns `value` as another type."""
        return self.op("Cast", [value], [ir.AttrInt64("to", int(to))])

    def floats(self, array: "npt.NDArray[np.generic]") -> ir.Value:
        """Returns a new float32 constant."""
        return self._constant(np.asarray(array, np.float32))

    def sizes(self, *numbers: int) -> ir.Value:
        """Returns a new vector of int64, as shapes and axes are."""
        return self._constant(np.array(numbers, np.int64))

    def replace_by(self, outputs: Sequence[ir.Value]) -> None:
        """Puts `outputs`, which take over names and types, in the place of the first outputs of the node `at`."""
        assert self.at is not None, "the caller says where"
        old_outputs = list(self.at.outputs[: len(outputs)])
        for old, new in zip(old_outputs, outputs, strict=True):
            if not new.is_initializer():
                new.name, new.type, new.shape, old.name = old.name, old.type, old.shape, None
        ir.convenience.replace_all_uses_with(old_outputs, list(outputs), replace_graph_outputs=True)
        self._let_go += [value for value in self.at.inputs if value is not None and value.is_initializer()]
        self._graph.remove(self.at, safe=True)
        self.at = None

    def remove_unread(self) -> None:
        """Removes nodes that were made and constants that were let go where nobody reads them."""
        for node in reversed(self._made):
            if not any(output.uses() or output.is_graph_output() for output in node.outputs):
                self._let_go += [value for value in node.inputs if value is not None and value.is_initializer()]
                self._graph.remove(node, safe=True)
        for value in self._let_go:
            if value.name and not value.uses() and not value.is_graph_output() and not value.is_graph_input():
                self._graph.initializers.pop(value.name, None)

    def _constant(self, array: "npt.NDArray[np.generic]") -> ir.Value:
        assert self.at is not None, "the caller says where"
        self._num_constants += 1
        name = f"{self.at.name}/constant{self._num_constants}"
        tensor = ir.tensor(array, name=name)
        value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)
        self._graph.register_initializer(value)
        return value


def array_of(value: ir.Value | None) -> "npt.NDArray[np.generic] | None":
    """Returns the numbers of a constant, None for any other value."""
    tensor = None if value is None else constant_of(value)
    return None if tensor is None else tensor.numpy()
