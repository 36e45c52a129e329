# SPDX-License-Identifier: Apache-2.0
"""Normalisations and losses: mean and variance over axes, then scale and bias."""

import math
from typing import Any

import numpy as np
from onnx import helper

from oracle.convolutions import along_channels
from oracle.elementwise import broadcasts
from oracle.indexing import checked_index
from oracle.reductions import axis_of
from oracle.registry import Call, InvalidError, UnspecifiedError, as_type, operator


def _mean(x: Any, axes: tuple[int, ...]) -> Any:
    return x.sum(axes, keepdims=True) / np.float64(math.prod(x.shape[axis] for axis in axes))


def _standardised(x: Any, axes: tuple[int, ...], epsilon: float) -> Any:
    centred = x - _mean(x, axes)
    return centred / np.sqrt(_mean(centred * centred, axes) + epsilon)


def _scaled(x: Any, scale: Any, bias: Any) -> Any:
    return along_channels(scale, x.ndim) * x + along_channels(bias, x.ndim)


@operator("BatchNormalization")
def _batch_norm(call: Call, x: Any, scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    if call.version < 7 and not call.is_test:
        raise UnspecifiedError("training, whose statistics these versions do not define")
    if 7 <= call.version < 14 and any(call.wants(i) for i in range(1, 5)):
        raise UnspecifiedError("training, whose statistics these versions do not define")
    if call.spatial == 0:  # one mean for each element
        return (x - mean) / np.sqrt(variance + call.epsilon) * scale + bias
    y = x.reshape(-1, 1) if x.ndim == 1 else x
    axes = tuple(axis for axis in range(y.ndim) if axis != 1)
    if not call.training_mode:
        return _normalised(y, mean, variance, call.epsilon, scale, bias).reshape(x.shape)
    now = _mean(y, axes).reshape(-1)
    spread = _mean((y - along_channels(now, y.ndim)) ** 2, axes).reshape(-1)
    running = [old * call.momentum + new * (1 - call.momentum) for old, new in ((mean, now), (variance, spread))]
    return (_normalised(y, now, spread, call.epsilon, scale, bias).reshape(x.shape), *running)


def _normalised(x: Any, mean: Any, variance: Any, epsilon: float, scale: Any, bias: Any) -> Any:
    mean, variance = along_channels(mean, x.ndim), along_channels(variance, x.ndim)
    return _scaled((x - mean) / np.sqrt(variance + epsilon), scale, bias)


@operator("InstanceNormalization")
def _instance_norm(call: Call, x: Any, scale: Any, bias: Any) -> Any:
    return _scaled(_standardised(x, tuple(range(2, x.ndim)), call.epsilon), scale, bias)


@operator("GroupNormalization")
def _group_norm(call: Call, x: Any, scale: Any, bias: Any) -> Any:
    """Version 18 has a scale for each group, later ones for each channel."""
    if x.shape[1] % call.num_groups:
        raise InvalidError(f"{x.shape[1]} channels in {call.num_groups} groups")
    per_group = x.shape[1] // call.num_groups
    if call.version < 21:
        scale, bias = np.repeat(scale, per_group), np.repeat(bias, per_group)
    rows = x.reshape(x.shape[0], call.num_groups, per_group * math.prod(x.shape[2:]))
    return _scaled(_standardised(rows, (2,), call.epsilon).reshape(x.shape), scale, bias)


@operator("LayerNormalization")
def _layer_norm(call: Call, x: Any, scale: Any, bias: Any = None) -> Any:
    axes = tuple(range(axis_of(call.axis, x.ndim), x.ndim))
    _check_scale(x, scale, bias)
    mean = _mean(x, axes)
    inverse = 1 / np.sqrt(_mean((x - mean) ** 2, axes) + call.epsilon)
    y = (x - mean) * inverse * scale
    dtype = helper.tensor_dtype_to_np_dtype(call.stash_type)
    return (y if bias is None else y + bias), as_type(mean, dtype), as_type(inverse, dtype)


def _check_scale(x: Any, *others: Any) -> None:
    if any(other is not None and broadcasts(x.shape, other.shape) != x.shape for other in others):
        raise InvalidError("scale or bias is larger than the input")


@operator("RMSNormalization")
def _rms_norm(call: Call, x: Any, scale: Any) -> Any:
    axes = tuple(range(axis_of(call.axis, x.ndim), x.ndim))
    _check_scale(x, scale)
    return x / np.sqrt(_mean(x * x, axes) + call.epsilon) * scale


@operator("LpNormalization")
def _lp_norm(call: Call, x: Any) -> Any:
    axis = axis_of(call.axis, x.ndim)
    norm = np.sum(np.abs(x) ** call.p, axis, keepdims=True) ** (1 / call.p)
    return np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm))


@operator("MeanVarianceNormalization")
def _mean_variance_norm(call: Call, x: Any) -> Any:
    """The operator's function keeps the deviation above 1e-9."""
    axes = tuple(axis_of(axis, x.ndim) for axis in call.axes)
    centred = x - _mean(x, axes)
    return centred / (np.sqrt(_mean(centred * centred, axes)) + 1e-9)


def _loss(call: Call, log_probabilities: Any, labels: Any, weights: Any) -> Any:
    """Returns the loss of each label, reduced; what is ignored has the weight 0 in a mean."""
    losses, counted = np.zeros(labels.shape), np.zeros(labels.shape)
    for place in np.ndindex(labels.shape):
        label = int(labels[place])
        if call.ignore_index is not None and label == call.ignore_index:
            continue
        if checked_index(label, log_probabilities.shape[1]) != label:
            raise InvalidError(f"label {label}")
        weight = 1.0 if weights is None else weights[label]
        losses[place] = -log_probabilities[(place[0], label, *place[1:])] * weight
        counted[place] = weight
    if call.reduction == "none":
        return losses
    return losses.sum() if call.reduction == "sum" else np.float64(losses.sum()) / counted.sum()


@operator("NegativeLogLikelihoodLoss")
def _nll(call: Call, x: Any, labels: Any, weights: Any = None) -> Any:
    return _loss(call, x, labels, weights)


@operator("SoftmaxCrossEntropyLoss")
def _cross_entropy(call: Call, scores: Any, labels: Any, weights: Any = None) -> Any:
    shifted = scores - scores.max(1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    return _loss(call, log_probabilities, labels, weights), log_probabilities
