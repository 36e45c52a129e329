# SPDX-License-Identifier: Apache-2.0
"""How the sizes of ONNX's Attention follow from its inputs. Source: ONNX Attention, opset 24."""

import onnx_ir as ir

from nndeploy.graph.known_sizes import KnownSizes, Rule, Shape
from nndeploy.graph.operators import int_attribute, operand
from nndeploy.values.size import Dim


def _attention(node: ir.Node, known: KnownSizes) -> None:
    """The output is in the form of the queries; caches are those of the past with what is new."""
    shapes = [known.shape(operand(node, number)) for number in range(3)]
    counts = [int_attribute(node, f"{one}_num_heads", 0) for one in ("q", "kv")]
    q, k, v = (_heads(shape, counts[number > 0]) for number, shape in enumerate(shapes))
    if q is None or k is None or v is None:
        return
    is_rows = shapes[0] is not None and len(shapes[0]) == 3
    known.learn_shape(node.outputs[0], (q[0], q[2], q[1] * v[3]) if is_rows else (*q[:3], v[3]))
    for number, new in ((1, k), (2, v)):
        if number < len(node.outputs) and node.outputs[number].name:
            past = known.shape(operand(node, number + 3))
            places = new[2] if past is None else past[2] + new[2] if len(past) == 4 else None
            if places is not None and (past is not None or operand(node, number + 3) is None):
                known.learn_shape(node.outputs[number], (*new[:2], places, new[3]))


def _heads(shape: Shape | None, count: int) -> tuple[Dim, Dim, Dim, Dim] | None:
    """Returns (batch, heads, places, size) of rows or of heads."""
    if shape is not None and len(shape) == 4:
        batch, heads, places, size = shape
        return batch, heads, places, size
    if shape is None or len(shape) != 3 or count < 1:
        return None
    return shape[0], count, shape[1], shape[2] // count


RULES: dict[str, Rule] = {"Attention": _attention}
"""What each operator tells of the sizes of its outputs."""
