# SPDX-License-Identifier: Apache-2.0
"""Outputs of which only the last position is wanted: float[batch, length, n] -> float[batch, 1, n].

    y    ->    y = Slice(all of y, -1, end of axis 1)

`move-slice-up` then lets the model compute that position alone, as far as it can.
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import onnx
import onnx.numpy_helper
import onnx_ir as ir

from nndeploy.frontend.load import LoadedModel
from nndeploy.frontend.traversal import nodes_below
from nndeploy.graph.operators import opset_of
from nndeploy.values.types import TensorType

LEAST_OPSET = 10
"""Slice takes its limits as inputs from this one on."""
LIMITS = (("begin", -1), ("end", np.iinfo(np.int64).max), ("axis", 1))
"""The inputs of Slice behind the data."""
RANK = 3
"""So many axes has an output with a position for each token: batch, positions, what is said of each."""


def with_last_position(loaded: LoadedModel, names: Collection[str]) -> LoadedModel:
    """Returns the model, its outputs of these names now their last position alone, where they are such outputs."""
    outputs, positions = list(loaded.outputs), list[int]()
    for position, (one, value) in enumerate(zip(loaded.outputs, loaded.model.graph.outputs, strict=True)):
        kind = one.type
        if one.name not in names or not isinstance(kind, TensorType) or kind.shape is None or len(kind.shape) != RANK:
            continue
        if value.producer() is None:  # an input, or a constant
            continue
        positions.append(position)
        outputs[position] = replace(one, type=TensorType(kind.dtype, (kind.shape[0], 1, kind.shape[2])))
    if not positions or opset_of(loaded.model) < LEAST_OPSET:
        return loaded
    for position in positions:
        _take_last(loaded.model, position)
        _take_last_of_original(loaded.original.graph, position)
    return replace(loaded, outputs=tuple(outputs))


def _take_last(model: ir.Model, position: int) -> None:
    graph = model.graph
    every = graph.outputs[position]
    name, producer, last = every.name, every.producer(), ir.Value(name=every.name, type=every.type)
    assert producer is not None
    assert every.shape is not None
    every.name = f"{name}/all"
    limits = [_constant(graph, f"{name}/{what}", number) for what, number in LIMITS]
    last.shape = ir.Shape([every.shape[0], 1, every.shape[2]])
    graph.append(ir.Node("", "Slice", [every, *limits], outputs=[last], name=f"{name}/last"))
    graph.outputs[position] = last


def _take_last_of_original(graph: onnx.GraphProto, position: int) -> None:
    """Does the same to the message itself: a new one would hold the embedded weights once more."""
    output = graph.output[position]
    name, every = output.name, f"{output.name}/all"
    for names in (names for node in nodes_below(graph.node) for names in (node.input, node.output)):
        for place, one in enumerate(names):
            if one == name:
                names[place] = every
    limits = [onnx.numpy_helper.from_array(np.array([number]), f"{name}/{what}") for what, number in LIMITS]
    graph.initializer.extend(limits)
    inputs = [every, *(limit.name for limit in limits)]
    graph.node.append(onnx.helper.make_node("Slice", inputs, [name], name=f"{name}/last"))
    positions = output.type.tensor_type.shape.dim[1]
    positions.Clear()
    positions.dim_value = 1


def _constant(graph: ir.Graph, name: str, number: int) -> ir.Value:
    tensor = ir.tensor(np.array([number], np.int64), name=name)
    value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape([1]), const_value=tensor)
    graph.register_initializer(value)
    return value
