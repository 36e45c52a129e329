# SPDX-License-Identifier: Apache-2.0
"""ONNX nodes -> operations: one list of patterns, each with the operator types it knows.

A pattern refuses what it cannot say with a `NotTakenError` and one line. What it says is then still asked of cuDNN: the
list only translates, it does not promise.
"""

from collections.abc import Callable, Mapping

import onnx_ir as ir

from nndeploy_cudnn.patterns import (
    concat,
    convolution,
    local_response,
    matmul,
    normalization,
    padding,
    pointwise,
    pooling,
    reduction,
    relabel,
    resize,
    softmax,
)
from nndeploy_cudnn.patterns.translation import NotTakenError, Translation

Pattern = Callable[[ir.Node, Translation], None]

PATTERNS: Mapping[str, Pattern] = {
    **convolution.PATTERNS,
    **matmul.PATTERNS,
    **pooling.PATTERNS,
    **normalization.PATTERNS,
    **local_response.PATTERNS,
    **softmax.PATTERNS,
    **reduction.PATTERNS,
    **pointwise.PATTERNS,
    **resize.PATTERNS,
    **padding.PATTERNS,
    **concat.PATTERNS,
    **relabel.PATTERNS,
}


def translate(node: ir.Node, translation: Translation) -> None:
    """Writes the operations of one node.

    Raises:
        NotTakenError: no pattern knows the operator, or not in this form.
    """
    pattern = PATTERNS.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    if pattern is None:
        raise NotTakenError(f"cuDNN's graph API has no {node.op_type}")
    pattern(node, translation)
