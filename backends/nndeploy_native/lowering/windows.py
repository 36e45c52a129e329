# SPDX-License-Identifier: Apache-2.0
"""How the windows of convolutions and pooling move, from the attributes of a node.

Source: ONNX Conv, MaxPool and the like: `auto_pad`: SAME_UPPER puts the odd element at the end, SAME_LOWER at the
beginning, as does ConvTranspose where the shape of its output is given.
"""

from collections.abc import Callable
from typing import TypeAlias

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.operators import ints_attribute, text_attribute
from nndeploy.values.size import Dim, bounds, is_fixed, most, product
from nndeploy_native.lowering.context import MAX_MOVED_ELEMENTS
from nndeploy_native.steps.convolution import Window, Windows
from nndeploy_native.tensors import Shape

Padding: TypeAlias = tuple[Dim, Dim]


def windows_of(node: ir.Node, shape: Shape, out_shape: Shape, kernel: tuple[int, ...]) -> Windows:
    """Returns how the window of a convolution or pooling moves over (N, C, ...).

    Raises:
        BuildRefusedError: an attribute does not fit the input, or there are more than three axes.
    """

    def padding(axis: int, stride: int, reach: int) -> Padding:
        total = most(0, (out_shape[2 + axis] - 1) * stride + reach - shape[2 + axis])
        return _halves(total, odd_first=text_attribute(node, "auto_pad", "NOTSET") == "SAME_LOWER")

    return _windows(node, len(shape) - 2, kernel, padding)


def transposed_windows_of(node: ir.Node, shape: Shape, out_shape: Shape, kernel: tuple[int, ...]) -> Windows:
    """Returns the same for a transposed convolution, whose padding is what is cut off from its output.

    Raises:
        BuildRefusedError: an attribute does not fit the input, or there are more than three axes.
    """
    more = ints_attribute(node, "output_padding") or (0,) * (len(shape) - 2)

    def padding(axis: int, stride: int, reach: int) -> Padding:
        total = most(0, (shape[2 + axis] - 1) * stride + reach + more[axis] - out_shape[2 + axis])
        return _halves(total, odd_first=text_attribute(node, "auto_pad", "NOTSET") != "SAME_UPPER")

    return _windows(node, len(shape) - 2, kernel, padding)


def is_apart(window: Window, shape: Shape, out_shape: Shape) -> bool:
    """Whether each input pixel makes output pixels that no other one makes, and all of them."""
    sizes = tuple(size * stride for size, stride in zip(shape[2:], window.strides, strict=True))
    is_even = window.kernel == window.strides and window.pads == (0, 0) and out_shape[2:] == sizes
    is_small = bounds(product(out_shape))[1] <= MAX_MOVED_ELEMENTS or not is_fixed(out_shape)
    return is_even and is_small and window.dilations == (1, 1)


def _windows(node: ir.Node, rank: int, kernel: tuple[int, ...], padding: Callable[[int, int, int], Padding]) -> Windows:
    """Returns the windows over `rank` axes; `padding` gives it where it follows from sizes: (axis, stride, reach)."""
    strides, dilations = (ints_attribute(node, name) or (1,) * rank for name in ("strides", "dilations"))
    if not 1 <= len(kernel) == len(strides) == len(dilations) == rank <= 3 or min(*kernel, *strides, *dilations) < 1:
        raise BuildRefusedError("a window with a malformed kernel, stride or dilation, or over more than three axes")
    mode = text_attribute(node, "auto_pad", "NOTSET")
    given = ints_attribute(node, "pads") if mode != "VALID" else None
    pads: tuple[Dim, ...] = given or (0,) * (2 * rank)
    if mode in ("SAME_UPPER", "SAME_LOWER") or "output_shape" in node.attributes:
        axes = enumerate(zip(strides, kernel, dilations, strict=True))
        pairs = [padding(axis, stride, (size - 1) * dilation + 1) for axis, (stride, size, dilation) in axes]
        pads = (*(begin for begin, _ in pairs), *(end for _, end in pairs))
    if len(pads) != 2 * rank:
        raise BuildRefusedError("a window with malformed padding")
    return Windows(kernel, strides, dilations, pads[:rank], pads[rank:])


def _halves(total: Dim, *, odd_first: bool) -> Padding:
    small, large = total // 2, total - total // 2
    return (large, small) if odd_first else (small, large)
