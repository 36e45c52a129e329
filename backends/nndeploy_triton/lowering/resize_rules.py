# SPDX-License-Identifier: Apache-2.0
"""Rules for Resize and Upsample over the spatial axes. Source: ONNX Resize, opset 19."""

import numpy as np
import onnx_ir as ir

from nndeploy.backend_kit.kernels.resize_lines import resize_lines
from nndeploy.backend_kit.kernels.resize_tables import resize_tables
from nndeploy.errors import BuildRefusedError
from nndeploy.values.size import fixed, is_fixed
from nndeploy_triton.lowering.context import Context, as_image
from nndeploy_triton.steps.gathering import Interpolate, Resize


def resize(node: ir.Node, context: Context) -> None:
    """Lowers Resize and Upsample of images, where batch and channels stay as they are."""
    context.floats(node, 1)
    x, output = as_image(context.dense(node.inputs[0])), as_image(context.output(node.outputs[0]))
    if x.shape[:2] != output.shape[:2]:
        raise BuildRefusedError("a Resize of other axes than height and width")
    rank = len(context.view(node.inputs[0]).shape)
    if not is_fixed((*x.shape[2:], *output.shape[2:])):
        sizes, out_sizes = ((view.shape[2], view.shape[3]) for view in (x, output))
        kind, (rows, columns) = resize_lines(node, rank, sizes, out_sizes)
        context.emit(Interpolate(output, x, kind, rows, columns))
        return
    fixed_sizes, fixed_out_sizes = (tuple(map(fixed, view.shape[2:])) for view in (x, output))
    tables = resize_tables(node, rank, fixed_sizes, fixed_out_sizes)
    places = [
        (context.new_constant(places.astype(np.int32)), context.new_constant(weights.astype(np.float32)))
        for places, weights in tables
    ]
    context.emit(Resize(output, x, *places[0], *places[1]))
