# SPDX-License-Identifier: Apache-2.0
"""Operators behind which a last bit decides what comes out at all: results in another order, or one more or less.

TopK, NonMaxSuppression and their like choose and sort. What they are given can be compared as tightly as anything
(`model_before_cuts`); what comes out behind them is a list of results, the same in any order but for those at the cut
(`listing_axes`, `nndeploy.comparison.result_rows`).
"""

from collections.abc import Mapping, Sequence

import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

from nndeploy.graph.nodes import bodies, values_read
from nndeploy.values.types import Value

CHOOSING = frozenset({"TopK", "NonMaxSuppression", "NonZero", "Compress", "Unique", "EfficientNMS_TRT"})


def behind_cuts(graph: ir.Graph) -> frozenset[str]:
    """Returns the names of all values of a sorted main graph that depend on what such an operator chose."""
    found: set[int] = set()
    names: set[str] = set()
    for node in graph:
        if _chooses(node) or any(id(value) in found for value in values_read(node)):
            found.update(id(value) for value in node.outputs)
            names.update(value.name for value in node.outputs if value.name)
    return frozenset(names)


def listing_axes(behind: frozenset[str], want: Mapping[str, Value]) -> dict[str, int]:
    """Returns for each output behind a cut the axis along which it lists results: after the batch, if it has one."""
    shapes = {name: want[name].shape for name in sorted(behind & want.keys()) if getattr(want[name], "ndim", 0) > 0}
    deep = [shape for shape in shapes.values() if len(shape) > 1]
    has_batch = bool(deep) and (all(shape[0] == 1 for shape in deep) or len({shape[:2] for shape in deep}) == 1)
    has_batch = has_batch and not any(len(shape) == 1 and shape[0] != 1 for shape in shapes.values())
    return {name: 1 if has_batch and len(shape) > 1 else 0 for name, shape in shapes.items()}


def model_before_cuts(model: ir.Model) -> ir.Model | None:
    """Returns a copy of a model that ends with what its choosing operators are given; None where it has none.

    Values that are themselves behind another cut, constants and inputs are no outputs of it.
    """
    behind = behind_cuts(model.graph)
    copy = model.clone()
    if any(value.type is None for node in copy.graph for value in node.outputs if value.name):
        ShapeInferencePass()(copy)
    given = {
        value.name: value
        for node in copy.graph
        if _chooses(node)
        for value in values_read(node)
        if value.name and value.name not in behind and value.producer() is not None and value.type is not None
        if value.producer().op_type != "Constant"  # type: ignore[union-attr]
    }
    outside = {value.name: value for value in copy.graph.outputs if value.name not in behind and value.producer()}
    return ending_with(copy, list((given | outside).values())) if given else None


def ending_with(model: ir.Model, values: Sequence[ir.Value]) -> ir.Model:
    """Gives a model these outputs, of its own values, and removes what is not used then; returns it."""
    model.graph.outputs.clear()
    model.graph.outputs.extend(values)
    _remove_unused(model.graph)
    return model


def _chooses(node: ir.Node) -> bool:
    return node.op_type in CHOOSING or any(_chooses(inner) for body in bodies(node) for inner in body)


def _remove_unused(graph: ir.Graph) -> None:
    for node in reversed(list(graph)):
        if not any(value.uses() or value.is_graph_output() for value in node.outputs):
            graph.remove(node, safe=True)
    used = [value for value in graph.inputs if value.uses() or value.is_graph_output()]
    graph.inputs[:] = used
    for name in [name for name, value in graph.initializers.items() if not value.uses()]:
        if not graph.initializers[name].is_graph_output():
            del graph.initializers[name]
