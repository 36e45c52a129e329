# SPDX-License-Identifier: Apache-2.0
"""The table of changes: which operator wants another form from which version on.

Each change stands under the first version that has no place for the older form, or reads it otherwise. What it returns
is in the words of that version; changes of later versions are for whoever applies it. In comes a node that onnx's
checker accepts in the version that it is written for. Every other operator means in a newer version what it meant in
an older one (a test holds that against onnx's own schemas).

Law: the numbers do not change. A BatchNormalization or Dropout of one output is that of inference, whatever the
attribute `is_test` says: what trains has more outputs, and nobody wants a random result.
"""

from collections.abc import Mapping

from nndeploy.frontend.operator_sets import from_eight as later
from nndeploy.frontend.operator_sets import to_seven as first
from nndeploy.frontend.operator_sets.surroundings import Change, as_inputs, renamed, with_default, without

_REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSumSquare",
)  # fmt: skip
NOT_OWN: Mapping[str, range] = {
    **{op: range(1, 10) for op in ("Affine", "Crop", "DynamicSlice", "ImageScaler", "ParametricSoftplus", "Scale")},
    **{op: range(1, 10) for op in ("ScaledTanh", "ThresholdedRelu")},
    "MeanVarianceNormalization": range(1, 9),
    "GroupNormalization": range(18, 21),
}
"""Operator -> versions in which it is experimental or deprecated; behind them it, or what stands for it, is ONNX's."""
_OVER_SEVERAL_AXES = ("Softmax", "LogSoftmax", "Hardmax")
SAME_IN_BOTH = {"BatchNormalization": 9, **dict.fromkeys(_OVER_SEVERAL_AXES, 13)}
"""Operators whose change of that version gives nodes that mean the same before it, so that it is made at once."""

CHANGES: Mapping[str, Mapping[int, Change]] = {
    **{op: {7: first.broadcast} for op in ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor")},
    **{op: {7: first.broadcast} for op in ("Equal", "Greater", "Less")},
    **{op: {7: without("output_sequence")} for op in ("GRU", "LSTM", "RNN")},
    **{op: {13: later.softmax} for op in _OVER_SEVERAL_AXES},
    **{op: {13: as_inputs("axes")} for op in ("Squeeze", "Unsqueeze", "ReduceSum")},
    **{op: {18: as_inputs("axes")} for op in _REDUCTIONS},
    "BatchNormalization": {7: without("is_test"), 9: later.batchnorm, 14: later.for_inference},
    "Cast": {6: first.cast},
    "Clip": {11: later.clip},
    "Concat": {4: with_default(axis=1)},
    "DFT": {20: later.dft},
    "Dropout": {7: without("is_test"), 12: without("ratio")},
    "Gemm": {7: without("broadcast")},
    "GlobalLpPool": {2: first.power("GlobalLpPool")},
    "GridSample": {20: later.grid_sample},
    "GroupNormalization": {21: later.group_norm},
    "LpPool": {2: first.power("LpPool")},
    "PRelu": {7: first.by_channel},
    "Pad": {2: first.paddings, 11: later.pad},
    "Reshape": {5: as_inputs("shape")},
    "Resize": {11: later.resize},
    "RoiAlign": {16: with_default(coordinate_transformation_mode="output_half_pixel")},
    "Scan": {9: later.refused("a Scan over batches")},
    "Scatter": {11: renamed("ScatterElements")},
    "Selu": {6: with_default(alpha=1.6732, gamma=1.0507)},
    "Slice": {10: as_inputs("starts", "ends", "axes")},
    "Split": {2: first.split, 13: as_inputs("split"), 18: later.split_evenly},
    "Tile": {6: first.tile},
    "TopK": {10: as_inputs("k")},
    "Upsample": {7: first.upsample_by_two, 9: later.upsample, 10: renamed("Resize")},
    "Affine": {10: first.formula(("Mul", "alpha"), ("Add", "beta"))},
    "Crop": {10: first.crop},
    "DynamicSlice": {10: renamed("Slice")},
    "ImageScaler": {10: first.formula(("Mul", "scale"), ("Add", "bias"))},
    "MeanVarianceNormalization": {9: first.mean_variance},
    "ParametricSoftplus": {10: first.formula(("Mul", "beta"), ("Softplus", ""), ("Mul", "alpha"))},
    "Scale": {10: first.formula(("Mul", "scale"))},
    "ScaledTanh": {10: first.formula(("Mul", "beta"), ("Tanh", ""), ("Mul", "alpha"))},
}
"""Operator -> first version that wants another form -> how it is said in that version."""
