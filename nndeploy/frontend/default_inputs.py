# SPDX-License-Identifier: Apache-2.0
"""Initializers that a model lists among its inputs too: constants, or inputs that have a default.

    IR version 1 to 3                       ->  constants: these versions ask for the listing of every weight
    a model that lists all its weights      ->  constants, and a note (exporters do so, and nobody feeds weights)
    any other                               ->  inputs; a call that leaves one out gets its default

A weight is what a convolution, a product of matrices, a normalisation or a recurrent layer has beside its input. The
caller may choose instead.

Source: ONNX IR.md, "Graphs": an initializer whose name is that of an input is the input's default.
"""

from collections.abc import Mapping, MutableSequence, Set
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper

from nndeploy.values.types import Value

AUTO, INPUTS, CONSTANTS = "auto", "inputs", "constants"

_FIRST_WITH_DEFAULTS = 4
_WITH_WEIGHTS = frozenset({
    "BatchNormalization", "Conv", "ConvInteger", "ConvTranspose", "GRU", "Gemm", "InstanceNormalization",
    "LayerNormalization", "LSTM", "MatMul", "MatMulInteger", "QLinearConv", "QLinearMatMul", "RNN",
})  # fmt: skip


def take_defaults(model: onnx.ModelProto, choice: str = AUTO) -> tuple[dict[str, Value], tuple[str, ...]]:
    """Makes each initializer that is an input too one of both, in place; returns the defaults of inputs, and notes."""
    listed = {value.name for value in model.graph.input}
    both = [tensor for tensor in model.graph.initializer if tensor.name in listed]
    is_old = model.ir_version < _FIRST_WITH_DEFAULTS
    model.ir_version = max(model.ir_version, _FIRST_WITH_DEFAULTS)
    are_weights = choice == AUTO and not is_old and _lists_all_weights(model, listed)
    if is_old or are_weights or choice == CONSTANTS:
        _keep(model.graph.input, {value.name for value in model.graph.input} - {tensor.name for tensor in both})
        note = f"{len(both)} inputs became constants: the model lists all its weights (see --initializer-inputs)"
        return {}, (note,) if are_weights else ()
    defaults: dict[str, Value] = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in both}
    _keep(model.graph.initializer, {tensor.name for tensor in model.graph.initializer} - defaults.keys())
    return defaults, ()


def make_constants(model: onnx.ModelProto, defaults: Mapping[str, Value]) -> None:
    """Replaces the inputs that have a default by initializers, in place."""
    _keep(model.graph.input, {value.name for value in model.graph.input} - defaults.keys())
    tensors = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in defaults.items()]
    model.graph.initializer.extend(tensors)


def _lists_all_weights(model: onnx.ModelProto, listed: set[str]) -> bool:
    constants = {tensor.name for tensor in model.graph.initializer}
    operands = {name for node in model.graph.node if node.op_type in _WITH_WEIGHTS for name in node.input[1:]}
    weights = operands & constants
    return bool(weights) and weights <= listed


def _keep(values: MutableSequence[Any], names: Set[str]) -> None:
    kept = [value for value in values if value.name in names]
    del values[:]
    values.extend(kept)
