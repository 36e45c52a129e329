# SPDX-License-Identifier: Apache-2.0
"""Rules for pixels at places that are data. Source: ONNX GridSample, AffineGrid, RoiAlign, MaxRoiPool."""

from dataclasses import replace

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import float_attribute, int_attribute, operand, text_attribute
from nndeploy_native.lowering.context import Context, image_shape
from nndeploy_native.steps.sampling import KINDS, PADDINGS, AffineGrid, GridSample, RoiAlign, RoiMaxPool
from nndeploy_native.tensors import Layout

MOST_SAMPLES = 64
"""Along each side of a bin: NND_MOST_SAMPLES of the kernel library."""


def grid_sample(node: ir.Node, context: Context) -> None:
    """Lowers GridSample of images and volumes; up to opset 19 its modes have other names."""
    shape, grid = context.shape_of(operand(node, 0)), context.shape_of(operand(node, 1))
    axes, kind = len(shape) - 2, text_attribute(node, "mode", "linear").removeprefix("bi")
    padding = text_attribute(node, "padding_mode", "zeros")
    if axes not in (2, 3) or len(grid) != len(shape) or kind not in KINDS or padding not in PADDINGS:
        raise BuildRefusedError(f"a GridSample over {axes} axes, of mode {kind!r} and padding {padding!r}")
    x = replace(context.blocked(node.inputs[0]), shape=image_shape(shape))
    places, is_aligned = context.plain(node.inputs[1]), int_attribute(node, "align_corners", 0) == 1
    output = context.output(node.outputs[0], Layout.BLOCKED)
    context.emit(GridSample(output, x, places, axes, kind, padding, is_aligned, shape[2] if axes == 3 else 1))


def affine_grid(node: ir.Node, context: Context) -> None:
    """Lowers AffineGrid: the model says the sizes."""
    if len(context.shape_of(node.outputs[0])) not in (4, 5):
        raise BuildRefusedError("an AffineGrid of something else than images and volumes")
    matrices, is_aligned = context.plain(operand(node, 0)), int_attribute(node, "align_corners", 0) == 1
    context.emit(AffineGrid(context.output(node.outputs[0], Layout.PLAIN), matrices, is_aligned))


def roi_align(node: ir.Node, context: Context) -> None:
    """Lowers RoiAlign."""
    mode, samples = text_attribute(node, "mode", "avg"), int_attribute(node, "sampling_ratio", 0)
    usual = "half_pixel" if context.opset >= 16 else "output_half_pixel"
    is_half = text_attribute(node, "coordinate_transformation_mode", usual) == "half_pixel"
    if mode not in ("avg", "max") or samples > MOST_SAMPLES or len(context.shape_of(operand(node, 0))) != 4:
        raise BuildRefusedError(f"a RoiAlign of mode {mode!r}, with {samples} samples")
    x, rois = context.blocked(operand(node, 0)), context.plain(operand(node, 1))
    images, scale = context.whole_numbers(operand(node, 2)), float_attribute(node, "spatial_scale", 1.0)
    output = context.output(node.outputs[0], Layout.BLOCKED)
    offset = 0.5 if is_half else 0.0
    context.emit(RoiAlign(output, x, rois, images, mode == "max", max(0, samples), scale, offset, not is_half))


def roi_max_pool(node: ir.Node, context: Context) -> None:
    """Lowers MaxRoiPool."""
    if len(context.shape_of(operand(node, 0))) != 4:
        raise BuildRefusedError("a MaxRoiPool of something else than images (N, C, H, W)")
    x, rois = context.blocked(operand(node, 0)), context.plain(operand(node, 1))
    output = context.output(node.outputs[0], Layout.BLOCKED)
    context.emit(RoiMaxPool(output, x, rois, float_attribute(node, "spatial_scale", 1.0)))
