# SPDX-License-Identifier: Apache-2.0
"""Attention, rotary embeddings, and linear attention: one query at a time."""

from itertools import product
from typing import Any

import numpy as np

from oracle.indexing import checked_index
from oracle.registry import Call, InvalidError, as_type, operator


def _heads(x: Any, count: int | None) -> Any:
    """Returns (batch, heads, length, size) of a tensor that may have its heads in the last axis."""
    if x.ndim == 4:
        return x
    if not count or x.shape[2] % count:
        raise InvalidError(f"{x.shape} in {count} heads")
    return np.swapaxes(x.reshape(*x.shape[:2], count, x.shape[2] // count), 1, 2)


@operator("Attention")
def _attention(
    call: Call, q: Any, k: Any, v: Any, mask: Any = None, past_k: Any = None, past_v: Any = None, lengths: Any = None
) -> Any:
    is_packed = q.ndim == 3
    q, k, v = _heads(q, call.q_num_heads), _heads(k, call.kv_num_heads), _heads(v, call.kv_num_heads)
    if past_k is not None:
        k, v = np.concatenate([past_k, k], 2), np.concatenate([past_v, v], 2)
    batch, heads, steps, size = q.shape
    scale = 1 / np.sqrt(size) if call.scale is None else call.scale
    logits = np.zeros((batch, heads, steps, k.shape[2]))
    stages = [np.zeros_like(logits) for _ in range(4)]
    y = np.zeros((batch, heads, steps, v.shape[3]))
    for b, h, i in np.ndindex(batch, heads, steps):
        of = h // (heads // k.shape[1])
        stages[0][b, h, i] = k[b, of] @ q[b, h, i] * scale
        stages[1][b, h, i] = _capped(stages[0][b, h, i], call.softcap)
        bias = _bias(call, mask, logits.shape, (b, h, i), past_k, lengths)
        stages[2][b, h, i] = stages[1][b, h, i] + bias
        stages[3][b, h, i] = _softmax(stages[2][b, h, i], bias)
        y[b, h, i] = stages[3][b, h, i] @ v[b, of]
    y = np.swapaxes(y, 1, 2).reshape(batch, steps, -1) if is_packed else y
    return y, k, v, stages[call.qk_matmul_output_mode]


def _capped(logits: Any, cap: float) -> Any:
    return cap * np.tanh(logits / cap) if cap else logits


def _bias(call: Call, mask: Any, shape: Any, place: tuple[int, int, int], past: Any, lengths: Any) -> Any:
    """Returns what is added to the logits of one query: -inf for keys that it must not see."""
    b, h, i = place
    keys, bias = np.arange(shape[3]), np.zeros(shape[3])
    if mask is not None:
        short = shape[3] - mask.shape[-1]
        filler = False if mask.dtype == bool else -np.inf
        if short > 0 and mask.shape[-1] != 1:
            mask = np.concatenate([mask, np.full((*mask.shape[:-1], short), filler)], -1)
        row = np.broadcast_to(mask, shape)[b, h, i]
        bias = np.where(row, 0, -np.inf) if mask.dtype == bool else bias + row
    offset = 0 if past is None else past.shape[2]
    if past is None and lengths is not None:
        offset = int(lengths[b]) - shape[2]
    if lengths is not None:
        bias = np.where(keys < lengths[b], bias, -np.inf)
    if call.is_causal:
        bias = np.where(keys <= i + offset, bias, -np.inf)
    for width, sign in ((call.left_window_size, -1), (call.right_window_size, 1)):
        if width is not None and width >= 0:
            bias = np.where((keys - (i + offset)) * sign <= width, bias, -np.inf)
    return bias


def _softmax(logits: Any, bias: Any) -> Any:
    """A query that sees no key gets nothing."""
    if np.isneginf(bias).all():
        return np.zeros_like(logits)
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


@operator("RotaryEmbedding")
def _rotary(call: Call, x: Any, cos: Any, sin: Any, positions: Any = None) -> Any:
    heads = _heads(x, call.num_heads)
    batch, _, steps, size = heads.shape
    width = call.rotary_embedding_dim or size
    half = width // 2
    if cos.shape[-1] != half or sin.shape[-1] != half or width > size:
        raise InvalidError(f"caches of {cos.shape[-1]} for {width}")
    found = heads.copy()
    for b, t, j in product(range(batch), range(steps), range(half)):
        row = (b, t) if positions is None else (checked_index(positions[b, t], cos.shape[0]),)
        c, s = cos[(*row, j)], sin[(*row, j)]
        first, second = (2 * j, 2 * j + 1) if call.interleaved else (j, j + half)
        a, z = heads[b, :, t, first], heads[b, :, t, second]
        found[b, :, t, first], found[b, :, t, second] = c * a - s * z, s * a + c * z
    return found if x.ndim == 4 else np.swapaxes(found, 1, 2).reshape(x.shape)


@operator("LinearAttention")
def _linear_attention(call: Call, q: Any, k: Any, v: Any, past: Any = None, decay: Any = None, beta: Any = None) -> Any:
    hq, hkv = call.q_num_heads, call.kv_num_heads
    q, k, v = _heads(q, hq), _heads(k, hkv), _heads(v, hkv)
    batch, _, steps, dk = q.shape
    dv, rule = v.shape[3], call.update_rule
    scale = call.scale or 1 / np.sqrt(dk)
    state = np.zeros((batch, hkv, dk, dv)) if past is None else past.copy()
    y = np.zeros((batch, hq, steps, dv))
    for b, t, h in product(range(batch), range(steps), range(hkv)):
        s = state[b, h]
        if rule.startswith("gated"):
            g = decay[b, t].reshape(hkv, -1)[h]  # one for each element of the key, or one for the head
            s = np.exp(g)[:, None] * s
        write = v[b, h, t]
        if rule.endswith("delta"):
            write = beta[b, t, h if beta.shape[2] > 1 else 0] * (write - s.T @ k[b, h, t])
        state[b, h] = s + np.outer(k[b, h, t], write)
        for of in range(h * (hq // hkv), (h + 1) * (hq // hkv)):
            y[b, of, t] = scale * q[b, of, t] @ state[b, h]
    return np.swapaxes(y, 1, 2).reshape(batch, steps, -1), as_type(state, call.dtypes[0 if past is None else 3])
