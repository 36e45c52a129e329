# SPDX-License-Identifier: Apache-2.0
"""Estimated compute of nodes, from the shapes that one sample gives.

    seconds(node) = max(operations / FLOPS_PER_S, bytes read and written / BYTES_PER_S)

The two constants are those of one ordinary core; only the ratio between nodes matters (whether an island is worth its
crossings). Multiply and add count as two operations. The share of *compute*, which people are told and gates hold, is
that of the operations alone: a Relu moves many bytes and computes next to nothing.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from nndeploy.graph.nodes import bodies, node_name, values_read
from nndeploy.partition.kinds import OTHER, kind_of
from nndeploy.partition.value_sizes import Sizes
from nndeploy.target.target import BYTES_PER_S, FLOPS_PER_S

OPERATIONS_OF_A_FUNCTION = 8  # exp, tanh, division...: about this many multiply-adds' time an element

OPERATIONS_OF_A_TREE_NODE = 32  # loads that wait for each other take as long as about so many multiply-adds

_CHEAP = frozenset({
    "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Shape", "Size", "Constant", "ConstantOfShape",
})  # fmt: skip
_FUNCTIONS = frozenset({
    "Exp", "Log", "Sqrt", "Div", "Pow", "Sigmoid", "Tanh", "Erf", "Gelu", "Softmax", "LogSoftmax", "HardSwish", "Mish",
    "Softplus", "Elu", "Selu", "Celu", "Swish", "LayerNormalization", "BatchNormalization", "InstanceNormalization",
})  # fmt: skip

_READ_A_PART = frozenset({"Gather", "GatherElements", "GatherND", "Slice"})
"""Operators that read of their first input no more than they write."""


@dataclass(frozen=True, slots=True)
class Costs:
    """`seconds`, `operations` and `kinds` by node name; `value_bytes` of a value by name (0 where unknown).

    `seconds` are the estimates for one ordinary core, `level` is the instruction set of the target.
    """

    seconds: Mapping[str, float]
    value_bytes: Mapping[str, int]
    operations: Mapping[str, int] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    level: str = ""

    def kind(self, node: ir.Node) -> str:
        """Returns the kind of a node's operator, `OTHER` where nobody said."""
        return self.kinds.get(node_name(node), OTHER)

    def share(self, node: str) -> float:
        """Returns the node's part, 0..1, of the model's time, in which moving bytes counts."""
        return self.seconds[node] / self.total

    def compute_share(self, node: str) -> float:
        """Returns the node's part, 0..1, of the model's operations; of its time where nothing computes."""
        total = sum(self.operations.values())
        return self.operations[node] / total if total else self.share(node)

    @property
    def total(self) -> float:
        """The model's estimated seconds, never 0."""
        return math.fsum(self.seconds.values()) or 1.0


def estimate_costs(model: ir.Model, shapes: Mapping[str, tuple[int, ...]], level: str = "") -> Costs:
    """Returns the costs of every node of the main graph, for a target of a `level` of instructions.

    `shapes` gives the concrete shape of values by name where it is known; elsewhere the model's own shapes count,
    with unknown sizes taken as 1.
    """
    sizes = Sizes(shapes)
    return Costs(
        seconds={node_name(node): _seconds(node, sizes) for node in model.graph},
        operations={node_name(node): flops_of(node, sizes) for node in model.graph},
        value_bytes={
            value.name: sizes.bytes(value)
            for node in model.graph
            for value in (*values_read(node), *node.outputs)
            if value.name
        },
        kinds={node_name(node): kind_of(node, sizes) for node in model.graph},
        level=level,
    )


def flops_of(node: ir.Node, sizes: Sizes) -> int:
    """Returns the operations of a node and of its bodies, each body once; 0 where it only gives a value a new name."""
    if node.op_type in _CHEAP:
        return 0
    inside = sum(flops_of(inner, sizes) for body in bodies(node) for inner in body)
    return inside + round(_operations(node, sizes))


def _seconds(node: ir.Node, sizes: Sizes) -> float:
    if node.op_type in _CHEAP:
        return 0.0
    inside = sum(_seconds(inner, sizes) for body in bodies(node) for inner in body)
    moved = sum(sizes.bytes(value) for value in (*node.inputs, *node.outputs))
    if node.op_type in _READ_A_PART:
        moved = 2 * sum(sizes.bytes(value) for value in node.outputs)
    return inside + max(_operations(node, sizes) / FLOPS_PER_S, moved / BYTES_PER_S)


def _operations(node: ir.Node, sizes: Sizes) -> float:
    count = _OPERATIONS.get(node.op_type)
    if count is not None:
        return count(node, sizes)
    elements = sum(sizes.elements(output) for output in node.outputs)
    return elements * (OPERATIONS_OF_A_FUNCTION if node.op_type in _FUNCTIONS else 1)


def _input(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _convolution(weight_index: int) -> Callable[[ir.Node, Sizes], float]:
    def operations(node: ir.Node, sizes: Sizes) -> float:
        weight = sizes.shape(_input(node, weight_index))  # (C_out, C_in / groups, k...)
        return 2.0 * sizes.elements(node.outputs[0]) * math.prod(weight[1:])

    return operations


def _transposed_convolution(node: ir.Node, sizes: Sizes) -> float:
    weight = sizes.shape(_input(node, 1))  # (C_in, C_out / groups, k...)
    return 2.0 * sizes.elements(_input(node, 0)) * math.prod(weight[1:])


def _matmul(node: ir.Node, sizes: Sizes) -> float:
    left = sizes.shape(_input(node, 0))
    turned = "transA" in node.attributes and node.attributes["transA"].as_int() == 1  # of FusedMatMul
    return 2.0 * sizes.elements(node.outputs[0]) * (left[-2 if turned and len(left) > 1 else -1] if left else 1)


def _gemm(node: ir.Node, sizes: Sizes) -> float:
    left = sizes.shape(_input(node, 0))
    transposed = "transA" in node.attributes and node.attributes["transA"].as_int() == 1
    return 2.0 * sizes.elements(node.outputs[0]) * (left[0 if transposed else -1] if left else 1)


def _recurrent(node: ir.Node, sizes: Sizes) -> float:
    steps = sizes.shape(_input(node, 0))[:2]  # (sequence, batch) or the other way round: the product counts
    return 2.0 * math.prod(steps) * (sizes.elements(_input(node, 1)) + sizes.elements(_input(node, 2)))


def _pooling(node: ir.Node, sizes: Sizes) -> float:
    kernel = node.attributes["kernel_shape"].as_ints() if "kernel_shape" in node.attributes else ()
    return float(sizes.elements(node.outputs[0]) * math.prod(kernel))


def _over_inputs(node: ir.Node, sizes: Sizes) -> float:
    return float(sum(sizes.elements(value) for value in node.inputs))


def _trees(node: ir.Node, sizes: Sizes) -> float:
    trees, shape = node.attributes.get("nodes_treeids"), sizes.shape(_input(node, 0))
    if trees is None:
        return 0.0
    nodes, count = len(trees.value), len(set(trees.as_ints()))
    return OPERATIONS_OF_A_TREE_NODE * (shape[0] if len(shape) == 2 else 1) * count * math.log2(1 + nodes / count)


def _linear(node: ir.Node, sizes: Sizes) -> float:
    coefficients, shape = node.attributes.get("coefficients"), sizes.shape(_input(node, 0))
    return 2.0 * (shape[0] if len(shape) == 2 else 1) * (0 if coefficients is None else len(coefficients.value))


_OPERATIONS: dict[str, Callable[[ir.Node, Sizes], float]] = {
    "Conv": _convolution(1),
    "ConvInteger": _convolution(1),
    "FusedConv": _convolution(1),
    "QLinearConv": _convolution(3),
    "DeformConv": _convolution(1),
    "ConvTranspose": _transposed_convolution,
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "MatMulIntegerToFloat": _matmul,
    "MatMulNBits": _matmul,
    "DynamicQuantizeMatMul": _matmul,
    "FusedMatMul": _matmul,
    "QLinearMatMul": _matmul,
    "Gemm": _gemm,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
    "MaxPool": _pooling,
    "AveragePool": _pooling,
    "LpPool": _pooling,
    "GlobalAveragePool": _over_inputs,
    "GlobalMaxPool": _over_inputs,
    "ReduceMean": _over_inputs,
    "ReduceSum": _over_inputs,
    "ReduceMax": _over_inputs,
    "ReduceMin": _over_inputs,
    "ArgMax": _over_inputs,
    "LinearClassifier": _linear,
    "LinearRegressor": _linear,
    "TreeEnsembleClassifier": _trees,
    "TreeEnsembleRegressor": _trees,
}
