# SPDX-License-Identifier: Apache-2.0
"""What a BatchNormalization in inference computes, with its constants in float64.

    y = (x - mean) / sqrt(variance + epsilon) * scale + bias = (x - mean) * factor + bias

Source: ONNX BatchNormalization.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from nndeploy.graph.constants import Float64, constant_floats
from nndeploy.graph.operators import float_attribute, is_inference_batchnorm

EPSILON = float(np.float32(1e-5))
"""The epsilon of a node that gives none: attributes are float32, which shows where the rest is float64."""


@dataclass(frozen=True, slots=True)
class Batchnorm:
    """y = (x - mean) * factor + bias for each channel; all of shape (C,), finite, `deviation` > 0."""

    mean: Float64
    deviation: Float64
    factor: Float64
    bias: Float64

    @property
    def shift(self) -> Float64:
        """What is left when the factor goes first: y = x * factor + shift."""
        return self.bias - self.mean * self.factor


def batchnorm_of(node: ir.Node, opset: int) -> Batchnorm | None:
    """Returns what a BatchNormalization computes; None in training, or where a parameter is not constant or usable."""
    if not is_inference_batchnorm(node, opset):
        return None
    scale, bias, mean, variance = (constant_floats(value) for value in node.inputs[1:])
    if scale is None or bias is None or mean is None or variance is None:
        return None
    if scale.ndim != 1 or not scale.shape == bias.shape == mean.shape == variance.shape:
        return None
    with np.errstate(all="ignore"):
        deviation = np.sqrt(variance + float_attribute(node, "epsilon", EPSILON))
        factor = scale / deviation
    usable = all(np.isfinite(part).all() for part in (mean, deviation, factor, bias))
    return Batchnorm(mean, deviation, factor, bias) if usable else None
