# SPDX-License-Identifier: Apache-2.0
"""Kinds of operators by which backends differ in speed: a row of the cost table each.

A kind is that of the operator and of the sizes that decide which kernel computes it: a product of one row reads its
weights and does little else, a convolution of three channels cannot fill vectors with them. `FREE` are operators that
give a value a new name or shape; everything that has no kind of its own is `OTHER`.
"""

import math

import onnx_ir as ir

from nndeploy.graph.nodes import is_constant
from nndeploy.partition.value_sizes import Sizes

FIRST_CONVOLUTION = "first convolution"
POINTWISE = "pointwise convolution"
CONVOLUTION_3X3 = "3x3 convolution"
CONVOLUTION = "convolution"
DEPTHWISE = "depthwise convolution"
TRANSPOSED_CONVOLUTION = "transposed convolution"
ROW_PRODUCT = "product of one row"
SMALL_PRODUCT = "product of few rows"
PRODUCT = "product"
VALUES_PRODUCT = "product of two values"
ATTENTION = "attention"
RECURRENT = "recurrent"
NORMALISATION = "normalisation"
SOFTMAX = "softmax"
REDUCTION = "reduction"
ELEMENTWISE = "elementwise"
FUNCTION = "elementwise function"
MOVEMENT = "movement"
GATHER = "gather"
POOLING = "pooling"
RESIZE = "resize"
QUANTISED_CONVOLUTION = "quantised convolution"
QUANTISED_PRODUCT = "quantised product"
QUANTISATION = "quantisation"
TREES = "trees"
OTHER = "other"
FREE = "free"

MEASURED_KINDS = (
    FIRST_CONVOLUTION, POINTWISE, CONVOLUTION_3X3, CONVOLUTION, DEPTHWISE, TRANSPOSED_CONVOLUTION, ROW_PRODUCT,
    SMALL_PRODUCT, PRODUCT, VALUES_PRODUCT, ATTENTION, RECURRENT, NORMALISATION, SOFTMAX, REDUCTION, ELEMENTWISE,
    FUNCTION, MOVEMENT, GATHER, POOLING, RESIZE, QUANTISED_CONVOLUTION, QUANTISED_PRODUCT, QUANTISATION, TREES,
)  # fmt: skip
CONVOLUTIONS = frozenset({
    FIRST_CONVOLUTION, POINTWISE, CONVOLUTION_3X3, CONVOLUTION, DEPTHWISE, TRANSPOSED_CONVOLUTION,
    QUANTISED_CONVOLUTION,
})  # fmt: skip
PRODUCTS = frozenset({ROW_PRODUCT, SMALL_PRODUCT, PRODUCT, VALUES_PRODUCT, QUANTISED_PRODUCT})
FOLLOWERS = frozenset({ELEMENTWISE, FUNCTION, QUANTISATION})
"""Kinds that engines compute together with what their input comes from."""

FEW_CHANNELS = 4
FEW_ROWS = 32

_KINDS = {
    "ConvTranspose": TRANSPOSED_CONVOLUTION, "Attention": ATTENTION, "MultiHeadAttention": ATTENTION,
    "GroupQueryAttention": ATTENTION,
    "LSTM": RECURRENT, "GRU": RECURRENT, "RNN": RECURRENT,
    "QLinearConv": QUANTISED_CONVOLUTION, "ConvInteger": QUANTISED_CONVOLUTION,
    "QLinearMatMul": QUANTISED_PRODUCT, "MatMulInteger": QUANTISED_PRODUCT, "MatMulNBits": QUANTISED_PRODUCT,
    "DynamicQuantizeMatMul": QUANTISED_PRODUCT, "MatMulIntegerToFloat": QUANTISED_PRODUCT,
    "QuantizeLinear": QUANTISATION, "DequantizeLinear": QUANTISATION, "DynamicQuantizeLinear": QUANTISATION,
    "LayerNormalization": NORMALISATION, "InstanceNormalization": NORMALISATION, "GroupNormalization": NORMALISATION,
    "RMSNormalization": NORMALISATION, "SimplifiedLayerNormalization": NORMALISATION,
    "SkipLayerNormalization": NORMALISATION, "LpNormalization": NORMALISATION, "LRN": NORMALISATION,
    "Softmax": SOFTMAX, "LogSoftmax": SOFTMAX, "BatchNormalization": ELEMENTWISE, "Resize": RESIZE, "Upsample": RESIZE,
    "ArgMax": REDUCTION, "ArgMin": REDUCTION, "CumSum": REDUCTION, "TopK": REDUCTION,
    "GlobalAveragePool": REDUCTION, "GlobalMaxPool": REDUCTION,
    "TreeEnsembleClassifier": TREES, "TreeEnsembleRegressor": TREES,
    "LinearClassifier": SMALL_PRODUCT, "LinearRegressor": SMALL_PRODUCT, "Normalizer": NORMALISATION,
    "Scaler": ELEMENTWISE, "Binarizer": ELEMENTWISE, "ArrayFeatureExtractor": GATHER, "LabelEncoder": GATHER,
    "MaxPool": POOLING, "AveragePool": POOLING, "LpPool": POOLING,
    "Gather": GATHER, "GatherElements": GATHER, "GatherND": GATHER,
    **dict.fromkeys(
        ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
         "ReduceLogSumExp", "ReduceLogSum"), REDUCTION),
    **dict.fromkeys(
        ("Transpose", "Concat", "Slice", "Split", "Pad", "Expand", "Tile", "DepthToSpace", "SpaceToDepth", "Cast",
         "ScatterND", "ScatterElements", "Reverse"), MOVEMENT),
    **dict.fromkeys(
        ("Add", "Sub", "Mul", "Max", "Min", "Relu", "LeakyRelu", "PRelu", "Clip", "Neg", "Abs", "Where", "Not", "And",
         "Or", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "Floor", "Ceil", "Round", "Sign",
         "HardSigmoid", "HardSwish", "Reciprocal", "Sqrt", "Div", "Sum", "Mean", "ThresholdedRelu"), ELEMENTWISE),
    **dict.fromkeys(
        ("Exp", "Log", "Pow", "Sigmoid", "Tanh", "Erf", "Gelu", "Softplus", "Elu", "Selu", "Celu", "Swish", "Mish",
         "Sin", "Cos", "Softsign", "FastGelu", "QuickGelu", "BiasGelu"), FUNCTION),
    **dict.fromkeys(
        ("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Shape", "Size", "Constant", "ConstantOfShape",
         "Dropout"), FREE),
}  # fmt: skip


def kind_of(node: ir.Node, sizes: Sizes) -> str:
    """Returns the kind of a node, by its operator and its sizes."""
    if node.op_type in ("Conv", "FusedConv"):
        return QUANTISED_CONVOLUTION if _is_dequantised(node) else _kind_of_convolution(node, sizes)
    if node.op_type in ("MatMul", "Gemm", "FusedMatMul"):
        return QUANTISED_PRODUCT if _is_dequantised(node) else _kind_of_product(node, sizes)
    return _KINDS.get(node.op_type, OTHER)


def _is_dequantised(node: ir.Node) -> bool:
    producers = [value.producer() for value in node.inputs[:2] if value is not None]
    return len(producers) == 2 and all(one is not None and one.op_type == "DequantizeLinear" for one in producers)


def _kind_of_convolution(node: ir.Node, sizes: Sizes) -> str:
    weight = sizes.shape(node.inputs[1])  # (C_out, C_in / groups, k...)
    groups = node.attributes["group"].as_int() if "group" in node.attributes else 1
    if len(weight) < 3:
        return CONVOLUTION
    if groups > 1:
        return DEPTHWISE if weight[1] == 1 else CONVOLUTION
    if weight[1] <= FEW_CHANNELS:
        return FIRST_CONVOLUTION
    if math.prod(weight[2:]) == 1:
        return POINTWISE
    strides = node.attributes["strides"].as_ints() if "strides" in node.attributes else (1,)
    return CONVOLUTION_3X3 if weight[2:] == (3, 3) and set(strides) == {1} else CONVOLUTION


def _kind_of_product(node: ir.Node, sizes: Sizes) -> str:
    left, right = node.inputs[:2]
    if right is None or not is_constant(right):
        return VALUES_PRODUCT
    shape = sizes.shape(left)
    is_transposed = "transA" in node.attributes and node.attributes["transA"].as_int() == 1
    rows = math.prod(shape[1:] if is_transposed else shape[:-1])
    return ROW_PRODUCT if rows <= 1 else SMALL_PRODUCT if rows < FEW_ROWS else PRODUCT
