# SPDX-License-Identifier: Apache-2.0
"""(f(x, v) + a) + (f(x, w) + b) -> f(x, v + w) + (a + b), and (f(x, w) + b) + (x * s + t) -> f(x, w + s) + (b + t).

f is Conv; the smaller window of two is added to the larger one where it lies in it, and s to what each channel takes of
itself. Networks are trained so, each layer as a sum of branches, and many are exported before these were joined.

Conditions: v, w, a, b, s and t are constant, float or double; the one window lies in the other; strides, groups and
output sizes are the same; padding is explicit; nobody else reads the summands; x * s has stride 1 and as many channels
as f makes; the sums are finite; from opset 7 (before, Add broadcast in another way).

Source: Ding et al., RepVGG, 2021, section 3.3; ONNX Conv, Add, Mul.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from nndeploy.graph.constants import Float64, constant_floats, rounded
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.linear_filter import LinearFilter, channel_constant, filter_before, may_be_copied
from nndeploy.graph.node_parameters import pads_of_window, spatial_parameter
from nndeploy.graph.operators import int_attribute, operand, sole_producer
from nndeploy.passes.model_pass import NodePass

_LONG_SIGNIFICANDS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})


class MergeConvSums(NodePass):
    """Makes one Conv of a sum of Convs of the same value, and of what the value itself adds."""

    name = "merge-conv-sums"
    ops = frozenset({"Add"})

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the node became one Conv."""
        if edits.opset < 7:
            return False
        for index in (0, 1):
            conv = _conv_before(node, index, edits)
            other = _summand(node, 1 - index, conv, edits) if conv is not None else None
            if conv is not None and other is not None and _merged(node, conv, other, edits):
                return True
        return False


class _Conv(NamedTuple):
    """A Conv with constant weights; of each spatial axis the stride, the dilation and the zeros before and behind."""

    filter: LinearFilter
    weights: Float64
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    behind: tuple[int, ...]

    @property
    def groups(self) -> int:
        return int_attribute(self.filter.node, "group", 1)

    def place_of(self, taps: Sequence[int], before: Sequence[int], spare: Sequence[int]) -> tuple[slice, ...] | None:
        """Returns where a window of so many taps lies in this one's; None where it does not, or makes another size.

        `before` are the zeros before it, `spare` all its zeros less what it reaches beyond its first tap.
        """
        places = []
        for axis, (size, zeros, left) in enumerate(zip(taps, before, spare, strict=True)):
            begin, rest = divmod(self.before[axis] - zeros, self.dilations[axis])
            if rest or begin < 0 or begin + size > self.weights.shape[2 + axis] or self.spare[axis] != left:
                return None
            places.append(slice(begin, begin + size))
        return tuple(places)

    @property
    def spare(self) -> tuple[int, ...]:
        """Of each spatial axis all zeros less what the window reaches beyond its first tap: how much images grow."""
        axes = zip(self.before, self.behind, self.dilations, self.weights.shape[2:], strict=True)
        return tuple(before + behind - dilation * (size - 1) for before, behind, dilation, size in axes)


class _Summand(NamedTuple):
    """What is added to a Conv: weights at a place of its window, a bias, and the nodes that computed it."""

    weights: Float64
    place: tuple[slice, ...]
    bias: Float64 | None
    nodes: tuple[ir.Node, ...]


def _conv_before(node: ir.Node, index: int, edits: GraphEdits) -> _Conv | None:
    found = filter_before(node, index, edits)
    if found is None or found.node.op_type != "Conv" or found.weights.dtype not in _LONG_SIGNIFICANDS:
        return None
    rank = found.rank - 2
    weights = constant_floats(found.weights) if may_be_copied(found.weights) else None
    pads = pads_of_window(found.node, rank)
    if weights is None or pads is None:
        return None
    strides, dilations = (spatial_parameter(found.node, name, rank, 1) for name in ("strides", "dilations"))
    return _Conv(found, weights, strides, dilations, *pads)


def _summand(node: ir.Node, index: int, conv: _Conv, edits: GraphEdits) -> _Summand | None:
    """Returns what the node's input at `index` adds to a Conv before the node; None where it is of another kind."""
    other = _conv_before(node, index, edits)
    if other is None:
        return _scaled_input(node, index, conv, edits)
    taps = other.weights.shape[2:]
    is_alike = (
        operand(other.filter.node, 0) is operand(conv.filter.node, 0)
        and other.strides == conv.strides
        and other.groups == conv.groups
        and other.weights.shape[:2] == conv.weights.shape[:2]
        and other.filter.weights.dtype == conv.filter.weights.dtype
        and all(size == 1 or a == b for size, a, b in zip(taps, other.dilations, conv.dilations, strict=True))
    )
    place = conv.place_of(taps, other.before, other.spare) if is_alike else None
    return None if place is None else _Summand(other.weights, place, other.filter.bias, (other.filter.node,))


def _scaled_input(node: ir.Node, index: int, conv: _Conv, edits: GraphEdits) -> _Summand | None:
    """Returns x * s or x * s + t, x the input of the Conv, as weights of one tap."""
    product, shift, nodes = sole_producer(operand(node, index), node), None, []
    if product is not None and product.op_type == "Add" and edits.is_standard(product):
        for at in (0, 1):
            shift = channel_constant(product, 1 - at, conv.filter)
            if shift is not None:
                nodes.append(product)
                product = sole_producer(operand(product, at), product)
                break
    if product is None or product.op_type != "Mul" or not edits.is_standard(product):
        return None
    (channels, inputs), rank = conv.weights.shape[:2], len(conv.strides)
    place = conv.place_of((1,) * rank, (0,) * rank, (0,) * rank)
    if place is None or channels != inputs * conv.groups or set(conv.strides) != {1}:
        return None
    for at in (0, 1):
        scale = channel_constant(product, 1 - at, conv.filter)
        if scale is not None and operand(product, at) is operand(conv.filter.node, 0):
            weights = np.zeros((channels, inputs))
            weights[np.arange(channels), np.arange(channels) % inputs] = scale
            return _Summand(weights.reshape(*weights.shape, *(1,) * len(place)), place, shift, (*nodes, product))
    return None


def _merged(node: ir.Node, conv: _Conv, other: _Summand, edits: GraphEdits) -> bool:
    """Turns the node into the Conv with what is added in its weights and bias; returns whether these hold it."""
    assert conv.filter.weights.dtype is not None, "constants have a type"
    weights, dtype = conv.weights.copy(), conv.filter.weights.dtype.numpy()
    weights[:, :, *other.place] += other.weights
    biases = [bias for bias in (conv.filter.bias, other.bias) if bias is not None]
    arrays = [rounded(weights, dtype, axis=0), *(rounded(np.sum(biases, axis=0), dtype) for _ in biases[:1])]
    if any(array is None for array in arrays):
        return False
    graph, name = node.graph, node.outputs[0].name
    assert graph is not None, "the node is in its graph"
    constants = [
        edits.constant(graph, array, f"{name}.{kind}")
        for array, kind in zip(arrays, ("weight", "bias"), strict=False)
        if array is not None
    ]
    own = conv.filter.node
    edits.become(node, "Conv", [operand(own, 0), *constants], tuple(own.attributes.values()), named_after=own)
    for one in (own, *other.nodes):
        edits.remove(one)
    return True
