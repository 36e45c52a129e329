# SPDX-License-Identifier: Apache-2.0
"""Rules for pooling over rows, images and volumes.

A window over a volume is one over its depth, then one over the images that make it: the largest, the sum and the mean
of a box are those of its slices, and the elements that a mean is divided by are a product.
Source: ONNX MaxPool, AveragePool, LpPool, GlobalMaxPool, GlobalAveragePool, GlobalLpPool, MaxUnpool.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

import numpy as np
import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.constants import constant_array
from nndeploy.graph.operators import int_attribute, ints_attribute, operand
from nndeploy.values.size import Dim, product
from nndeploy_native.expressions import Expression, const
from nndeploy_native.expressions import operand as x_
from nndeploy_native.lowering.context import Context, image_shape
from nndeploy_native.lowering.integer_rules import BYTES, dequantised
from nndeploy_native.lowering.windows import windows_of
from nndeploy_native.steps.bytes import MOST_FACTOR, ByteMean, BytePooling
from nndeploy_native.steps.convolution import Window, Windows
from nndeploy_native.steps.elementwise import Elementwise, Operand
from nndeploy_native.steps.indexed import Scattered
from nndeploy_native.steps.movement import PaddedCopy, StridedCopy, View
from nndeploy_native.steps.pooling import PooledPlaces, Pooling
from nndeploy_native.tensors import Layout, Shape, Tensor

KINDS = {"MaxPool": "max", "AveragePool": "mean", "LpPool": "sum"}
MOST_FACTORS = 8
"""Powers up to this are products."""


def pooling(node: ir.Node, context: Context) -> None:
    """Lowers MaxPool, AveragePool and LpPool, and the places of what MaxPool found."""
    if context.element_of(operand(node, 0)) in BYTES:
        _pool_bytes(node, context)
        return
    shape, out_shape = context.shape_of(operand(node, 0)), context.shape_of(node.outputs[0])
    windows = windows_of(node, shape, out_shape, ints_attribute(node, "kernel_shape") or ())
    _check_last_windows(windows, shape, out_shape)
    if len(node.outputs) > 1 and node.outputs[1].name:
        output = context.output(node.outputs[1], Layout.PLAIN)
        is_column_major = int_attribute(node, "storage_order", 0) == 1
        context.emit(PooledPlaces(output, context.plain(node.inputs[0]), windows, is_column_major))
    if not node.outputs[0].name:
        return
    counts = node.op_type == "AveragePool" and int_attribute(node, "count_include_pad", 0) == 1
    x = replace(context.blocked(node.inputs[0]), shape=image_shape(shape))

    def pooled(x: Tensor, output: Tensor) -> None:
        _pool(context, (x, shape), (output, out_shape), windows, KINDS[node.op_type], counts)

    output = context.output(node.outputs[0], Layout.BLOCKED)
    if node.op_type == "LpPool":
        _norm(context, x, output, int_attribute(node, "p", 2), pooled)
    else:
        pooled(x, output)


def _check_last_windows(windows: Windows, shape: Shape, out_shape: Shape) -> None:
    """Checks that no window begins behind the input; such are left out, which onnx infers from opset 22 on alone.

    Raises:
        BuildRefusedError: one does.
    """
    for size, count, stride, begin in zip(shape[2:], out_shape[2:], windows.strides, windows.begins, strict=True):
        is_known = isinstance(size, int) and isinstance(count, int) and isinstance(begin, int)
        if is_known and (count - 1) * stride - begin >= size:
            raise BuildRefusedError("the declared size counts a window that begins behind the input")


def _pool_bytes(node: ir.Node, context: Context) -> None:
    """Lowers MaxPool of an image of bytes, whose channels come to lie side by side.

    Raises:
        BuildRefusedError: it is another pooling, of something else than images, or asks for places.
    """
    shape, out_shape = context.sizes_of(operand(node, 0)), context.sizes_of(node.outputs[0])
    if node.op_type != "MaxPool" or len(shape) != 4 or len(node.outputs) > 1:
        raise BuildRefusedError("a pooling of bytes that is no MaxPool of images")
    windows = windows_of(node, shape, out_shape, ints_attribute(node, "kernel_shape") or ())
    x, output = context.channels_last(node.inputs[0]), context.output_channels_last(node.outputs[0])
    context.emit(BytePooling(output, x, windows.of_image()[0]))


def global_pooling(node: ir.Node, context: Context) -> None:
    """Lowers GlobalAveragePool, GlobalMaxPool and GlobalLpPool: a window as large as the image."""
    if node.op_type == "GlobalAveragePool" and _mean_of_bytes(node, context):
        return
    x, output = context.blocked(operand(node, 0)), context.output(node.outputs[0], Layout.BLOCKED)
    window = Window((x.shape[2], x.shape[3]))
    kind = {"GlobalMaxPool": "max", "GlobalAveragePool": "mean"}.get(node.op_type, "sum")

    def pooled(x: Tensor, output: Tensor) -> None:
        context.emit(Pooling(output, x, window, (0, 0), kind))

    if kind == "sum":
        _norm(context, x, output, int_attribute(node, "p", 2), pooled)
    else:
        pooled(x, output)


def _mean_of_bytes(node: ir.Node, context: Context) -> bool:
    """Lowers the mean of an image of dequantised bytes to that of the bytes; False where it is none."""
    found = dequantised(operand(node, 0))
    if found is None or found.scale.size != 1 or found.value.dtype is None:
        return False
    zero = constant_array(found.zero)
    if found.value.dtype.name.lower() not in BYTES or (zero is not None and zero.size != 1):
        return False
    if not abs(found.scale.item()) < MOST_FACTOR:
        return False
    x, output = context.channels_last(found.value), context.output(node.outputs[0], Layout.PLAIN)
    context.emit(ByteMean(output, x, 0 if zero is None else int(zero.item()), float(found.scale.item())))
    return True


def unpooling(node: ir.Node, context: Context) -> None:
    """Lowers MaxUnpool: elements at the places where MaxPool found them, zeros elsewhere."""
    shape, out_shape = context.shape_of(operand(node, 0)), context.shape_of(node.outputs[0])
    kernel = ints_attribute(node, "kernel_shape") or ()
    windows = windows_of(node, shape, out_shape, kernel)
    axes = zip(shape[2:], windows.kernel, windows.strides, windows.begins, windows.ends, strict=True)
    sizes = (*shape[:2], *((size - 1) * stride + k - begin - end for size, k, stride, begin, end in axes))
    count, found = product(sizes), product(shape)
    zero = context.temporary("zero", (1,), Layout.PLAIN)
    context.lowered.constants[zero.name] = np.zeros(1, np.float32)
    zeros, spread = (context.temporary(kind, (count,), Layout.PLAIN) for kind in ("zeros", "unpooled"))
    context.emit(StridedCopy(zeros, View(zero, 0, (count,), (0,))))
    numbers = replace(context.whole_numbers(operand(node, 1)), shape=(found,))
    updates = replace(context.plain(node.inputs[0]), shape=(found,))
    output = context.output(node.outputs[0], Layout.PLAIN)
    if out_shape == sizes:
        context.emit(Scattered(replace(output, shape=(count,)), zeros, numbers, updates, "none", 0))
        return
    context.emit(Scattered(spread, zeros, numbers, updates, "none", 0))
    context.emit(PaddedCopy(output, View.of(replace(spread, shape=sizes)), (0,) * len(sizes)))


def _pool(
    context: Context, given: tuple[Tensor, Shape], made: tuple[Tensor, Shape], windows: Windows, kind: str, counts: bool
) -> None:
    """Emits the steps that pool an image in blocks, a volume first along its depth."""
    (x, shape), (output, out_shape) = given, made
    window, ends = windows.of_image()
    depth: Dim = 1
    if len(shape) == 5:
        batch, channels, _, *plane = shape
        depth = out_shape[2]
        deep = context.temporary("pooled", (batch, channels, depth, product(plane)), Layout.BLOCKED)
        along = replace(x, shape=(batch, channels, shape[2], product(plane)))
        context.emit(Pooling(deep, along, *windows.of_depth(), kind, counts))
        x = replace(deep, shape=(batch, channels, depth * plane[0], plane[1]))
    context.emit(Pooling(output, x, window, ends, kind, counts, depth))


def _norm(context: Context, x: Tensor, output: Tensor, p: int, pooled: Callable[[Tensor, Tensor], None]) -> None:
    """Emits (sum of |x|^p)^(1/p), where `pooled` emits the sums."""
    if p < 1:
        raise BuildRefusedError(f"a norm of order {p}")
    if p > MOST_FACTORS:
        power: Expression = ("exp", ("mul", ("log", ("abs", x_(0))), const(p)))
    else:
        power = reduce(lambda product, factor: ("mul", product, factor), [("abs", x_(0))] * p)
    root: Expression = ("exp", ("mul", ("log", x_(0)), const(1 / p)))
    root = {1: x_(0), 2: ("sqrt", x_(0))}.get(p, root)
    powers, sums = (context.temporary(kind, of.shape, Layout.BLOCKED) for kind, of in (("powers", x), ("sums", output)))
    context.emit(Elementwise(powers, (Operand(x.shape, x),), power))
    pooled(powers, sums)
    context.emit(Elementwise(output, (Operand(output.shape, sums),), root))
