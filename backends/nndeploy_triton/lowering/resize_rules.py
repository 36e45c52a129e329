# SPDX-License-Identifier: Apache-2.0
"""Rules for Resize and Upsample over the spatial axes. Source: ONNX Resize, opset 19."""

import numpy as np
import onnx_ir as ir

from nndeploy.own_operators.resize_tables import repeats_of, resize_tables
from nndeploy.plugin.interface import BuildRefusedError
from nndeploy.sizes.size import fixed, is_fixed
from nndeploy_triton.lowering.context import Context, as_image
from nndeploy_triton.program import identity
from nndeploy_triton.steps.elementwise import Elementwise
from nndeploy_triton.steps.gathering import Resize
from nndeploy_triton.views import View


def resize(node: ir.Node, context: Context) -> None:
    """Lowers Resize and Upsample of images, where batch and channels stay as they are."""
    context.floats(node, 1)
    x, output = as_image(context.dense(node.inputs[0])), as_image(context.output(node.outputs[0]))
    if x.shape[:2] != output.shape[:2]:
        raise BuildRefusedError("a Resize of other axes than height and width")
    rank = len(context.view(node.inputs[0]).shape)
    if not is_fixed((*x.shape[2:], *output.shape[2:])):
        _repeated(context, output, x, repeats_of(node, rank))
        return
    sizes, out_sizes = (tuple(map(fixed, view.shape[2:])) for view in (x, output))
    tables = resize_tables(node, rank, sizes, out_sizes)
    places = [
        (context.new_constant(places.astype(np.int32)), context.new_constant(weights.astype(np.float32)))
        for places, weights in tables
    ]
    context.emit(Resize(output, x, *places[0], *places[1]))


def _repeated(context: Context, output: View, x: View, times: tuple[int, int] | None) -> None:
    """Copies each row and column as often as the scale says: for sizes that are not fixed."""
    images, channels, height, width = x.shape
    if times is None or output.shape[2:] != (height * times[0], width * times[1]):
        raise BuildRefusedError("a Resize of a size that is not fixed, other than by repeating each pixel")
    apart, shape = (
        x.reshaped((images, channels, height, 1, width, 1)),
        (images, channels, height, times[0], width, times[1]),
    )
    target = output.reshaped(shape)
    assert apart is not None
    assert target is not None
    context.emit(Elementwise(target, (context.broadcast(apart, shape),), identity()))
