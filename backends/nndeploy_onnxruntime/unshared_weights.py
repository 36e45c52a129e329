# SPDX-License-Identifier: Apache-2.0
"""Constants of int8 that several nodes read -> one for each reader.

    k, z -> DequantizeLinear -> d;  Mul(x, d), Add(y, d)
        ->  k, z -> d -> Mul;  a copy of k, a copy of z -> a copy of d -> Add

With `session.x64quantprecision` ONNX Runtime 1.31 makes uint8 of int8 constants, under a name that follows from theirs:
of two nodes that read the same weights or the same zero point the second fails ("Attempt to replace the existing
tensor"). Weights that are all within `MAX_LEFT` stay int8, and may be shared. The main graph is rewritten, no bodies.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import onnx
import onnx_ir as ir

MAX_LEFT = 64
"""Magnitude up to which sums of two products do not saturate, so that the library leaves the weights."""
SMALL_ELEMENTS = 4096
"""Zero points, whose values the library does not look at, are smaller."""


def unshare_int8_weights(model: onnx.ModelProto) -> None:
    """Gives each reader of an int8 constant that ONNX Runtime would convert a copy of its own; `model` is changed."""
    graph = model.graph
    inputs = {value.name for value in graph.input}
    names = {t.name: t for t in graph.initializer if t.data_type == onnx.TensorProto.INT8 and t.name not in inputs}
    shared = {name for name, count in _reads(graph, names).items() if count > 1 and _is_converted(names[name])}
    if not shared:
        return
    name_of = _namer(graph)
    nodes = list(_with_own_dequantizations(graph, shared, name_of))
    read = set[str]()
    for node in nodes:
        if not _reads_weights(node, names):
            continue
        for i, name in enumerate(node.input):
            if name in shared and name in read:
                copied = graph.initializer.add()
                copied.CopyFrom(names[name])
                copied.name = node.input[i] = name_of(name)
            read.add(name)
    del graph.node[:]
    graph.node.extend(nodes)


def _reads(graph: onnx.GraphProto, names: Mapping[str, onnx.TensorProto]) -> Counter[str]:
    """Returns how many nodes read each constant; those that read what is dequantised of it count one by one."""
    readers = Counter(name for node in graph.node for name in node.input)
    found: Counter[str] = Counter()
    for node in (node for node in graph.node if _reads_weights(node, names)):
        times = max(1, readers[node.output[0]]) if node.op_type == "DequantizeLinear" else 1
        found.update({name: times for name in node.input if name in names})
    return found


def _reads_weights(node: onnx.NodeProto, constants: Mapping[str, onnx.TensorProto]) -> bool:
    """Returns whether a node's int8 constants are more than the zero point of values that are computed."""
    if node.op_type == "QuantizeLinear":
        return False
    return node.op_type != "DequantizeLinear" or node.input[0] in constants


def _is_converted(tensor: onnx.TensorProto) -> bool:
    """Returns whether the library may convert a constant."""
    values = ir.serde.deserialize_tensor(tensor).numpy()  # also of a tensor in a file
    return values.size <= SMALL_ELEMENTS or bool(np.any((values < -MAX_LEFT) | (values > MAX_LEFT)))


def _with_own_dequantizations(
    graph: onnx.GraphProto, shared: set[str], name_of: Callable[[str], str]
) -> Iterator[onnx.NodeProto]:
    """Yields the nodes, with a DequantizeLinear of shared constants for each reader but the first."""
    sources = {node.output[0]: node for node in graph.node if _dequantizes(node, shared)}
    read = set[str]()
    for node in graph.node:
        for i, name in enumerate(node.input):
            if name in sources and name in read:
                copied = onnx.NodeProto()
                copied.CopyFrom(sources[name])
                copied.name = name_of(copied.name)
                copied.output[0] = node.input[i] = name_of(name)
                yield copied
            read.add(name)
        yield node


def _dequantizes(node: onnx.NodeProto, constants: set[str]) -> bool:
    return node.op_type == "DequantizeLinear" and node.input[0] in constants


def _namer(graph: onnx.GraphProto) -> Callable[[str], str]:
    """Returns what makes names of copies that nothing in the graph has."""
    taken = {name for node in graph.node for name in (node.name, *node.output)}
    taken |= {tensor.name for tensor in graph.initializer} | {value.name for value in graph.input}

    def name_of(name: str) -> str:
        number = next(i for i in range(1, len(taken) + 2) if f"{name}_copy{i}" not in taken)
        taken.add(f"{name}_copy{number}")
        return f"{name}_copy{number}"

    return name_of
