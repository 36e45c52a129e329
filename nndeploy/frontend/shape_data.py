# SPDX-License-Identifier: Apache-2.0
"""Shapes that depend on computed values (`Reshape(x, Concat(Shape(x)[0], -1))`), without the cost that this can have.

In comes a model with the types that onnx infers without looking at values; out comes one with those that it infers
when it follows small integer values through the graph ("data propagation").

onnx 1.23 follows a vector element by element, whatever its length: `Add(x, x)` on an input `float[68719476736]` takes
all memory there is. So a node that would follow a vector that is not known to be short is hidden from it: for that
one run it is an operator that nobody knows, with the output types that are known already. What was inferred can show
other vectors to be short, so there are a few rounds.
"""

from collections.abc import Mapping, Set
from functools import lru_cache

import onnx
import onnx.defs

from nndeploy.frontend.shapes import symbolic_dims
from nndeploy.frontend.traversal import bodies_of, graphs_of, nodes_of
from nndeploy.frontend.untyped import infer_shapes
from nndeploy.graph.operator_rules import normal_domain

Scopes = tuple[Mapping[str, onnx.TypeProto], ...]
"""The types of the values that can be seen, by graph, innermost last."""

_MAX_FOLLOWED = 1024
_MAX_ROUNDS = 4
_HIDDEN = "nndeploy.hidden"


def with_shape_data(model: onnx.ModelProto) -> onnx.ModelProto:
    """Returns a model with more shapes than `model`, or `model` where values tell nothing more.

    Nodes have names of their own.
    """
    declared = {dim.dim_param for value in model.graph.input for dim in symbolic_dims(value.type)}
    num_hidden_before = -1
    for _ in range(_MAX_ROUNDS):
        if _is_all_known(model):
            break
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        _forget_symbols(copy, declared)
        hidden = _hide_nodes(copy)
        if len(hidden) == num_hidden_before:
            break
        num_hidden_before = len(hidden)
        try:
            model = infer_shapes(copy, data_prop=True)
        except Exception:  # whatever the library's C++ throws: then values tell nothing
            break
        _show_nodes(model, hidden)
    return model


def _is_all_known(model: onnx.ModelProto) -> bool:
    """Whether every output of every node is a tensor whose sizes are numbers."""
    for graph in graphs_of(model.graph):
        known = {value.name for value in (*graph.value_info, *graph.output) if _has_sizes(value.type)}
        if any(name and name not in known for node in graph.node for name in node.output):
            return False
    return True


def _has_sizes(value_type: onnx.TypeProto) -> bool:
    tensor = value_type.tensor_type
    return tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim)


def _forget_symbols(model: onnx.ModelProto, declared: Set[str]) -> None:
    """Forgets the symbols that an earlier inference made up, in place: onnx would keep them for better ones."""
    for graph in graphs_of(model.graph):
        for dim in (dim for info in (*graph.value_info, *graph.output) for dim in symbolic_dims(info.type)):
            if dim.dim_param not in declared:
                dim.ClearField("dim_param")


def _hide_nodes(model: onnx.ModelProto) -> dict[str, tuple[str, str]]:
    """Hides the nodes that would follow a long vector; returns node -> (domain, operator)."""
    versions = {normal_domain(opset.domain): opset.version for opset in model.opset_import}
    hidden: dict[str, tuple[str, str]] = {}
    _hide_in_graph(model.graph, (), versions, hidden)
    if hidden:
        model.opset_import.add(domain=_HIDDEN, version=1)
    return hidden


def _hide_in_graph(
    graph: onnx.GraphProto, outer: Scopes, versions: Mapping[str, int], hidden: dict[str, tuple[str, str]]
) -> None:
    scopes = (*outer, _types_in(graph))
    for node in graph.node:
        for body in bodies_of(node):
            _hide_in_graph(body, scopes, versions, hidden)
        domain = normal_domain(node.domain)
        follows = _follows_values(domain, node.op_type, versions.get(domain, 0))
        if follows and not all(_is_short(name, scopes) for name in (*node.input, *node.output)):
            hidden[node.name] = (node.domain, node.op_type)
            node.domain, node.op_type = _HIDDEN, "Hidden"


def _types_in(graph: onnx.GraphProto) -> dict[str, onnx.TypeProto]:
    types = {tensor.name: onnx.TypeProto() for tensor in graph.initializer}
    for tensor in graph.initializer:
        types[tensor.name].tensor_type.shape.dim.extend(
            onnx.TensorShapeProto.Dimension(dim_value=dim) for dim in tensor.dims
        )
    return types | {value.name: value.type for value in (*graph.value_info, *graph.input, *graph.output)}


@lru_cache(maxsize=4096)
def _follows_values(domain: str, op_type: str, version: int) -> bool:
    """Whether onnx follows values through the operator, or through the function that stands for it."""
    if op_type == "Shape" or not onnx.defs.has(op_type, max_inclusive_version=version, domain=domain):
        return False
    schema = onnx.defs.get_schema(op_type, version, domain)
    return schema.has_data_propagation_function or not schema.has_type_and_shape_inference_function


def _is_short(name: str, scopes: Scopes) -> bool:
    """Whether a value is known to be no long vector; values of two and more axes are not followed."""
    found = next((scope[name] for scope in reversed(scopes) if name in scope), None)
    if not name:
        return True
    if found is None or not found.HasField("tensor_type") or not found.tensor_type.HasField("shape"):
        return False
    dims = found.tensor_type.shape.dim
    return len(dims) != 1 or (dims[0].HasField("dim_value") and dims[0].dim_value <= _MAX_FOLLOWED)


def _show_nodes(model: onnx.ModelProto, hidden: Mapping[str, tuple[str, str]]) -> None:
    for node in nodes_of(model):
        if node.domain == _HIDDEN:
            node.domain, node.op_type = hidden[node.name]
    imports = [opset for opset in model.opset_import if opset.domain != _HIDDEN]
    del model.opset_import[:]
    model.opset_import.extend(imports)
