# SPDX-License-Identifier: Apache-2.0
"""How operators are said in version 8 and later ones that have no place for their older form.

    Clip<min = 0>(x)                      ->  Clip(x, 0)                                                     11
    Softmax<axis = 1>(x)                  ->  Reshape(Softmax(Flatten<axis = 1>(x)), Shape(x))               13

Source: the operators' texts in every version, `onnx.defs`.
"""

import onnx
import onnx.helper

from nndeploy.errors import ModelError
from nndeploy.frontend.operator_sets.surroundings import Change, Nodes, Surroundings, give, put, take


def refused(what: str) -> Change:
    """Refuses what no later version can say."""

    def change(_: onnx.NodeProto, __: Surroundings) -> Nodes:
        raise ModelError(f"it cannot be said in the newer operator set: {what}")

    return change


def upsample(node: onnx.NodeProto, around: Surroundings) -> Nodes:
    """Makes an input of the scales."""
    put(node, [around.floats(take(node, "scales"))])
    return [node]


def resize(node: onnx.NodeProto, around: Surroundings) -> Nodes:
    """Says where version 10 takes elements from, and gives an empty region, which later versions may leave out."""
    node.input.insert(1, around.floats([]))
    give(node, coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    return [node]


def clip(node: onnx.NodeProto, around: Surroundings) -> Nodes:
    """Makes inputs of the bounds."""
    bounds = [take(node, name) for name in ("min", "max")]
    put(node, ["" if bound is None else around.floats(bound, node.input[0]) for bound in bounds])
    return [node]


def pad(node: onnx.NodeProto, around: Surroundings) -> Nodes:
    """Makes inputs of the widths and of the value."""
    pads, value = around.integers(take(node, "pads")), take(node, "value")
    put(node, [pads, "" if value is None else around.floats(value, node.input[0])])
    return [node]


def softmax(node: onnx.NodeProto, around: Surroundings) -> Nodes:
    """Up to version 12 it is over all axes from the given one on; these become one where there are several."""
    axis, sizes = take(node, "axis"), around.sizes(node.input[0])
    axis = 1 if axis is None else axis
    if sizes is not None and all(size == 1 for size in sizes[axis % max(len(sizes), 1) + 1 :]):
        give(node, axis=axis % max(len(sizes), 1))
        return [node]
    give(node, axis=1)
    shape, flat = around.new("Shape", node.input), around.new("Flatten", node.input, axis=axis)
    node.input[0] = flat.output[0]
    output, node.output[0] = node.output[0], around.free_name(node.output[0])
    return [shape, flat, node, onnx.helper.make_node("Reshape", [node.output[0], shape.output[0]], [output])]


def batchnorm(node: onnx.NodeProto, around: Surroundings) -> Nodes:
    """Up to version 8 it may have a mean, variance, scale and bias for every element of a sample (`spatial` 0)."""
    if take(node, "spatial") in (None, 1) or len(around.sizes(node.input[1]) or [0, 0]) == 1:
        return [node]
    if [name for name in node.output if name][1:]:
        raise ModelError("it trains", hint="export the model for inference")
    x, scale, bias, mean, variance = node.input
    epsilon = around.floats(take(node, "epsilon") or 1e-5, variance)
    shifted = around.new("Sub", [x, mean])
    positive = around.new("Add", [variance, epsilon])
    deviation = around.new("Sqrt", positive.output)
    normal = around.new("Div", [shifted.output[0], deviation.output[0]])
    scaled = around.new("Mul", [normal.output[0], scale])
    result = onnx.helper.make_node("Add", [scaled.output[0], bias], node.output[:1])
    return [shifted, positive, deviation, normal, scaled, result]


def for_inference(node: onnx.NodeProto, _: Surroundings) -> Nodes:
    """Up to version 13 a BatchNormalization of several outputs trains, and gives four figures of the batch."""
    if [name for name in node.output if name][1:]:
        raise ModelError("it trains", hint="export the model for inference")
    del node.output[1:]
    return [node]


def split_evenly(node: onnx.NodeProto, _: Surroundings) -> Nodes:
    """Says into how many parts a Split without sizes splits."""
    if len(node.input) < 2:
        give(node, num_outputs=len(node.output))
    return [node]


def grid_sample(node: onnx.NodeProto, _: Surroundings) -> Nodes:
    """Uses the new names of modes."""
    mode = take(node, "mode")
    give(node, mode={b"bilinear": "linear", b"bicubic": "cubic", None: "linear"}.get(mode, mode))
    return [node]


def dft(node: onnx.NodeProto, around: Surroundings) -> Nodes:
    """Makes an input of the axis."""
    axis = take(node, "axis")
    put(node, [around.integers(1 if axis is None else axis)], first=2)
    return [node]


def group_norm(node: onnx.NodeProto, around: Surroundings) -> Nodes:
    """Gives every channel the scale and bias that its group has up to version 20."""
    groups = around.integers([attribute.i for attribute in node.attribute if attribute.name == "num_groups"])
    second, all_of_them = around.integers([1]), around.integers([-1])
    channels = around.new("Shape", node.input[:1], start=1, end=2)
    each = around.new("Div", [channels.output[0], groups])
    shape = around.new("Concat", [groups, each.output[0]], axis=0)
    nodes = [channels, each, shape]
    for index in (1, 2):
        column = around.new("Unsqueeze", [node.input[index], second])
        rows = around.new("Expand", [column.output[0], shape.output[0]])
        by_channel = around.new("Reshape", [rows.output[0], all_of_them])
        node.input[index] = by_channel.output[0]
        nodes += [column, rows, by_channel]
    return [*nodes, node]
