# SPDX-License-Identifier: Apache-2.0
"""The nodes of a float32 model that can be quantised, in the order of the graph.

Products (convolutions and matrix products) are what quantisation is for. In networks of convolutions what stands
between them is quantised too, so that values stay bytes on their way; between the products of a transformer stand
normalisations and softmax, which need float. An activation that several nodes spell, such as x * Sigmoid(x), stays
float from the bytes that it is of to those that it gives: a table of 256, where its parts would be rounded each.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from nndeploy.checking.check import is_quantised
from nndeploy.errors import ModelError
from nndeploy.graph.constants import constant_tensor
from nndeploy.graph.nodes import node_name

CONVOLUTIONS = ("Conv", "ConvTranspose")
MATRIX_PRODUCTS = ("MatMul", "Gemm")
PRODUCTS = (*CONVOLUTIONS, *MATRIX_PRODUCTS)
_OF_TWO = ("Add", "Mul")
_BETWEEN = (
    "AveragePool", "Clip", "Concat", "Flatten", "GlobalAveragePool", "LeakyRelu", "MaxPool", "Relu", "Reshape",
    "Resize", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze",
)  # fmt: skip
_OF_ELEMENTS = frozenset((
    "Abs", "Add", "Clip", "Div", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Max",
    "Min", "Mish", "Mul", "Neg", "Pow", "Reciprocal", "Relu", "Sigmoid", "Softplus", "Sqrt", "Sub", "Tanh",
))  # fmt: skip
_QUANTISED_WEIGHTS = ("DequantizeLinear", "MatMulNBits")


@dataclass(frozen=True, slots=True)
class Layer:
    """A node that can be quantised; `weight_bytes` are those of its constant weights, 0 where both sides vary.

    `sources` are the layers nearest before it, by name.
    """

    name: str
    op: str
    weight_bytes: int = 0
    sources: tuple[str, ...] = ()

    @property
    def is_product(self) -> bool:
        """Whether it is a convolution or a matrix product."""
        return self.op in PRODUCTS


def check_is_float32(graph: ir.Graph) -> None:
    """Checks that a model is one to quantise.

    Raises:
        ModelError: it is quantised already, computes in another type, or has no product by constant weights.
    """
    if is_quantised(graph) or any(node.op_type in _QUANTISED_WEIGHTS for node in graph.all_nodes()):
        raise ModelError("the model is already quantised", hint="omit --quantise")
    products = [node for node in graph if node.op_type in PRODUCTS]
    others = {_type(node.inputs[0]) for node in products} - {ir.DataType.FLOAT, None}
    if others and not any(_type(node.inputs[0]) == ir.DataType.FLOAT for node in products):
        name = min(kind.name.lower() for kind in others if kind is not None)
        raise ModelError(f"the model computes in {name}, --quantise takes float32", hint="export it in float32")
    if not any(layer.weight_bytes for layer in all_layers(graph)):
        raise ModelError("the model has no convolution or product by constant float32 weights to quantise")


def all_layers(graph: ir.Graph) -> tuple[Layer, ...]:
    """Returns what can be quantised to integers, weights and activations, in the order of the graph."""
    products = [_product(node) for node in graph if node.op_type in PRODUCTS and _is_float32(node)]
    convolving = _weight_bytes(products, CONVOLUTIONS) >= _weight_bytes(products, MATRIX_PRODUCTS)
    between = {node_name(node) for node in graph if convolving and _stands_between(node)} - _parts_of_activations(graph)
    between &= _before_products(graph)
    taken = [node for node in graph if node_name(node) in between or (node.op_type in PRODUCTS and _is_float32(node))]
    sources = _sources(graph, {node_name(node) for node in taken})
    return tuple(replace(_product(node), sources=sources[node_name(node)]) for node in taken)


def with_followers(layers: Sequence[Layer], floats: Collection[str]) -> frozenset[str]:
    """Returns the layers in `floats`, and those that are no products and read what such layers make alone.

    Bytes on the way of floats would cost accuracy and bring nothing.
    """
    found = set(floats)
    for layer in layers:
        if not layer.is_product and layer.sources and found.issuperset(layer.sources):
            found.add(layer.name)
    return frozenset(found)


def _sources(graph: ir.Graph, taken: set[str]) -> dict[str, tuple[str, ...]]:
    """Returns the nearest nodes of `taken` before each node, by name."""
    makers: dict[str, tuple[str, ...]] = {}
    for node in graph:
        found: dict[str, None] = {}
        for value in node.inputs:
            maker = value.producer() if value is not None else None
            if maker is not None:
                name = node_name(maker)
                found |= dict.fromkeys((name,) if name in taken else makers.get(name, ()))
        makers[node_name(node)] = tuple(found)
    return makers


def weighted_matmuls(graph: ir.Graph) -> tuple[Layer, ...]:
    """Returns the MatMul nodes by constant weights."""
    return tuple(layer for layer in all_layers(graph) if layer.op == "MatMul" and layer.weight_bytes)


def is_mostly_matmuls(graph: ir.Graph) -> bool:
    """Returns whether MatMul nodes hold most of the weights of all products."""
    matmuls = sum(layer.weight_bytes for layer in weighted_matmuls(graph))
    return 2 * matmuls > sum(layer.weight_bytes for layer in all_layers(graph))


def constant_bytes(model: ir.Model) -> int:
    """Returns the bytes of all constants of the main graph."""
    held = {id(value): value.const_value for value in model.graph.initializers.values()}
    for node in model.graph:
        if node.op_type == "Constant":
            held[id(node)] = constant_tensor(node.outputs[0])
    return sum(int(tensor.nbytes) for tensor in held.values() if tensor is not None)


def _weight_bytes(layers: list[Layer], kinds: tuple[str, ...]) -> int:
    return sum(layer.weight_bytes for layer in layers if layer.op in kinds)


def _product(node: ir.Node) -> Layer:
    weights = [constant_tensor(value) for value in node.inputs[:2]] if node.op_type in PRODUCTS else []
    return Layer(node_name(node), node.op_type, sum(int(tensor.nbytes) for tensor in weights if tensor is not None))


def _is_float32(node: ir.Node) -> bool:
    return node.domain in ("", "ai.onnx") and all(_type(value) == ir.DataType.FLOAT for value in _data(node))


def _stands_between(node: ir.Node) -> bool:
    """Returns whether a node works on float32 values alone that are none of its own constants."""
    if node.op_type not in (*_OF_TWO, *_BETWEEN) or not _is_float32(node):
        return False
    return all(constant_tensor(value) is None for value in _data(node))


def _before_products(graph: ir.Graph) -> set[str]:
    """Returns the names of nodes of which a product takes what they make, be it by others: bytes bring nothing else.

    Behind the last one a Concat would give boxes and their scores one scale.
    """
    before: set[str] = set()
    for node in reversed(tuple(graph)):
        users = [use.node for output in node.outputs for use in output.uses()]
        if any(user.op_type in PRODUCTS or node_name(user) in before for user in users):
            before.add(node_name(node))
    return before


def _parts_of_activations(graph: ir.Graph) -> set[str]:
    """Returns the names of nodes that are, several together, a function of the elements of one value."""
    of: dict[ir.Value, ir.Value] = {}
    parts: set[str] = set()
    for node in graph:
        if node.op_type not in _OF_ELEMENTS or not node.outputs:
            continue
        varying = [value for value in node.inputs if value is not None and constant_tensor(value) is None]
        sources = {of.get(value, value) for value in varying}
        if len(sources) != 1:
            continue
        of[node.outputs[0]] = sources.pop()
        makers = [value.producer() for value in varying if value in of]
        if makers:
            parts |= {node_name(one) for one in (node, *makers) if one is not None}
    return parts


def _data(node: ir.Node) -> Iterator[ir.Value]:
    """Yields the values that a node computes with: no shapes, axes or bounds."""
    many = node.op_type in (*PRODUCTS, *_OF_TWO, "Concat")
    yield from (value for value in (node.inputs if many else node.inputs[:1]) if value is not None)


def _type(value: ir.Value | None) -> ir.DataType | None:
    if value is None:
        return None
    tensor = constant_tensor(value)
    return tensor.dtype if tensor is not None else value.dtype
