# SPDX-License-Identifier: Apache-2.0
"""Operators that make as many elements as numbers of a call say are led by nodes that fail where these are too many.

    y = Range(a, b, c)   ->   n = (b - a) / c in float32;  zero = Gather([0], n < MAX_ELEMENTS ? 0 : 1)
                              y = Range(a, b + zero, c)

The Gather has no element 1, and so ends the run before anything is made; its name tells the session what happened
(`node_errors.py`). Only where the size follows from numbers, not from shapes. Law: outputs do not change.
"""

from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from nndeploy.backend_kit.sizes_of_calls import MAX_ELEMENTS, SIZE_INPUTS
from nndeploy.graph.nodes_before import NodesBefore
from nndeploy.graph.operators import ints_attribute
from nndeploy_onnxruntime.node_errors import TOO_MANY

_FLOAT = {"to": ir.DataType.FLOAT.value}


def bound_size(node: ir.Node, numbers: list[int]) -> None:
    """Leads one of the inputs `numbers`, which say how many elements a node makes, by way of nodes that may fail."""
    before = NodesBefore(node, "bound")
    count = _COUNTS.get(node.op_type, _product)(node, before)
    is_fine = before.add("Less", count, before.constant(np.array(MAX_ELEMENTS, np.float32)))
    which = before.add("Cast", before.add("Not", is_fine), attributes={"to": ir.DataType.INT64.value})
    zero = before.add("Gather", before.constant(np.zeros(1, np.int64)), which, name=f"{TOO_MANY}{node.name}")
    value = node.inputs[numbers[-1]]
    assert value is not None
    assert value.dtype is not None
    zero = before.add("Cast", zero, attributes={"to": value.dtype.value})
    node.replace_input_with(numbers[-1], before.add("Add", value, zero))


def _float(value: ir.Value | None, before: NodesBefore) -> ir.Value:
    return before.add("Cast", value, attributes=_FLOAT)


def _all(value: ir.Value, before: NodesBefore) -> ir.Value:
    """Returns the product of the elements of a value of floats."""
    return before.add("ReduceProd", value, attributes={"keepdims": 0})


def _shape(node: ir.Node, before: NodesBefore) -> ir.Value:
    return _float(before.add("Shape", node.inputs[0]), before)


def _product(node: ir.Node, before: NodesBefore) -> ir.Value:
    """Returns the product of all numbers of the inputs that give sizes."""
    numbers = SIZE_INPUTS[node.domain, node.op_type]
    counts = [_all(_float(node.inputs[number], before), before) for number in numbers]
    return counts[0] if len(counts) == 1 else before.add("Mul", *counts)


def _times(node: ir.Node, before: NodesBefore) -> ir.Value:
    return before.add("Mul", _product(node, before), _all(_shape(node, before), before))


def _range(node: ir.Node, before: NodesBefore) -> ir.Value:
    begin, end, *steps = (_float(value, before) for value in node.inputs)
    length = before.add("Sub", end, begin)
    return before.add("Div", length, steps[0]) if steps else length


def _expanded(node: ir.Node, before: NodesBefore) -> ir.Value:
    """Returns how many elements two shapes come to that are broadcast; their product where a rank is not known."""
    data, target = node.inputs[0], node.inputs[1]
    rank = None if data is None or data.shape is None else len(data.shape)
    length = target.shape[0] if target is not None and target.shape is not None and len(target.shape) == 1 else None
    if rank is None or not isinstance(length, int):
        return _times(node, before)
    sides = [_shape(node, before), _float(target, before)]
    for side, missing in enumerate((length - rank, rank - length)):
        if missing > 0:
            ones = before.constant(np.ones(missing, np.float32))
            sides[side] = before.add("Concat", ones, sides[side], attributes={"axis": 0})
    return _all(before.add("Max", *sides), before)


def _along_axes(
    node: ir.Node, sizes: ir.Value, of_axes: ir.Value, axes: ir.Value | None, before: NodesBefore
) -> ir.Value:
    """Returns how many elements there are where axes, whose sizes are `of_axes`, get other sizes; None: all axes."""
    count = _all(sizes, before)
    if axes is None:
        return count
    whole = _all(_shape(node, before), before)
    return before.add("Mul", before.add("Div", count, _all(of_axes, before)), whole)


def _resized(node: ir.Node, before: NodesBefore) -> ir.Value:
    sizes = node.inputs[3] if len(node.inputs) > 3 else None
    if sizes is None:
        scales = _all(_float(node.inputs[2], before), before)
        return before.add("Mul", scales, _all(_shape(node, before), before))
    return _with_axes(node, _float(sizes, before), before)


def _cropped(node: ir.Node, before: NodesBefore) -> ir.Value:
    return _with_axes(node, _float(node.inputs[1], before), before)


def _with_axes(node: ir.Node, sizes: ir.Value, before: NodesBefore) -> ir.Value:
    """Returns how many elements there are where the axes that an attribute names get other sizes."""
    said = ints_attribute(node, "axes")
    axes = None if said is None else before.constant(np.array(said, np.int64))
    return _along_axes(node, sizes, _picked(node, axes, before), axes, before)


def _padded(node: ir.Node, before: NodesBefore) -> ir.Value:
    pairs = before.add("Reshape", _float(node.inputs[1], before), before.constant(np.array([2, -1], np.int64)))
    begins, ends = (
        before.add("Gather", pairs, before.constant(np.array(side, np.int64)), attributes={"axis": 0})
        for side in (0, 1)
    )
    axes = node.inputs[3] if len(node.inputs) > 3 else None
    of_axes = _picked(node, axes, before)
    sizes = before.add("Add", before.add("Add", begins, ends), of_axes)
    return _along_axes(node, sizes, of_axes, axes, before)


def _picked(node: ir.Node, axes: ir.Value | None, before: NodesBefore) -> ir.Value:
    """Returns the sizes of axes of the first input, of all where there are none."""
    shape = _shape(node, before)
    return shape if axes is None else before.add("Gather", shape, axes, attributes={"axis": 0})


_COUNTS: dict[str, Callable[[ir.Node, NodesBefore], ir.Value]] = {
    **dict.fromkeys(("Tile", "Upsample", "OneHot", "Col2Im", "CropAndResize"), _times),
    "Range": _range,
    "Expand": _expanded,
    "Resize": _resized,
    "CenterCropPad": _cropped,
    "Pad": _padded,
}
