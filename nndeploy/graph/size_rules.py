# SPDX-License-Identifier: Apache-2.0
"""How the sizes of a node's outputs follow from those of its inputs: one rule an operator of ONNX.

A rule tells `KnownSizes` what it finds; one that cannot find anything says nothing. Source: ONNX's operators.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

import onnx_ir as ir

from nndeploy.graph.constants import constant_array, constant_ints
from nndeploy.graph.einsum import parsed_equation
from nndeploy.graph.known_sizes import KnownSizes, Shape
from nndeploy.graph.node_parameters import axes_of, cast_target, pad_axes, pad_widths, permutation_of, slice_bounds
from nndeploy.graph.operators import int_attribute, ints_attribute, operand, text_attribute
from nndeploy.values.size import (
    Dim,
    UndecidedError,
    bounds,
    ceil_div,
    exact_quotient,
    least,
    may_be_equal,
    most,
    product,
)

Rule = Callable[[ir.Node, KnownSizes], None]


def _same(node: ir.Node, known: KnownSizes) -> None:
    shape, elements = known.shape(operand(node, 0)), known.elements(operand(node, 0))
    if shape is not None:
        known.learn_shape(node.outputs[0], shape)
    if elements is not None and node.op_type in ("Identity", "Dropout"):
        known.learn_elements(node.outputs[0], elements)


def _cast(node: ir.Node, known: KnownSizes) -> None:
    _same(node, known)
    elements, target = known.elements(operand(node, 0)), cast_target(node)
    if elements is None or target not in (ir.DataType.INT64, ir.DataType.INT32):
        return
    if target == ir.DataType.INT64 or all(bounds(one)[1] < 2**31 and bounds(one)[0] >= -(2**31) for one in elements):
        known.learn_elements(node.outputs[0], elements)


def _broadcast(node: ir.Node, known: KnownSizes) -> None:
    shapes = [known.shape(value) for value in node.inputs if value is not None]
    if all(shape is not None for shape in shapes):
        known.learn_shape(node.outputs[0], broadcast_shape([shape for shape in shapes if shape is not None]))


def _arithmetic(node: ir.Node, known: KnownSizes) -> None:
    _broadcast(node, known)
    rows = _together([known.elements(operand(node, index)) for index in range(2)])
    if rows is not None:
        known.learn_elements(node.outputs[0], tuple(_computed(node.op_type, a, b) for a, b in rows))


def _together(parts: Sequence[Shape | None]) -> list[tuple[Dim, ...]] | None:
    """Returns the elements of lists side by side, those of one element for all; None where one is not known."""
    lists = [part for part in parts if part is not None]
    count = max(map(len, lists), default=0)
    if len(lists) < len(parts) or any(len(one) not in (1, count) for one in lists):
        return None
    return list(zip(*(one * (count // len(one)) for one in lists), strict=True)) if count else []


def _equal(node: ir.Node, known: KnownSizes) -> None:
    _broadcast(node, known)
    rows = _together([known.elements(operand(node, index)) for index in range(2)])
    if rows is not None and all(a == b or not may_be_equal(a, b) for a, b in rows):
        known.learn_elements(node.outputs[0], tuple(int(a == b) for a, b in rows))


def _not(node: ir.Node, known: KnownSizes) -> None:
    _same(node, known)
    elements = known.elements(operand(node, 0))
    if elements is not None:
        known.learn_elements(node.outputs[0], tuple(1 - one for one in elements))


def _negative(node: ir.Node, known: KnownSizes) -> None:
    _same(node, known)
    elements = known.elements(operand(node, 0))
    if elements is not None:
        known.learn_elements(node.outputs[0], tuple(-one for one in elements))


def _where(node: ir.Node, known: KnownSizes) -> None:
    _broadcast(node, known)
    rows = _together([known.elements(operand(node, index)) for index in range(3)])
    if rows is not None and all(isinstance(chosen, int) for chosen, _, _ in rows):
        known.learn_elements(node.outputs[0], tuple(a if chosen else b for chosen, a, b in rows))


def _computed(operator: str, a: Dim, b: Dim) -> Dim:
    match operator:
        case "Add":
            return a + b
        case "Sub":
            return a - b
        case "Mul":
            return a * b
        case "Max":
            return most(a, b)
        case "Min":
            return least(a, b)
        case "Mod":
            if bounds(b)[0] < 1:
                raise UndecidedError("a remainder whose sign depends on a size")
            return a % b
    if bounds(a)[0] < 0:
        raise UndecidedError("a division that may round towards zero")
    return a // b


def broadcast_shape(shapes: Sequence[Shape]) -> Shape:
    """Returns the shape of an elementwise result, as NumPy broadcasts, where none of the sizes is zero."""
    rank = max((len(shape) for shape in shapes), default=0)
    full = [(*[1] * (rank - len(shape)), *shape) for shape in shapes]
    return tuple(_broadcast_size(list(dict.fromkeys(dims))) for dims in zip(*full, strict=True))


def _broadcast_size(dims: list[Dim]) -> Dim:
    others = [dim for dim in dims if dim != 1]
    large = [dim for dim in others if bounds(dim)[0] > 1]
    if len(others) <= 1:
        return others[0] if others else 1
    if not large:
        return most(others[0], *others[1:])  # whichever are one
    return next((dim for dim in large if isinstance(dim, int)), large[0])  # a valid model: all large ones are equal


_WEIGHTS = {"Conv": 1, "QLinearConv": 3}
"""Which input holds the weights of a convolution."""


def _window(node: ir.Node, known: KnownSizes) -> None:
    shape, weights = known.shape(operand(node, 0)), known.shape(operand(node, _WEIGHTS.get(node.op_type, 1)))
    if shape is None or len(shape) < 3:
        return
    channels = shape[1]
    kernel: Sequence[Dim] | None = ints_attribute(node, "kernel_shape")
    if node.op_type in _WEIGHTS:
        if weights is None:
            return
        channels, kernel = weights[0], weights[2:]
    if kernel is None or len(kernel) != len(shape) - 2:
        return
    sizes = [
        _window_size(node, axis, size, one) for axis, (size, one) in enumerate(zip(shape[2:], kernel, strict=True))
    ]
    for output in node.outputs:
        known.learn_shape(output, (shape[0], channels, *sizes))


def _window_size(node: ir.Node, axis: int, size: Dim, kernel: Dim) -> Dim:
    stride, dilation = _of_axis(node, "strides", axis), _of_axis(node, "dilations", axis)
    mode, pads = text_attribute(node, "auto_pad", "NOTSET"), ints_attribute(node, "pads") or ()
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        return ceil_div(size, stride)
    half = len(pads) // 2
    padding = pads[axis] + pads[half + axis] if pads and mode == "NOTSET" else 0
    room = size + padding - dilation * (kernel - 1) - 1
    if int_attribute(node, "ceil_mode", 0):  # a last window that begins behind the input is left out
        before = pads[axis] if pads and mode == "NOTSET" else 0
        return least(ceil_div(room, stride), (size + before - 1) // stride) + 1
    return room // stride + 1


def _transposed(node: ir.Node, known: KnownSizes) -> None:
    shape, weights = known.shape(operand(node, 0)), known.shape(operand(node, 1))
    if shape is None or weights is None:
        return
    mode = text_attribute(node, "auto_pad", "NOTSET")
    pads = ints_attribute(node, "pads") if mode == "NOTSET" else None
    given, extra = ints_attribute(node, "output_shape"), ints_attribute(node, "output_padding") or ()
    half, sizes = len(pads or ()) // 2, list[Dim]()
    for axis, (size, kernel) in enumerate(zip(shape[2:], weights[2:], strict=True)):
        stride, reach = _of_axis(node, "strides", axis), _of_axis(node, "dilations", axis) * (kernel - 1) + 1
        padding = pads[axis] + pads[half + axis] if pads else 0
        whole = (size - 1) * stride + reach - padding + (extra[axis] if extra else 0)
        sizes.append(given[axis - len(shape) + 2] if given else size * stride if mode.startswith("SAME") else whole)
    known.learn_shape(node.outputs[0], (shape[0], weights[1] * int_attribute(node, "group", 1), *sizes))


def _of_axis(node: ir.Node, name: str, axis: int) -> int:
    given = ints_attribute(node, name)
    return given[axis] if given else 1


def _global_pool(node: ir.Node, known: KnownSizes) -> None:
    shape = known.shape(operand(node, 0))
    if shape is not None:
        known.learn_shape(node.outputs[0], (*shape[:2], *[1] * (len(shape) - 2)))


def _matmul(node: ir.Node, known: KnownSizes, *, second: int = 1) -> None:
    left, right = known.shape(operand(node, 0)), known.shape(operand(node, second))
    if not left or not right:
        return
    columns = right[-1:] if len(right) > 1 else ()  # a vector has neither rows nor columns
    known.learn_shape(node.outputs[0], (*broadcast_shape([left[:-2], right[:-2]]), *left[-2:-1], *columns))


def _dynamic_quantise(node: ir.Node, known: KnownSizes) -> None:
    _same(node, known)
    for output in node.outputs[1:]:
        known.learn_shape(output, ())


def _qlinear_matmul(node: ir.Node, known: KnownSizes) -> None:
    """Source: ONNX QLinearMatMul: the second matrix is the input at 3."""
    _matmul(node, known, second=3)


def _einsum(node: ir.Node, known: KnownSizes) -> None:
    shapes = [shape for value in node.inputs if (shape := known.shape(value)) is not None]
    equation = parsed_equation(text_attribute(node, "equation", ""), [len(shape) for shape in shapes])
    if equation is None or len(shapes) < len(node.inputs):
        return
    sizes: dict[str, Dim] = {}
    for labels, shape in zip(equation.operands, shapes, strict=True):
        for label, size in zip(labels, shape, strict=True):
            sizes[label] = size if sizes.get(label, 1) == 1 else sizes[label]
    known.learn_shape(node.outputs[0], tuple(sizes[label] for label in equation.output))


def _gemm(node: ir.Node, known: KnownSizes) -> None:
    left, right = known.shape(operand(node, 0)), known.shape(operand(node, 1))
    if left is not None and right is not None and len(left) == len(right) == 2:
        rows, columns = int_attribute(node, "transA", 0), 1 - int_attribute(node, "transB", 0)
        known.learn_shape(node.outputs[0], (left[rows], right[columns]))


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
    axes, pads = pad_axes(node, len(shape)), known.elements(operand(node, 1))
    if (widths := pad_widths(node, known.opset)) is not None:
        axes, pads = tuple(range(len(shape))), (*widths[0], *widths[1])
    if pads is None or axes is None or len(pads) != 2 * len(axes):
        return
    sizes = list(shape)
    for place, axis in enumerate(axes):
        sizes[axis] = sizes[axis] + pads[place] + pads[place + len(axes)]
    known.learn_shape(node.outputs[0], tuple(sizes))


def _expand(node: ir.Node, known: KnownSizes) -> None:
    shape, target = known.shape(operand(node, 0)), known.elements(operand(node, 1))
    if shape is not None and target is not None:
        known.learn_shape(node.outputs[0], broadcast_shape([shape, target]))


def _tile(node: ir.Node, known: KnownSizes) -> None:
    shape, repeats = known.shape(operand(node, 0)), known.elements(operand(node, 1))
    if shape is not None and repeats is not None and len(shape) == len(repeats):
        sizes = zip(shape, repeats, strict=True)
        known.learn_shape(node.outputs[0], tuple(size * times for size, times in sizes))


def _resize(node: ir.Node, known: KnownSizes) -> None:
    shape = known.shape(operand(node, 0))
    if shape is None or text_attribute(node, "keep_aspect_ratio_policy", "stretch") != "stretch":
        return
    axes = [axis % len(shape) for axis in ints_attribute(node, "axes") or range(len(shape))]
    target = known.elements(operand(node, 3))
    scales = constant_array(operand(node, 1 if len(node.inputs) == 2 else 2))
    sizes = list(shape)
    if target is not None and len(target) == len(axes):
        for axis, size in zip(axes, target, strict=True):
            sizes[axis] = size
    elif scales is not None and scales.size == len(axes):
        for axis, scale in zip(axes, scales.reshape(-1), strict=True):
            sizes[axis] = _scaled(shape[axis], float(scale))
    else:
        return
    known.learn_shape(node.outputs[0], tuple(sizes))


_EXACT_PARTS = 1024
"""Sizes times a scale with so small a denominator are the same whether they are computed in float32 or not."""


def _scaled(size: Dim, scale: float) -> Dim:
    """Returns floor(size * scale)."""
    grown, shrunk = Fraction(scale).as_integer_ratio()
    if shrunk <= _EXACT_PARTS:
        return size * grown // shrunk
    if isinstance(size, int):
        return int(size * scale)
    raise UndecidedError(f"a scale of {scale}")


def _reduce(node: ir.Node, known: KnownSizes) -> None:
    shape, axes = known.shape(operand(node, 0)), ints_attribute(node, "axes")
    if shape is None:
        return
    if operand(node, 1) is not None:
        axes = constant_ints(operand(node, 1))
        if axes is None:
            return
    if node.op_type in ("ArgMax", "ArgMin"):
        axes = (int_attribute(node, "axis", 0),)
    if not axes and int_attribute(node, "noop_with_empty_axes", 0):
        known.learn_shape(node.outputs[0], shape)
        return
    gone = {axis % len(shape) for axis in axes} if axes else set(range(len(shape)))
    keeps = int_attribute(node, "keepdims", 1) == 1
    sizes = [1 if axis in gone else size for axis, size in enumerate(shape) if keeps or axis not in gone]
    known.learn_shape(node.outputs[0], tuple(sizes))


def _top(node: ir.Node, known: KnownSizes) -> None:
    """Source: ONNX TopK: the number is an attribute up to opset 9."""
    shape, count = known.shape(operand(node, 0)), known.elements(operand(node, 1))
    if known.opset < 10:
        count = (int_attribute(node, "k", 0),)
    if shape is None or count is None or len(count) != 1:
        return
    axis = int_attribute(node, "axis", -1) % len(shape)
    for output in node.outputs:
        known.learn_shape(output, (*shape[:axis], count[0], *shape[axis + 1 :]))


def _recurrent(node: ir.Node, known: KnownSizes) -> None:
    shape, hidden = known.shape(operand(node, 0)), int_attribute(node, "hidden_size", 0)
    if shape is None or len(shape) != 3 or not hidden:
        return
    directions = 2 if text_attribute(node, "direction", "forward") == "bidirectional" else 1
    if int_attribute(node, "layout", 0):  # batch first
        whole: Shape = (shape[0], shape[1], directions, hidden)
        state: Shape = (shape[0], directions, hidden)
    else:
        whole, state = (shape[0], directions, shape[1], hidden), (directions, shape[1], hidden)
    for output, sizes in zip(node.outputs, (whole, state, state), strict=False):
        known.learn_shape(output, sizes)


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


def _range(node: ir.Node, known: KnownSizes) -> None:
    numbers = [known.elements(operand(node, index)) for index in range(3)]
    if any(one is None or len(one) != 1 for one in numbers):
        return
    start, end, step = (one[0] for one in numbers if one is not None)
    if isinstance(step, int) and step:
        count = ceil_div(end - start if step > 0 else start - end, abs(step))
        known.learn_shape(node.outputs[0], (count if bounds(count)[0] >= 0 else most(count, 0),))


def _depth_to_space(node: ir.Node, known: KnownSizes) -> None:
    shape, block = known.shape(operand(node, 0)), int_attribute(node, "blocksize", 1)
    if shape is None or len(shape) != 4:
        return
    n, c, h, w = shape
    if node.op_type == "DepthToSpace":
        known.learn_shape(node.outputs[0], (n, c // (block * block), h * block, w * block))
    else:
        known.learn_shape(node.outputs[0], (n, c * block * block, h // block, w // block))


_SAME = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization", "BitwiseNot", "CastLike",
    "Ceil", "Celu", "Clip", "Cos",
    "Cosh", "CumSum", "DequantizeLinear", "Dropout", "Elu", "Erf", "Exp", "EyeLike", "Floor", "Gelu",
    "GroupNormalization", "HardSigmoid",
    "HardSwish", "Hardmax", "Identity", "InstanceNormalization", "IsInf", "IsNaN", "LRN", "LayerNormalization",
    "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "Mish", "PRelu",
    "QuantizeLinear", "RMSNormalization", "Reciprocal", "Relu", "ReverseSequence", "Round", "Scatter",
    "ScatterElements", "ScatterND", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus",
    "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Trilu",
)  # fmt: skip
_BROADCAST = (
    "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Greater", "GreaterOrEqual", "Less",
    "LessOrEqual", "Mean", "Or", "Pow", "Sum", "Xor",
)  # fmt: skip
_REDUCE = (
    "ArgMax", "ArgMin", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip


def _grid_sample(node: ir.Node, known: KnownSizes) -> None:
    shape, grid = known.shape(operand(node, 0)), known.shape(operand(node, 1))
    if shape is not None and grid is not None:
        known.learn_shape(node.outputs[0], (*shape[:2], *grid[1:-1]))


def _affine_grid(node: ir.Node, known: KnownSizes) -> None:
    size = known.elements(operand(node, 1))
    if size is not None:
        known.learn_shape(node.outputs[0], (size[0], *size[2:], len(size) - 2))


def _regions(node: ir.Node, known: KnownSizes) -> None:
    shape, rois = known.shape(operand(node, 0)), known.shape(operand(node, 1))
    sizes = ints_attribute(node, "pooled_shape")
    if node.op_type == "RoiAlign":
        sizes = (int_attribute(node, "output_height", 1), int_attribute(node, "output_width", 1))
    if shape is not None and rois is not None and sizes is not None:
        known.learn_shape(node.outputs[0], (rois[0], shape[1], *sizes))


def _unpool(node: ir.Node, known: KnownSizes) -> None:
    shape, given = known.shape(operand(node, 0)), known.elements(operand(node, 2))
    kernel, pads = ints_attribute(node, "kernel_shape"), ints_attribute(node, "pads")
    if given is not None:
        known.learn_shape(node.outputs[0], given)
    elif shape is not None and kernel is not None and operand(node, 2) is None:
        padding = [pads[axis] + pads[len(kernel) + axis] if pads else 0 for axis in range(len(kernel))]
        axes = enumerate(zip(shape[2:], kernel, padding, strict=True))
        sizes = [(size - 1) * _of_axis(node, "strides", axis) + one - cut for axis, (size, one, cut) in axes]
        known.learn_shape(node.outputs[0], (*shape[:2], *sizes))


RULES: dict[str, Rule] = {
    **dict.fromkeys(_SAME, _same),
    **dict.fromkeys(_BROADCAST, _broadcast),
    **dict.fromkeys(("Add", "Div", "Max", "Min", "Mod", "Mul", "Sub"), _arithmetic),
    **dict.fromkeys(_REDUCE, _reduce),
    **dict.fromkeys(("AveragePool", "Conv", "LpPool", "MaxPool", "QLinearConv"), _window),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), _global_pool),
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrent),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _depth_to_space),
    **dict.fromkeys(("Resize", "Upsample"), _resize),
    **dict.fromkeys(("MaxRoiPool", "RoiAlign"), _regions),
    "AffineGrid": _affine_grid,
    "Cast": _cast,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "ConvTranspose": _transposed,
    "DynamicQuantizeLinear": _dynamic_quantise,
    "Einsum": _einsum,
    "Equal": _equal,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Gemm": _gemm,
    "GridSample": _grid_sample,
    "MatMul": _matmul,
    "MatMulInteger": _matmul,
    "QLinearMatMul": _qlinear_matmul,
    "MaxUnpool": _unpool,
    "Neg": _negative,
    "Not": _not,
    "OneHot": _one_hot,
    "Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "TopK": _top,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
