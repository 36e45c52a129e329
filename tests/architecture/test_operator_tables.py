# SPDX-License-Identifier: Apache-2.0
"""What is known of an operator stands in several tables: one that `native` lowers is in all, or here with a reason."""

from nndeploy_native.lowering.table import RULES

from nndeploy.graph import infer_sizes
from nndeploy.partition import cost, kinds

SIZED = {f"{domain}::{name}" if domain else name for domain, rules in infer_sizes._RULES.items() for name in rules}
KINDS = {*kinds._KINDS, "Conv", "FusedConv", "MatMul", "Gemm", "FusedMatMul"}
"""Operators that have a kind; that of the last five follows from their sizes."""
COUNTED = {*cost._OPERATIONS, *cost._FUNCTIONS}

WITHOUT_SIZES = {
    "taken where the model or ONNX's own inference says them": {"CenterCropPad", "com.microsoft::DynamicQuantizeLSTM"},
    "made of other operators when a model is built": {"nndeploy::TextGrams"},
}
WITHOUT_KIND = {
    "rare, and its time is that of the values it moves": {
        "Acos", "Acosh", "AffineGrid", "Asin", "Asinh", "Atan", "Atanh", "BitShift", "BitwiseAnd", "BitwiseNot",
        "BitwiseOr", "BitwiseXor", "CastLike", "CenterCropPad", "Cosh", "EyeLike", "GlobalLpPool", "GridSample",
        "FeatureVectorizer", "Hardmax", "Imputer", "IsInf", "IsNaN", "MaxRoiPool", "MaxUnpool",
        "MeanVarianceNormalization", "Mod", "OneHot", "OneHotEncoder", "Range", "ReverseSequence", "RoiAlign",
        "RotaryEmbedding", "SVMClassifier", "SVMRegressor", "Scatter", "Shrink", "Sinh",
        "SkipSimplifiedLayerNormalization", "Tan", "TextGrams", "TfIdfVectorizer", "Trilu", "Xor",
    },
    "measured in no bench of costs yet": {
        "DynamicQuantizeLSTM", "Einsum", "QGemm",
    },
}  # fmt: skip
UNCOUNTED = {
    "its factors of the cost table were fitted to its elements": {
        "Attention", "GroupQueryAttention", "MultiHeadAttention",
    },
    "each output is made of all inputs once, which is what is moved": {
        "ArgMin", "CumSum", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceProd", "ReduceSumSquare",
        "TopK",
    },
}  # fmt: skip
HEAVY = {
    kinds.TRANSPOSED_CONVOLUTION, kinds.ATTENTION, kinds.RECURRENT, kinds.QUANTISED_CONVOLUTION, kinds.TREES,
    kinds.QUANTISED_PRODUCT, kinds.SMALL_PRODUCT, kinds.POOLING, kinds.REDUCTION,
}  # fmt: skip
"""Kinds of operators that compute more than one operation an element."""


def named(reasons: dict[str, set[str]]) -> set[str]:
    """Returns the operators of all reasons, each of which stands behind one alone."""
    every = [name for names in reasons.values() for name in names]
    assert len(every) == len(set(every))
    return set(every)


def test_sizes_are_known_of_what_is_lowered() -> None:
    assert {*RULES} - SIZED == named(WITHOUT_SIZES)


def test_what_is_lowered_has_a_kind() -> None:
    assert {name.rpartition("::")[2] for name in RULES} - KINDS == named(WITHOUT_KIND)


def test_operations_are_counted_of_what_computes_much() -> None:
    heavy = {name for name, kind in kinds._KINDS.items() if kind in HEAVY} | (KINDS - {*kinds._KINDS})
    assert heavy - COUNTED == named(UNCOUNTED)


def test_what_costs_nothing_is_free_in_both_tables() -> None:
    free = {name for name, kind in kinds._KINDS.items() if kind == kinds.FREE}
    assert free - cost._CHEAP == {"Dropout"}, "which is a copy where it is trained"
    assert free >= cost._CHEAP
