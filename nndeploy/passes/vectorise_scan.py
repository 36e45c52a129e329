# SPDX-License-Identifier: Apache-2.0
"""Scan(s, x){y_i = f(s, x_i)} -> y = f(s, x): all steps at once, e.g. y = ReduceSumSquare(s - Unsqueeze(x)).

A Scan whose states pass through every step unchanged is a map over the rows of what it scans: the body's operators work
on all rows, along a new first axis. Exporters write distances to each of many points so, and engines run a body for
each point.

Conditions: from opset 13 (axes are inputs); scanned along the first axes, forwards; the body is elementwise operators,
and reductions over axes of at most `MAX_REDUCED` elements in all, which is how many times the memory of a result may
grow; every output of the body depends on what is scanned; ranks are known; no output of the Scan is one of the graph.

Source: ONNX Scan, opset 11; broadcasting in ONNX.
"""

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from nndeploy.graph.constants import constant_array, constant_ints
from nndeploy.graph.edits import GraphEdits
from nndeploy.graph.operators import int_attribute, ints_attribute, operand
from nndeploy.passes.model_pass import NodePass

MAX_REDUCED = 64
"""Elements that one result is summed from: beyond, the steps one after the other need far less memory."""

_ELEMENTWISE = frozenset({
    "Abs", "Add", "Div", "Exp", "Log", "Mul", "Neg", "Pow", "Reciprocal", "Relu", "Sigmoid", "Sqrt", "Sub", "Tanh",
})  # fmt: skip
_REDUCTIONS = frozenset({
    "ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
})  # fmt: skip

Dims = tuple[int | ir.SymbolicDim, ...]


class VectoriseScan(NodePass):
    """Replaces a Scan that is a map over rows by the operators of its body on all rows."""

    name = "vectorise-scan"
    ops = frozenset({"Scan"})

    def rewrite_node(self, node: ir.Node, edits: GraphEdits) -> bool:
        """Returns whether the Scan was replaced."""
        body = node.attributes["body"].as_graph()
        num_states = len(node.inputs) - int_attribute(node, "num_scan_inputs", 0)
        if edits.opset < 13 or not _goes_forwards(node) or any(output.is_graph_output() for output in node.outputs):
            return False
        rows = _Rows(node, body, num_states, edits)
        if not rows.fit() or not _pass_through(body, num_states):
            return False
        rows.make()
        found = [*node.inputs[:num_states], *(rows.made[value] for value in body.outputs[num_states:])]
        return edits.bypass(node, *found)  # type: ignore[arg-type]


def _goes_forwards(node: ir.Node) -> bool:
    names = ("scan_input_axes", "scan_input_directions", "scan_output_axes", "scan_output_directions")
    return not any(number for name in names for number in ints_attribute(node, name) or ())


def _pass_through(body: ir.Graph, num_states: int) -> bool:
    """Returns whether every state leaves a step as it came."""
    pairs = zip(body.inputs[:num_states], body.outputs[:num_states], strict=True)
    return all(_behind_identities(after) is before for before, after in pairs)


def _behind_identities(value: ir.Value | None) -> ir.Value | None:
    while value is not None and (producer := value.producer()) is not None and producer.op_type == "Identity":
        value = producer.inputs[0]
    return value


class _Rows:
    """The values of a body for all rows: `dims` of one row, whether there are many, and what was made of each.

    `reduced` is the product of the sizes that reductions take away.
    """

    def __init__(self, node: ir.Node, body: ir.Graph, num_states: int, edits: GraphEdits) -> None:
        self.node, self.body, self.edits, self.num_states = node, body, edits, num_states
        self.dims: dict[ir.Value, Dims | None] = {}
        self.many: set[ir.Value] = set(body.inputs[num_states:])
        self.reduced = 1
        self.made: dict[ir.Value, ir.Value] = {}
        for inner, outer in zip(body.inputs, node.inputs, strict=True):
            known = None if outer is None or outer.shape is None else tuple(outer.shape)
            self.dims[inner] = known[1:] if known is not None and inner in self.many else known
            if outer is not None:
                self.made[inner] = outer
        outside = node.inputs[-1].shape if node.inputs[-1] is not None else None
        self.count: int | ir.SymbolicDim = outside[0] if outside else ir.SymbolicDim(None)

    def fit(self) -> bool:
        """Returns whether each node can be done for all rows; learns the sizes of what it gives."""
        are_known = all(value in self.made and self.dims[value] is not None for value in self.body.inputs)
        return (
            are_known
            and all(self._fits(node) for node in self.body)
            and all(value in self.many for value in self.body.outputs[self.num_states :])
        )

    def _fits(self, node: ir.Node) -> bool:
        if not self.edits.is_standard(node) or len(node.outputs) != 1 or None in node.inputs:
            return False
        dims = [self._dims(value) for value in node.inputs]
        output = node.outputs[0]
        if any(value in self.many for value in node.inputs):
            self.many.add(output)
        if node.op_type == "Identity":
            self.dims[output] = dims[0]
        elif node.op_type in _ELEMENTWISE and None not in dims:
            self.dims[output] = _broadcast([one for one in dims if one is not None])
        elif node.op_type in _REDUCTIONS and dims[0] is not None:
            left, count = _left_by(node, dims[0]) or (None, 1)
            self.dims[output] = left
            self.reduced *= count
        return self.dims.get(output) is not None and self.reduced <= MAX_REDUCED

    def _dims(self, value: ir.Value | None) -> Dims | None:
        if value in self.dims:
            return self.dims[value]
        return None if value is None or value.shape is None else tuple(value.shape)  # a constant, or from outside

    def make(self) -> None:
        """Puts the nodes of the body before the Scan."""
        for node in self.body:
            output = node.outputs[0]
            if node.op_type == "Identity":
                self.made[output] = self._outside(node.inputs[0])
            elif output not in self.many:
                self._add(node, [self._outside(value) for value in node.inputs], tuple(node.attributes.values()))
            elif node.op_type in _ELEMENTWISE:
                self._add(node, [self._aligned(value, node) for value in node.inputs], tuple(node.attributes.values()))
            else:
                self._add_reduction(node)

    def _outside(self, value: ir.Value | None) -> ir.Value:
        assert value is not None
        if value not in self.made and value.name in self.body.initializers:
            array = constant_array(value)
            assert array is not None
            assert self.node.graph is not None
            self.made[value] = self.edits.constant(self.node.graph, array, value.name or "")
        return self.made.get(value, value)

    def _aligned(self, value: ir.Value | None, node: ir.Node) -> ir.Value:
        """Returns an operand, with axes of 1 behind the rows where others have more axes."""
        outside, mine, all_dims = self._outside(value), self._dims(value), self.dims[node.outputs[0]]
        assert mine is not None
        assert all_dims is not None
        missing = len(all_dims) - len(mine)
        if value not in self.many or not missing:
            return outside
        axes = self._constant(range(1, 1 + missing), f"{outside.name}.axes")
        made = self.edits.insert_before(self.node, "Unsqueeze", (outside, axes), f"{outside.name}.rows")
        made.type, made.shape = outside.type, ir.Shape((self.count, *(1,) * missing, *mine))
        return made

    def _add_reduction(self, node: ir.Node) -> None:
        dims = self._dims(node.inputs[0])
        assert dims is not None
        axes = [axis + 1 for axis in _axes(node, len(dims)) or ()]
        kept = [one for name, one in node.attributes.items() if name not in ("axes", "noop_with_empty_axes")]
        inputs = [self._outside(node.inputs[0])]
        if node.op_type == "ReduceSum" or self.edits.opset >= 18:
            inputs.append(self._constant(axes, f"{node.outputs[0].name}.axes"))
        else:
            kept.append(ir.AttrInt64s("axes", axes))
        self._add(node, inputs, kept)

    def _constant(self, numbers: Sequence[int], name: str) -> ir.Value:
        assert self.node.graph is not None
        return self.edits.constant(self.node.graph, np.array(list(numbers), np.int64), name)

    def _add(self, node: ir.Node, inputs: Sequence[ir.Value], attributes: Sequence[ir.Attr]) -> None:
        output, dims = node.outputs[0], self.dims[node.outputs[0]]
        made = self.edits.insert_before(self.node, node.op_type, inputs, output.name or node.op_type, attributes)
        made.type = output.type or inputs[0].type
        made.shape = ir.Shape((*((self.count,) if output in self.many else ()), *(dims or ())))
        self.made[output] = made


def _broadcast(all_dims: Sequence[Dims]) -> Dims:
    rank = max(len(dims) for dims in all_dims)
    padded = [(*(1,) * (rank - len(dims)), *dims) for dims in all_dims]
    return tuple(_common(sizes) for sizes in zip(*padded, strict=True))


def _common(sizes: Sequence[int | ir.SymbolicDim]) -> int | ir.SymbolicDim:
    """Returns the size that sizes of 1 grow to; one that is not known where they may be different ones."""
    known = {size for size in sizes if isinstance(size, int) and size != 1}
    if known:
        return max(known)
    names = {size.value for size in sizes if isinstance(size, ir.SymbolicDim)}
    if not names:
        return 1
    return ir.SymbolicDim(next(iter(names)) if len(names) == 1 else None)


def _left_by(node: ir.Node, dims: Dims) -> tuple[Dims, int] | None:
    """Returns what a reduction leaves, and how many elements each result is made of; None where that is not known."""
    axes = _axes(node, len(dims))
    sizes = [size for axis in axes or () if isinstance(size := dims[axis], int)]
    if axes is None or len(sizes) < len(axes):
        return None
    keeps = int_attribute(node, "keepdims", 1)
    left = tuple(1 if axis in axes else size for axis, size in enumerate(dims) if keeps or axis not in axes)
    return left, math.prod(sizes)


def _axes(node: ir.Node, rank: int) -> tuple[int, ...] | None:
    """Returns the axes of a reduction, not negative; None where they are not constant, or none."""
    given = operand(node, 1)
    axes = ints_attribute(node, "axes") if given is None else constant_ints(given)
    if axes is None and given is None and not int_attribute(node, "noop_with_empty_axes", 0):
        axes = tuple(range(rank))
    if not axes or any(not -rank <= axis < rank for axis in axes):
        return None
    return tuple(sorted({axis % rank for axis in axes}))
