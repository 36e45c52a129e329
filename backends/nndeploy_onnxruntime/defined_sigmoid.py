# SPDX-License-Identifier: Apache-2.0
"""Sigmoid as the specification defines it, for the library as a reference: its own keeps no digit of what is near 0.

    y = Sigmoid(x)   ->   y = Exp(-Softplus(-x))      the same number, 1 / (1 + exp(-x))

ONNX Runtime (1.31.1) computes it by a tanh: what it gives is within 2e-7, and 0 below x = -18. That is right, but no
reference for engines that give 1e-13 there. Law: y is within 1e-6 of its own size, down to the least normal number.
"""

from collections.abc import Iterator

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

_SHORT = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
_STEPS = ("Neg", "Softplus", "Neg", "Exp")


def with_defined_sigmoid(model: bytes) -> bytes:
    """Returns the bytes of a model; the same ones where it has no Sigmoid, or may have one of 16 bits.

    Of these the steps would round more than Sigmoid does.
    """
    if b"Sigmoid" not in model:
        return model
    proto = ModelProto.FromString(model)
    graphs = [
        proto.graph,
        *proto.functions,
        *(inner for graph in (proto.graph, *proto.functions) for inner in _inside(graph)),
    ]
    if any(map(_has_short_floats, graphs)):
        return model
    changed = [_define(graph) for graph in reversed(graphs)]  # the inner ones first: nodes are copied
    return proto.SerializeToString() if any(changed) else model


def _inside(graph: GraphProto | FunctionProto) -> Iterator[GraphProto]:
    """Yields the bodies in a graph, an outer one before those that are in it."""
    for node in graph.node:
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield body
                yield from _inside(body)


def _has_short_floats(graph: GraphProto | FunctionProto) -> bool:
    casts = [one.i for node in graph.node for one in node.attribute if one.name in ("to", "dtype")]
    tensors = [one.t.data_type for node in graph.node for one in node.attribute]
    values = [*graph.value_info, *(() if isinstance(graph, FunctionProto) else (*graph.input, *graph.output))]
    weights = () if isinstance(graph, FunctionProto) else graph.initializer
    types = [*casts, *tensors, *(one.type.tensor_type.elem_type for one in values), *(one.data_type for one in weights)]
    return any(one in _SHORT for one in types)


def _define(graph: GraphProto | FunctionProto) -> bool:
    """Puts the steps in the place of each Sigmoid; returns whether there was one."""
    nodes = [step for node in graph.node for step in (_steps(node) if _is_sigmoid(node) else [node])]
    if len(nodes) == len(graph.node):
        return False
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    return True


def _is_sigmoid(node: NodeProto) -> bool:
    return node.op_type == "Sigmoid" and node.domain in ("", "ai.onnx")


def _steps(node: NodeProto) -> list[NodeProto]:
    values = [*node.input, *(f"{node.output[0]}__sigmoid_{i}" for i in range(len(_STEPS) - 1)), *node.output]
    return [
        NodeProto(op_type=op_type, input=[values[i]], output=[values[i + 1]], name=f"{values[-1]}__sigmoid_{i}")
        for i, op_type in enumerate(_STEPS)
    ]
