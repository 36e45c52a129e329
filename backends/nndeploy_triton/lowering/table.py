# SPDX-License-Identifier: Apache-2.0
"""The operators of ONNX that have a rule, and the lowering of a node or of a whole submodel."""

from collections.abc import Callable, Mapping

import onnx_ir as ir

from nndeploy.backend_kit.kernels import rules
from nndeploy.graph.operators import opset_of
from nndeploy.values.types import DimRange
from nndeploy_triton.lowering import (
    elementwise_rules,
    matrix_rules,
    movement_rules,
    quantization_rules,
    recurrent_rules,
    reduction_rules,
    resize_rules,
    window_rules,
)
from nndeploy_triton.lowering.context import Context, Lowered
from nndeploy_triton.lowering.layer_norm import find_layer_norms
from nndeploy_triton.views import View

Rule = Callable[[ir.Node, Context], None]

RULES: dict[str, Rule] = {
    **dict.fromkeys(elementwise_rules.UNARY_OPERATORS, elementwise_rules.unary),
    **dict.fromkeys(elementwise_rules.BINARY_OPERATORS, elementwise_rules.binary),
    **dict.fromkeys(elementwise_rules.VARIADIC_OPERATORS, elementwise_rules.variadic),
    **dict.fromkeys((*elementwise_rules.COMPARISONS, *elementwise_rules.MIRRORED), elementwise_rules.compare),
    **dict.fromkeys((*elementwise_rules.LOGICAL, "Not"), elementwise_rules.logical),
    **dict.fromkeys(elementwise_rules.ACTIVATIONS, elementwise_rules.activation),
    "BatchNormalization": elementwise_rules.batch_normalization,
    "Cast": elementwise_rules.cast,
    "Clip": elementwise_rules.clip,
    "IsNaN": elementwise_rules.is_nan,
    "PRelu": elementwise_rules.prelu,
    "Pow": elementwise_rules.power,
    "Where": elementwise_rules.where,
    "Concat": movement_rules.concat,
    "DepthToSpace": movement_rules.depth_to_space,
    "Dropout": movement_rules.same,
    "Expand": movement_rules.expand,
    "Flatten": movement_rules.reshape,
    "Gather": movement_rules.gather,
    "Identity": movement_rules.same,
    "Pad": movement_rules.pad,
    "Reshape": movement_rules.reshape,
    "Slice": movement_rules.slice_,
    "SpaceToDepth": movement_rules.space_to_depth,
    "Split": movement_rules.split,
    "Squeeze": movement_rules.reshape,
    "Tile": movement_rules.tile,
    "Transpose": movement_rules.transpose,
    "Unsqueeze": movement_rules.reshape,
    "AveragePool": window_rules.pooling,
    "Conv": window_rules.convolution,
    "ConvTranspose": window_rules.transposed_convolution,
    "MaxPool": window_rules.pooling,
    "DequantizeLinear": quantization_rules.dequantize,
    "QLinearConv": quantization_rules.quantized_convolution,
    "QuantizeLinear": quantization_rules.quantize,
    "Gemm": matrix_rules.gemm,
    "LSTM": recurrent_rules.lstm,
    "MatMul": matrix_rules.matmul,
    **dict.fromkeys(reduction_rules.REDUCTIONS, reduction_rules.reduce),
    **dict.fromkeys(reduction_rules.GLOBAL_POOLS, reduction_rules.global_pool),
    "GroupNormalization": reduction_rules.group_normalization,
    "InstanceNormalization": reduction_rules.instance_normalization,
    "LayerNormalization": reduction_rules.layer_normalization,
    "LogSoftmax": reduction_rules.softmax,
    "RMSNormalization": reduction_rules.layer_normalization,
    "Softmax": reduction_rules.softmax,
    "Resize": resize_rules.resize,
    "Upsample": resize_rules.resize,
}


def refusal_of(node: ir.Node, model: ir.Model, ranges: Mapping[str, DimRange]) -> str:
    """Returns why a node cannot be lowered, or ""."""
    return rules.refusal_of(node, model, ranges, RULES, Context)


def lower(model: ir.Model, ranges: Mapping[str, DimRange]) -> tuple[Lowered, dict[str, View], dict[str, View]]:
    """Returns the steps of a submodel, and the views of its inputs and of its outputs by name.

    Raises:
        BuildRefusedError: a node has no rule, or its rule says no.
    """
    context = Context(opset_of(model), ranges, rules.value_names(model.graph))
    inputs = {value.name or "": context.view(value) for value in model.graph.inputs}
    layer_norms = find_layer_norms(model, context)
    for node in model.graph:
        if node in layer_norms.absorbed or node.op_type == "Constant":
            continue
        if node in layer_norms.ends:
            layer_norms.ends[node](context)
            continue
        rules.lower_node(node, model, RULES, context)
    return context.lowered, inputs, context.finish(list(model.graph.outputs))
