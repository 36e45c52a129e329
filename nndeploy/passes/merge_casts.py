# SPDX-License-Identifier: Apache-2.0
"""Cast(Cast(x: T -> A) -> B) -> Cast(x: T -> B), or x where T = B, when T -> A loses nothing.

T -> A loses nothing when every number of T is a number of A, so that A's value is x itself, and what B makes of it
does not depend on the way.

Conditions: T, A, B are booleans, integers up to 64 bits or float16, bfloat16, float, double. The first cast has no
other reader, unless the pair cancels. Where T or A is floating-point and B is not, B must hold every number of T:
what a cast makes of a number outside B's range is undefined, and may differ between A and T.

Source: ONNX Cast, from opset 6 (before, `to` was text).
"""

import onnx_ir as ir

from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.node_parameters import cast_target
from nndeploy.graph.operators import FLOATS, operand, sole_producer
from nndeploy.passes.model_pass import NodePass

_SIGNED = {ir.DataType.INT8: 7, ir.DataType.INT16: 15, ir.DataType.INT32: 31, ir.DataType.INT64: 63}
_UNSIGNED = {
    ir.DataType.BOOL: 1, ir.DataType.UINT8: 8, ir.DataType.UINT16: 16, ir.DataType.UINT32: 32, ir.DataType.UINT64: 64,
}  # fmt: skip
_INTEGERS = _SIGNED | _UNSIGNED
_SIGNIFICAND_BITS = {
    ir.DataType.FLOAT16: 11, ir.DataType.BFLOAT16: 8, ir.DataType.FLOAT: 24, ir.DataType.DOUBLE: 53,
}  # fmt: skip
_EXPONENT_BITS = {ir.DataType.FLOAT16: 5, ir.DataType.BFLOAT16: 8, ir.DataType.FLOAT: 8, ir.DataType.DOUBLE: 11}


def keeps_every_number(source: ir.DataType, target: ir.DataType) -> bool:
    """Returns whether every number of `source` is a number of `target`; False for types that are not listed here."""
    if source in _INTEGERS and target in _SIGNIFICAND_BITS:
        return _INTEGERS[source] <= _SIGNIFICAND_BITS[target]
    if source in _SIGNIFICAND_BITS and target in _SIGNIFICAND_BITS:
        wider_exponent = _EXPONENT_BITS[source] <= _EXPONENT_BITS[target]
        return wider_exponent and _SIGNIFICAND_BITS[source] <= _SIGNIFICAND_BITS[target]
    if source in _SIGNED and target in _UNSIGNED:
        return False
    return source in _INTEGERS and target in _INTEGERS and _INTEGERS[source] <= _INTEGERS[target]


class MergeCasts(NodePass):
    """Makes one cast, or none, of two where the first loses nothing."""

    name = "merge-casts"
    ops = frozenset({"Cast"})

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the node now reads what the cast before it reads."""
        middle = operand(node, 0)
        first = middle.producer() if middle is not None else None
        if edits.opset < 6 or first is None or first.op_type != "Cast" or not edits.is_standard(first):
            return False
        source, target = operand(first, 0), cast_target(node)
        if source is None or source.dtype is None or not _is_lossless(source.dtype, cast_target(first), target):
            return False
        if source.dtype == target and edits.bypass(node, source):
            return True
        if sole_producer(middle, node) is not first:
            return False
        node.replace_input_with(0, source)
        edits.remove(first)
        return True


def _is_lossless(source: ir.DataType, middle: ir.DataType | None, target: ir.DataType | None) -> bool:
    if middle is None or target is None or not keeps_every_number(source, middle):
        return False
    if target in _SIGNIFICAND_BITS:
        return True
    has_range = source in FLOATS or middle in FLOATS
    return target in _INTEGERS and (not has_range or keeps_every_number(source, target))
