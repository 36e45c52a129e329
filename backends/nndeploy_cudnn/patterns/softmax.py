# SPDX-License-Identifier: Apache-2.0
"""Softmax and LogSoftmax -> maximum, difference, exponential, sum, quotient.

    m = max(x)   e = exp(x - m)   s = sum(e)   Softmax: e / s   LogSoftmax: (x - m) - log(s)

e and s are float32 whatever x is: a sum of thousands of halves would lose digits. cuDNN's graph API has a softmax for
fused attention only: asked for one alone it has no engine (cuDNN 9.28).

Source: ONNX Softmax and LogSoftmax, opset 13 (one axis) and before (all axes from one on).
"""

import onnx_ir as ir

from nndeploy_cudnn.operations import Pointwise, Reduction, Value
from nndeploy_cudnn.patterns.translation import Translation, attribute, axis_within, opset_of


def softmax(node: ir.Node, translation: Translation) -> None:
    """Writes a Softmax."""
    x, y = translation.value(node.inputs[0]), translation.value(node.outputs[0])
    _, exponential, total = _parts(node, translation, x)
    translation.add(Pointwise("div", (exponential, total), y))


def log_softmax(node: ir.Node, translation: Translation) -> None:
    """Writes a LogSoftmax."""
    x, y = translation.value(node.inputs[0]), translation.value(node.outputs[0])
    difference, _, total = _parts(node, translation, x)
    logarithm = translation.made(total.dims, "float32")
    translation.add(Pointwise("log", (total,), logarithm))
    translation.add(Pointwise("sub", (difference, logarithm), y))


def _parts(node: ir.Node, translation: Translation, x: Value) -> tuple[Value, Value, Value]:
    """Writes x - max(x), its exponential and the sum of that; returns them."""
    axes = _axes(node, len(x.dims))
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(x.dims))
    largest, difference = translation.made(kept, x.dtype), translation.made(x.dims, "float32")
    exponential, total = translation.made(x.dims, "float32"), translation.made(kept, "float32")
    translation.add(Reduction("max", x, largest, axes))
    translation.add(Pointwise("sub", (x, largest), difference))
    translation.add(Pointwise("exp", (difference,), exponential))
    translation.add(Reduction("sum", exponential, total, axes))
    return difference, exponential, total


def _axes(node: ir.Node, rank: int) -> tuple[int, ...]:
    is_old = opset_of(node) < 13
    axis = axis_within(attribute(node, "axis", 1 if is_old else -1), rank)
    return tuple(range(axis, rank)) if is_old else (axis,)


PATTERNS = {"Softmax": softmax, "LogSoftmax": log_softmax}
