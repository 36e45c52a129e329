# SPDX-License-Identifier: Apache-2.0
"""Sound and boxes: Fourier transforms by their sums, windows, the mel scale, and suppression of boxes."""

import math
from typing import Any

import numpy as np

from oracle.casts import dtype_of
from oracle.reductions import axis_of
from oracle.registry import Call, InvalidError, UnspecifiedError, as_type, operator


@operator("DFT")
def _dft_old(call: Call, x: Any, length: Any = None) -> Any:
    return _dft(call, x, length, call.axis)


@operator("DFT", since=20)
def _dft_new(call: Call, x: Any, length: Any = None, axis: Any = None) -> Any:
    return _dft(call, x, length, -2 if axis is None else int(axis.item()))


def _dft(call: Call, x: Any, length: Any, axis: int) -> Any:
    axis = axis_of(axis, x.ndim)
    if axis == x.ndim - 1:
        raise InvalidError("the last axis holds real and imaginary parts")
    signal = np.moveaxis(_complex(x), axis, -1)
    is_inverse_real = call.onesided and call.inverse
    usual = 2 * (signal.shape[-1] - 1) if is_inverse_real else signal.shape[-1]
    n = usual if length is None else int(length.item())
    if call.onesided and not call.inverse and x.shape[-1] != 1:
        raise InvalidError("a one-sided transform of a complex signal")
    if is_inverse_real:
        signal = _other_half(signal, n)
    found = transformed(_fitted(signal, n), inverse=bool(call.inverse))
    found = found[..., : n // 2 + 1] if call.onesided and not call.inverse else found
    found = np.moveaxis(found, -1, axis)
    return found.real[..., None] if is_inverse_real else np.stack([found.real, found.imag], -1)


def _complex(x: Any) -> Any:
    if not np.isfinite(x).all():
        raise UnspecifiedError("a transform of what is not finite")
    return x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)


def _other_half(half: Any, n: int) -> Any:
    """Returns all n values of the spectrum of a real signal: the second half mirrors the first."""
    kept = _fitted(half, n // 2 + 1)
    return np.stack([kept[..., k] if k <= n // 2 else np.conj(kept[..., n - k]) for k in range(n)], -1)


def _fitted(x: Any, n: int) -> Any:
    x = x[..., :n]
    return np.concatenate([x, np.zeros((*x.shape[:-1], n - x.shape[-1]))], -1)


def transformed(x: Any, inverse: bool) -> Any:
    """Returns the discrete Fourier transform along the last axis, by its definition."""
    n = x.shape[-1]
    k = np.arange(n)
    matrix = np.exp((2j if inverse else -2j) * np.pi * (np.outer(k, k) % n) / n)
    return x @ matrix / (n if inverse else 1)


@operator("STFT")
def _stft(call: Call, signal: Any, step: Any, window: Any = None, length: Any = None) -> Any:
    size = signal.shape[1] if window is None else window.shape[0]
    size = size if length is None else int(length.item())
    if window is not None and window.shape[0] != size:
        raise InvalidError("a window of another length than the frame")
    if call.onesided and signal.shape[2] != 1:
        raise InvalidError("a one-sided transform of a complex signal")
    x, hop = _complex(signal), int(step.item())
    shape = np.ones(size) if window is None else window
    count = (signal.shape[1] - size) // hop + 1
    frames = np.stack([x[:, i * hop : i * hop + size] * shape for i in range(count)], 1)
    found = transformed(frames, inverse=False)
    found = found[..., : size // 2 + 1] if call.onesided else found
    return np.stack([found.real, found.imag], -1)


_COSINES = {
    "HannWindow": (0.5, 0.5, 0.0), "HammingWindow": (25 / 46, 21 / 46, 0.0), "BlackmanWindow": (0.42, 0.5, 0.08),
}  # fmt: skip


@operator(*_COSINES)
def _window(call: Call, size: Any) -> Any:
    """a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N); N is the size, or one less where it is symmetric."""
    a0, a1, a2 = _COSINES[call.op]
    n = int(size.item())
    over = n if call.periodic else n - 1
    if over == 0:
        raise UnspecifiedError("a symmetric window of one element")
    angles = 2 * np.pi * np.arange(n) / over
    return as_type(a0 - a1 * np.cos(angles) + a2 * np.cos(2 * angles), dtype_of(call.output_datatype))


@operator("MelWeightMatrix")
def _mel(call: Call, bins: Any, length: Any, rate: Any, low: Any, high: Any) -> Any:
    """Triangles between edges that are rounded down to bins of the spectrum, by the example of the specification.

    There the range is divided into two more parts than there are bands.
    """
    count, n, rate_hz = int(bins.item()), int(length.item()), int(rate.item())
    first, last = (2595 * math.log10(1 + v.item() / 700) for v in (low, high))
    mel = first + np.arange(count + 2) * (last - first) / (count + 2)
    edges = np.floor((n + 1) * (700 * (10 ** (mel / 2595) - 1)) / rate_hz).astype(int).tolist()
    found = np.zeros((n // 2 + 1, count))
    for i in range(count):
        a, b, c = edges[i : i + 3]
        if a == b:
            found[b, i] = 1.0
        for k in range(a, b + 1):
            if a != b:
                found[k, i] = (k - a) / (b - a)
        for k in range(b, c):
            if b != c:
                found[k, i] = (c - k) / (c - b)
    return as_type(found, dtype_of(call.output_datatype))


@operator("NonMaxSuppression")
def _suppress(call: Call, boxes: Any, scores: Any, most: Any = None, iou: Any = None, threshold: Any = None) -> Any:
    """Boxes in the order of their scores, of equal ones the first, without those that overlap a chosen one too far."""
    if not np.isfinite(boxes).all() or np.isnan(scores).any():
        raise UnspecifiedError("boxes without end")
    limit = 0 if most is None else int(most.item())
    bound = 0.0 if iou is None else iou.item()
    found = []
    for b, c in np.ndindex(*scores.shape[:2]):
        row = scores[b, c]
        order = sorted(range(len(row)), key=lambda i, row=row: (-row[i], i))
        chosen: list[int] = []
        for i in order:
            if threshold is not None and row[i] == threshold.item():
                raise UnspecifiedError("a score that is the threshold")
            if (threshold is not None and not row[i] > threshold.item()) or len(chosen) >= limit:
                continue
            if all(_overlap(call, boxes[b, i], boxes[b, j]) <= bound for j in chosen):
                chosen.append(i)
        found += [[b, c, i] for i in chosen]
    return np.array(found, np.int64).reshape(-1, 3)


def _overlap(call: Call, one: Any, other: Any) -> float:
    (y1, x1, y2, x2), (v1, u1, v2, u2) = (_corners(call, box.tolist()) for box in (one, other))
    inner = max(0.0, min(y2, v2) - max(y1, v1)) * max(0.0, min(x2, u2) - max(x1, u1))
    outer = (y2 - y1) * (x2 - x1) + (v2 - v1) * (u2 - u1) - inner
    return inner / outer if inner > 0 else 0.0


def _corners(call: Call, box: list[float]) -> tuple[float, float, float, float]:
    if call.center_point_box:
        x, y, w, h = box
        return y - h / 2, x - w / 2, y + h / 2, x + w / 2
    return min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3])
