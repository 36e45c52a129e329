# SPDX-License-Identifier: Apache-2.0
"""What only moves or picks elements does so with bytes, where they are dequantised before it or quantised behind it.

    Move(DequantizeLinear(q, s, z))                =>  DequantizeLinear(Move(q), s, z)
    QuantizeLinear(Concat(x, ...), s, z)           =>  Concat(QuantizeLinear(x, s, z), ...)
    QuantizeLinear(DequantizeLinear(q, s, z), s, z)  =>  q            (q - z) * s / s is nearest to q - z, exactly
    Concat(parts of Split(x), ...)                 =>  Concat(x, ...)  where it puts all of them together again
    f(x), g(x) of x = DequantizeLinear(q, s, z)    =>  each of an x of its own, a part of elementwise f and g

Conditions: one constant scale and zero point of uint8 or int8; q is no constant. MaxPool is a Move where the scale is
positive, Resize where it takes the nearest elements of an image of known sizes.

Source: ONNX, the operators of these names: all of them give elements of their input as they are.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from nndeploy.backend_kit.kernels.resize_tables import mode_of
from nndeploy.graph.constants import constant_array
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import int_attribute, only_user, operand, static_shape
from nndeploy.plugin.interface import MayTouch
from nndeploy_native.lowering import activation_rules, elementwise_rules

MOVES = {
    "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "MaxPool", "Reshape",
    "Resize", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
}  # fmt: skip
ELEMENTWISE = {
    *elementwise_rules.UNARY_OPERATORS, *elementwise_rules.BINARY_OPERATORS, *activation_rules.OPERATORS, "Clip", "Pow",
    "PRelu",
}  # fmt: skip
BYTES = (ir.DataType.UINT8, ir.DataType.INT8)
BYTE_POOL_OPSET = 12
"""The first in which MaxPool takes bytes."""


class Scaling(NamedTuple):
    """The scale and zero point of a quantisation of a whole tensor, and the type of its bytes."""

    scale: ir.Value
    zero: ir.Value | None
    of_scale: float
    of_zero: int
    element: ir.DataType

    def is_same(self, other: "Scaling") -> bool:
        """Whether both make the same bytes of the same numbers."""
        return self[2:] == other[2:]


class BytesThroughMovement:
    """Moves bytes where floats were moved."""

    name = "bytes-through-movement"

    def __call__(self, model: ir.Model, may_touch: MayTouch) -> int:
        """Rewrites, in place, nodes that `may_touch` allows; returns how many it changed."""
        edits, count = GraphEdits(model), 0
        for node in tuple(model.graph):
            if node.graph is None or not edits.is_standard(node) or not may_touch(node):
                continue
            if node.op_type == "DequantizeLinear":
                count += _dequantise_for_each(node, edits)
            elif node.op_type in MOVES:
                count += _dequantise_later(node, edits)
            elif node.op_type == "QuantizeLinear":
                count += _quantise_earlier(node, edits) or _leave_out(node, edits)
        return count


def _dequantise_for_each(node: ir.Node, edits: GraphEdits) -> bool:
    """Gives elementwise readers, where there are several readers, a value of their own."""
    found, made = _dequantised(node.outputs[0], edits), node.outputs[0]
    uses = tuple(made.uses())
    readers = [use for use in uses if use.node.op_type in ELEMENTWISE and use.node.graph is node.graph]
    if found is None or len(uses) < 2 or made.is_graph_output() or not readers:
        return False
    for use in readers[1:] if len(readers) == len(uses) else readers:
        own = _dequantise(*found, made)
        node.append(own)
        use.node.replace_input_with(use.idx, own.outputs[0])
    return True


def _dequantise_later(node: ir.Node, edits: GraphEdits) -> bool:
    found = _dequantised(operand(node, 0), edits)
    if found is None or not _moves_bytes(node, found[1], edits):
        return False
    bytes_, scaling = found
    moved = _of_bytes(node, [bytes_, *node.inputs[1:]], scaling.element)
    steps = [moved]
    for output, like in zip(moved.outputs, node.outputs, strict=True):
        steps.append(_dequantise(output, scaling, like))
    assert node.graph is not None, "the node is in its graph"
    made = [step.outputs[0] for step in steps[1:]]
    maker = node.inputs[0].producer() if node.inputs[0] is not None else None
    ir.convenience.replace_nodes_and_values(node.graph, node, [node], steps, node.outputs, made)
    if maker is not None and not maker.outputs[0].uses() and not maker.outputs[0].is_graph_output():
        edits.remove(maker)
    return True


def _moves_bytes(node: ir.Node, scaling: Scaling, edits: GraphEdits) -> bool:
    """Whether an operator gives elements of its first operand that lie on their own."""
    if node.op_type == "MaxPool":
        is_image = node.inputs[0] is not None and node.inputs[0].shape is not None and len(node.inputs[0].shape) == 4
        return scaling.of_scale > 0 and edits.opset >= BYTE_POOL_OPSET and len(node.outputs) == 1 and is_image
    if node.op_type == "Resize":
        sizes, out_sizes = static_shape(operand(node, 0)), static_shape(node.outputs[0])
        is_image = sizes is not None and out_sizes is not None and len(sizes) == 4 and sizes[:2] == out_sizes[:2]
        return is_image and mode_of(node).kind == "nearest" and mode_of(node).coordinates != "tf_crop_and_resize"
    return True


def _quantise_earlier(node: ir.Node, edits: GraphEdits) -> bool:
    """Quantises what a Concat puts together."""
    scaling, value = _scaling_of(node, node.outputs[0].dtype), operand(node, 0)
    joined = value.producer() if value is not None else None
    if scaling is None or joined is None or joined.op_type != "Concat" or not edits.is_standard(joined):
        return False
    if only_user(joined.outputs[0]) is not node or joined.graph is not node.graph:
        return False
    steps: list[ir.Node] = []
    parts = [_quantised(part, scaling, edits, steps) for part in _whole_again(joined, edits, steps)]
    made = _of_bytes(joined, parts, scaling.element)
    assert node.graph is not None, "the node is in its graph"
    steps.append(made)
    ir.convenience.replace_nodes_and_values(node.graph, joined, [node, joined], steps, node.outputs, made.outputs)
    return True


def _whole_again(joined: ir.Node, edits: GraphEdits, steps: list[ir.Node]) -> list[ir.Value]:
    """Returns what a Concat reads, with all parts of a Split behind each other as what was split."""
    values = [value for value in joined.inputs if value is not None]
    found: list[ir.Value] = []
    while values:
        first = _dequantised(values[0], edits)
        split = first[0].producer() if first is not None else None
        if first is None or split is None or split.op_type != "Split" or not edits.is_standard(split):
            found.append(values.pop(0))
            continue
        parts = [_dequantised(value, edits) for value in values[: len(split.outputs)]]
        is_whole = [None if part is None else part[0] for part in parts] == list(split.outputs)
        is_alike = all(part is not None and part[1].is_same(first[1]) for part in parts)
        source = operand(split, 0)
        if not (is_whole and is_alike and source is not None and _axis(split, 0) == _axis(joined, 1)):
            found.append(values.pop(0))
            continue
        steps.append(_dequantise(source, first[1], source, values[0].dtype))
        found.append(steps[-1].outputs[0])
        del values[: len(parts)]
    return found


def _axis(node: ir.Node, default: int) -> int | None:
    rank = node.inputs[0].shape if node.inputs[0] is not None else None
    return None if rank is None else int_attribute(node, "axis", default) % len(rank)


def _quantised(value: ir.Value, scaling: Scaling, edits: GraphEdits, steps: list[ir.Node]) -> ir.Value:
    """Returns the bytes of a value, by a step where they are not there."""
    found = _dequantised(value, edits)
    if found is not None and found[1].is_same(scaling):
        return found[0]
    step = _like(ir.Node("", "QuantizeLinear", _with_scaling(value, scaling)), value, scaling.element)
    steps.append(step)
    return step.outputs[0]


def _leave_out(node: ir.Node, edits: GraphEdits) -> bool:
    """Leaves out a QuantizeLinear of what was dequantised from the same bytes."""
    scaling, found = _scaling_of(node, node.outputs[0].dtype), _dequantised(operand(node, 0), edits)
    return scaling is not None and found is not None and found[1].is_same(scaling) and edits.bypass(node, found[0])


def _dequantised(value: ir.Value | None, edits: GraphEdits) -> tuple[ir.Value, Scaling] | None:
    """Returns the bytes that a value is made of, and how; None where it is another, or a constant."""
    node = value.producer() if value is not None else None
    if node is None or node.op_type != "DequantizeLinear" or not edits.is_standard(node):
        return None
    bytes_ = operand(node, 0)
    scaling = _scaling_of(node, bytes_.dtype if bytes_ is not None else None)
    is_given = bytes_ is None or bytes_.shape is None or constant_array(bytes_) is not None
    return None if scaling is None or bytes_ is None or is_given else (bytes_, scaling)


def _scaling_of(node: ir.Node, element: ir.DataType | None) -> Scaling | None:
    """Returns the scaling of a QuantizeLinear or DequantizeLinear of a whole tensor by constants."""
    scale, zero = operand(node, 1), operand(node, 2)
    of_scale, of_zero = constant_array(scale), constant_array(zero)
    if scale is None or of_scale is None or of_scale.size != 1 or of_scale.dtype != np.float32 or element not in BYTES:
        return None
    if zero is not None and (of_zero is None or of_zero.size != 1):
        return None
    return Scaling(scale, zero, of_scale.item(), 0 if of_zero is None else int(of_zero.item()), element)


def _with_scaling(value: ir.Value, scaling: Scaling) -> list[ir.Value]:
    return [value, scaling.scale, *([] if scaling.zero is None else [scaling.zero])]


def _dequantise(value: ir.Value, scaling: Scaling, like: ir.Value, element: ir.DataType | None = None) -> ir.Node:
    """Returns a step whose output has the shape of `like`, and its type where no other one is given."""
    return _like(ir.Node("", "DequantizeLinear", _with_scaling(value, scaling)), like, element or like.dtype)


def _like(node: ir.Node, like: ir.Value, element: ir.DataType | None) -> ir.Node:
    node.outputs[0].shape = like.shape.copy() if like.shape is not None else None
    node.outputs[0].type = ir.TensorType(element) if element is not None else None
    return node


def _of_bytes(node: ir.Node, inputs: Sequence[ir.Value | None], element: ir.DataType) -> ir.Node:
    """Returns a node like another one, of bytes."""
    attributes = tuple(node.attributes.values())
    made = ir.Node("", node.op_type, inputs, attributes, num_outputs=len(node.outputs), version=node.version)
    for new, old in zip(made.outputs, node.outputs, strict=True):
        new.shape = old.shape.copy() if old.shape is not None else None
        new.type = ir.TensorType(element)
    return made
