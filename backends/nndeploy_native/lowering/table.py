# SPDX-License-Identifier: Apache-2.0
"""The operators that have a rule, and the lowering of a node or of a whole submodel."""

from collections.abc import Callable, Mapping

import onnx_ir as ir

from nndeploy.backend_kit.kernels import rules
from nndeploy.graph.operators import opset_of
from nndeploy.values.types import DimRange
from nndeploy_native.lowering import (
    activation_rules,
    attention_rules,
    bits_rules,
    column_rules,
    contrib_rules,
    convolution_rules,
    einsum_rules,
    elementwise_rules,
    gram_rules,
    group_query_rules,
    indexed_rules,
    integer_convolution_rules,
    integer_rules,
    logic_rules,
    machine_rules,
    matrix_rules,
    movement_rules,
    normalisation_rules,
    number_rules,
    onnx_attention_rules,
    pad_rules,
    pooling_rules,
    quantisation_rules,
    ranking_rules,
    recurrent_rules,
    reduction_rules,
    resize_rules,
    rotary_rules,
    row_rules,
    sampling_rules,
    tree_rules,
)
from nndeploy_native.lowering.context import Context, Lowered
from nndeploy_native.transforms.text_grams import OWN, TEXT_GRAMS

Rule = Callable[[ir.Node, Context], None]

RULES: dict[str, Rule] = {
    **dict.fromkeys(elementwise_rules.UNARY_OPERATORS, elementwise_rules.unary),
    **dict.fromkeys(elementwise_rules.BINARY_OPERATORS, elementwise_rules.binary),
    **dict.fromkeys(elementwise_rules.VARIADIC_OPERATORS, elementwise_rules.variadic),
    **dict.fromkeys(activation_rules.OPERATORS, activation_rules.activation),
    "BatchNormalization": elementwise_rules.batch_normalization,
    "Clip": elementwise_rules.clip,
    "Pow": elementwise_rules.power,
    "PRelu": elementwise_rules.prelu,
    **dict.fromkeys(logic_rules.OPERATORS, logic_rules.plain),
    "BitShift": logic_rules.shift,
    **dict.fromkeys(("Cast", "CastLike"), logic_rules.cast),
    "Dropout": logic_rules.dropout,
    "IsInf": logic_rules.is_infinite,
    "Mod": logic_rules.modulo,
    "ConstantOfShape": number_rules.constant_of_shape,
    "Range": number_rules.range_,
    "Shape": number_rules.shape,
    "Size": number_rules.size,
    "Conv": convolution_rules.convolution,
    "ConvInteger": integer_convolution_rules.convolution_integer,
    "QLinearConv": integer_convolution_rules.qlinear_convolution,
    "ConvTranspose": convolution_rules.transposed_convolution,
    **dict.fromkeys(pooling_rules.KINDS, pooling_rules.pooling),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"), pooling_rules.global_pooling),
    "MaxUnpool": pooling_rules.unpooling,
    "Attention": onnx_attention_rules.attention,
    "RotaryEmbedding": rotary_rules.rotary_embedding_of_onnx,
    "Einsum": einsum_rules.einsum,
    "Gemm": matrix_rules.gemm,
    **dict.fromkeys(("GRU", "LSTM", "RNN"), recurrent_rules.recurrent),
    "MatMul": matrix_rules.matmul,
    "MatMulInteger": integer_rules.matmul_integer,
    "QLinearMatMul": integer_rules.qlinear_matmul,
    "Concat": movement_rules.concat,
    "DepthToSpace": movement_rules.depth_to_space,
    **dict.fromkeys(("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"), movement_rules.reshape),
    "EyeLike": indexed_rules.eye_like,
    "OneHot": indexed_rules.one_hot,
    "ReverseSequence": indexed_rules.reverse_sequence,
    "SpaceToDepth": movement_rules.space_to_depth,
    "Tile": movement_rules.tile,
    "Trilu": indexed_rules.trilu,
    "Expand": movement_rules.expand,
    **dict.fromkeys(("Gather", "GatherElements", "GatherND"), movement_rules.gather),
    "CenterCropPad": pad_rules.center_crop_pad,
    "Pad": pad_rules.pad,
    "Slice": movement_rules.slice_,
    "Split": movement_rules.split,
    "Transpose": movement_rules.transpose,
    "GroupNormalization": normalisation_rules.group_normalization,
    "InstanceNormalization": normalisation_rules.instance_normalization,
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), normalisation_rules.layer_normalization),
    "LRN": normalisation_rules.local_response_normalization,
    "LpNormalization": normalisation_rules.lp_normalization,
    "MeanVarianceNormalization": normalisation_rules.mean_variance_normalization,
    "DequantizeLinear": quantisation_rules.dequantise,
    "DynamicQuantizeLinear": quantisation_rules.dynamic_quantise,
    "QuantizeLinear": quantisation_rules.quantise,
    **dict.fromkeys(reduction_rules.REDUCTIONS, reduction_rules.reduce),
    "CumSum": reduction_rules.cumulative_sum,
    **dict.fromkeys(("Hardmax", "LogSoftmax", "Softmax"), reduction_rules.softmax),
    **dict.fromkeys(("ArgMax", "ArgMin"), ranking_rules.arg),
    "TopK": ranking_rules.top,
    **dict.fromkeys(("Resize", "Upsample"), resize_rules.resize),
    "AffineGrid": sampling_rules.affine_grid,
    "GridSample": sampling_rules.grid_sample,
    "MaxRoiPool": sampling_rules.roi_max_pool,
    "RoiAlign": sampling_rules.roi_align,
    "TfIdfVectorizer": gram_rules.tf_idf_vectorizer,
    f"{OWN}::{TEXT_GRAMS}": gram_rules.text_grams,
    **dict.fromkeys(("Scatter", "ScatterElements", "ScatterND"), indexed_rules.scatter),
    "ai.onnx.ml::ArrayFeatureExtractor": row_rules.array_feature_extractor,
    "ai.onnx.ml::Binarizer": row_rules.binarizer,
    "ai.onnx.ml::FeatureVectorizer": column_rules.feature_vectorizer,
    "ai.onnx.ml::Imputer": column_rules.imputer,
    "ai.onnx.ml::LabelEncoder": row_rules.label_encoder,
    "ai.onnx.ml::LinearClassifier": row_rules.linear_classifier,
    "ai.onnx.ml::LinearRegressor": row_rules.linear_regressor,
    "ai.onnx.ml::Normalizer": row_rules.normalizer,
    "ai.onnx.ml::OneHotEncoder": column_rules.one_hot_encoder,
    "ai.onnx.ml::SVMClassifier": machine_rules.svm_classifier,
    "ai.onnx.ml::SVMRegressor": machine_rules.svm_regressor,
    "ai.onnx.ml::Scaler": row_rules.scaler,
    "ai.onnx.ml::TreeEnsembleClassifier": tree_rules.classifier,
    "ai.onnx.ml::TreeEnsembleRegressor": tree_rules.regressor,
    **{f"com.microsoft::{name}": contrib_rules.gelu for name in ("BiasGelu", "FastGelu", "Gelu")},
    "com.microsoft::Attention": attention_rules.attention,
    "com.microsoft::DynamicQuantizeLSTM": recurrent_rules.dynamic_quantise_lstm,
    "com.microsoft::DynamicQuantizeMatMul": integer_rules.dynamic_quantise_matmul,
    "com.microsoft::FusedMatMul": contrib_rules.fused_matmul,
    "com.microsoft::GroupQueryAttention": group_query_rules.group_query_attention,
    "com.microsoft::MatMulIntegerToFloat": integer_rules.matmul_integer_to_float,
    "com.microsoft::MatMulNBits": bits_rules.matmul_nbits,
    "com.microsoft::MultiHeadAttention": attention_rules.multi_head_attention,
    "com.microsoft::QGemm": integer_rules.qgemm,
    "com.microsoft::QuickGelu": contrib_rules.quick_gelu,
    "com.microsoft::RotaryEmbedding": rotary_rules.rotary_embedding,
    "com.microsoft::SkipLayerNormalization": contrib_rules.skip_layer_normalization,
    "com.microsoft::SkipSimplifiedLayerNormalization": contrib_rules.skip_simplified_layer_normalization,
}


def refusal_of(node: ir.Node, model: ir.Model, ranges: Mapping[str, DimRange]) -> str:
    """Returns why a node cannot be lowered, or ""."""
    return rules.refusal_of(node, model, ranges, RULES, Context)


def lower(model: ir.Model, ranges: Mapping[str, DimRange]) -> Lowered:
    """Returns a submodel as steps.

    Raises:
        BuildRefusedError: a node has no rule, or its rule says no.
    """
    context = Context(opset_of(model), ranges, rules.value_names(model.graph))
    context.take_inputs(list(model.graph.inputs))
    for node in model.graph:
        if node.op_type != "Constant" or node.domain:
            rules.lower_node(node, model, RULES, context)
    context.finish(list(model.graph.outputs))
    return context.lowered
