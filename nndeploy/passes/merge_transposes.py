# SPDX-License-Identifier: Apache-2.0
"""Transpose(Transpose(x, p), q) -> Transpose(x, p[q]), or x where p[q] = 0, 1, 2, ...

Conditions: the first Transpose has no other reader, unless the pair cancels.

Source: ONNX Transpose: axis i of the output is axis perm[i] of the input.
"""

import onnx_ir as ir

from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.node_parameters import permutation_of
from nndeploy.graph.operators import operand, sole_producer
from nndeploy.passes.model_pass import NodePass


class MergeTransposes(NodePass):
    """Makes one Transpose, or none, of two."""

    name = "merge-transposes"
    ops = frozenset({"Transpose"})

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the node was removed or now reads what the one before it reads."""
        middle = operand(node, 0)
        first = middle.producer() if middle is not None else None
        if first is None or first.op_type != "Transpose" or not edits.is_standard(first):
            return False
        source, composed = operand(first, 0), _compose(permutation_of(first), permutation_of(node))
        if source is None or composed is None:
            return False
        if composed == tuple(range(len(composed))) and edits.bypass(node, source):
            return True
        if sole_producer(middle, node) is not first:
            return False
        edits.become(node, "Transpose", (source,), (ir.AttrInt64s("perm", composed),))
        edits.remove(first)
        return True


def _compose(first: tuple[int, ...] | None, second: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if first is None or second is None or len(first) != len(second):
        return None
    return tuple(first[axis] for axis in second)
