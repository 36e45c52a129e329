# SPDX-License-Identifier: Apache-2.0
"""What a model gives where every real number in it is a float64."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, numpy_helper

from oracle.evaluator import evaluate
from oracle.registry import is_float

REALS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def outputs_in_float64(model: ModelProto, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns every value that a node of the main graph makes, by name."""
    wide = ModelProto()
    wide.CopyFrom(model)
    attributes = [attribute for node in wide.graph.node for attribute in node.attribute]
    for one in (*wide.graph.initializer, *(attribute.t for attribute in attributes)):
        if one.data_type in REALS:
            one.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(one).astype(np.float64), one.name))
    for attribute in attributes:
        if attribute.name == "to" and attribute.i in REALS:
            attribute.i = TensorProto.DOUBLE
    names = [name for node in wide.graph.node for name in node.output if name]
    del wide.graph.output[:]
    wide.graph.output.extend(ValueInfoProto(name=name) for name in names)
    return evaluate(
        wide, {name: one.astype(np.float64) if is_float(one.dtype) else one for name, one in inputs.items()}
    )
