# SPDX-License-Identifier: Apache-2.0
"""Shape arithmetic is done here as far as the sizes are known; sizes that are not known yet may stay inside.

* Shape(x), and Gather, Slice, Concat, Squeeze, Unsqueeze, Cast, Identity, Reshape of shapes -> initializer, when every
  element that is asked for is a known size: Gather(Shape(x: [N, 3, 8, 8]), 2) -> 8, whatever N is.
* Size(x) -> initializer, when all sizes of x are known: Size(Shape(x: [N, 3])) -> 2.
* Reshape(x, s) -> Reshape(x, c) with a constant c, when each element of s is either known, or the size of x at the
  same place (c has 0 there: "copy"), or the only one that is neither while all others are positive (c has -1 there:
  the number of elements of x fixes it). What computed s is dead code afterwards.

Conditions: sizes come from the model's inputs and shape inference; a symbolic size is never taken for a number, and
two of one name are not taken for equal. Runs in branches of If too, but not in bodies that are entered with values
(Loop, Scan): their sizes may change from one iteration to the next.

Source: ONNX Shape (15: `start` and `end`), Size, Reshape (14: `allowzero`), Slice (10: inputs instead of attributes).
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from nndeploy.passes.constants import constant_ints
from nndeploy.passes.graph_edits import GraphEdits
from nndeploy.passes.model_pass import ModelPass
from nndeploy.passes.node_parameters import cast_target, slice_bounds
from nndeploy.passes.operators import graphs_entered_without_inputs, int_attribute, operand, rank_of, static_shape

Origin: TypeAlias = tuple[ir.Value, int]
"""The size of a value along an axis, known only at run time."""
Sizes: TypeAlias = tuple[int | Origin | None, ...]
"""Elements of an integer tensor of rank 0 or 1; None is one of which nothing is known."""
Known: TypeAlias = dict[ir.Value, Sizes]

MAX_ELEMENTS = 64
INT32_MAX = 2**31 - 1


class FoldShapes(ModelPass):
    """Replaces what is computed from known sizes by constants."""

    name = "fold-shapes"

    def rewrite(self, model: ir.Model) -> int:
        """Rewrites the model in place; returns how many nodes it changed."""
        edits, known = GraphEdits(model), Known()
        return sum(
            _fold(node, known, edits)
            for graph in tuple(graphs_entered_without_inputs(model.graph))
            for node in tuple(graph)
            if (node.op_type in _RULES or node.op_type == "Reshape") and edits.is_standard(node)
        )


def _fold(node: ir.Node, known: Known, edits: GraphEdits) -> bool:
    if node.op_type == "Reshape" and _fix_target(node, known, edits):
        return True
    rank, rule = rank_of(node.outputs[0]), _RULES.get(node.op_type)
    sizes = rule(node, known) if rule is not None and rank in (0, 1) else None
    if sizes is None or len(sizes) > MAX_ELEMENTS:
        return False
    known[node.outputs[0]] = sizes
    return _become_constant(node, sizes, edits)


def _become_constant(node: ir.Node, sizes: Sizes, edits: GraphEdits) -> bool:
    (output,) = node.outputs
    numbers, shape = [size for size in sizes if isinstance(size, int)], static_shape(output)
    if len(numbers) < len(sizes) or shape is None or math.prod(shape) != len(numbers):
        return False
    if output.dtype not in (ir.DataType.INT64, ir.DataType.INT32) or node.op_type == "Constant":
        return False
    edits.become_constants(node, [ir.tensor(np.array(numbers, output.dtype.numpy()).reshape(shape))])
    return True


def _fix_target(node: ir.Node, known: Known, edits: GraphEdits) -> bool:
    data, shape = operand(node, 0), operand(node, 1)
    sizes = known.get(shape) if shape is not None else None
    if data is None or sizes is None or node.graph is None:
        return False
    target = _target(sizes, data, allow_zero=int_attribute(node, "allowzero", 0) == 1)
    if target is None:
        return False
    constant = edits.constant(node.graph, np.array(target, np.int64), f"{node.outputs[0].name}.shape")
    node.replace_input_with(1, constant)
    return True


def _target(sizes: Sizes, data: ir.Value, *, allow_zero: bool) -> list[int] | None:
    unknown = [axis for axis, size in enumerate(sizes) if not isinstance(size, int)]
    if not allow_zero and all(sizes[axis] == (data, axis) for axis in unknown):
        return [size if isinstance(size, int) else 0 for size in sizes]
    if len(unknown) == 1 and all(size > 0 for size in sizes if isinstance(size, int)):
        return [size if isinstance(size, int) else -1 for size in sizes]
    return None


def _read(value: ir.Value | None, known: Known) -> Sizes | None:
    if value is None or rank_of(value) not in (0, 1):
        return None
    return known[value] if value in known else constant_ints(value)


def _shape(node: ir.Node, _known: Known) -> Sizes | None:
    (value,) = node.inputs
    if value is None or value.shape is None:
        return None
    sizes: Sizes = tuple(dim if isinstance(dim, int) else (value, axis) for axis, dim in enumerate(value.shape))
    return sizes[int_attribute(node, "start", 0) : int_attribute(node, "end", len(sizes))]


def _size(node: ir.Node, _known: Known) -> Sizes | None:
    shape = static_shape(operand(node, 0))
    return (math.prod(shape),) if shape is not None else None


def _same(node: ir.Node, known: Known) -> Sizes | None:
    return _read(operand(node, 0), known)


def _cast(node: ir.Node, known: Known) -> Sizes | None:
    sizes, target = _read(operand(node, 0), known), cast_target(node)
    if sizes is None or target not in (ir.DataType.INT64, ir.DataType.INT32):
        return None
    if target == ir.DataType.INT64:
        return sizes
    return tuple(size if isinstance(size, int) and abs(size) <= INT32_MAX else None for size in sizes)


def _gather(node: ir.Node, known: Known) -> Sizes | None:
    sizes, indices = _read(operand(node, 0), known), constant_ints(operand(node, 1))
    if sizes is None or indices is None or not all(-len(sizes) <= index < len(sizes) for index in indices):
        return None
    return tuple(sizes[index] for index in indices)


def _slice(node: ir.Node, known: Known) -> Sizes | None:
    sizes, (starts, ends, axes, steps) = _read(operand(node, 0), known), slice_bounds(node)
    if sizes is None or starts is None or ends is None or len(starts) != 1 or len(ends) != 1:
        return None
    if axes not in ((0,), (-1,)) or steps is None or len(steps) != 1 or steps[0] == 0:
        return None
    return sizes[starts[0] : ends[0] : steps[0]]


def _concat(node: ir.Node, known: Known) -> Sizes | None:
    parts = [_read(value, known) for value in node.inputs]
    return sum((part for part in parts if part is not None), ()) if None not in parts else None


_RULES: dict[str, Callable[[ir.Node, Known], Sizes | None]] = {
    "Shape": _shape, "Size": _size, "Gather": _gather, "Slice": _slice, "Concat": _concat, "Cast": _cast,
    "Squeeze": _same, "Unsqueeze": _same, "Identity": _same, "Reshape": _same,
}  # fmt: skip
