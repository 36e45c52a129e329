# SPDX-License-Identifier: Apache-2.0
"""Pooling through windows, and over everything (which is a reduction).

    y = GlobalAveragePool(x)   ->   y = sum(x over H, W) / (H * W)

A last window that hangs over the edge (ceil_mode) is so much more padding, which a maximum and an average without
padding do not see.

Source: ONNX MaxPool, AveragePool (opset 22), GlobalMaxPool and GlobalAveragePool (opset 22).
"""

from typing import Literal

import onnx_ir as ir

from nndeploy_cudnn.operations import Pool, Reduction
from nndeploy_cudnn.patterns.translation import (
    NotTakenError,
    Translation,
    attribute,
    attribute_ints,
    num_elements,
    only_output,
)
from nndeploy_cudnn.patterns.windows import Windows, windows_of
from nndeploy_cudnn.views import Dims


def max_pool(node: ir.Node, translation: Translation) -> None:
    """Writes a MaxPool without indices."""
    _pool(node, translation, "max")


def average_pool(node: ir.Node, translation: Translation) -> None:
    """Writes an AveragePool."""
    _pool(node, translation, "average-with-padding" if attribute(node, "count_include_pad", 0) else "average")


def global_max_pool(node: ir.Node, translation: Translation) -> None:
    """Writes a GlobalMaxPool."""
    x, y = translation.value(node.inputs[0]), translation.value(node.outputs[0])
    translation.add(Reduction("max", x, y, tuple(range(2, len(x.dims)))))


def global_average_pool(node: ir.Node, translation: Translation) -> None:
    """Writes a GlobalAveragePool."""
    x, y = translation.value(node.inputs[0]), translation.value(node.outputs[0])
    translation.add(Reduction("sum", x, y, tuple(range(2, len(x.dims))), 1.0 / num_elements(x.dims[2:])))


def _pool(node: ir.Node, translation: Translation, mode: Literal["max", "average", "average-with-padding"]) -> None:
    x, y = translation.value(node.inputs[0]), translation.value(only_output(node))
    if not 3 <= len(x.dims) <= 5:
        raise NotTakenError(f"pooling over {len(x.dims) - 2} axes; cuDNN takes 1 to 3")
    windows = windows_of(node, attribute_ints(node, "kernel_shape", ()), x.dims[2:])
    if any(dilation != 1 for dilation in windows.dilations):
        raise NotTakenError("cuDNN's pooling has no dilations")
    after = _after_for(windows, x.dims[2:], y.dims[2:])
    if after != windows.after and mode == "average-with-padding":
        raise NotTakenError("an average with padding whose last window hangs over the edge")
    if _is_without_padding(windows, after) and mode == "average":
        mode = "average-with-padding"
    translation.add(Pool(mode, x, y, windows.sizes, windows.strides, windows.before, after))


def _after_for(windows: Windows, inputs: Dims, outputs: Dims) -> Dims:
    """Returns the padding at the end with which exactly `outputs` windows fit."""
    wanted = tuple(
        (count - 1) * stride + size - before - width
        for count, stride, size, before, width in zip(
            outputs, windows.strides, windows.sizes, windows.before, inputs, strict=True
        )
    )
    if windows.positions(inputs) == outputs:
        return windows.after
    if any(pad >= size for pad, size in zip(wanted, windows.sizes, strict=True)) or min(wanted) < 0:
        raise NotTakenError("the output's shape does not follow from the windows")
    return wanted


def _is_without_padding(windows: Windows, after: Dims) -> bool:
    return not any((*windows.before, *after))


PATTERNS = {
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "GlobalMaxPool": global_max_pool,
    "GlobalAveragePool": global_average_pool,
}
