# SPDX-License-Identifier: Apache-2.0
"""How the sizes of images follow from those they are computed from: windows, resizing, grids, regions.

A rule tells `KnownSizes` what it finds; one that cannot find anything says nothing. Source: ONNX's operators.
"""

from collections.abc import Sequence
from fractions import Fraction

import onnx_ir as ir

from nndeploy.graph.constants import constant_array
from nndeploy.graph.known_sizes import KnownSizes, Rule
from nndeploy.graph.operators import int_attribute, ints_attribute, operand, text_attribute
from nndeploy.values.size import Dim, UndecidedError, ceil_div, least

_WEIGHTS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}
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


def _depth_to_space(node: ir.Node, known: KnownSizes) -> None:
    shape, block = known.shape(operand(node, 0)), int_attribute(node, "blocksize", 1)
    if shape is None or len(shape) != 4:
        return
    n, c, h, w = shape
    if node.op_type == "DepthToSpace":
        known.learn_shape(node.outputs[0], (n, c // (block * block), h * block, w * block))
    else:
        known.learn_shape(node.outputs[0], (n, c * block * block, h // block, w // block))


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


def _spectra(node: ir.Node, known: KnownSizes) -> None:
    """Source: ONNX STFT, opset 17: a window where no length is given; one side where nothing else is said."""
    signal, step, window = (
        known.shape(operand(node, 0)),
        known.elements(operand(node, 1)),
        known.shape(operand(node, 2)),
    )
    length = known.elements(operand(node, 3)) or window
    if signal is not None and step is not None and length is not None:
        frames = (signal[1] - length[0]) // step[0] + 1
        bins = length[0] // 2 + 1 if int_attribute(node, "onesided", 1) else length[0]
        known.learn_shape(node.outputs[0], (signal[0], frames, bins, 2))


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
    **dict.fromkeys(("AveragePool", "Conv", "ConvInteger", "LpPool", "MaxPool", "QLinearConv"), _window),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), _global_pool),
    **dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _depth_to_space),
    **dict.fromkeys(("Resize", "Upsample"), _resize),
    **dict.fromkeys(("MaxRoiPool", "RoiAlign"), _regions),
    "AffineGrid": _affine_grid,
    "ConvTranspose": _transposed,
    "GridSample": _grid_sample,
    "MaxUnpool": _unpool,
    "STFT": _spectra,
}
