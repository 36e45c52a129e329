# SPDX-License-Identifier: Apache-2.0
"""Symbolic sizes -> the sizes that one sample gives, so that costs can be estimated.

The inference loses sizes behind numbers that are computed. Passes find many of these, so what is known of the optimised
graph counts for every graph of the same model: a name stands for the same value in all of them.
"""

import functools
import logging
from collections.abc import Callable, Mapping

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

from nndeploy.graph.constants import constant_tensor
from nndeploy.graph.infer_sizes import known_sizes
from nndeploy.graph.map_types import holds_map
from nndeploy.values.size import fixed, is_fixed
from nndeploy.values.types import Value

# Where the inference gives up, shapes stay unknown; it would print a traceback for that.
logging.getLogger("onnx_ir.passes.common.shape_inference").setLevel(logging.CRITICAL)


def concrete_shapes(model: ir.Model, sample: Mapping[str, Value]) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of values by name when the inputs have the sizes of `sample`, where they can be inferred.

    Empty where the model has no symbolic size: its own shapes say it all.
    """
    fed = {name: value.shape for name, value in sample.items() if isinstance(value, np.ndarray)}
    if all(value.shape is not None and value.shape.is_static() for value in model.graph.inputs if value.name in fed):
        return {}
    trial = model.clone()
    for value in (*trial.graph.outputs, *(output for node in trial.graph for output in node.outputs)):
        if constant_tensor(value) is None:
            value.shape = None
    for value in trial.graph.inputs:
        if value.name in fed:
            value.shape = ir.Shape(fed[value.name])
    followed = _followed(trial)
    _hide_maps(trial)
    ShapeInferencePass(data_prop=False)(trial)  # with data a hostile model could take all memory
    return followed | {
        value.name: value.shape.numpy()
        for node in trial.graph
        for value in (*node.inputs, *node.outputs)
        if value is not None and value.name and value.shape is not None and value.shape.is_static()
    }


def shapes_in_all_graphs(
    optimised: ir.Model, sample: Mapping[str, Value]
) -> Callable[[ir.Model], dict[str, tuple[int, ...]]]:
    """Returns what gives the shapes of a graph's values at the sizes of `sample`.

    A graph is one of the model of which `optimised` is the one after the passes: what is known there, counts too.
    """

    @functools.cache
    def known() -> dict[str, tuple[int, ...]]:
        own = {
            value.name: value.shape.numpy()
            for node in optimised.graph
            for value in node.outputs
            if value.name and value.shape is not None and value.shape.is_static()
        }
        return {**own, **concrete_shapes(optimised, sample)}

    return lambda model: {**known(), **concrete_shapes(model, sample)}


def _followed(trial: ir.Model) -> dict[str, tuple[int, ...]]:
    """Returns the shapes that follow by our own rules, and gives them to values: ONNX's inference goes on from there.

    By itself it ends at operators of others. It takes no shape of a value whose type is not known.
    """
    known, found = known_sizes(trial, {}), dict[str, tuple[int, ...]]()
    for value in (value for node in trial.graph for value in node.outputs):
        shape = known.shape(value)
        if value.name and shape is not None and is_fixed(shape):
            found[value.name] = fixed_shape = tuple(map(fixed, shape))
            value.shape = ir.Shape(fixed_shape) if value.type is not None else None
    return found


def _hide_maps(trial: ir.Model) -> None:
    """Makes operators that give maps unknown ones, in place: onnx_ir cannot read what is inferred of them."""
    for node in trial.graph:
        if any(map(holds_map, node.outputs)):
            node.domain = "nndeploy.hidden"
            trial.graph.opset_imports[node.domain] = 1
