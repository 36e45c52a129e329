# SPDX-License-Identifier: Apache-2.0
"""Conv, ConvTranspose and Gemm seen as one thing: y[:, c] = f(x, weights)[:, c] + bias[c] with constant weights.

What follows such a node and treats each channel c alone, y * s[c] + t[c], can go into its constants:

    (f(x, w) + b) * s + t = f(x, w * s) + (b * s + t)

Law: the products are computed in float64 and rounded once to the type of the weights; when that loses them
(`nndeploy.graph.constants.rounded`) there is no fold.

Source: ONNX Conv (weights (O, I/g, ...)), ConvTranspose (weights (I, O/g, ...)), Gemm from opset 7 (weights (K, N),
or (N, K) with transB; alpha and beta).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nndeploy.graph.constants import (
    Array,
    Float64,
    constant_floats,
    constant_tensor,
    per_channel,
    rounded,
    sizes_of,
)
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import FLOATS, float_attribute, int_attribute, operand, sole_producer

FILTERS = frozenset({"Conv", "ConvTranspose", "Gemm"})
MAX_COPIED_BYTES = 1 << 20
"""Weights that several nodes share are copied for each only while all copies together stay below this."""


@dataclass(frozen=True, slots=True)
class LinearFilter:
    """A node of `FILTERS` with constant weights; `bias` (C,) is None where it has none. `rank` is its output's."""

    node: ir.Node
    weights: ir.Value
    bias: Float64 | None
    num_channels: int
    rank: int

    def become(self, node: ir.Node, scale: Float64 | None, shift: Float64 | None, edits: GraphEdits) -> bool:
        """Turns `node`, the filter's only reader, into the filter with y * scale + shift inside; removes the filter.

        `scale` and `shift` have the shape (C,). Returns whether it did: not when the constants cannot hold it.
        """
        bias = _affine(self.bias, scale, shift)
        new_weights = self._scaled_weights(scale) if scale is not None else None
        new_bias = rounded(bias, self._dtype()) if bias is not None else None
        if (scale is not None and new_weights is None) or (bias is not None and new_bias is None):
            return False
        graph, name = node.graph, node.outputs[0].name
        assert graph is not None, "the node is in its graph"
        inputs: list[ir.Value | None] = [operand(self.node, 0), self.weights]
        if new_weights is not None:
            inputs[1] = edits.constant(graph, new_weights, f"{name}.weight")
        if new_bias is not None:
            inputs.append(edits.constant(graph, new_bias, f"{name}.bias"))
        edits.become(node, self.node.op_type, inputs, tuple(self._attributes()), named_after=self.node)
        edits.remove(self.node)
        return True

    def _attributes(self) -> Iterator[ir.Attr]:
        for name, attribute in self.node.attributes.items():
            if name != "beta":  # the bias holds it now
                yield attribute

    def _dtype(self) -> np.dtype[np.generic]:
        assert self.weights.dtype is not None, "constants have a type"
        return self.weights.dtype.numpy()

    def _scaled_weights(self, scale: Float64) -> Array | None:
        weights = constant_floats(self.weights) if may_be_copied(self.weights) else None
        if weights is None:
            return None
        return rounded(_scale_channels(self.node, weights, scale), self._dtype(), axis=_channel_axis(self.node))


def filter_before(node: ir.Node, index: int, edits: GraphEdits) -> LinearFilter | None:
    """Returns the filter that computes the node's input at `index` for it alone; None where there is none."""
    value = operand(node, index)
    producer = value.producer() if value is not None else None
    if producer is None or producer.op_type not in FILTERS or not edits.is_standard(producer):
        return None
    return _as_filter(producer, edits.opset) if sole_producer(value, node) is producer else None


def channel_constant(node: ir.Node, index: int, before: LinearFilter) -> Float64 | None:
    """Returns the node's constant input at `index` as one number for each channel (C,); None where it is not that."""
    constant = constant_floats(operand(node, index))
    return per_channel(constant, before.num_channels, before.rank) if constant is not None else None


def _as_filter(node: ir.Node, opset: int) -> LinearFilter | None:
    weights, bias = operand(node, 1), operand(node, 2)
    tensor = constant_tensor(weights)
    if weights is None or tensor is None or tensor.dtype not in FLOATS or (node.op_type == "Gemm" and opset < 7):
        return None
    num_channels, rank = _num_channels(node, sizes_of(tensor)), len(tensor.shape)
    if num_channels == 0:
        return None
    if bias is None:
        return LinearFilter(node, weights, None, num_channels, rank)
    constant = constant_floats(bias)
    known_bias = per_channel(constant, num_channels, 2) if constant is not None else None
    if known_bias is None:
        return None
    beta = float_attribute(node, "beta", 1.0) if node.op_type == "Gemm" else 1.0
    return LinearFilter(node, weights, known_bias * beta, num_channels, rank)


def _num_channels(node: ir.Node, weights: tuple[int, ...]) -> int:
    """Returns the number of output channels; 0 where the weights are not what the operator takes."""
    match node.op_type:
        case "Conv" if len(weights) > 2:
            return weights[0]
        case "ConvTranspose" if len(weights) > 2 and weights[0] % (groups := int_attribute(node, "group", 1)) == 0:
            return weights[1] * groups
        case "Gemm" if len(weights) == 2:
            return weights[0] if int_attribute(node, "transB", 0) else weights[1]
    return 0


def _channel_axis(node: ir.Node) -> int:
    if node.op_type == "Gemm":
        return 0 if int_attribute(node, "transB", 0) else 1
    return 0 if node.op_type == "Conv" else 1


def may_be_copied(weights: ir.Value) -> bool:
    """Returns whether constant weights may be changed for one of their readers."""
    tensor, num_readers = constant_tensor(weights), len(weights.uses())
    return tensor is not None and (num_readers == 1 or tensor.nbytes * num_readers <= MAX_COPIED_BYTES)


def _scale_channels(node: ir.Node, weights: Float64, scale: Float64) -> Float64:
    if node.op_type == "Conv":
        return weights * scale.reshape(-1, *(1,) * (weights.ndim - 1))
    if node.op_type == "Gemm":
        return weights * (scale.reshape(-1, 1) if int_attribute(node, "transB", 0) else scale)
    groups = int_attribute(node, "group", 1)
    grouped = weights.reshape(groups, -1, *weights.shape[1:])
    return (grouped * scale.reshape(groups, 1, -1, *(1,) * (weights.ndim - 2))).reshape(weights.shape)


def _affine(bias: Float64 | None, scale: Float64 | None, shift: Float64 | None) -> Float64 | None:
    if bias is None:
        return shift
    scaled = bias if scale is None else bias * scale
    return scaled if shift is None else scaled + shift
