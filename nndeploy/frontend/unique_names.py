# SPDX-License-Identifier: Apache-2.0
"""Names for values: no two values of a model are called alike, not even in two bodies that never see each other.

ONNX lets the branches of an If use the same names. The onnx library (1.23) keeps the small integers that it follows by
name alone, so what it knew of a value of one branch became the shape of its namesake in the other.

A value whose name was taken becomes `<name>_1`, `<name>_2`, ...; the first one keeps it, and so do the inputs, outputs
and weights of the model. The same model gives the same names.
"""

from collections.abc import Iterator, Mapping

import onnx

from nndeploy.frontend.free_names import FreeNames
from nndeploy.frontend.traversal import bodies_of, graphs_of

Renamed = Mapping[str, str]
"""Old name -> new name of the values that a body sees."""


def name_values(model: onnx.ModelProto) -> None:
    """Gives every value of the graph and of all bodies a name that no other value has, in place."""
    free_name = FreeNames(name for graph in graphs_of(model.graph) for name in made_in(graph))
    _name_below(model.graph, {}, set(made_in(model.graph)), free_name)


def _name_below(graph: onnx.GraphProto, renamed: Renamed, seen: set[str], free_name: FreeNames) -> None:
    for node in graph.node:
        for i, name in enumerate(node.input):
            if name in renamed:
                node.input[i] = renamed[name]
        for body in bodies_of(node):
            own = {name: free_name(name) if name in seen else name for name in made_in(body)}
            seen.update(own.values())
            inside = {**renamed, **own}
            rename_made(body, inside)
            _name_below(body, inside, seen, free_name)


def made_in(graph: onnx.GraphProto) -> Iterator[str]:
    """Yields the names of the values that a graph itself makes: its inputs, its constants, its nodes' outputs."""
    yield from (value.name for value in graph.input)
    yield from (tensor.name for tensor in graph.initializer)
    yield from (sparse.values.name for sparse in graph.sparse_initializer)
    yield from (name for node in graph.node for name in node.output if name)


def rename_made(body: onnx.GraphProto, renamed: Renamed) -> None:
    """Renames what a body makes wherever the body itself names it, but for the inputs of its nodes."""
    for value in (*body.input, *body.output, *body.value_info, *body.initializer):
        value.name = renamed.get(value.name, value.name)
    for sparse in body.sparse_initializer:
        sparse.values.name = renamed.get(sparse.values.name, sparse.values.name)
    for node in body.node:
        for i, name in enumerate(node.output):
            node.output[i] = renamed.get(name, name)
    for note in body.quantization_annotation:
        note.tensor_name = renamed.get(note.tensor_name, note.tensor_name)
