# SPDX-License-Identifier: Apache-2.0
"""y = f(x) with f(x) = x -> every reader of y reads x.

| f | when |
| --- | --- |
| Identity | always |
| Dropout | no training, and nobody reads the mask |
| Cast | x has the element type that is asked for |
| Transpose | perm = 0, 1, 2, ... |
| Reshape | each element of the target is 0, the known size of x there, or the one -1; as many as x has axes |
| Flatten, Squeeze, Unsqueeze, Tile | all sizes of x and y are known and equal |
| Slice | all sizes of x and y are known and equal, or from 0 to the end; steps are 1 |
| Expand | all sizes of x and y are known and equal, or the target is all ones and no longer than x has axes |
| Pad | adds nothing |
| Concat, Sum, Max, Min, Mean | one input |
| x * 1, 1 * x, x / 1, x ^ 1, x - 0, integer x + 0, 0 + x | the constant does not broadcast x |

(x + 0.0 is not on the list: it turns -0.0 into 0.0.) An Identity that names an input or an initializer as an output
of the graph stays, because an output comes from a node; any other no-op in that place becomes an Identity.

Source: ONNX operator definitions.
"""

from collections.abc import Callable

import onnx_ir as ir

from nndeploy.graph.constants import constant_ints, constant_tensor
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.node_parameters import cast_target, padding_of, permutation_of, reshape_target, slice_bounds
from nndeploy.graph.operators import int_attribute, is_inference_dropout, operand, rank_of, static_shape
from nndeploy.passes.model_pass import NodePass

FAR = 2**31 - 1
"""The end that exporters write for a Slice that takes all."""
MAX_CONSTANT_SIZE = 1 << 16
"""Elements that are looked at to find only zeros or ones."""


def _always(_node: ir.Node, _opset: int) -> bool:
    return True


def _has_one_input(node: ir.Node, _opset: int) -> bool:
    return len(node.inputs) == 1


def _drops_nothing(node: ir.Node, opset: int) -> bool:
    reads_mask = any(output.uses() or output.is_graph_output() for output in node.outputs[1:])
    return is_inference_dropout(node, opset) and not reads_mask


def _casts_to_own_type(node: ir.Node, _opset: int) -> bool:
    source, target = operand(node, 0), cast_target(node)
    return source is not None and target is not None and source.dtype == target


def _keeps_axes(node: ir.Node, _opset: int) -> bool:
    permutation = permutation_of(node)
    return permutation is not None and permutation == tuple(range(len(permutation)))


def _keeps_sizes(node: ir.Node, _opset: int = 0) -> bool:
    return _have_equal_sizes(operand(node, 0), node.outputs[0])


def _have_equal_sizes(one: ir.Value | None, other: ir.Value) -> bool:
    shape = static_shape(one)
    return shape is not None and shape == static_shape(other)


def _reshapes_to_itself(node: ir.Node, opset: int) -> bool:
    source, target = operand(node, 0), reshape_target(node, opset)
    if source is None or source.shape is None or target is None or len(target) != len(source.shape):
        return _keeps_sizes(node)
    if int_attribute(node, "allowzero", 0) or target.count(-1) > 1:
        return _keeps_sizes(node)
    return all(size in (0, -1) or size == dim for size, dim in zip(target, source.shape, strict=True))


def _slices_all(node: ir.Node, _opset: int) -> bool:
    starts, ends, _, steps = slice_bounds(node)
    if steps is None or any(step != 1 for step in steps):
        return False
    takes_all = starts is not None and ends is not None and not any(starts) and all(end >= FAR for end in ends)
    return takes_all or _keeps_sizes(node)


def _expands_nothing(node: ir.Node, _opset: int) -> bool:
    target, rank = constant_ints(operand(node, 1)), rank_of(operand(node, 0))
    if target is not None and rank is not None and len(target) <= rank and all(size == 1 for size in target):
        return True
    return _keeps_sizes(node)


def _pads_nothing(node: ir.Node, opset: int) -> bool:
    padding = padding_of(node, opset)
    return padding is not None and not any((*padding.begins, *padding.ends))


def _second_is_neutral(node: ir.Node, opset: int) -> bool:
    return _is_neutral(node, opset, constant_at=1)


def _is_neutral(node: ir.Node, opset: int, *, constant_at: int) -> bool:
    other, tensor = operand(node, 1 - constant_at), constant_tensor(operand(node, constant_at))
    rank = rank_of(other)
    if tensor is None or rank is None or opset < 7 or len(tensor.shape) > rank or tensor.size > MAX_CONSTANT_SIZE:
        return False
    if node.op_type == "Add" and not tensor.dtype.is_integer():
        return False
    if tensor.size != 1 and not _have_equal_sizes(other, node.outputs[0]):
        return False
    return bool((tensor.numpy() == (0 if node.op_type in ("Add", "Sub") else 1)).all())


_RULES: dict[str, Callable[[ir.Node, int], bool]] = {
    "Identity": _always,
    "Dropout": _drops_nothing,
    "Cast": _casts_to_own_type,
    "Transpose": _keeps_axes,
    "Reshape": _reshapes_to_itself,
    "Slice": _slices_all,
    "Expand": _expands_nothing,
    "Pad": _pads_nothing,
    **dict.fromkeys(("Flatten", "Squeeze", "Unsqueeze", "Tile"), _keeps_sizes),
    **dict.fromkeys(("Concat", "Sum", "Max", "Min", "Mean"), _has_one_input),
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Pow"), _second_is_neutral),
}


class EliminateNoOps(NodePass):
    """Removes nodes that hand on their input as it is."""

    name = "eliminate-no-ops"
    ops = frozenset(_RULES)

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the node was removed or became an Identity."""
        source = _source(node, edits.opset)
        if source is None:
            return False
        if edits.bypass(node, source):
            return True
        if node.op_type == "Identity":
            return False
        edits.become(node, "Identity", (source,))
        return True


def _source(node: ir.Node, opset: int) -> ir.Value | None:
    """Returns the input that the node's output always equals; None where it does not."""
    if node.op_type in ("Add", "Mul") and _is_neutral(node, opset, constant_at=0):
        return operand(node, 1)
    return operand(node, 0) if _RULES[node.op_type](node, opset) else None
