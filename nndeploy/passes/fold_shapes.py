# SPDX-License-Identifier: Apache-2.0
"""Shape arithmetic is done here as far as the sizes are known; sizes that are not known yet may stay inside.

* What computes with shapes (Shape, Size, Gather, Slice, Concat, Add, Equal ...) -> initializer, when every element is
  known: Gather(Shape(x: [N, 3, 8, 8]), 2) -> 8, whatever N is.
* Reshape(x, s) -> Reshape(x, c) with a constant c, when each element of s is either known, or the size of x at the
  same place (c has 0 there: "copy"), or the only one that is neither while all others are positive (c has -1 there:
  the number of elements of x fixes it). What computed s is dead code afterwards.
* Expand(x, s) -> x, when s is the shape of x, whatever its sizes are; Slice(x) by steps of one -> x, when what it gives
  is of the shape of x.

Conditions: those of `infer_sizes.py`. Runs in branches of If too, but not in bodies that are entered with values
(Loop, Scan): their sizes may change from one iteration to the next.

Source: ONNX Reshape (14: `allowzero`).
"""

import math
from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.infer_sizes import known_sizes
from nndeploy.graph.known_sizes import KnownSizes, Shape
from nndeploy.graph.node_parameters import slice_bounds
from nndeploy.graph.operators import graphs_entered_without_inputs, int_attribute, operand, static_shape
from nndeploy.passes.model_pass import ModelPass
from nndeploy.values.size import bounds
from nndeploy.values.types import DimRange


class FoldShapes(ModelPass):
    """Replaces what is computed from known sizes by constants."""

    name = "fold-shapes"

    def __init__(self, ranges: Mapping[str, DimRange]) -> None:
        """`ranges` are those of the symbols of the inputs."""
        self._ranges = ranges

    def rewrite(self, model: ir.Model) -> int:
        """Rewrites the model in place; returns how many nodes it changed."""
        edits, known = GraphEdits(model), known_sizes(model, self._ranges)
        return sum(
            _fold(node, known, edits)
            for graph in tuple(graphs_entered_without_inputs(model.graph))
            for node in tuple(graph)
            if len(node.outputs) == 1 and edits.is_standard(node)
        )


def _fold(node: ir.Node, known: KnownSizes, edits: GraphEdits) -> bool:
    if node.op_type == "Reshape" and _fix_target(node, known, edits):
        return True
    if (node.op_type == "Expand" and _expands_nothing(node, known)) or (
        node.op_type == "Slice" and _slices_all(node, known)
    ):
        edits.become(node, "Identity", node.inputs[:1])
        return True
    elements = known.elements(node.outputs[0])
    return elements is not None and _become_constant(node, elements, edits)


def _expands_nothing(node: ir.Node, known: KnownSizes) -> bool:
    shape = known.shape(operand(node, 0))
    return shape is not None and shape == known.shape(node.outputs[0]) and shape == known.elements(operand(node, 1))


def _slices_all(node: ir.Node, known: KnownSizes) -> bool:
    shape, steps = known.shape(operand(node, 0)), slice_bounds(node).steps
    is_one = steps is not None and all(step == 1 for step in steps)
    return (is_one or operand(node, 4) is None) and shape is not None and shape == known.shape(node.outputs[0])


def _become_constant(node: ir.Node, elements: Shape, edits: GraphEdits) -> bool:
    (output,) = node.outputs
    numbers, shape = [one for one in elements if isinstance(one, int)], static_shape(output)
    if len(numbers) < len(elements) or shape is None or math.prod(shape) != len(numbers):
        return False
    if output.dtype not in (ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL) or node.op_type == "Constant":
        return False
    limits = (0, 1) if output.dtype == ir.DataType.BOOL else (output.dtype.min, output.dtype.max)
    if numbers and not limits[0] <= min(numbers) <= max(numbers) <= limits[1]:
        return False  # in a graph integers wrap
    edits.become_constants(node, [ir.tensor(np.array(numbers, output.dtype.numpy()).reshape(shape))])
    return True


def _fix_target(node: ir.Node, known: KnownSizes, edits: GraphEdits) -> bool:
    data, wanted = known.shape(operand(node, 0)), operand(node, 1)
    sizes = known.elements(wanted)
    if data is None or sizes is None or node.graph is None or all(isinstance(size, int) for size in sizes):
        return False
    target = _target(sizes, data, allow_zero=int_attribute(node, "allowzero", 0) == 1)
    if target is None:
        return False
    constant = edits.constant(node.graph, np.array(target, np.int64), f"{node.outputs[0].name}.shape")
    node.replace_input_with(1, constant)
    return True


def _target(sizes: Shape, data: Shape, *, allow_zero: bool) -> list[int] | None:
    copied = {axis for axis, size in enumerate(sizes) if not allow_zero and axis < len(data) and size == data[axis]}
    unknown = [axis for axis, size in enumerate(sizes) if not isinstance(size, int)]
    rest = [axis for axis in unknown if axis not in copied]
    if not rest:
        return [size if isinstance(size, int) else 0 for size in sizes]
    if len(unknown) > 1 and (len(rest) > 1 or any(bounds(size)[0] < 1 for size in sizes)):
        return None
    if any(isinstance(size, int) and size <= 0 for size in sizes):
        return None
    kept = unknown[0] if len(unknown) == 1 else rest[0]
    return [size if isinstance(size, int) else -1 if axis == kept else 0 for axis, size in enumerate(sizes)]
