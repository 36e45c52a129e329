# SPDX-License-Identifier: Apache-2.0
"""f(Gather(w, i), c) -> Gather(f(w, c), i): what is done to every row that is picked is done to the table, once.

f is elementwise; each of its operands is a Gather of rows of a constant matrix by the same i, or a constant that is
the same for each row. f(w, c) is folded at once: an activation behind an embedding costs nothing any more.

Conditions: tables of one shape, of float16, bfloat16, float or double, and at most `MAX_TABLE_SIZE` numbers.

Source: ONNX Gather; broadcasting in ONNX.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from nndeploy.graph.constants import Array, constant_array
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import FLOATS, int_attribute, operand, rank_of
from nndeploy.passes.fold_constants import FoldConstants
from nndeploy.passes.model_pass import NodePass

MAX_TABLE_SIZE = 1 << 18
"""Largest table, in elements: 1 MiB of floats, which is as much as is always folded."""


class MoveGatherDown(NodePass):
    """Computes elementwise operators on tables before rows are picked."""

    name = "move-gather-down"
    ops = frozenset({
        "Abs", "Add", "Div", "Erf", "Exp", "LeakyRelu", "Max", "Min", "Mul", "Neg", "Relu", "Sigmoid", "Softplus",
        "Sub", "Sum", "Tanh",
    })  # fmt: skip

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the node became a Gather of another table."""
        gathers = [gather for value in node.inputs if (gather := _gather_of_rows(value, edits)) is not None]
        rank = rank_of(node.outputs[0])
        if not gathers or rank is None or rank != rank_of(gathers[0].outputs[0]) or node.graph is None:
            return False
        tables = {gather.outputs[0]: gather.inputs[0] for gather in gathers}
        shape = _shape(gathers[0].inputs[0])
        if len({gather.inputs[1] for gather in gathers}) > 1 or any(_shape(w) != shape for w in tables.values()):
            return False
        rows = [_row(value, rank, shape[1]) for value in node.inputs if value not in tables]
        if any(row is None for row in rows):
            return False
        name, constants = node.outputs[0].name, iter(rows)
        inputs = [
            tables.get(value) or edits.constant(node.graph, next(constants), f"{name}.row")  # type: ignore[arg-type]
            for value in node.inputs
        ]
        table = _folded(node, inputs, shape, edits)
        if table is None:
            return False
        edits.become(node, "Gather", (table, gathers[0].inputs[1]))
        return True


def _folded(node: ir.Node, inputs: Sequence[ir.Value], shape: tuple[int, ...], edits: GraphEdits) -> ir.Value | None:
    """Returns the initializer that holds what a node's operator makes of constants; None where it is not folded."""
    graph, attributes = node.graph, tuple(node.attributes.values())
    table = edits.insert_before(node, node.op_type, inputs, f"{node.outputs[0].name}.table", attributes)
    table.shape = ir.Shape(shape)
    producer, name = table.producer(), table.name
    assert graph is not None
    assert producer is not None
    if FoldConstants().rewrite_node(producer, edits):
        return graph.initializers[name or ""]
    edits.remove(producer)
    return None


def _gather_of_rows(value: ir.Value | None, edits: GraphEdits) -> ir.Node | None:
    """Returns the node that picks rows of a constant matrix; None where a value is made otherwise."""
    node = value.producer() if value is not None else None
    if node is None or node.op_type != "Gather" or not edits.is_standard(node) or int_attribute(node, "axis", 0):
        return None
    table = constant_array(operand(node, 0))
    fits = table is not None and table.ndim == 2 and 0 < table.size <= MAX_TABLE_SIZE
    return node if fits and node.outputs[0].dtype in FLOATS else None


def _shape(table: ir.Value | None) -> tuple[int, ...]:
    array = constant_array(table)
    assert array is not None, "the caller looked at it"
    return array.shape


def _row(value: ir.Value | None, rank: int, width: int) -> Array | None:
    """Returns a constant that is the same for each row as one row; None where a value is none."""
    array = constant_array(value)
    if (
        array is None
        or array.ndim > rank
        or array.size not in (1, width)
        or array.shape[-1:] not in ((), (array.size,))
    ):
        return None
    return np.ascontiguousarray(array.reshape(-1))
