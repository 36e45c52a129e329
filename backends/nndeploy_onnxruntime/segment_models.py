# SPDX-License-Identifier: Apache-2.0
"""The parts of a model: consecutive nodes of it as a model of their own.

In come the bytes of a model whose nodes stand in an order in which they can run. What crosses from one part to a later
one is an output of the one and an input of the other, by the same name. A part keeps its nodes, the constants that they
read, and all that is not of the graph (operator sets, functions).
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from nndeploy_onnxruntime.model_fields import (
    GRAPH,
    GRAPH_INPUT,
    GRAPH_OUTPUT,
    INITIALIZER,
    NODE,
    NODE_NAME,
    SPARSE_INITIALIZER,
    SPARSE_VALUES,
    TENSOR_NAME,
    VALUE_NAME,
    VALUE_TYPE,
    fields,
    first,
    inputs_of,
    message,
    operator_name,
    outputs_of,
    read_by_bodies,
)

_Array: TypeAlias = "np.ndarray[Any, Any]"

ELEMENT_TYPES = {
    "float": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "string": 8, "bool": 9,
    "float16": 10, "double": 11, "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
}  # fmt: skip
"""What ONNX Runtime calls an element type -> number in TensorProto.DataType; others do not cross cuts."""
_GRAPH_NAME = 2


class Parts:
    """A model, whose nodes are numbered."""

    def __init__(self, model: bytes) -> None:
        """Reads it.

        Raises:
            ValueError: these are not the bytes of a model.
        """
        self._model = model
        graph = first(model, GRAPH)
        self._nodes = [content for number, _, content in fields(graph) if number == NODE]
        self._constants = dict[bytes, bytes]()
        self._inputs, self._outputs = dict[bytes, bytes](), dict[bytes, bytes]()
        for number, raw, content in fields(graph):
            if number == INITIALIZER:
                self._constants[first(content, TENSOR_NAME)] = raw
            elif number == SPARSE_INITIALIZER:
                self._constants[first(first(content, SPARSE_VALUES), TENSOR_NAME)] = raw
            elif number == GRAPH_INPUT:
                self._inputs[first(content, VALUE_NAME)] = raw
            elif number == GRAPH_OUTPUT:
                self._outputs[first(content, VALUE_NAME)] = raw
        self._reads = [set(inputs_of(node)) | read_by_bodies(node) for node in self._nodes]
        self._makes = [set(outputs_of(node)) - {b""} for node in self._nodes]

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        return len(self._nodes)

    @property
    def output_names(self) -> list[str]:
        """The model's outputs, in order."""
        return [name.decode() for name in self._outputs]

    def name(self, node: int) -> str:
        """Returns what people call a node."""
        return operator_name(self._nodes[node])

    def with_numbered_nodes(self) -> bytes:
        """Returns the model with nodes that are called "nndeploy/" and their number."""
        nodes = iter(range(self.num_nodes))
        graph = b"".join(
            message(NODE, content + message(NODE_NAME, f"nndeploy/{next(nodes)}".encode())) if number == NODE else raw
            for number, raw, content in fields(first(self._model, GRAPH))
        )  # of a field that stands twice, the last counts
        return self._with_graph(graph)

    def crossing(self, cut: int) -> set[bytes]:
        """Returns the names of the values that are made before a node and read at it or behind."""
        return {name for name, made in self._producer.items() if made < cut <= self._last_reader.get(name, -1)}

    def dead_after(self, begin: int, end: int) -> list[str]:
        """Returns the names that nobody reads any more once the nodes from `begin` to `end` have run."""
        kept = self._outputs
        return [name.decode() for name, last in self._last_reader.items() if begin <= last < end and name not in kept]

    def cuts(self, times: _Array, sizes: _Array, count: int) -> list[int]:
        """Returns where to cut the model into at most `count` parts of about the same time, where little crosses.

        `times` and `sizes` are those of nodes and of their outputs. The model is cut before the nodes that are
        returned.
        """
        before, found = np.cumsum(times) - times, set[int]()
        for part in range(1, count):
            ends = [(part + shift) * times.sum() / count for shift in (-0.25, 0.25)]
            low, high = (min(self.num_nodes - 1, int(cut)) for cut in np.searchsorted(before, ends))
            places = range(low, max(low + 1, high))
            found.add(min(places, key=lambda cut: sum(sizes[self._producer[one]] for one in self.crossing(cut))))
        return sorted(found - {0})

    def cuts_behind(self, wanted: Callable[[str], bool]) -> list[int]:
        """Returns where to cut the model so that operators which are wanted, by name, stand before the cuts."""
        return [node + 1 for node in range(self.num_nodes - 1) if wanted(self.name(node))]

    def segment(self, begin: int, end: int, types: Mapping[str, str]) -> bytes:
        """Returns the model of the nodes from `begin` to `end`; `types` are those of what was made before.

        Raises:
            ValueError: a value that crosses is not a tensor.
        """
        nodes = range(begin, end)
        made = set[bytes]().union(*(self._makes[node] for node in nodes))
        read = set[bytes]().union(*(self._reads[node] for node in nodes))
        graph = message(_GRAPH_NAME, b"segment") + b"".join(message(NODE, self._nodes[node]) for node in nodes)
        graph += b"".join(raw for name, raw in self._constants.items() if name in read)
        graph += b"".join(raw for name, raw in self._inputs.items() if name in read and name not in self._constants)
        for name in sorted(read - made):
            if name in self._producer:
                graph += message(GRAPH_INPUT, message(VALUE_NAME, name) + _type_field(types[name.decode()]))
        for name in sorted(made):
            if name in self._outputs:
                graph += self._outputs[name]
            elif self._last_reader.get(name, -1) >= end:
                graph += message(GRAPH_OUTPUT, message(VALUE_NAME, name))
        return self._with_graph(graph)

    @cached_property
    def _producer(self) -> dict[bytes, int]:
        return {name: node for node, names in enumerate(self._makes) for name in names}

    @cached_property
    def _last_reader(self) -> dict[bytes, int]:
        """The last node that reads each value that a node makes."""
        return {name: node for node, names in enumerate(self._reads) for name in names if name in self._producer}

    def _with_graph(self, graph: bytes) -> bytes:
        return b"".join(message(GRAPH, graph) if number == GRAPH else raw for number, raw, _ in fields(self._model))


def _type_field(said: str) -> bytes:
    """Returns the type of a value of which nothing but the element type is known, from how ONNX Runtime calls it."""
    name = said.removeprefix("tensor(").removesuffix(")")
    if name not in ELEMENT_TYPES:
        raise ValueError(f"a {said} would cross a cut")
    return message(VALUE_TYPE, message(1, bytes((1 << 3, ELEMENT_TYPES[name]))))
