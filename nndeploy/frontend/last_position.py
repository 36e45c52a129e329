# SPDX-License-Identifier: Apache-2.0
"""Outputs of which only the last position is wanted: float[batch, length, n] -> float[batch, 1, n].

    y    ->    y = Slice(all of y, -1, end of axis 1)

`move-slice-up` then lets the model compute that position alone, as far as it can.
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from nndeploy.frontend.load import LoadedModel
from nndeploy.graph.operators import opset_of
from nndeploy.values.types import TensorType

LEAST_OPSET = 10
"""Slice takes its limits as inputs from this one on."""
RANK = 3
"""So many axes has an output with a position for each token: batch, positions, what is said of each."""


def with_last_position(loaded: LoadedModel, names: Collection[str]) -> LoadedModel:
    """Returns a model whose outputs of these names are their last position alone, where they are such outputs."""
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
    original = ir.from_proto(loaded.original)
    for model in (loaded.model, original):
        for position in positions:
            _take_last(model, position)
    return replace(loaded, original=ir.to_proto(original), outputs=tuple(outputs))


def _take_last(model: ir.Model, position: int) -> None:
    graph = model.graph
    every = graph.outputs[position]
    name, producer, last = every.name, every.producer(), ir.Value(name=every.name, type=every.type)
    assert producer is not None
    assert every.shape is not None
    every.name = f"{name}/all"
    limits = [
        _constant(graph, f"{name}/{what}", number)
        for what, number in (("begin", -1), ("end", np.iinfo(np.int64).max), ("axis", 1))
    ]
    last.shape = ir.Shape([every.shape[0], 1, every.shape[2]])
    graph.append(ir.Node("", "Slice", [every, *limits], outputs=[last], name=f"{name}/last"))
    graph.outputs[position] = last


def _constant(graph: ir.Graph, name: str, number: int) -> ir.Value:
    tensor = ir.tensor(np.array([number], np.int64), name=name)
    value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape([1]), const_value=tensor)
    graph.register_initializer(value)
    return value
