# SPDX-License-Identifier: Apache-2.0
"""What a change of an operator may use: what is known where the node stands, and the words that it writes in."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
import onnx.helper
import onnx.numpy_helper

from nndeploy.errors import ModelError
from nndeploy.frontend.free_names import FreeNames
from nndeploy.frontend.node_types import NodeTypes

Nodes: TypeAlias = list[onnx.NodeProto]


class Surroundings(NodeTypes):
    """What is known where a node stands, and names that are free.

    `made` are the constants of changes, which become initializers: Constant knows only floats up to version 8.
    """

    def __init__(self, version: int, free_name: FreeNames) -> None:
        super().__init__(version)
        self.free_name = free_name
        self.made: list[onnx.TensorProto] = []

    def rank(self, name: str, why: str) -> int:
        """Returns the rank of a tensor.

        Raises:
            ModelError: it is not known; `why` says what needs it.
        """
        sizes = self.sizes(name)
        if sizes is None:
            raise ModelError(f"the rank of {name!r:.80} is not known, which {why}", hint="declare its shape")
        return len(sizes)

    def new(self, op_type: str, inputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
        """Returns a node with one output of a new name."""
        wish = f"{inputs[0]}/{op_type}" if inputs else op_type
        return onnx.helper.make_node(op_type, inputs, [self.free_name(wish)], **attributes)

    def integers(self, values: object) -> str:
        """Returns the name of a new constant of int64."""
        return self._constant(np.array(values, np.int64))

    def floats(self, values: object, like: str = "") -> str:
        """Returns the name of a new constant of the element type of the value `like`, float32 if that is not known."""
        number = self.types.get(like, onnx.TypeProto()).tensor_type.elem_type or onnx.TensorProto.FLOAT
        return self._constant(np.array(values).astype(onnx.helper.tensor_dtype_to_np_dtype(number)))

    def _constant(self, array: npt.NDArray[Any]) -> str:
        tensor = onnx.numpy_helper.from_array(array, self.free_name("constant"))
        self.made.append(tensor)
        self.add_constant(tensor)
        return tensor.name


Change: TypeAlias = Callable[[onnx.NodeProto, Surroundings], Nodes]
"""Takes a node, which it may change, and returns what stands for it, in order; the last one makes its outputs."""


def take(node: onnx.NodeProto, name: str) -> Any:
    """Returns the value of an attribute, which the node then lacks; None where it has none."""
    for index, attribute in enumerate(node.attribute):
        if attribute.name == name:
            value = onnx.helper.get_attribute_value(attribute)
            del node.attribute[index]
            return value
    return None


def give(node: onnx.NodeProto, **attributes: Any) -> None:
    """Adds attributes to a node."""
    node.attribute.extend(onnx.helper.make_attribute(name, value) for name, value in attributes.items())


def without(*names: str) -> Change:
    """Leaves attributes out."""

    def change(node: onnx.NodeProto, _: Surroundings) -> Nodes:
        for name in names:
            take(node, name)
        return [node]

    return change


def with_default(**defaults: Any) -> Change:
    """Writes out what an attribute is where it is left out: later versions have another default."""

    def change(node: onnx.NodeProto, _: Surroundings) -> Nodes:
        given = {attribute.name for attribute in node.attribute}
        give(node, **{name: value for name, value in defaults.items() if name not in given})
        return [node]

    return change


def as_inputs(*names: str) -> Change:
    """Makes inputs of integer attributes, from the second input on."""

    def change(node: onnx.NodeProto, around: Surroundings) -> Nodes:
        taken = [take(node, name) for name in names]
        put(node, ["" if value is None else around.integers(np.ravel(value)) for value in taken])
        return [node]

    return change


def put(node: onnx.NodeProto, names: Sequence[str], first: int = 1) -> None:
    """Replaces the inputs of a node from number `first` on; "" is one that is left out."""
    inputs = [*node.input[:first], *[""] * (first - len(node.input)), *names]
    while inputs and not inputs[-1]:
        inputs.pop()
    node.input[:] = inputs


def renamed(op_type: str) -> Change:
    """Gives the operator another name."""

    def change(node: onnx.NodeProto, _: Surroundings) -> Nodes:
        node.op_type = op_type
        return [node]

    return change
