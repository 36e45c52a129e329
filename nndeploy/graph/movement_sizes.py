# SPDX-License-Identifier: Apache-2.0
"""How sizes follow where elements move and nothing is computed of them: reshaped, sliced, gathered, padded, joined.

A rule tells `KnownSizes` what it finds; one that cannot find anything says nothing. Source: ONNX's operators.
"""

import onnx_ir as ir

from nndeploy.graph.arithmetic_sizes import broadcast_shape
from nndeploy.graph.constants import constant_ints
from nndeploy.graph.known_sizes import KnownSizes, Rule, Shape
from nndeploy.graph.node_parameters import axes_of, pad_axes, pad_widths, permutation_of, slice_bounds
from nndeploy.graph.operators import int_attribute, ints_attribute, operand
from nndeploy.values.size import Dim, bounds, ceil_div, exact_quotient, least, most, product


def _concat(node: ir.Node, known: KnownSizes) -> None:
    shapes = [known.shape(value) for value in node.inputs]
    found = [shape for shape in shapes if shape is not None]
    if found and len(found) == len(shapes) and len(set(map(len, found))) == 1:
        axis = int_attribute(node, "axis", 0) % len(found[0])
        total: Dim = 0
        for shape in found:
            total = total + shape[axis]
        sizes = [
            total if i == axis else next((dim for dim in dims if isinstance(dim, int)), dims[0])  # all are equal
            for i, dims in enumerate(zip(*found, strict=True))
        ]
        known.learn_shape(node.outputs[0], tuple(sizes))
    parts = [known.elements(value) for value in node.inputs]
    if all(part is not None for part in parts):
        known.learn_elements(node.outputs[0], sum((part for part in parts if part is not None), ()))


def _reshape(node: ir.Node, known: KnownSizes) -> None:
    shape, data = known.shape(operand(node, 0)), known.elements(operand(node, 0))
    target: Shape | None = ints_attribute(node, "shape") if known.opset < 5 else known.elements(operand(node, 1))
    if shape is None or target is None:
        return
    copies = int_attribute(node, "allowzero", 0) == 0
    sizes = [shape[axis] if copies and size == 0 and axis < len(shape) else size for axis, size in enumerate(target)]
    if any(isinstance(size, int) and size < -1 for size in sizes) or sizes.count(-1) > 1:
        return
    if -1 in sizes:
        total, others = product(shape), product(size for size in sizes if size != -1)
        found = exact_quotient(total, others)  # where others are zero the operator fails
        sizes[sizes.index(-1)] = total // most(1, others) if found is None else found
    known.learn_shape(node.outputs[0], tuple(sizes))
    if data is not None:
        known.learn_elements(node.outputs[0], data)


def _flatten(node: ir.Node, known: KnownSizes) -> None:
    shape = known.shape(operand(node, 0))
    if shape is not None:
        axis = int_attribute(node, "axis", 1)
        axis += len(shape) if axis < 0 else 0
        known.learn_shape(node.outputs[0], (product(shape[:axis]), product(shape[axis:])))


def _squeeze(node: ir.Node, known: KnownSizes) -> None:
    shape, data, axes = known.shape(operand(node, 0)), known.elements(operand(node, 0)), axes_of(node, known.opset)
    if shape is None:
        return
    if axes is None:
        if len(node.inputs) > 1 or any(bounds(size)[0] <= 1 <= bounds(size)[1] for size in shape if size != 1):
            return
        axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
    gone = {axis % len(shape) for axis in axes} if shape else set[int]()
    known.learn_shape(node.outputs[0], tuple(size for axis, size in enumerate(shape) if axis not in gone))
    if data is not None:
        known.learn_elements(node.outputs[0], data)


def _unsqueeze(node: ir.Node, known: KnownSizes) -> None:
    shape, data, axes = known.shape(operand(node, 0)), known.elements(operand(node, 0)), axes_of(node, known.opset)
    if shape is None or axes is None:
        return
    rank = len(shape) + len(axes)
    added, rest = {axis % rank for axis in axes}, iter(shape)
    known.learn_shape(node.outputs[0], tuple(1 if axis in added else next(rest) for axis in range(rank)))
    if data is not None:
        known.learn_elements(node.outputs[0], data)


def _transpose(node: ir.Node, known: KnownSizes) -> None:
    shape = known.shape(operand(node, 0))
    if shape is not None:
        order = permutation_of(node) or tuple(reversed(range(len(shape))))
        known.learn_shape(node.outputs[0], tuple(shape[axis] for axis in order))


def _slice(node: ir.Node, known: KnownSizes) -> None:
    shape, data = known.shape(operand(node, 0)), known.elements(operand(node, 0))
    given = slice_bounds(node)
    starts, ends = (
        found if found is not None else known.elements(operand(node, index))
        for index, found in ((1, given.starts), (2, given.ends))
    )
    axes, steps = given.axes, given.steps
    if starts is not None and not given.starts and operand(node, 3) is None:
        axes = tuple(range(len(starts)))
    if starts is not None and not given.starts and operand(node, 4) is None:
        steps = (1,) * len(starts)
    if shape is None:
        return
    sizes = list(shape)
    if starts is None or ends is None or axes is None or steps is None:
        _keep_unsliced(node, known, sizes)
        return
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        sizes[axis] = slice_length(shape[axis], start, end, step)
    known.learn_shape(node.outputs[0], tuple(sizes))
    if data is not None and len(starts) == 1 and all(isinstance(one, int) for one in (*starts, *ends)):
        known.learn_elements(node.outputs[0], data[starts[0] : ends[0] : steps[0]])


def _keep_unsliced(node: ir.Node, known: KnownSizes, sizes: list[Dim]) -> None:
    """Learns the axes that a Slice at places which are not known leaves as they are; what the model says stays."""
    said, axes = known.shape(node.outputs[0]), constant_ints(operand(node, 3))
    if said is not None and axes is not None and len(said) == len(sizes):
        taken = {axis % len(sizes) for axis in axes}
        known.learn_shape(node.outputs[0], tuple(said[i] if i in taken else size for i, size in enumerate(sizes)))


def slice_length(size: Dim, start: Dim, end: Dim, step: int) -> Dim:
    """Returns how many elements of `size` a slice takes. Source: ONNX Slice: bounds are clamped."""
    first, last = slice_ends(size, start, end, step)
    return most(0, ceil_div(last - first, step)) if step > 0 else most(0, ceil_div(first - last, -step))


def slice_ends(size: Dim, start: Dim, end: Dim, step: int) -> tuple[Dim, Dim]:
    """Returns the first element of a slice, and the place behind its last one in the direction of the step.

    Raises:
        UndecidedError: it depends on the size on which side of zero a bound lies.
    """
    first, last = (0 if bound == -size else bound + size if bound < 0 else bound for bound in (start, end))
    low, high = (0, size) if step > 0 else (-1, size - 1)
    if step < 0 and isinstance(end, int) and end < -bounds(size)[1]:
        last = -1
    return most(0 if step > 0 else low, least(first, high)), most(low, least(last, high))


def _split(node: ir.Node, known: KnownSizes) -> None:
    shape = known.shape(operand(node, 0))
    parts = ints_attribute(node, "split") if known.opset < 13 else constant_ints(operand(node, 1))
    if shape is None:
        return
    axis = int_attribute(node, "axis", 0) % len(shape)
    if parts is None:
        if operand(node, 1) is not None:
            return
        each = ceil_div(shape[axis], len(node.outputs))
        parts_found: list[Dim] = [each] * (len(node.outputs) - 1)
        parts_found.append(shape[axis] - each * (len(node.outputs) - 1))
    else:
        parts_found = list(parts)
    for output, size in zip(node.outputs, parts_found, strict=False):
        known.learn_shape(output, (*shape[:axis], size, *shape[axis + 1 :]))


def _gather(node: ir.Node, known: KnownSizes) -> None:
    shape, indices = known.shape(operand(node, 0)), known.shape(operand(node, 1))
    if shape is not None and indices is not None:
        axis = int_attribute(node, "axis", 0) % len(shape)
        known.learn_shape(node.outputs[0], (*shape[:axis], *indices, *shape[axis + 1 :]))
    data, chosen = known.elements(operand(node, 0)), constant_ints(operand(node, 1))
    if data is not None and chosen is not None and all(-len(data) <= index < len(data) for index in chosen):
        known.learn_elements(node.outputs[0], tuple(data[index] for index in chosen))


def _gather_elements(node: ir.Node, known: KnownSizes) -> None:
    indices = known.shape(operand(node, 1))
    if indices is not None:
        known.learn_shape(node.outputs[0], indices)


def _gather_nd(node: ir.Node, known: KnownSizes) -> None:
    shape, indices = known.shape(operand(node, 0)), known.shape(operand(node, 1))
    if shape is not None and indices and isinstance(indices[-1], int):
        taken = int_attribute(node, "batch_dims", 0) + indices[-1]
        known.learn_shape(node.outputs[0], (*indices[:-1], *shape[taken:]))


def _one_hot(node: ir.Node, known: KnownSizes) -> None:
    indices, depth = known.shape(operand(node, 0)), known.elements(operand(node, 1))
    if indices is not None and depth is not None and len(depth) == 1:
        axis = int_attribute(node, "axis", -1) % (len(indices) + 1)
        known.learn_shape(node.outputs[0], (*indices[:axis], *depth, *indices[axis:]))


def _pad(node: ir.Node, known: KnownSizes) -> None:
    shape = known.shape(operand(node, 0))
    if shape is None:
        return
    axes, pads = pad_axes(node, len(shape)), known.elements(operand(node, 1)) or _turned_pads(operand(node, 1), known)
    if (widths := pad_widths(node, known.opset)) is not None:
        axes, pads = tuple(range(len(shape))), (*widths[0], *widths[1])
    if pads is None or axes is None or len(pads) != 2 * len(axes):
        return
    sizes = list(shape)
    for place, axis in enumerate(axes):
        sizes[axis] = sizes[axis] + pads[place] + pads[place + len(axes)]
    known.learn_shape(node.outputs[0], tuple(sizes))


_TURNED = ("Reshape", "Transpose", "Slice", "Reshape")


def _turned_pads(value: ir.Value | None, known: KnownSizes) -> Shape | None:
    """Returns the widths that torch's older exporter computes: pairs of the axes, the last axis first, turned by nodes.

    [left, right, top, bottom] -> [[left, right], [top, bottom]] -> last pair first -> transposed -> one list
    """
    node = value.producer() if value is not None else None
    for operator in _TURNED:
        while node is not None and node.op_type == "Cast":
            value, node = _source_of(node)
        if node is None or node.op_type != operator:
            return None
        if operator == "Slice" and slice_bounds(node)[2:] != ((0,), (-1,)):
            return None
        value, node = _source_of(node)
    pairs = known.elements(value)
    if pairs is None or len(pairs) % 2:
        return None
    return (*pairs[-2::-2], *pairs[::-2])


def _source_of(node: ir.Node) -> tuple[ir.Value | None, ir.Node | None]:
    """Returns a node's first input, and the node that makes it."""
    value = operand(node, 0)
    return value, value.producer() if value is not None else None


def _expand(node: ir.Node, known: KnownSizes) -> None:
    shape, target = known.shape(operand(node, 0)), known.elements(operand(node, 1))
    if shape is not None and target is not None:
        known.learn_shape(node.outputs[0], broadcast_shape([shape, target]))


def _tile(node: ir.Node, known: KnownSizes) -> None:
    shape, repeats = known.shape(operand(node, 0)), known.elements(operand(node, 1))
    if shape is not None and repeats is not None and len(shape) == len(repeats):
        sizes = zip(shape, repeats, strict=True)
        known.learn_shape(node.outputs[0], tuple(size * times for size, times in sizes))


def _shape(node: ir.Node, known: KnownSizes) -> None:
    shape = known.shape(operand(node, 0))
    if shape is not None:
        sizes = shape[int_attribute(node, "start", 0) : int_attribute(node, "end", len(shape))]
        known.learn_shape(node.outputs[0], (len(sizes),))
        known.learn_elements(node.outputs[0], sizes)


def _size(node: ir.Node, known: KnownSizes) -> None:
    shape = known.shape(operand(node, 0))
    if shape is not None:
        known.learn_elements(node.outputs[0], (product(shape),))


def _constant_of_shape(node: ir.Node, known: KnownSizes) -> None:
    sizes = known.elements(operand(node, 0))
    if sizes is None:
        return
    known.learn_shape(node.outputs[0], sizes)
    value = node.attributes.get("value")
    if value is not None and len(sizes) == 1 and isinstance(sizes[0], int) and 0 <= sizes[0] <= 8:
        tensor = value.as_tensor()
        if tensor.dtype == ir.DataType.INT64:
            known.learn_elements(node.outputs[0], (int(tensor.numpy().reshape(-1)[0]),) * sizes[0])


RULES: dict[str, Rule] = {
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "OneHot": _one_hot,
    "Pad": _pad,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
