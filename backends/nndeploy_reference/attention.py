# SPDX-License-Identifier: Apache-2.0
"""Attention over caches, masks and windows, in float64.

ONNX's evaluator caps raw products where they are an output, and takes infinite queries for masked ones.

Source: ONNX operator Attention (23-25).
"""

import numpy as np

from nndeploy_reference.operator_table import Array, Node, operator


@operator("Attention")
def _attention(
    node: Node,
    q: Array,
    k: Array,
    v: Array,
    mask: Array = None,
    past_k: Array = None,
    past_v: Array = None,
    lengths: Array = None,
) -> tuple[Array, ...]:
    is_packed = q.ndim == 3
    if is_packed:
        q, k, v = _heads(q, node.q_num_heads), _heads(k, node.kv_num_heads), _heads(v, node.kv_num_heads)
    if past_k is not None:
        k, v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    group = q.shape[1] // k.shape[1]
    wide_k, wide_v = (np.repeat(x.astype(np.float64), group, 1) for x in (k, v))
    scale = 1 / np.sqrt(q.shape[3]) if node.scale is None else node.scale
    raw = q.astype(np.float64) @ wide_k.swapaxes(2, 3) * scale
    capped = node.softcap * np.tanh(raw / node.softcap) if node.softcap else raw
    offset = 0 if past_k is None else past_k.shape[2]
    if past_k is None and lengths is not None:
        offset = lengths.reshape(-1, 1, 1, 1) - q.shape[2]
    bias = np.broadcast_to(_seen(node, raw.shape, offset, lengths) + _padded(mask, raw.shape[3]), raw.shape)
    shares = _shares(capped + bias, bias)
    y = (shares @ wide_v).astype(q.dtype)
    y = y.swapaxes(1, 2).reshape(y.shape[0], y.shape[2], -1) if is_packed else y
    return y, k, v, (raw, capped, capped + bias, shares)[node.qk_matmul_output_mode].astype(q.dtype)


def _heads(x: Array, count: int) -> Array:
    return x.reshape(*x.shape[:2], count, x.shape[2] // count).swapaxes(1, 2)


def _padded(mask: Array, length: int) -> Array:
    """Returns what a mask adds to products: -inf for keys that it hides, and for those behind its end."""
    if mask is None:
        return np.zeros(())
    wide = np.where(mask, 0, -np.inf) if mask.dtype == bool else mask.astype(np.float64)
    short = 0 if wide.shape[-1] == 1 else length - wide.shape[-1]
    return np.concatenate([wide, np.full((*wide.shape[:-1], short), -np.inf)], -1)


def _seen(node: Node, shape: tuple[int, ...], offset: Array, lengths: Array) -> Array:
    """Returns -inf for keys that a query must not see, of all heads alike: padding, later ones, beyond the window."""
    keys = np.arange(shape[3])
    ahead = keys - (np.arange(shape[2])[:, None] + offset)
    bounds = [(keys, lengths.reshape(-1, 1, 1, 1) - 1)] if lengths is not None else []
    bounds += [(ahead, 0)] if node.is_causal else []
    windows = [(-ahead, node.left_window_size), (ahead, node.right_window_size)]
    bounds += [(side, width) for side, width in windows if width is not None and width >= 0]
    hidden = [np.where(place <= most, 0, -np.inf) for place, most in bounds]
    return sum(hidden, np.zeros((1, 1, shape[2], shape[3])))


def _shares(products: Array, bias: Array) -> Array:
    """A query that sees no key gets nothing."""
    powers = np.exp(products - products.max(3, keepdims=True, initial=-np.inf))
    return np.where(
        np.max(bias, 3, keepdims=True, initial=-np.inf) == -np.inf, 0, powers / powers.sum(3, keepdims=True)
    )
