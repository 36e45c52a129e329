# SPDX-License-Identifier: Apache-2.0
"""Products of one input become one product and a Split: the query, key and value of an attention, heads side by side.

    a = MatMul(x, A) [+ c], b = MatMul(x, B) [+ d], ...   =>  a, b, ... = Split(MatMul(x, A | B | ...) [+ c | d | ...])
    the same of Gemm(x, A, c), Gemm(x, B, d), ...          =>  a, b, ... = Split(Gemm(x, A | B | ..., c | d | ...))

Conditions: weights are constant matrices of one type that nobody else reads, with nothing to add, or constant vectors
of a number for each column; Gemm does not scale, and does not transpose x. What else reads the results still does.

Law: an output does not change but for rounding. Source: ONNX MatMul, Gemm and Split.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nndeploy.graph.constants import Array, constant_array
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import FLOATS, float_attribute, int_attribute, only_user, operand
from nndeploy.plugin.interface import MayTouch

OLDEST_OPSET = 11
"""The first whose Split counts axes from the end."""
SPLIT_BY_INPUT = 13
"""The first whose Split gets its sizes as an input."""
MOST_BYTES = 256 << 20
"""Weights of one merged product: they are in memory, where the model's own may be in a file."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """A product by constant weights, and what is added to it, by its nodes: the last makes the result.

    `weights` are (inner, columns), or with `is_turned` (columns, inner); `bias` is (columns,), or None.
    """

    nodes: tuple[ir.Node, ...]
    weights: Array
    is_turned: bool
    bias: Array | None

    @property
    def product(self) -> ir.Node:
        return self.nodes[0]

    @property
    def x(self) -> ir.Value | None:
        """What is multiplied: after other layers were merged it may be a part of what these became."""
        return self.product.inputs[0]

    @property
    def result(self) -> ir.Value:
        return self.nodes[-1].outputs[0]

    @property
    def columns(self) -> int:
        return int(self.weights.shape[0 if self.is_turned else 1])

    @property
    def kind(self) -> tuple[object, ...]:
        """What layers of one product have in common."""
        inner = self.weights.shape[1 if self.is_turned else 0]
        return self.product.op_type, self.x, self.is_turned, self.bias is None, self.weights.dtype, inner


class MergeProducts:
    """Makes one product of those that read the same value."""

    name = "merge-products"

    def __call__(self, model: ir.Model, may_touch: MayTouch) -> int:
        """Rewrites, in place, nodes of the main graph that `may_touch` allows; returns how many products it merged."""
        edits = GraphEdits(model)
        groups: dict[tuple[object, ...], list[_Layer]] = {}
        for node in model.graph if edits.opset >= OLDEST_OPSET else ():
            layer = _layer_of(node, edits)
            if layer is not None and all(map(may_touch, layer.nodes)):
                groups.setdefault(layer.kind, []).append(layer)
        merged = [layers for layers in groups.values() if len(layers) > 1 and _num_bytes(layers) <= MOST_BYTES]
        for layers in merged:
            _merge(layers, edits)
        return sum(map(len, merged))


def _num_bytes(layers: Sequence[_Layer]) -> int:
    return sum(layer.weights.nbytes for layer in layers)


def _layer_of(node: ir.Node, edits: GraphEdits) -> _Layer | None:
    """Returns the layer that begins with a product; None where it is none that can be merged."""
    held = operand(node, 1)
    if node.op_type not in ("MatMul", "Gemm") or not edits.is_standard(node) or held is None:
        return None
    weights = constant_array(held)
    if weights is None or weights.ndim != 2 or held.dtype not in FLOATS or only_user(held) is not node:
        return None
    if node.op_type == "MatMul":
        return _with_sum(node, weights, edits)
    is_turned, added = int_attribute(node, "transB", 0) != 0, operand(node, 2)
    bias = _row(added, weights.shape[0 if is_turned else 1])
    scales = float_attribute(node, "alpha", 1.0) != 1.0 or (
        added is not None and float_attribute(node, "beta", 1.0) != 1.0
    )
    if scales or int_attribute(node, "transA", 0) or (added is not None and bias is None):
        return None
    return _Layer((node,), weights, is_turned, bias)


def _with_sum(product: ir.Node, weights: Array, edits: GraphEdits) -> _Layer:
    """Returns the layer of a MatMul, with the sum behind it where that adds a number to each column."""
    add = only_user(product.outputs[0])
    if add is not None and add.op_type == "Add" and add.graph is product.graph and edits.is_standard(add):
        other = operand(add, 1 if operand(add, 0) is product.outputs[0] else 0)
        bias = _row(other, weights.shape[1])
        if bias is not None:
            return _Layer((product, add), weights, False, bias)
    return _Layer((product,), weights, False, None)


def _row(value: ir.Value | None, columns: int) -> Array | None:
    """Returns the constant number that a value holds for each column; None where it does not."""
    array = constant_array(value)
    return array if array is not None and array.shape == (columns,) else None


def _merge(layers: Sequence[_Layer], edits: GraphEdits) -> None:
    first, graph = layers[0], layers[0].product.graph
    assert graph is not None, "a product stands in its graph"
    name = first.product.name or first.result.name or "product"
    columns = [layer.columns for layer in layers]
    joined = np.concatenate([layer.weights for layer in layers], axis=0 if first.is_turned else 1)
    biases = [layer.bias for layer in layers if layer.bias is not None]
    inputs = [first.x, edits.constant(graph, joined, f"{name}/weights")]
    bias = [edits.constant(graph, np.concatenate(biases), f"{name}/bias")] if biases else []
    kind, shape = first.result.type, _widened(first.result.shape, sum(columns))
    if first.product.op_type == "Gemm":
        made = _inserted(first.product, "Gemm", [*inputs, *bias], f"{name}/merged", edits, kind, shape)
        made.attributes.add(ir.AttrInt64("transB", int(first.is_turned)))
    else:
        made = _inserted(first.product, "MatMul", inputs, f"{name}/merged", edits, kind, shape)
        if bias:
            made = _inserted(first.product, "Add", [made.outputs[0], *bias], f"{name}/sum", edits, kind, shape)
    _split(made.outputs[0], columns, layers, f"{name}/split", edits)


def _inserted(
    before: ir.Node,
    op_type: str,
    inputs: Sequence[ir.Value | None],
    name: str,
    edits: GraphEdits,
    kind: ir.TypeProtocol | None,
    shape: ir.Shape | None,
) -> ir.Node:
    """Returns a new node before another one, with an output of this type and shape."""
    output = ir.Value(name=edits.fresh_value_name(name), type=kind, shape=shape)
    node = ir.Node("", op_type, inputs, outputs=[output], name=edits.fresh_node_name(name))
    before.prepend(node)
    return node


def _split(whole: ir.Value, columns: Sequence[int], layers: Sequence[_Layer], name: str, edits: GraphEdits) -> None:
    """Puts the parts of a value in the place of the results of layers, whose names they take over."""
    first = layers[0].product
    assert first.graph is not None, "a product stands in its graph"
    attributes, inputs = [ir.AttrInt64("axis", -1)], [whole]
    if edits.opset >= SPLIT_BY_INPUT:
        inputs.append(edits.constant(first.graph, np.array(columns, np.int64), f"{name}/sizes"))
    else:
        attributes.append(ir.AttrInt64s("split", columns))
    parts = [ir.Value(type=layer.result.type, shape=layer.result.shape) for layer in layers]
    first.prepend(ir.Node("", "Split", inputs, attributes, outputs=parts, name=edits.fresh_node_name(name)))
    for layer, part in zip(layers, parts, strict=True):
        _take_over(layer, part, edits)


def _take_over(layer: _Layer, part: ir.Value, edits: GraphEdits) -> None:
    result, name = layer.result, layer.result.name
    if not edits.bypass(layer.nodes[-1], part):
        raise AssertionError("the part of a product takes over any result")
    result.name, part.name = None, name
    for node in reversed(layer.nodes[:-1]):
        edits.remove(node)


def _widened(shape: ir.Shape | None, columns: int) -> ir.Shape | None:
    return None if shape is None else ir.Shape([*shape.dims[:-1], columns])
