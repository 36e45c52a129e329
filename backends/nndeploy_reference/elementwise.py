# SPDX-License-Identifier: Apache-2.0
"""Operators element by element, and the old forms of operators that later opsets changed.

    Add, Sub, ... before opset 7   a second operand of fewer axes lies along `axis` where `broadcast` is set
    Clip-1, Cast-1, Tile-1, ...    forms that ONNX's evaluator has not

Source: ONNX operators of opsets 1 to 12; the functions of Shrink (9) and Gelu (20).
"""

import numpy as np
from onnx import TensorProto, helper

from nndeploy_reference.operator_table import Array, Node, in_float32, operator


def aligned(node: Node, a: Array, b: Array) -> Array:
    """Returns b with the axes that it lacks behind, so that it lies along the axis of a that the node says."""
    if not node.broadcast or b.size == 1:
        return b.reshape(()) if node.broadcast else b
    axis = a.ndim - b.ndim if node.axis is None else node.axis
    return b.reshape(b.shape + (1,) * (a.ndim - axis - b.ndim))


_BINARY = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Pow": np.power, "And": np.logical_and, "Or": np.logical_or,
    "Xor": np.logical_xor, "Equal": np.equal, "Greater": np.greater, "Less": np.less,
}  # fmt: skip


@operator(*_BINARY, "Div", before=7)
@in_float32
def _old_binary(node: Node, a: Array, b: Array) -> Array:
    b = aligned(node, a, b)
    if node.op_type != "Div":
        return _BINARY[node.op_type](a, b)
    if a.dtype.kind == "f":
        return a / b
    return np.where(b == 0, 0, np.trunc(a / np.where(b == 0, 1, b))).astype(a.dtype)


@operator("PRelu")
@in_float32
def _prelu(node: Node, x: Array, slope: Array) -> Array:
    """A slope that is NaN says nothing of what is not below 0."""
    if node.version < 7 and slope.size == 1:
        slope = slope.reshape(())
    elif node.version < 7 and slope.ndim == 1 and x.ndim > 1:
        slope = slope.reshape(slope.shape + (1,) * (x.ndim - 2))
    return np.where(x < 0, slope * x, x)


@operator("Clip", before=6)
def _old_clip(node: Node, x: Array) -> Array:
    low, high = (None if bound is None else x.dtype.type(bound) for bound in (node.min, node.max))
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


@operator("Selu", before=6)
@in_float32
def _old_selu(node: Node, x: Array) -> Array:
    """Its constants have fewer digits than those of later versions."""
    return np.where(x > 0, node.gamma * x, node.gamma * (node.alpha * np.exp(np.minimum(x, 0)) - node.alpha))


@operator("Shrink")
def _shrink(node: Node, x: Array) -> Array:
    bias, bound = (np.asarray(value).astype(x.dtype) for value in (node.bias, node.lambd))
    return np.where(x < -bound, x + bias, np.where(x > bound, x - bias, np.zeros_like(x)))


@operator("Mean")
def _mean(_: Node, *xs: Array) -> Array:
    return (sum(x.astype(np.float64) for x in xs) / len(xs)).astype(xs[0].dtype)


@operator("Erf", "Gelu")
@in_float32
def _erf_or_gelu(node: Node, x: Array) -> Array:
    """The error function to the last digits of float64, which ONNX's evaluator computes in float32."""
    if node.op_type == "Erf":
        return _erf(x.astype(np.float64)).astype(x.dtype)
    wide = x.astype(np.float64)
    if node.approximate == "tanh":
        share = 1 + np.tanh(np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3))
    else:
        share = 1 + _erf(wide / np.sqrt(2))
    return (0.5 * wide * share).astype(x.dtype)


def _erf(x: Array) -> Array:
    """The power series up to 2.5, then the continued fraction of the complement. Source: NIST DLMF 7.6.2, 7.9.1."""
    small = np.clip(np.abs(np.nan_to_num(x)), 0, 2.5)
    term, total = small.copy(), small.copy()
    for n in range(1, 60):
        term = term * 2 * small**2 / (2 * n + 1)
        total = total + term
    near = 2 / np.sqrt(np.pi) * np.exp(-(small**2)) * total
    large = np.clip(np.abs(np.nan_to_num(x)), 2.5, 7)
    fraction = np.zeros_like(large)
    for n in range(60, 0, -1):
        fraction = n / 2 / (large + fraction)
    far = 1 - np.exp(-(large**2)) / (np.sqrt(np.pi) * (large + fraction))
    return np.where(np.isnan(x), x, np.copysign(np.where(np.abs(x) < 2.5, near, far), x))


@operator("Cast", before=6)
def _old_cast(node: Node, x: Array) -> Array:
    return x.astype(helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(node.to)))


@operator("Dropout", before=7)
def _old_dropout(node: Node, x: Array) -> tuple[Array, ...]:
    if not node.is_test and node.ratio:
        raise ValueError("Dropout before opset 7 is random where is_test is not set")
    return x, np.ones_like(x)


@operator("StringNormalizer")
def _normalised_text(node: Node, x: Array) -> Array:
    stop = {word if node.is_case_sensitive else word.lower() for word in node.stopwords or []}
    kept = [word for word in x.ravel().tolist() if (word if node.is_case_sensitive else word.lower()) not in stop]
    changed = [getattr(word, node.case_change_action.lower(), lambda word=word: word)() for word in kept or [""]]
    return np.array(changed, object).reshape((-1,) if x.ndim == 1 else (1, -1))


@operator("StringSplit")
def _split_text(node: Node, x: Array) -> tuple[Array, ...]:
    """Without a delimiter white space separates, and none is left at the ends; an empty text has no parts."""
    most = -1 if node.maxsplit is None else node.maxsplit
    texts = x.ravel().tolist()
    rows = [t.split(node.delimiter, most) if node.delimiter and t else t.strip().split(None, most) for t in texts]
    found = np.full((len(rows), max(map(len, rows), default=0)), "", object)
    for i, row in enumerate(rows):
        found[i, : len(row)] = row
    return found.reshape(*x.shape, found.shape[1]), np.array(list(map(len, rows)), np.int64).reshape(x.shape)
