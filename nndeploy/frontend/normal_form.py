# SPDX-License-Identifier: Apache-2.0
"""One way to say each thing: what old or unusual models say differently is rewritten, in place.

training information                          ->  none (the model is for inference)
a weight that is listed as an input too       ->  a weight (up to IR version 3 every weight is; later ones have a
                                                  default that a caller could override, which nndeploy does not offer)
a size of -1 in the type of a value           ->  a size that is not known
a number of labels, of rows that are not one  ->  a size that is not known (`label_sizes.py`)
a sparse constant                             ->  a dense one (`sparse.py`)
an operator set that is imported again        ->  imported once
the domain "ai.onnx"                          ->  ""
numbers of few bits, as training writes them  ->  operators of ONNX (`lower_quant.py`)
"""

import onnx

from nndeploy.frontend.label_sizes import forget_label_sizes
from nndeploy.frontend.lower_quant import lower_quant
from nndeploy.frontend.sparse import make_dense
from nndeploy.frontend.traversal import graphs_of, nodes_of
from nndeploy.graph.operator_rules import normal_domain

_FIRST_IR_WITH_PLAIN_WEIGHTS = 4


def make_normal(model: onnx.ModelProto) -> None:
    """Rewrites the model as the module's docstring says.

    Raises:
        ModelError: a sparse constant, or an operator that is rewritten, is malformed.
    """
    model.ClearField("training_info")
    _name_default_domain(model)
    make_dense(model)
    lower_quant(model)
    _take_weights_out_of_inputs(model)
    for graph in graphs_of(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            _forget_negative_sizes(value)
    forget_label_sizes(model.graph)


def _name_default_domain(model: onnx.ModelProto) -> None:
    """The gate saw that equal domains have equal versions."""
    for node in nodes_of(model):
        node.domain = normal_domain(node.domain)
    for function in model.functions:
        function.domain = normal_domain(function.domain)
    for owner in (model, *model.functions):
        versions = {normal_domain(opset.domain): opset.version for opset in owner.opset_import}
        del owner.opset_import[:]
        owner.opset_import.extend(onnx.OperatorSetIdProto(domain=d, version=v) for d, v in versions.items())


def _forget_negative_sizes(value: onnx.ValueInfoProto) -> None:
    for dim in value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ():
        if dim.dim_value < 0:
            dim.ClearField("dim_value")


def _take_weights_out_of_inputs(model: onnx.ModelProto) -> None:
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, _FIRST_IR_WITH_PLAIN_WEIGHTS)
