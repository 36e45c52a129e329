# SPDX-License-Identifier: Apache-2.0
"""A model in float64, by the oracle."""

from collections.abc import Mapping

import numpy as np
import onnx
from native_models import Array
from onnx import TensorProto, numpy_helper
from oracle.evaluator import evaluate


def outputs_in_float64(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Returns every value that a node makes, by name: all that was float32 is float64."""
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    attributes = [attribute for node in wide.graph.node for attribute in node.attribute]
    for one in (*wide.graph.initializer, *(attribute.t for attribute in attributes)):
        if one.data_type == TensorProto.FLOAT:
            one.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(one).astype(np.float64), one.name))
    for attribute in attributes:
        if attribute.name == "to" and attribute.i == TensorProto.FLOAT:
            attribute.i = TensorProto.DOUBLE
    names = [name for node in wide.graph.node for name in node.output if name]
    del wide.graph.output[:]
    wide.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return evaluate(
        wide, {name: one.astype(np.float64) if one.dtype == np.float32 else one for name, one in inputs.items()}
    )
