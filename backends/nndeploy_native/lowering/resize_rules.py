# SPDX-License-Identifier: Apache-2.0
"""Rules for Resize and Upsample over the spatial axes. Source: ONNX Resize, opset 19."""

import onnx_ir as ir

from nndeploy.backend_kit.kernels.resize_tables import repeats_of, resize_tables
from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import operand
from nndeploy.values.size import is_fixed
from nndeploy_native.lowering.context import Context
from nndeploy_native.steps.resize import Repeat, Resize
from nndeploy_native.tensors import Layout, fixed_shape


def resize(node: ir.Node, context: Context) -> None:
    """Lowers Resize and Upsample of images, where batch and channels stay as they are."""
    shape, out_shape = context.shape_of(operand(node, 0)), context.shape_of(node.outputs[0])
    if len(shape) != 4 or len(out_shape) != 4 or shape[:2] != out_shape[:2]:
        raise BuildRefusedError("a Resize of other axes than height and width of an image")
    x = context.blocked(node.inputs[0])
    times = repeats_of(node, len(shape))
    if times is not None and tuple(size * by for size, by in zip(shape[2:], times, strict=True)) == out_shape[2:]:
        context.emit(Repeat(context.output(node.outputs[0], Layout.BLOCKED), x, times))
        return
    if not (is_fixed(shape) and is_fixed(out_shape)):
        raise BuildRefusedError("a Resize of a size that is not fixed, other than by repeating each pixel")
    rows, columns = resize_tables(node, len(shape), fixed_shape(shape[2:]), fixed_shape(out_shape[2:]))
    context.emit(Resize(context.output(node.outputs[0], Layout.BLOCKED), x, rows, columns))
