# SPDX-License-Identifier: Apache-2.0
"""The windows of convolution and pooling: sizes, strides, dilations and padding of each spatial axis.

Source: ONNX Conv, MaxPool and AveragePool (opset 22), attributes auto_pad, pads and ceil_mode.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from nndeploy_cudnn.patterns.translation import NotTakenError, attribute, attribute_ints
from nndeploy_cudnn.views import Dims


@dataclass(frozen=True, slots=True)
class Windows:
    """One number for each spatial axis; `before` and `after` are elements of padding."""

    sizes: Dims
    strides: Dims
    dilations: Dims
    before: Dims
    after: Dims

    def positions(self, inputs: Sequence[int]) -> Dims:
        """Returns how many windows fit along each axis."""
        return tuple(
            (size + before + after - dilation * (window - 1) - 1) // stride + 1
            for size, window, stride, dilation, before, after in zip(
                inputs, self.sizes, self.strides, self.dilations, self.before, self.after, strict=True
            )
        )


def windows_of(node: ir.Node, sizes: Dims, inputs: Sequence[int]) -> Windows:
    """Returns the windows of a node over `inputs` spatial sizes.

    Raises:
        NotTakenError: an attribute does not fit or has a value that ONNX does not know.
    """
    rank = len(inputs)
    strides = attribute_ints(node, "strides", (1,) * rank)
    dilations = attribute_ints(node, "dilations", (1,) * rank)
    if not len(sizes) == len(strides) == len(dilations) == rank or min((*sizes, *strides, *dilations), default=0) < 1:
        raise NotTakenError("kernel_shape, strides or dilations do not fit the input")
    extents = [dilation * (size - 1) + 1 for size, dilation in zip(sizes, dilations, strict=True)]
    before, after = _padding(node, inputs, extents, strides)
    return Windows(sizes, strides, dilations, before, after)


def _padding(node: ir.Node, inputs: Sequence[int], extents: Sequence[int], strides: Sequence[int]) -> tuple[Dims, Dims]:
    rank = len(inputs)
    match attribute(node, "auto_pad", "NOTSET"):
        case "NOTSET":
            pads = attribute_ints(node, "pads", (0,) * 2 * rank)
            if len(pads) != 2 * rank or min(pads, default=0) < 0:
                raise NotTakenError("pads do not fit the input")
            return pads[:rank], pads[rank:]
        case "VALID":
            return (0,) * rank, (0,) * rank
        case "SAME_UPPER" | "SAME_LOWER" as kind:
            both = [_same(size, extent, step) for size, extent, step in zip(inputs, extents, strides, strict=True)]
            small, large = tuple(total // 2 for total in both), tuple((total + 1) // 2 for total in both)
            return (small, large) if kind == "SAME_UPPER" else (large, small)
    raise NotTakenError("auto_pad has a value that ONNX does not know")


def _same(size: int, extent: int, stride: int) -> int:
    """Returns the padding, both sides together, that leaves ceil(size / stride) windows."""
    return max((-(-size // stride) - 1) * stride + extent - size, 0)
