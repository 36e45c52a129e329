# SPDX-License-Identifier: Apache-2.0
"""Concat -> a join: what makes an input writes it to its place right away, so mostly nothing is copied.

Source: ONNX Concat, opset 13.
"""

import onnx_ir as ir

from nndeploy_cudnn.operations import Join
from nndeploy_cudnn.patterns.translation import Translation, attribute, axis_within


def concat(node: ir.Node, translation: Translation) -> None:
    """Writes a Concat."""
    inputs, y = tuple(translation.value(x) for x in node.inputs), translation.value(node.outputs[0])
    translation.add(Join(inputs, y, axis_within(attribute(node, "axis", 0), len(y.dims))))


PATTERNS = {"Concat": concat}
