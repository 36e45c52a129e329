# SPDX-License-Identifier: Apache-2.0
"""Finds layer normalisation that a model spells out in single operators, so that it becomes one step.

    d = x - ReduceMean(x);  d / Sqrt(ReduceMean(d * d) + epsilon) [* scale] [+ shift]

over the last axes. It is taken only where nobody else reads what lies between.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import onnx_ir as ir

from nndeploy.errors import BuildRefusedError
from nndeploy.graph.constants import constant_ints
from nndeploy.graph.operators import int_attribute, ints_attribute, is_standard, only_user, operand
from nndeploy.values.size import product
from nndeploy_triton.lowering.context import FLOATS, Context
from nndeploy_triton.steps.reduction import Normalization, ScalePlaces


@dataclass(slots=True)
class LayerNorms:
    """Nodes that are part of a found normalisation, and what to do at each one's last node."""

    absorbed: set[ir.Node] = field(default_factory=set)
    ends: dict[ir.Node, Callable[[Context], None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Found:
    nodes: tuple[ir.Node, ...]
    x: ir.Value
    epsilon: float
    first_axis: int


def find_layer_norms(model: ir.Model, context: Context) -> LayerNorms:
    """Returns the normalisations of the main graph that are spelled out."""
    found = LayerNorms()
    for node in model.graph:
        core = _core(node, context) if node.op_type == "Div" and is_standard(node, model) else None
        if core is not None:
            _add(found, core, node, context)
    return found


def _add(found: LayerNorms, core: _Found, div: ir.Node, context: Context) -> None:
    scale_node, scale = _next_constant(div, "Mul", core, context)
    shift_node, shift = _next_constant(scale_node or div, "Add", core, context)
    last = shift_node or scale_node or div
    chain = [node for node in (div, scale_node, shift_node) if node is not None]
    found.absorbed.update(node for node in (*core.nodes, *chain) if node is not last)
    found.ends[last] = lambda context: _emit(context, core, scale, shift, last.outputs[0])


def _core(div: ir.Node, context: Context) -> _Found | None:
    """Returns the normalisation whose quotient `div` is, None where it is something else."""
    sub, sqrt = _producer(div, 0, "Sub"), _producer(div, 1, "Sqrt")
    add = _producer(sqrt, 0, "Add")
    if sub is None or sqrt is None or add is None:
        return None
    mean_at = 0 if _producer(add, 0, "ReduceMean") is not None else 1
    epsilon, variance = context.scalar(operand(add, 1 - mean_at)), _producer(add, mean_at, "ReduceMean")
    square, mean = _square_of(variance, sub, context), _producer(sub, 1, "ReduceMean")
    x = operand(sub, 0)
    if epsilon is None or variance is None or square is None or mean is None or x is None or operand(mean, 0) is not x:
        return None
    first = _first_axis(mean)
    if first is None or first != _first_axis(variance) or not _are_floats(x, div.outputs[0], context):
        return None
    nodes = (mean, sub, square, variance, add, sqrt)
    inside = {*nodes, div}
    if any(
        output.is_graph_output() or {use.node for use in output.uses()} - inside for n in nodes for output in n.outputs
    ):
        return None
    return _Found(nodes, x, epsilon, first)


def _producer(node: ir.Node | None, index: int, op_type: str) -> ir.Node | None:
    value = operand(node, index) if node is not None else None
    found = value.producer() if value is not None else None
    return found if found is not None and found.op_type == op_type and found.domain == "" else None


def _square_of(variance: ir.Node | None, sub: ir.Node, context: Context) -> ir.Node | None:
    """Returns the node between `sub` and `variance` if it squares: d * d or d ** 2."""
    for op_type in ("Mul", "Pow"):
        square = _producer(variance, 0, op_type)
        if square is None or operand(square, 0) is not sub.outputs[0]:
            continue
        if op_type == "Mul" and operand(square, 1) is sub.outputs[0]:
            return square
        if op_type == "Pow" and context.scalar(operand(square, 1)) == 2.0:
            return square
    return None


def _first_axis(node: ir.Node) -> int | None:
    """Returns where the reduced axes begin if they are the last ones and stay as ones, None otherwise."""
    value = operand(node, 0)
    axes = constant_ints(operand(node, 1)) if operand(node, 1) is not None else ints_attribute(node, "axes")
    if value is None or value.shape is None or not axes or int_attribute(node, "keepdims", 1) != 1:
        return None
    rank = len(value.shape)
    places = sorted({axis % rank for axis in axes})
    return places[0] if places == list(range(places[0], rank)) else None


def _are_floats(x: ir.Value, y: ir.Value, context: Context) -> bool:
    try:
        return (
            context.dtype_of(x) == context.dtype_of(y) and context.dtype_of(x) in FLOATS and bool(context.shape_of(x))
        )
    except BuildRefusedError:
        return False


def _next_constant(
    node: ir.Node, op_type: str, core: _Found, context: Context
) -> tuple[ir.Node | None, ir.Value | None]:
    """Returns the one reader of `node`, if it is `op_type` with a constant over the normalised axes, and that."""
    reader = only_user(node.outputs[0])
    if reader is None or reader.op_type != op_type or reader.domain != "" or reader.graph is not node.graph:
        return None, None
    others = [value for value in reader.inputs if value is not node.outputs[0]]
    array = context.constant(others[0]) if len(others) == 1 else None
    tail = context.shape_of(core.x)[core.first_axis :]
    if array is None or array.shape != tail or array.dtype.name not in FLOATS:
        return None, None
    return reader, others[0]


def _emit(context: Context, core: _Found, scale: ir.Value | None, shift: ir.Value | None, output: ir.Value) -> None:
    x = context.dense(core.x)
    rows, length = product(x.shape[: core.first_axis]), product(x.shape[core.first_axis :])
    scale_view, shift_view = (None if value is None else context.dense(value) for value in (scale, shift))
    target = context.output(output)
    context.emit(Normalization(target, x, scale_view, shift_view, rows, length, ScalePlaces(1, 0, 1), core.epsilon))
