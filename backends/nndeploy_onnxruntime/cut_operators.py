# SPDX-License-Identifier: Apache-2.0
"""Long operators in parts, so that a paced run may sleep between them: the graph of a bundle that is to be paced.

    y = Conv(x, w, b)   ->  y = Concat(Conv(x, w[i], b[i]) ..., axis=1)     by output channels
    y = MatMul(a, b)    ->  y = Concat(MatMul(a, b[:, i]) ..., axis=-1)     by columns of a constant b; Gemm likewise
    z = f(y)            ->  z = Concat(f(part) ...)                        where f is elementwise and alone reads y

Comes in: a submodel, before the library optimises it. What is long, and where joining the parts costs little, follows
from the shapes alone, so the same submodel gives the same bytes. Laws: every element of an output is the same sum; an
operator of which nothing is known stays whole.
"""

import math
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from nndeploy.backend_kit.query import constant_of
from nndeploy.values.types import DimRange

OPS_PER_NS, BYTES_PER_NS = 100.0, 40.0
"""An ordinary core: a multiply-add counts as two, and what an operator just made is in its caches."""
LONG_NS = 1.4e6
"""What works longer than a run may without a sleep is cut."""
MOST_COST = 0.02
"""The share of an operator's time that joining its parts may take: each element of the output is read and written."""
BLOCK = 64
"""Parts are whole blocks of so many channels or columns, which the library's kernels compute at once.

With 16 channels a part, unet_stress_field took 6% longer, ppocr_det with 8 took 36%; magika, whose convolution of 512
channels is cut in 5, takes 0.7% (AMD EPYC, one thread, 2026-11-26).
"""
MOST_PARTS = 16
Floats = npt.NDArray[np.float32]
_ELEMENTWISE = frozenset({"Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid", "Elu", "Softplus"})
_ONNX = ("", "ai.onnx")


def cut_operators(model: ir.Model, ranges: Mapping[str, DimRange] = {}) -> int:
    """Cuts, in place, the long operators of the main graph; returns how many.

    Those that are long at the least sizes of symbolic dimensions, by `ranges` or else 1.
    """
    graph = model.graph
    cuts = [(node, parts) for node in list(graph) if (parts := _parts_of(node, ranges)) > 1]
    for node, parts in cuts:
        _cut(graph, node, parts)
    return len(cuts)


def _parts_of(node: ir.Node, ranges: Mapping[str, DimRange]) -> int:
    """Returns in how many parts a node is done, 1 where it stays whole."""
    if node.domain not in _ONNX or len(node.outputs) != 1:
        return 1
    weights, shape = _weights(node), _least_shape(node.outputs[0], ranges)
    if weights is None or shape is None or node.outputs[0].dtype != ir.DataType.FLOAT:
        return 1
    num_out = int(weights.shape[_axis_of_weights(node)])
    sums = weights.size // num_out  # multiply-adds of an element
    elements = math.prod(shape)
    took, joining = 2 * elements * sums / OPS_PER_NS, 8 * elements / BYTES_PER_NS
    if took <= LONG_NS or joining > MOST_COST * took:
        return 1
    return min(MOST_PARTS, math.ceil(took / LONG_NS), max(1, num_out // BLOCK))


def _least_shape(value: ir.Value, ranges: Mapping[str, DimRange]) -> tuple[int, ...] | None:
    if value.shape is None:
        return None
    return tuple(size if isinstance(size, int) else _least_size(size.value, ranges) for size in value.shape)


def _least_size(name: str | None, ranges: Mapping[str, DimRange]) -> int:
    found = None if name is None else ranges.get(name)
    return 1 if found is None else found.min


def _weights(node: ir.Node) -> "Floats | None":
    """Returns the constant factor of a node that can be cut, else None."""
    if node.op_type not in ("Conv", "MatMul", "Gemm") or len(node.inputs) < 2:
        return None
    if node.op_type == "Conv" and node.attributes.get_int("group", 1) != 1:
        return None
    if any(one is not None and constant_of(one) is None for one in node.inputs[1:]):
        return None
    factor = node.inputs[1]
    found = None if factor is None else constant_of(factor)
    if found is None or found.dtype != ir.DataType.FLOAT or (node.op_type != "Conv" and len(found.shape) != 2):
        return None
    return np.asarray(found.numpy(), np.float32)


def _axis_of_weights(node: ir.Node) -> int:
    """Returns which axis of the factor the channels or columns of the output are."""
    if node.op_type == "Conv" or (node.op_type == "Gemm" and node.attributes.get_int("transB", 0) == 1):
        return 0
    return 1


def _cut(graph: ir.Graph, node: ir.Node, parts: int) -> None:
    chain = _with_elementwise(graph, node)
    weights = _weights(node)
    assert weights is not None, "the caller has looked"
    axis = _axis_of_weights(node)
    num_out = weights.shape[axis]
    bounds = [round(num_out * part / parts / BLOCK) * BLOCK for part in range(parts)] + [num_out]
    made = list[ir.Value]()
    for part, (begin, end) in enumerate(pairwise(bounds)):
        inputs: list[ir.Value | None] = [
            node.inputs[0],
            _constant(graph, node, 1, part, weights.take(range(begin, end), axis)),
        ]
        if len(node.inputs) > 2 and node.inputs[2] is not None:
            inputs.append(_constant(graph, node, 2, part, _part_of_bias(node, num_out, begin, end)))
        for one in chain:
            new = ir.Node(one.domain, one.op_type, inputs, list(one.attributes.values()), name=f"{one.name}/part{part}")
            new.outputs[0].name, new.outputs[0].type = f"{one.outputs[0].name}/part{part}", one.outputs[0].type
            graph.insert_before(chain[-1], new)
            inputs = [new.outputs[0]]
        made.append(new.outputs[0])
    old = chain[-1].outputs[0]
    joined = ir.Node(
        "", "Concat", made, [ir.AttrInt64("axis", 1 if node.op_type == "Conv" else -1)], name=f"{node.name}/parts"
    )
    result = joined.outputs[0]
    result.name, result.type, result.shape, old.name = old.name, old.type, old.shape, None
    graph.insert_before(chain[-1], joined)
    ir.convenience.replace_all_uses_with(old, result, replace_graph_outputs=True)
    let_go = [value for value in node.inputs[1:] if value is not None and value.is_initializer()]
    graph.remove(list(reversed(chain)), safe=True)
    for value in let_go:
        if not value.uses() and value.name is not None and value.name in graph.initializers:
            del graph.initializers[value.name]


def _with_elementwise(graph: ir.Graph, node: ir.Node) -> list[ir.Node]:
    """Returns a node, and the one behind it that can be done part by part too."""
    value = node.outputs[0]
    readers = list(value.uses())
    if len(readers) != 1 or value in graph.outputs:
        return [node]
    reader = readers[0].node
    is_alone = reader.domain in _ONNX and reader.op_type in _ELEMENTWISE and len(reader.inputs) == 1
    return [node, reader] if is_alone and reader.graph is graph else [node]


def _part_of_bias(node: ir.Node, num_out: int, begin: int, end: int) -> Floats:
    given = node.inputs[2]
    tensor = None if given is None else constant_of(given)
    assert tensor is not None, "the caller has looked"
    bias = np.asarray(tensor.numpy(), np.float32)
    if bias.ndim == 0 or bias.shape[-1] != num_out:  # one number for all of them
        return bias
    return bias[..., begin:end]


def _constant(graph: ir.Graph, node: ir.Node, number: int, part: int, array: Floats) -> ir.Value:
    tensor = ir.tensor(np.ascontiguousarray(array), name=f"{node.outputs[0].name}/input{number}/part{part}")
    value = ir.Value(
        name=tensor.name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor
    )
    graph.register_initializer(value)
    return value
