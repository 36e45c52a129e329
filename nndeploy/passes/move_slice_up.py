# SPDX-License-Identifier: Apache-2.0
"""Slice(f(x)) -> f(Slice(x)): where one row is picked of what f makes of each row by itself, f gets that row alone.

Where the scores of a language model are asked for behind the last token, its last product is computed for that token
alone, and so is what stands before it, up to what looks at several rows.

Conditions: the Slice picks one place of an axis that is not the last one, and nothing else reads what f makes; f is
elementwise, or a product with a matrix, a normalisation, Softmax or a reduction over later axes that stay as ones; each
operand of f has the axis with the same size, or has a size of one there or no such axis.

Source: ONNX Slice, opset 10; broadcasting in ONNX; MatMul; contributed operators of ONNX Runtime.
"""

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from nndeploy.graph.constants import constant_ints
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import (
    has_one_output,
    int_attribute,
    ints_attribute,
    is_overridden,
    operand,
    rank_of,
    sole_producer,
)
from nndeploy.passes.model_pass import ModelPass

_END = (1 << 31) - 1
"""An end from here on is that of any axis."""
_ELEMENTWISE = frozenset({
    "Abs", "Add", "Cast", "Clip", "Div", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "Identity",
    "LeakyRelu", "Log", "Max", "Min", "Mish", "Mul", "Neg", "Pow", "Reciprocal", "Relu", "Sigmoid", "Softplus", "Sqrt",
    "Sub", "Tanh", "Where",
})  # fmt: skip
_PRODUCTS = frozenset({("", "MatMul"), ("", "MatMulInteger"), ("com.microsoft", "MatMulNBits")})
_NORMALISATIONS = frozenset({"LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"})
_OF_SUMS = frozenset({"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"})
_REDUCTIONS = frozenset({"ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "ReduceSumSquare"})


class _Pick(NamedTuple):
    """A Slice that picks one place of an axis, counted from the end: -2 is that of the rows of a matrix."""

    node: ir.Node
    axis: int


class MoveSliceUp(ModelPass):
    """Picks rows before they are computed."""

    name = "move-slice-up"

    def rewrite(self, model: ir.Model) -> int:
        """Rewrites the model in place; returns before how many operators a Slice went."""
        edits, count = GraphEdits(model), 0
        if edits.opset < 10:
            return 0
        waiting = [node for node in model.graph if node.op_type == "Slice"]
        while waiting:
            pick = _pick(waiting.pop(), edits)
            before = None if pick is None else _moved(pick, edits)
            if before is not None:
                waiting += before
                count += 1
        return count


def _pick(node: ir.Node, edits: GraphEdits) -> _Pick | None:
    """Returns what a node picks, None where it is no Slice of one place of an axis behind which there are others."""
    rank = rank_of(node.inputs[0])
    begin, end, axes = (constant_ints(operand(node, index)) for index in (1, 2, 3))
    steps = constant_ints(node.inputs[4]) if operand(node, 4) is not None else (1,)
    if not edits.is_standard(node) or rank is None or axes is None or len(axes) != 1 or steps != (1,):
        return None
    if begin is None or end is None or not all(value.is_initializer() for value in node.inputs[1:] if value):
        return None
    is_last = begin[0] == -1 and end[0] >= _END
    is_one = end[0] == begin[0] + 1 and (begin[0] >= 0) == (end[0] > 0)
    axis = axes[0] if axes[0] < 0 else axes[0] - rank
    return _Pick(node, axis) if (is_last or is_one) and axis < -1 else None


def _moved(pick: _Pick, edits: GraphEdits) -> list[ir.Node] | None:
    """Returns the Slices that stand before the operator now, None where it stays before the Slice."""
    node, axis = pick
    value = node.inputs[0]
    producer = sole_producer(value, node)
    if value is None or producer is None or not has_one_output(producer) or is_overridden(producer, edits.model):
        return None
    places = _places(producer, axis, edits)
    if not places:
        return None
    size, made = node.outputs[0].shape, list[ir.Node]()
    for place, whole in places:
        picked = _picked(whole, pick, producer, edits)
        producer.replace_input_with(place, picked)
        made.append(picked.producer())  # type: ignore[arg-type]
    value.shape = size.copy() if size is not None else None
    is_gone = edits.bypass(node, value)
    assert is_gone, "only an output of the graph stays, which `sole_producer` excludes"
    return made


def _picked(value: ir.Value, pick: _Pick, before: ir.Node, edits: GraphEdits) -> ir.Value:
    """Returns the row of a value that is an operand of the node `before`."""
    node, axis = pick
    axes = node.inputs[3]
    assert node.graph is not None
    assert value.shape is not None
    if rank_of(value) != rank_of(node.inputs[0]):
        axes = edits.constant(node.graph, np.array([axis], np.int64), f"{value.name}.axis")
    picked = edits.insert_before(
        before, "Slice", [value, node.inputs[1], node.inputs[2], axes], f"{value.name}.row"  # type: ignore[list-item]
    )  # fmt: skip
    sizes, made = list(value.shape), node.outputs[0].shape
    sizes[axis] = made[axis] if made is not None else ir.SymbolicDim(None)
    picked.type, picked.shape = value.type, ir.Shape(sizes)
    return picked


def _places(node: ir.Node, axis: int, edits: GraphEdits) -> list[tuple[int, ir.Value]]:
    """Returns the operands of which a row is enough for a row of what the node makes; none where it looks at others."""
    name = node.domain, node.op_type
    if name in _PRODUCTS:
        is_matrix = name[0] or rank_of(operand(node, 1)) == 2
        return _rows(node, axis, 1) if is_matrix and _is_one_number(operand(node, 2), name) else []
    if name[0] == "com.microsoft" and name[1] in _OF_SUMS:
        return _rows(node, axis, 2)
    if name[0]:
        return []
    if name[1] in _ELEMENTWISE:
        return _rows(node, axis, len(node.inputs))
    rank = rank_of(node.outputs[0]) or 0
    if name[1] in _NORMALISATIONS:
        first = int_attribute(node, "axis", -1)
        others = all(value is None or (rank_of(value) or rank) <= rank - first % rank for value in node.inputs[1:])
        return _rows(node, axis, 1) if first % rank > axis + rank and others else []
    if name[1] == "Softmax":
        usual = -1 if edits.opset >= 13 else 1
        return _rows(node, axis, 1) if int_attribute(node, "axis", usual) % rank == rank - 1 else []
    if name[1] in _REDUCTIONS and int_attribute(node, "keepdims", 1):
        axes = constant_ints(operand(node, 1)) or ints_attribute(node, "axes") or ()
        return _rows(node, axis, 1) if axes and all(one % rank > axis + rank for one in axes) else []
    return []


def _rows(node: ir.Node, axis: int, count: int) -> list[tuple[int, ir.Value]]:
    """Returns those of the first operands that have the axis with the size of what is made."""
    made, found = node.outputs[0].shape, list[tuple[int, ir.Value]]()
    if made is None or made[axis] == 1:
        return []
    for place, value in enumerate(node.inputs[:count]):
        if value is None or (rank_of(value) is not None and (rank_of(value) or 0) < -axis):
            continue
        size = value.shape[axis] if value.shape is not None else None
        if size == 1:
            continue
        if size is None or size != made[axis] or (isinstance(size, ir.SymbolicDim) and size.value is None):
            return []
        found.append((place, value))
    return found


def _is_one_number(value: ir.Value | None, name: tuple[str, str]) -> bool:
    """Returns whether the zero of the left factor is the same for all rows; of the others none has one there."""
    return name[1] != "MatMulInteger" or value is None or rank_of(value) == 0
