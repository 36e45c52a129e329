# SPDX-License-Identifier: Apache-2.0
"""Symbolic sizes -> the sizes that one sample gives, so that costs can be estimated."""

import logging
from collections.abc import Mapping

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import ShapeInferencePass

from nndeploy.values.types import VALUE_TYPE, Value

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
        value.shape = None
    for value in trial.graph.inputs:
        if value.name in fed:
            value.shape = ir.Shape(fed[value.name])
    _hide_maps(trial)
    ShapeInferencePass(data_prop=False)(trial)  # with data a hostile model could take all memory
    return {
        value.name: value.shape.numpy()
        for node in trial.graph
        for value in (*node.inputs, *node.outputs)
        if value is not None and value.name and value.shape is not None and value.shape.is_static()
    }


def _hide_maps(trial: ir.Model) -> None:
    """Makes operators that give maps unknown ones, in place: onnx_ir cannot read what is inferred of them."""
    for node in trial.graph:
        if any(VALUE_TYPE in output.meta for output in node.outputs):
            node.domain = "nndeploy.hidden"
            trial.graph.opset_imports[node.domain] = 1
