# SPDX-License-Identifier: Apache-2.0
"""How the windows of convolutions and pooling move, from the attributes of a node.

Source: ONNX Conv, MaxPool and the like: `auto_pad`: SAME_UPPER puts the odd element at the end, SAME_LOWER at the
beginning.
"""

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import ints_attribute, text_attribute
from nndeploy.values.size import Dim, most
from nndeploy_native.steps.convolution import Windows
from nndeploy_native.tensors import Shape


def windows_of(node: ir.Node, shape: Shape, out_shape: Shape, kernel: tuple[int, ...]) -> Windows:
    """Returns how the window of a convolution or pooling moves over (N, C, ...).

    Raises:
        BuildRefusedError: an attribute does not fit the input, or there are more than three axes.
    """
    rank = len(shape) - 2
    strides, dilations = (ints_attribute(node, name) or (1,) * rank for name in ("strides", "dilations"))
    if not 1 <= len(kernel) == len(strides) == len(dilations) == rank <= 3 or min(*kernel, *strides, *dilations) < 1:
        raise BuildRefusedError("a window with a malformed kernel, stride or dilation, or over more than three axes")
    mode = text_attribute(node, "auto_pad", "NOTSET")
    given = ints_attribute(node, "pads") if mode != "VALID" else None
    pads: tuple[Dim, ...] = given or (0,) * (2 * rank)
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        axes = zip(shape[2:], out_shape[2:], kernel, strides, dilations, strict=True)
        pairs = [_same_padding(*axis, mode) for axis in axes]
        pads = (*(begin for begin, _ in pairs), *(end for _, end in pairs))
    if len(pads) != 2 * rank:
        raise BuildRefusedError("a window with malformed padding")
    return Windows(kernel, strides, dilations, pads[:rank], pads[rank:])


def _same_padding(size: Dim, out_size: Dim, kernel: int, stride: int, dilation: int, mode: str) -> tuple[Dim, Dim]:
    total = most(0, (out_size - 1) * stride + (kernel - 1) * dilation + 1 - size)
    small, large = total // 2, total - total // 2
    return (small, large) if mode == "SAME_UPPER" else (large, small)
