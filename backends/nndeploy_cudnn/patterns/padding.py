# SPDX-License-Identifier: Apache-2.0
"""Pad with zeros around the spatial axes -> a convolution by one that pads.

Source: ONNX Pad, opset 21 (pads as an input) and before 11 (as an attribute).
"""

import onnx_ir as ir

from nndeploy_cudnn.operations import Reshaped, ZeroPad
from nndeploy_cudnn.patterns.translation import (
    NotTakenError,
    Translation,
    attribute,
    attribute_ints,
    axis_within,
    integers_of,
    num_elements,
    numbers_of,
)


def pad(node: ir.Node, translation: Translation) -> None:
    """Writes a Pad."""
    x, y = translation.value(node.inputs[0]), translation.value(node.outputs[0])
    before, after = _pads(node, len(x.dims))
    if attribute(node, "mode", "constant") != "constant" or any(_fill(node)):
        raise NotTakenError("cuDNN pads with zeros only")
    if min((*before, *after)) < 0:
        raise NotTakenError("negative padding")
    if not any((*before, *after)):
        translation.add(Reshaped(x, y))
        return
    first = next(axis for axis in range(len(x.dims)) if before[axis] or after[axis])
    lead, tail = x.dims[:first], x.dims[first:]
    if len(tail) > 3:
        raise NotTakenError(f"padding over {len(tail)} axes; cuDNN takes 1 to 3")
    flat = translation.made((1, num_elements(lead), *tail), x.dtype)
    made = translation.made((1, num_elements(lead), *y.dims[first:]), x.dtype)
    translation.add(Reshaped(x, flat))
    translation.add(ZeroPad(flat, made, before[first:], after[first:]))
    translation.add(Reshaped(made, y))


def _pads(node: ir.Node, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    pads = attribute_ints(node, "pads", ()) or tuple(integers_of(node, 1))
    axes = [axis_within(axis, rank) for axis in integers_of(node, 3, default=range(rank))]
    if len(pads) != 2 * len(axes):
        raise NotTakenError("pads do not fit the input")
    before, after = [0] * rank, [0] * rank
    for i, axis in enumerate(axes):
        before[axis], after[axis] = pads[i], pads[len(axes) + i]
    return tuple(before), tuple(after)


def _fill(node: ir.Node) -> list[float]:
    return [attribute(node, "value", 0.0)] if "pads" in node.attributes else numbers_of(node, 2, default=(0.0,))


PATTERNS = {"Pad": pad}
