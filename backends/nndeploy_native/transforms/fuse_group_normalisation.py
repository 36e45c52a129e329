# SPDX-License-Identifier: Apache-2.0
"""GroupNormalization as it was spelled before there was such an operator.

    Reshape(x, (N, G, -1)) -> InstanceNormalization by ones and zeros -> Reshape to x [-> * scale] [-> + bias]
        =>  GroupNormalization(x, scale, bias) of G groups, with a number of each channel

Conditions: float32; known channels; scale and bias, of which one is there, are constants of one number a channel;
nobody else reads what is in between.

Source: ONNX GroupNormalization (21); the spelling is that of PyTorch's exporters.
"""

import numpy as np
import onnx_ir as ir

from nndeploy.graph.constants import constant_floats
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import float_attribute, only_user, operand
from nndeploy.plugin.interface import MayTouch
from nndeploy_native.tensors import Array
from nndeploy_native.transforms.matching import is_read_within, maker_of, operands_either_way


class FuseGroupNormalisation:
    """Makes one operator of what normalises groups of channels."""

    name = "fuse-group-normalisation"

    def __call__(self, model: ir.Model, may_touch: MayTouch) -> int:
        """Rewrites, in place, nodes that `may_touch` allows; returns how many normalisations it found."""
        edits = GraphEdits(model)
        norms = [node for node in model.graph if node.op_type == "InstanceNormalization" and may_touch(node)]
        return sum(_become_one(node, edits) for node in norms)


def _become_one(norm: ir.Node, edits: GraphEdits) -> bool:
    """Turns what is around an InstanceNormalization into one operator, where it is a GroupNormalization."""
    parted, joined = maker_of(operand(norm, 0), edits, "Reshape"), only_user(norm.outputs[0])
    x = operand(parted, 0) if parted is not None else None
    if parted is None or joined is None or x is None or joined.op_type != "Reshape" or not _is_by_one(norm):
        return False
    groups, channels = _groups_and_channels(x, parted.outputs[0], joined.outputs[0])
    if not groups:
        return False
    before = (parted,) if is_read_within((parted,), norm) else ()
    root, inner = joined, tuple[ir.Node, ...]((*before, norm))
    numbers: dict[str, Array] = {"Mul": np.ones(channels, np.float32), "Add": np.zeros(channels, np.float32)}
    for operator in ("Mul", "Add"):
        found = _numbers_of(root, operator, channels, x, edits)
        if found is not None:
            inner, (root, numbers[operator]) = (*inner, root), found
    if root is joined or root.graph is None or not is_read_within(inner, root):
        return False
    name, graph = root.outputs[0].name, root.graph
    constants = [edits.constant(graph, array, f"{name}.{kind.lower()}") for kind, array in numbers.items()]
    epsilon = ir.AttrFloat32("epsilon", float_attribute(norm, "epsilon", 1e-5))
    edits.become(root, "GroupNormalization", (x, *constants), (ir.AttrInt64("num_groups", groups), epsilon))
    for node in reversed(inner):
        edits.remove(node)
    return True


def _is_by_one(norm: ir.Node) -> bool:
    """Whether an InstanceNormalization does nothing behind its quotient."""
    scale, bias = constant_floats(operand(norm, 1)), constant_floats(operand(norm, 2))
    return scale is not None and bias is not None and bool(np.all(scale == 1.0) and np.all(bias == 0.0))


def _groups_and_channels(x: ir.Value, parted: ir.Value, joined: ir.Value) -> tuple[int, int]:
    """Returns into how many groups of how many channels x (N, C, ...) was made (N, G, ...); zeros where it was not."""
    if x.dtype != ir.DataType.FLOAT or x.shape is None or parted.shape is None or joined.shape is None:
        return 0, 0
    if len(x.shape) < 3 or len(parted.shape) != 3 or [*joined.shape] != [*x.shape] or parted.shape[0] != x.shape[0]:
        return 0, 0
    groups, channels = parted.shape[1], x.shape[1]
    if not isinstance(groups, int) or not isinstance(channels, int) or groups < 1 or channels % groups != 0:
        return 0, 0
    return groups, channels


def _numbers_of(
    node: ir.Node, operator: str, channels: int, x: ir.Value, edits: GraphEdits
) -> tuple[ir.Node, Array] | None:
    """Returns the only reader of a node, which takes constant numbers of the channels by `operator`; and these."""
    made = node.outputs[0]
    reader = only_user(made)
    if reader is None or reader.op_type != operator or not edits.is_standard(reader) or reader.graph is not node.graph:
        return None
    assert x.shape is not None, "its sizes were looked at"
    of_channels = [channels, *[1] * (len(x.shape) - 2)]
    for value, other in operands_either_way(reader):
        array = constant_floats(other) if value is made else None
        if array is not None and list(array.shape) in (of_channels, [1, *of_channels]):
            return reader, np.asarray(array, np.float32).reshape(channels)
    return None
