# SPDX-License-Identifier: Apache-2.0
"""LRN -> squares, a convolution by a band of ones across the channels, and a power.

    y = x / (k + a / n * sum(x[c - p .. c + q] ** 2)) ** b      p = (n - 1) // 2, q = n - 1 - p

The squares and their sum are float32 whatever x is.

Source: ONNX LRN, opset 13.
"""

import numpy as np
import onnx_ir as ir

from nndeploy_cudnn.operations import Convolution, Pointwise
from nndeploy_cudnn.patterns.translation import NotTakenError, Translation, attribute


def local_response(node: ir.Node, translation: Translation) -> None:
    """Writes an LRN over images."""
    x, y = translation.value(node.inputs[0]), translation.value(node.outputs[0])
    if len(x.dims) != 4:
        raise NotTakenError("LRN over something else than images")
    size, channels = attribute(node, "size", 1), x.dims[1]
    square, total, scaled, base, factor = (translation.made(x.dims, "float32") for _ in range(5))
    band = translation.constant(_band(channels, size).reshape(channels, channels, 1, 1))
    translation.add(Pointwise("mul", (x, x), square))
    translation.add(Convolution(square, band, total, (1, 1), (0, 0), (0, 0), (1, 1)))
    alpha = translation.scalar(attribute(node, "alpha", 1e-4) / size)
    translation.add(Pointwise("mul", (total, alpha), scaled))
    translation.add(Pointwise("add", (scaled, translation.scalar(attribute(node, "bias", 1.0))), base))
    translation.add(Pointwise("pow", (base, translation.scalar(-attribute(node, "beta", 0.75))), factor))
    translation.add(Pointwise("mul", (x, factor), y))


def _band(channels: int, size: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    """Returns ones where channel j counts for channel i, else zeros."""
    distance = np.arange(channels)[None, :] - np.arange(channels)[:, None]
    before = (size - 1) // 2
    return ((distance >= -before) & (distance <= size - 1 - before)).astype(np.float64)


PATTERNS = {"LRN": local_response}
