# SPDX-License-Identifier: Apache-2.0
"""How operators of versions 1 to 6 are said in version 7, and those that were experimental in version 10 or before.

    Add<axis = 1, broadcast = 1>(x, b)    ->  Add(x, Unsqueeze<axes = [1, 2]>(b))
    Cast<to = "INT32">(x)                 ->  Cast<to = 6>(x)
    ImageScaler<scale = 2, bias = [1]>(x) ->  Add(Mul(x, 2), [[[1]]])

Source: the operators' texts in every version, `onnx.defs`; of experimental ones ONNX 1.2, Operators.md.
"""

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper

from nndeploy.errors import ModelError
from nndeploy.frontend.operator_sets.surroundings import Change, Nodes, Surroundings, give, put, take

_FAR = np.iinfo(np.int64).max


def broadcast(node: onnx.NodeProto, around: Surroundings) -> Nodes:
    """Puts the axes of the right operand where `axis` says: up to version 6 they are the last ones by default only."""
    axis, is_on = take(node, "axis"), take(node, "broadcast")
    if not is_on or axis is None:
        return [node]
    left, right = (around.rank(name, "the attribute 'axis' needs") for name in node.input)
    behind = left - (axis % max(left, 1)) - right
    return _with_axes(node, range(right, right + behind), around)


def by_channel(node: onnx.NodeProto, around: Surroundings) -> Nodes:
    """Puts the slopes of a PRelu, one for each channel up to version 6, along axis 1."""
    if around.sizes(node.input[1]) == [1] or around.rank(node.input[1], "PRelu needs") != 1:
        return [node]
    return _with_axes(node, range(1, around.rank(node.input[0], "PRelu needs") - 1), around)


def _with_axes(node: onnx.NodeProto, axes: range, around: Surroundings) -> Nodes:
    if not axes:
        return [node]
    unsqueezed = around.new("Unsqueeze", [node.input[1]], axes=list(axes))
    node.input[1] = unsqueezed.output[0]
    return [unsqueezed, node]


def cast(node: onnx.NodeProto, _: Surroundings) -> Nodes:
    """Says by its number what element type a Cast makes."""
    name = take(node, "to").decode(errors="replace").upper()
    if name not in onnx.TensorProto.DataType.keys():  # noqa: SIM118 - it is no mapping
        raise ModelError(f"there is no element type {name!r:.40}")
    give(node, to=onnx.TensorProto.DataType.Value(name))
    return [node]


def split(node: onnx.NodeProto, around: Surroundings) -> Nodes:
    """Makes an attribute of the sizes that version 1 may have as an input."""
    if len(node.input) > 1:
        if node.input[1] not in around.constants:
            raise ModelError("it splits into sizes that are computed", hint="make them constants")
        sizes = onnx.numpy_helper.to_array(around.constants[node.input[1]])
        del node.input[1]
        take(node, "split")
        give(node, split=[int(size) for size in sizes.ravel()])
    return [node]


def tile(node: onnx.NodeProto, around: Surroundings) -> Nodes:
    """Says of one axis, input 2, and a number of tiles, input 1, how often every axis is repeated."""
    places, one = around.integers(range(around.rank(node.input[0], "Tile needs"))), around.integers([1])
    tiles, axis = (around.new("Cast", [name], to=onnx.TensorProto.INT64) for name in node.input[1:3])
    hit = around.new("Equal", [places, axis.output[0]])
    times = around.new("Cast", hit.output, to=onnx.TensorProto.INT64)
    more = around.new("Sub", [tiles.output[0], one])
    added = around.new("Mul", [times.output[0], more.output[0]])
    repeats = around.new("Add", [added.output[0], one])
    put(node, repeats.output)
    return [tiles, axis, hit, times, more, added, repeats, node]


def upsample_by_two(node: onnx.NodeProto, _: Surroundings) -> Nodes:
    """Gives every axis a scale."""
    height, width, mode = (take(node, name) for name in ("height_scale", "width_scale", "mode"))
    give(node, scales=[1.0, 1.0, height, width], mode="linear" if mode == b"bilinear" else mode or "nearest")
    return [node]


def power(kind: str) -> Change:
    """Makes the power of a norm an integer."""

    def change(node: onnx.NodeProto, _: Surroundings) -> Nodes:
        power = take(node, "p")
        if power is not None and power != int(power):
            raise ModelError(f"{kind} has the power {power}, later versions only whole ones")
        if power is not None:
            give(node, p=int(power))
        return [node]

    return change


def paddings(node: onnx.NodeProto, _: Surroundings) -> Nodes:
    """Calls the widths `pads`."""
    give(node, pads=take(node, "paddings"))
    return [node]


def formula(*steps: tuple[str, str]) -> Change:
    """Writes (operator, attribute), ...: each on the value before and, where it names one, that attribute."""

    def change(node: onnx.NodeProto, around: Surroundings) -> Nodes:
        nodes, value = Nodes(), node.input[0]
        for op_type, name in steps:
            operand = take(node, name)
            if name and operand is None:
                continue
            by_channel = np.reshape(operand, (-1, 1, 1)) if isinstance(operand, list) else operand
            constants = [around.floats(by_channel, node.input[0])] if name else []
            nodes.append(around.new(op_type, [value, *constants]))
            value = nodes[-1].output[0]
        return [*nodes, onnx.helper.make_node("Identity", [value], node.output)]

    return change


def crop(node: onnx.NodeProto, around: Surroundings) -> Nodes:
    """Cuts the borders (left, top, right, bottom) of an image off, or what is left of them to (height, width)."""
    (left, top, right, bottom), sizes = take(node, "border"), take(node, "scale")
    ends = [top + sizes[0], left + sizes[1]] if sizes else [-bottom or _FAR, -right or _FAR]
    put(node, [around.integers(values) for values in ([top, left], ends, [2, 3])])
    node.op_type = "Slice"
    return [node]


def mean_variance(node: onnx.NodeProto, around: Surroundings) -> Nodes:
    """Says by axes of images what is one number for the batch, or one for each channel."""
    axes = [0, 1, 2, 3] if take(node, "across_channels") else [0, 2, 3]
    if take(node, "normalize_variance") == 0:
        mean = around.new("ReduceMean", node.input, axes=axes)
        return [mean, onnx.helper.make_node("Sub", [node.input[0], mean.output[0]], node.output)]
    give(node, axes=axes)
    return [node]
