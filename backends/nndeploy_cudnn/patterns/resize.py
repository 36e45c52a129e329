# SPDX-License-Identifier: Apache-2.0
"""Resize and Upsample by whole factors to the nearest element -> a transposed convolution by ones.

    y[i] = x[i // s]   ->   each element is spread over s outputs: kernel s, stride s, all ones, one group a channel

cuDNN's own resampling leaves open which of its rules for coordinates it follows, so it is not used for this. Whether a
node is such a case is not read from its attributes' names but computed: the source of every output by ONNX's formulas.

Source: ONNX Resize, opset 19, attributes coordinate_transformation_mode and nearest_mode.
"""

import math
from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from nndeploy_cudnn.operations import Reshaped, TransposedConvolution
from nndeploy_cudnn.patterns.translation import NotTakenError, Translation, attribute

MAX_FACTOR = 16

_COORDINATES: dict[str, Callable[[int, int, int], float]] = {
    "asymmetric": lambda i, size, made: i * size / made,
    "half_pixel": lambda i, size, made: (i + 0.5) * size / made - 0.5,
    "half_pixel_symmetric": lambda i, size, made: (i + 0.5) * size / made - 0.5,
    "pytorch_half_pixel": lambda i, size, made: (i + 0.5) * size / made - 0.5 if made > 1 else 0.0,
    "align_corners": lambda i, size, made: i * (size - 1) / (made - 1) if made > 1 else 0.0,
}
_ROUNDING: dict[str, Callable[[float], int]] = {
    "round_prefer_floor": lambda x: math.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: math.floor(x + 0.5),
    "floor": math.floor,
    "ceil": math.ceil,
}


def resize(node: ir.Node, translation: Translation) -> None:
    """Writes a Resize or Upsample that repeats elements."""
    x, y = translation.value(node.inputs[0]), translation.value(node.outputs[0])
    if attribute(node, "mode", "nearest") != "nearest":
        raise NotTakenError("cuDNN's graph API does not say how it interpolates; only the nearest element is taken")
    if not 3 <= len(x.dims) <= 5 or x.dims[:2] != y.dims[:2]:
        raise NotTakenError("a Resize of batch or channels")
    factors = tuple(made // size for size, made in zip(x.dims[2:], y.dims[2:], strict=True))
    if not all(_repeats(node, size, made) for size, made in zip(x.dims[2:], y.dims[2:], strict=True)):
        raise NotTakenError("a Resize that does not repeat each element equally often")
    if all(factor == 1 for factor in factors):
        translation.add(Reshaped(x, y))
        return
    ones = translation.constant(np.ones((x.dims[1], 1, *factors)), x.dtype)
    none = (0,) * len(factors)
    translation.add(TransposedConvolution(x, ones, y, factors, none, none, (1,) * len(factors)))


def _repeats(node: ir.Node, size: int, made: int) -> bool:
    """Returns whether output i takes element i // factor of its axis."""
    factor = made // size
    if made != factor * size or factor > MAX_FACTOR:
        return False
    is_upsample = node.op_type == "Upsample"
    coordinate = _COORDINATES.get(
        "asymmetric" if is_upsample else attribute(node, "coordinate_transformation_mode", "half_pixel")
    )
    rounding = _ROUNDING.get("floor" if is_upsample else attribute(node, "nearest_mode", "round_prefer_floor"))
    if coordinate is None or rounding is None or attribute(node, "antialias", 0):
        return False
    source = (min(max(rounding(coordinate(i, size, made)), 0), size - 1) for i in range(made))
    return all(found == i // factor for i, found in enumerate(source))


PATTERNS = {"Resize": resize, "Upsample": resize}
